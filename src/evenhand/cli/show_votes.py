"""People's votes as a person reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.cli.amounts import counted, number
from evenhand.cli.rates import interval, percent, rate
from evenhand.cli.show import show_hanging
from evenhand.cli.terminal import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.stats.estimated_share import EstimatedShare
    from evenhand.stats.krippendorff import Krippendorff
    from evenhand.trust.vote_import import ImportedVotes
    from evenhand.trust.vote_summary import VotesSummary

_LEAD = 10
_PEOPLE_AT_MOST = 20


def show_votes(console: Console, found: VotesSummary) -> None:
    from rich.text import Text

    console.print(Text(f"votes on run {one_line(found.run)}", "bold"))
    for lead, said in _lines(found):
        show_hanging(console, Text(f"{lead:<{_LEAD}}", "dim"), Text(said))
    if found.people:
        console.print()
        _show_people(console, found)


def _lines(found: VotesSummary) -> Iterator[tuple[str, str]]:
    if not found.people:
        pairs = counted(found.pairs, "pair")
        yield "votes", f"none yet on {pairs}; evenhand label asks, evenhand votes import reads"
        return
    people = "1 person" if len(found.people) == 1 else f"{number(len(found.people))} people"
    voted = f"{number(found.voted_pairs)} of {counted(found.pairs, 'pair')}"
    yield "votes", f"{number(found.votes)} by {people} on {voted}, skipped {number(found.skipped)}"
    spread = ", ".join(
        f"{number(pairs)} by {people_count}"
        for people_count, pairs in enumerate(found.people_a_pair, 1)
        if pairs
    )
    if len(found.people_a_pair) > 1:
        yield "people", f"pairs voted on by so many people: {spread}"
    counts = found.majority
    yield (
        "majority",
        f"A {number(counts.a)}, B {number(counts.b)}, ties {number(counts.tie)}, "
        f"equally divided {number(counts.none)}",
    )
    if found.with_label.of:
        yield (
            "label",
            f"the majority says what the data's own label says: {_share(found.with_label)}",
        )
    agreement = found.agreement
    yield "agreement", f"two people say the same: {_share(agreement.agreement)}"
    if agreement.units:
        yield "", f"all people say the same: {_share(agreement.unanimous)}"
    yield "alpha", _alpha(agreement.alpha)
    yield "came by", _counts(found.by_origin)
    yield "drawn", _counts(found.by_draw)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {number(count)}" for name, count in counts.items())


def _share(share: EstimatedShare) -> str:
    told = f"{number(share.part)} of {number(share.of)}"
    if share.value is None or share.low is None or share.high is None:
        return f"{told} ({share.reason or 'not enough data'})"
    return f"{told}: {rate(share.value)} ({interval(share.low, share.high)})"


def _alpha(alpha: Krippendorff) -> str:
    if alpha.alpha is None:
        return alpha.reason or "not enough data"
    told = f"Krippendorff's alpha {alpha.alpha:.2f}"
    if alpha.low is None or alpha.high is None:
        return f"{told} ({alpha.reason or 'no interval'})"
    of = counted(alpha.units, "pair")
    return f"{told} ({alpha.low:.2f} to {alpha.high:.2f}, at {percent(alpha.level)}), on {of}"


def _show_people(console: Console, found: VotesSummary) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("who", overflow="fold")
    for name in ("votes", "skipped"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("says the same as another", overflow="fold")
    for person in found.people[:_PEOPLE_AT_MOST]:
        table.add_row(
            Text(one_line(person.who)),
            number(person.votes),
            number(person.skipped),
            _share(person.agreement) if person.agreement.of else "",
        )
    console.print(table)
    if len(found.people) > _PEOPLE_AT_MOST:
        left = number(len(found.people) - _PEOPLE_AT_MOST)
        console.print(Text(f"and {left} more in --json", "dim"))


def show_imported(console: Console, found: ImportedVotes) -> None:
    from rich.text import Text

    people = "1 person" if found.people == 1 else f"{number(found.people)} people"
    console.print(
        Text(
            f"{counted(found.votes, 'vote')} by {people} on {counted(found.pairs, 'pair')} of run "
            f"{one_line(found.run)}: {number(found.new)} new, {number(found.replaced)} replaced, "
            f"{number(found.unchanged)} unchanged"
        ),
        soft_wrap=True,
    )
    for note in _notes(found):
        show_hanging(console, Text("note ", "yellow"), Text(one_line(note)))


def _notes(found: ImportedVotes) -> Iterator[str]:
    if found.unknown_votes:
        shown = ", ".join(repr(pair) for pair in found.unknown_pairs[:3])
        more = ", …" if len(found.unknown_pairs) > 3 else ""
        yield (
            f"{counted(found.unknown_votes, 'vote')} on pairs that the run does not have "
            f"{_were(found.unknown_votes)} left out: {shown}{more}"
        )
    if found.bad_rows:
        yield f"{counted(found.bad_rows, 'row')} that {_were(found.bad_rows)} no vote, skipped"
    for row in found.first_bad_rows:
        yield f"row {row.row}: {row.reason}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
