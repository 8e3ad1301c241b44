"""`evenhand compare`: one pair, one verdict; and a verdict, a failure and a pair as a person reads
them.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.options import JudgeChoices, PairTexts, grouped, open_judge
from evenhand.present.terminal import one_line, plain, show_hanging

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.contract import Artefact, Failure, Pair, Usage, Verdict, Winner
    from evenhand.errors import JudgeError


@grouped
def compare(
    *,
    texts: PairTexts,
    judge: opt.JudgeName = None,
    judging: JudgeChoices,
    calibration: opt.Calibrations = None,
    force_calibration: opt.ForceCalibration = False,
    as_json: opt.AsJson = False,
) -> None:
    """Judge which of two responses is better, in both orders.

    Exit codes: 0 a verdict (including an inconsistent one), 2 bad input, 3 the judge failed, 4
    no valid verdict, 130 interrupted.
    """
    from evenhand.cli.inputs import calibrations_of, gather_pair
    from evenhand.judging.comparison import compare as compare_pair

    config = judging.config(judge)
    pair = gather_pair(texts, criteria_needed=config.needs_prompt)
    opened = open_judge(config)
    (calibrating,) = calibrations_of(calibration, [opened], forced=force_calibration)
    retry = replace(config.retry_policy, notice=_show_retry)
    config = replace(config, calibration=calibrating, retry=retry)

    async def judged() -> Verdict:
        async with session.opened(opened) as asked:
            if as_json or not sys.stderr.isatty():
                return await compare_pair(pair, asked, config)
            with session.waiting(f"asking {asked.name} …"):
                return await compare_pair(pair, asked, config)

    verdict = session.run_async(judged())
    session.present(verdict, show_verdict, as_json=as_json)


def _show_retry(error: JudgeError, wait_s: float) -> None:
    """A line for every wait long enough to wonder about; `--retries` bounds how many."""
    from evenhand.runs.pacing import Trouble

    if wait_s >= _WONDERED_AFTER_S:
        session.note(Trouble(error, 0.0, wait_s).line)


_WONDERED_AFTER_S = 1.0

# A verdict as a person reads it in a terminal.

_HEADLINE: dict[Winner, str] = {
    "A": "Response A is better",
    "B": "Response B is better",
    "TIE": "A tie",
}
_STYLE = {  # by outcome
    "win": "bold green",
    "tie": "bold cyan",
    "inconsistent": "bold yellow",
    "invalid": "bold red",
}
_CONFIDENCE = {
    "stated": "stated by the judge",
    "logprobs": "from token probabilities",
    "votes": "share of samples",
    "rule": "by rule: the orders disagree",
    "identical": "by rule: the responses are identical",
    "calibration": "probability of being right, calibrated",
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


def headline(verdict: Verdict) -> str:
    from evenhand.contract import Outcome

    if verdict.outcome is Outcome.INCONSISTENT:
        decided = verdict.metadata.decided_by
        if decided is None:
            return "Inconsistent: the winner changed with the order"
        return f"Inconsistent, {_HEADLINE[verdict.winner].lower()} by {decided}"
    return _HEADLINE[verdict.winner]


def show_verdict(console: Console, verdict: Verdict) -> None:
    from rich.text import Text

    from evenhand.judging.preparation import used

    meta = verdict.metadata
    confidence = "not given" if verdict.confidence is None else f"{verdict.confidence:.2f}"
    by_rule = "identical" if meta.decided_by == "identical" else meta.confidence_source
    source = _CONFIDENCE[by_rule]
    console.print(
        Text.assemble(
            (headline(verdict), _STYLE[verdict.outcome]),
            ("   confidence ", "dim"),
            confidence,
            (f" ({source})" if source else "", "dim"),
        )
    )
    if meta.abstained:
        console.print(Text("abstained: below its calibrated threshold", "yellow"))
    position = verdict.position_consistency
    if position is not None:
        same = "both orders agree" if position.consistent else "the orders differ"
        first, second = _MARK[position.first_pass_winner], _MARK[position.second_pass_winner]
        console.print(Text(f"first pass {first}, second pass {second}: {same}", "dim"))
    _show_criteria(console, verdict)
    if verdict.overall_reasoning:
        console.print()
        console.print(plain(verdict.overall_reasoning))
    shown = _shown_in_the_table(verdict)
    for title, points in (
        ("For Response A", verdict.differentiators.a_advantages),
        ("For Response B", verdict.differentiators.b_advantages),
    ):
        _show_points(console, title, [point for point in points if point not in shown])
    for note in verdict.notes:
        show_hanging(console, Text("note ", "yellow"), plain(note))
    console.print(Text(footer(verdict.metadata.judge, meta.usage, meta.evaluation_time_ms), "dim"))
    in_use = used(meta.artefacts)
    for artefact in meta.artefacts:
        _show_artefact(console, artefact, used=artefact in in_use)


def _show_artefact(console: Console, artefact: Artefact, *, used: bool) -> None:
    from rich.text import Text

    name = artefact.kind + ("" if artefact.response is None else f" of {artefact.response}")
    by = "" if artefact.model is None else f"  {one_line(artefact.model)}"
    ended = "" if artefact.outcome == "answered" else f", {artefact.outcome}"
    ended += "" if used else ": not used"
    console.print(Text.assemble("\n", (name, "bold"), ended, (by, "dim")))
    if artefact.text.strip():
        console.print(plain(artefact.text, indent=2))


def _show_criteria(console: Console, verdict: Verdict) -> None:
    from rich.text import Text

    from evenhand.contract import Outcome

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
    from rich.text import Text

    for row in rows:
        console.print(Text.assemble((one_line(row.criterion), "bold"), ": ", (row.mark, row.style)))
        if row.why:
            console.print(plain(row.why, indent=2))


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


def _shown_in_the_table(verdict: Verdict) -> set[str]:
    """A criterion that was won is already in the table with its reason; once is enough."""
    rows = [(entry.criterion, entry.reasoning) for entry in verdict.comparison]
    return {name for name, _ in rows} | {f"{name}: {reason}" for name, reason in rows}


def _show_points(console: Console, title: str, points: list[str]) -> None:
    from rich.text import Text

    if not points:
        return
    console.print(Text(title, "bold"))
    for point in points:
        show_hanging(console, Text("  •"), plain(point))


def footer(judge: str | None, usage: Usage, time_ms: float) -> str:
    parts = [one_line(judge or "")]
    if usage.input_tokens is not None and usage.output_tokens is not None:
        parts.append(f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
    if usage.cost_usd:
        parts.append(f"${usage.cost_usd:.4f}")
    elif usage.cost_usd is None and usage.requests:
        parts.append("cost unknown")
    parts.append(f"{usage.requests} request{'' if usage.requests == 1 else 's'}")
    parts.append(f"{time_ms / 1000:.1f} s")
    return " · ".join(part for part in parts if part)


def show_failure(console: Console, failure: Failure, *, kept: bool = True) -> None:
    """One line for the error, and a line for what was kept, unless its JSON is there."""
    from rich.text import Text

    message = one_line(failure.error.message)
    session.print_line(console, Text.assemble(("error  ", "bold red"), message))
    ballots = [p.ballot for p in failure.metadata.passes if p.ballot]
    if ballots and kept:
        choices = ", ".join(f"{_PASS[ballot.order]} {_MARK[ballot.winner]}" for ballot in ballots)
        console.print(Text(f"kept: {choices}; --json shows it", "dim"))


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
