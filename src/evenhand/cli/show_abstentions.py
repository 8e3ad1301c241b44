"""What stands and what abstained, as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.cli.amounts import number
from evenhand.cli.rates import interval, rate
from evenhand.cli.show import show_hanging
from evenhand.cli.terminal import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.report.abstentions import Abstentions
    from evenhand.stats.estimated_share import EstimatedShare


def show_abstentions(console: Console, found: Sequence[Abstentions]) -> None:
    from rich.text import Text

    for each in found:
        console.print()
        who = f"{one_line(each.judge)}: " if len(found) > 1 else ""
        for lead, said in _lines(each):
            show_hanging(console, Text(f"{lead:<10}", "dim"), Text(f"{who}{said}"))
        warned = each.check is not None and each.check.contradicted
        for place, note in enumerate(each.notes, start=1):
            # The warning is the last of them.
            warns = warned and place == len(each.notes)
            head, style = ("WARNING", "bold red") if warns else ("learned", "dim")
            show_hanging(console, Text(f"{head:<10}", style), Text(one_line(note)))


def _lines(found: Abstentions) -> list[tuple[str, str]]:
    if found.threshold is None:
        limit = f"nothing could be guaranteed for {found.min_agreement:g}, so all of them"
    else:
        limit = f"below {found.threshold:.3f}, which an agreement of {found.min_agreement:g} needs"
    return [
        ("abstained", f"{number(found.abstained)} of {number(found.judged)} pairs: {limit}"),
        ("coverage", _share(found.coverage)),
        ("agreement", f"with labels: {_share(found.agreement_kept)} of those that stand"),
        ("", f"of those that abstained {_share(found.agreement_abstained)}"),
    ]


def _share(share: EstimatedShare) -> str:
    told = f"{number(share.part)} of {number(share.of)}"
    if share.value is None or share.low is None or share.high is None:
        return f"{told} (not enough data)"
    return f"{told}: {rate(share.value)} ({interval(share.low, share.high)})"
