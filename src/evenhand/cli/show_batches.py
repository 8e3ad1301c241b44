"""A run's batches as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.cli.amounts import counted, dollars, number
from evenhand.cli.show_runs import moment
from evenhand.cli.terminal import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.report.batches import BatchReport, BatchStage

_SHOWN_AT_MOST = 20
_STATES: dict[BatchStage, str] = {
    "intended": "not sent yet",
    "sent": "sent, looked for",
    "open": "at the provider",
    "done": "collected",
}


def show_batches(console: Console, batches: Sequence[BatchReport]) -> None:
    """The newest of them, after a line that counts all."""
    from rich.table import Table
    from rich.text import Text

    if not batches:
        return
    there = [batch for batch in batches if batch.state != "done"]
    waiting = sum(batch.requests for batch in there)
    told = f"{counted(len(batches), 'batch', 'batches')}, "
    told += f"{counted(waiting, 'request')} not collected" if there else "all collected"
    if len(batches) > _SHOWN_AT_MOST:
        told += f" (the last {_SHOWN_AT_MOST})"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("batch", "judge", "state", "requests", "sent", "reserved"):
        right = column in ("requests", "reserved")
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for batch in batches[-_SHOWN_AT_MOST:]:
        table.add_row(
            Text(one_line(batch.id or "not known")),
            Text(one_line(batch.judge)),
            _STATES[batch.state],
            number(batch.requests),
            "no" if batch.sent_at is None else moment(batch.sent_at),
            "not known" if batch.reserved_usd is None else dollars(batch.reserved_usd),
        )
    console.print()
    console.print(Text(told, "bold"))
    if not console.is_terminal:  # a pipe has no width, and lines stay whole
        wide = console.options.update(width=10_000)
        console.width = max(console.width, console.measure(table, options=wide).maximum)
    console.print(table)
