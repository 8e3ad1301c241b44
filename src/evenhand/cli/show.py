"""A verdict as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from evenhand.cli.terminal import clean, one_line
from evenhand.contract import Failure, Outcome, Pair, Usage, Verdict, Winner

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.measure import Measurement
    from rich.segment import Segment
    from rich.text import Text

_PIECE = 4_000  # characters
_HEADLINE: dict[Winner, str] = {
    "A": "Response A is better",
    "B": "Response B is better",
    "TIE": "A tie",
}
_STYLE = {
    Outcome.WIN: "bold green",
    Outcome.TIE: "bold cyan",
    Outcome.INCONSISTENT: "bold yellow",
    Outcome.INVALID: "bold red",
}
_CONFIDENCE = {
    "stated": "stated by the judge",
    "logprobs": "from token probabilities",
    "votes": "share of samples",
    "rule": "by rule: the orders disagree",
    "calibration": "that it is right, by its calibration",
    "none": "",
}
_PASS = {"original": "first pass", "swapped": "second pass"}
_MARK: dict[Winner | None, str] = {"A": "A", "B": "B", "TIE": "tie", None: "not judged"}
# Below this, a table's columns would be too narrow to read.
_TABLE_WIDTH = 60


class _Row(NamedTuple):
    criterion: str
    mark: str
    style: str
    why: str


def plain(text: str) -> Prose:
    """Judged or judge-written text: shown as it reads, never as markup or control sequence."""
    return Prose(clean(text).strip("\n"))


class Prose:
    """A text that wraps in time linear in its length: Rich wraps a whole one at once, which takes
    it 16 s for 2 MB. Pieces are wrapped, and a piece's last line goes on in the next."""

    def __init__(self, text: str) -> None:
        self.text = text

    def lines(self, console: Console, width: int) -> Iterator[str]:
        from rich.cells import cell_len
        from rich.text import Text

        for line in self.text.expandtabs(8).split("\n"):
            if len(line) <= width and cell_len(line) <= width:
                yield line
                continue
            piece = max(_PIECE, 2 * width)
            begun, left = 0, ""
            while begun < len(line):
                taken = left + line[begun : begun + piece]
                begun += piece
                *whole, left = (
                    each.plain
                    for each in Text(taken).wrap(console, width, overflow="fold", no_wrap=False)
                )
                # What is cut off at a line's end is space, and the next piece may go on with it.
                if begun < len(line) and taken.endswith(" ") and not left.endswith(" "):
                    left += " "
                yield from whole
            yield left

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        from rich.segment import Segment

        for line in self.lines(console, options.max_width):
            yield Segment(line)
            yield Segment.line()

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.cells import cell_len
        from rich.measure import Measurement

        longest = max(map(cell_len, self.text.expandtabs(8).split("\n")), default=0)
        return Measurement(min(longest, 1), min(longest, options.max_width))


def headline(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.INCONSISTENT:
        decided = verdict.metadata.decided_by
        if decided is None:
            return "Inconsistent: the winner changed with the order"
        return f"Inconsistent, {_HEADLINE[verdict.winner].lower()} by {decided}"
    return _HEADLINE[verdict.winner]


def show_verdict(console: Console, verdict: Verdict) -> None:
    from rich.padding import Padding
    from rich.text import Text

    meta = verdict.metadata
    confidence = "not given" if verdict.confidence is None else f"{verdict.confidence:.2f}"
    source = _CONFIDENCE[meta.confidence_source]
    console.print(
        Text.assemble(
            (headline(verdict), _STYLE[verdict.outcome]),
            ("   confidence ", "dim"),
            confidence,
            (f" ({source})" if source else "", "dim"),
        )
    )
    if meta.abstained:
        console.print(Text("abstained: its calibration does not vouch for it", "yellow"))
    position = verdict.position_consistency
    if position is not None:
        same = "both orders agree" if position.consistent else "the orders differ"
        first, second = _MARK[position.first_pass_winner], _MARK[position.second_pass_winner]
        console.print(Text(f"first pass {first}, second pass {second}: {same}", "dim"))
    _show_criteria(console, verdict)
    if verdict.overall_reasoning:
        console.print(Padding(plain(verdict.overall_reasoning), (1, 0, 0, 0)))
    told = _told_in_the_table(verdict)
    for title, points in (
        ("For Response A", verdict.differentiators.a_advantages),
        ("For Response B", verdict.differentiators.b_advantages),
    ):
        _show_points(console, title, [point for point in points if point not in told])
    for note in verdict.notes:
        show_hanging(console, Text("note ", "yellow"), plain(note))
    console.print(Text(footer(verdict.metadata.judge, meta.usage, meta.evaluation_time_ms), "dim"))


def _show_criteria(console: Console, verdict: Verdict) -> None:
    from rich.text import Text

    outcomes = {entry.criterion: entry.outcome for entry in verdict.metadata.criteria}
    rows = []
    for entry in verdict.comparison:
        inconsistent = outcomes.get(entry.criterion) is Outcome.INCONSISTENT
        mark = "inconsistent" if inconsistent else _MARK[entry.winner]
        rows.append(_Row(entry.criterion, mark, "yellow" if inconsistent else "", entry.reasoning))
    if all(row.mark == _MARK[None] for row in rows):
        console.print(Text("no criterion was judged", "dim"))
    elif console.width < _TABLE_WIDTH:
        _list_rows(console, rows)
    else:
        _tabulate_rows(console, rows)


def _list_rows(console: Console, rows: list[_Row]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    for row in rows:
        console.print(Text.assemble((one_line(row.criterion), "bold"), ": ", (row.mark, row.style)))
        if row.why:
            console.print(Padding(plain(row.why), (0, 0, 0, 2)))


def _tabulate_rows(console: Console, rows: list[_Row]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    reasoned = any(row.why.strip() for row in rows)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=reasoned)
    table.add_column("criterion", ratio=2, overflow="fold")
    table.add_column("winner", width=max(len("winner"), *(len(row.mark) for row in rows)))
    if reasoned:
        table.add_column("why", ratio=6, overflow="fold")
    for row in rows:
        why = (plain(row.why),) if reasoned else ()
        table.add_row(Text(one_line(row.criterion)), Text(row.mark, row.style), *why)
    console.print(table)


def _told_in_the_table(verdict: Verdict) -> set[str]:
    """A criterion that was won stands in the table, with its reason; once is enough."""
    rows = [(entry.criterion, entry.reasoning) for entry in verdict.comparison]
    return {name for name, _ in rows} | {f"{name}: {reason}" for name, reason in rows}


def _show_points(console: Console, title: str, points: list[str]) -> None:
    from rich.text import Text

    if not points:
        return
    console.print(Text(title, "bold"))
    for point in points:
        show_hanging(console, Text("  •"), plain(point))


def show_hanging(console: Console, lead: Text, text: Text | Prose) -> None:
    """A text whose further lines begin under its first word."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(lead, text)
    console.print(grid)


def footer(judge: str | None, usage: Usage, time_ms: float) -> str:
    parts = [one_line(judge or "")]
    if usage.input_tokens is not None and usage.output_tokens is not None:
        parts.append(f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
    if usage.cost_usd:
        parts.append(f"${usage.cost_usd:.4f}")
    elif usage.cost_usd is None and usage.requests:
        parts.append("cost not known")
    parts.append(f"{usage.requests} request{'' if usage.requests == 1 else 's'}")
    parts.append(f"{time_ms / 1000:.1f} s")
    return " · ".join(part for part in parts if part)


def show_failure(console: Console, failure: Failure) -> None:
    """One line for the error, and a line for what was kept."""
    from rich.text import Text

    message = one_line(failure.error.message)
    console.print(Text.assemble(("error  ", "bold red"), message), soft_wrap=True)
    ballots = [p.ballot for p in failure.metadata.passes if p.ballot]
    if ballots:
        said = ", ".join(f"{_PASS[ballot.order]} {_MARK[ballot.winner]}" for ballot in ballots)
        console.print(Text(f"kept: {said}; --json shows it", "dim"))


def show_pair(console: Console, pair: Pair, *, title: str = "") -> None:
    from rich.text import Text

    if title:
        console.rule(Text(title, "bold"), align="left")
    for name, text in (
        ("prompt", pair.prompt),
        ("A", pair.response_a),
        ("B", pair.response_b),
    ):
        show_hanging(console, Text(f"{name:>6} ", "dim"), plain(text))
