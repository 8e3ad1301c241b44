"""Stage after stage on the terminal: what `evenhand run --escalate` does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from evenhand.cli import session
from evenhand.cli.amounts import counted, dollars, number
from evenhand.cli.judging import exit_code_of, run_to_the_end, watched
from evenhand.cli.show import show_hanging
from evenhand.cli.show_audit import share
from evenhand.cli.terminal import one_line
from evenhand.errors import Status

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.runs import JudgePlan, RunOptions, RunSummary, Sources
    from evenhand.store import Store
    from evenhand.trust.cascade_report import Cascade


def judge_in_stages(
    sources: Sources,
    plans: Sequence[JudgePlan],
    options: RunOptions,
    *,
    as_json: bool,
    confirm_above: float | None,
    people: Path | None,
) -> NoReturn:
    from evenhand.store import open_store
    from evenhand.trust.cascade import run_cascade
    from evenhand.trust.cascade_report import report_cascade

    async def stage(sources: Sources, plan: JudgePlan, options: RunOptions) -> RunSummary:
        return await watched(sources, [plan], options, as_json=as_json, confirm_above=confirm_above)

    async def work() -> list[RunSummary]:
        with open_store(options.store) as store:
            return await run_cascade(sources, plans, options, store=store, stage=stage)

    summaries = run_to_the_end(work, sources, plans)
    with open_store(options.store, create=False) as store:
        found = report_cascade(store, summaries, planned=len(plans))
        if people is not None:
            _write(store, summaries[-1].run, people)
    if as_json:
        told = found.model_dump(mode="json")
        session.write_json(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        show_cascade(session.out(), found, people)
    if summaries[-1].stopped_by == "interrupt":
        raise SystemExit(Status.INTERRUPTED)
    code = exit_code_of(summaries[-1])
    raise typer.Exit(code if code or found.finished else Status.CAP_REACHED)


def _write(store: Store, run: str, path: Path) -> None:
    from evenhand.report.whole_file import written_whole
    from evenhand.trust.cascade import for_people

    with written_whole(path.expanduser(), overwrite=True) as stream:
        for row in for_people(store, run):
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def show_cascade(console: Console, found: Cascade, people: Path | None) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = ("judge", "asked", "stand", "abstained", "inconsistent", "invalid", "passes", "cost")
    for column in columns:
        left = column == "judge"
        table.add_column(column, justify="left" if left else "right", overflow="fold")
    for stage in found.stages:
        counts = (stage.asked, stage.kept, stage.abstained, stage.inconsistent, stage.invalid)
        cells = [number(count) for count in (*counts, stage.passes)]
        table.add_row(Text(one_line(stage.judge)), *cells, _cost(stage.cost_usd))
    console.print(table)
    console.print()
    for lead, said in (
        *((f"run {place}", stage.run) for place, stage in enumerate(found.stages, start=1)),
        (
            "coverage",
            f"{number(found.kept)} of {counted(found.pairs, 'pair')}, {share(found.coverage)}",
        ),
        ("agreement", f"with labels, of those that stand: {share(found.agreement)}"),
        *(
            ("", f"of {one_line(stage.judge)}: {share(stage.agreement)}")
            for stage in found.stages
            if len(found.stages) > 1
        ),
        (
            "spent",
            f"{counted(found.passes, 'pass', 'passes')}, "
            f"{counted(found.calls, 'call')} in these runs, {_cost(found.cost_usd)}",
        ),
        ("people", _people(found, people)),
    ):
        show_hanging(console, Text(f"{lead:<10}", "dim"), Text(one_line(said)))
    for note in found.notes:
        show_hanging(console, Text("note ", "yellow"), Text(one_line(note)))


def _people(found: Cascade, people: Path | None) -> str:
    left = f"{counted(found.left, 'pair')} left for people"
    if not found.left:
        return left
    run = found.stages[-1].run
    where = f", in {people}" if people is not None else ""
    return f"{left}{where}; evenhand label {run} --only abstained asks"


def _cost(amount: float | None) -> str:
    return "not known" if amount is None else dollars(amount)
