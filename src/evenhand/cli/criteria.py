"""`evenhand criteria suggest`: criteria from a sample of prompts, chosen by labels."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.command_tree import CommandTree
from evenhand.cli.figures import counted
from evenhand.cli.options import JudgeChoices, RunLimits, grouped_showing, open_judge
from evenhand.messages.numbers import level as percent
from evenhand.messages.numbers import number
from evenhand.present.terminal import one_line, show_facts, show_notes
from evenhand.quantities import interval

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.contract import Criterion
    from evenhand.runs import RunSummary
    from evenhand.store import Store
    from evenhand.trust.criteria import CriteriaSuggestion, CriterionAgreement

criteria = typer.Typer(cls=CommandTree, no_args_is_help=True, rich_markup_mode=None)


@criteria.callback()
def of_data_set() -> None:
    """Suggest criteria for a data set and test them."""


@criteria.command("suggest")
@grouped_showing(
    "columns",
    "prompts",
    "pairs",
    "seed",
    "output",
)
def suggest(
    *,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Prompts, or pairs with labels (A, B or TIE).")
    ],
    columns: opt.ColumnMap = None,
    bad_rows: opt.OnBadRows = "stop",
    judge: opt.JudgeName = None,
    prompts: Annotated[
        int, typer.Option("--prompts", min=1, max=500, help="How many prompts to show the judge.")
    ] = 30,
    pairs: Annotated[
        int,
        typer.Option(
            "--pairs",
            min=1,
            help=("Maximum number of labelled pairs to judge, sampled by prompt."),
        ),
    ] = 200,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed for the sample and its split into halves.")
    ] = 0,
    level: opt.Level = 0.95,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write the criteria as JSON."),
    ] = None,
    force: opt.Overwrite = False,
    name: opt.RunName = None,
    limits: RunLimits,
    judging: JudgeChoices,
    as_json: opt.AsJson = False,
) -> None:
    """Suggest criteria from a sample of prompts, and keep those that agree with labels.

    One call suggests them. If rows have labels, one run then judges those pairs by every
    criterion; it is estimated, confirmed and resumed like any run. Exit codes as for evenhand
    run.
    """
    from evenhand.cli.inputs import data_path, mapped_columns
    from evenhand.cli.judging import exit_code_of, watched
    from evenhand.cli.progress import show_summary
    from evenhand.data.source import open_source
    from evenhand.report.files import atomic_file
    from evenhand.runs import JudgePlan
    from evenhand.runs.criteria import read_criteria_data, suggest_within
    from evenhand.store import open_store
    from evenhand.trust.criteria import stored_criteria, suggestion

    config = judging.config(judge)
    with open_source(data_path(data)) as source:
        read = read_criteria_data(
            source,
            columns=mapped_columns(columns),
            bad_rows=bad_rows,
            prompts=prompts,
            pairs=pairs,
            seed=seed,
        )
    asked = open_judge(config)
    options = limits.options(name or (read.name(asked, config.language) if read.rows else None))

    plan = JudgePlan(asked, config)

    async def work(
        store: Store | None,
    ) -> tuple[tuple[Criterion, ...], RunSummary | None]:
        async with session.opened(asked, quiet=as_json):
            known, left = None, options
            if store is not None and not options.fresh:
                known = stored_criteria(store, str(options.name))
            if known is None:
                known, left = await suggest_within(
                    plan, read.prompts, options, announce=session.note
                )
            if store is None:
                return known, None
            sources = read.pairs(known)
            try:
                summary = await watched(
                    sources,
                    [plan],
                    left,
                    store=store,
                    as_json=as_json,
                    confirm_above=limits.asks_above,
                )
            finally:
                sources.close()
            return known, summary

    of_run: dict[str, Any] = {"judge": asked.name, "locale": config.language, "seed": seed}
    with open_store(options.store) if read.rows else nullcontext() as store:
        found, summary = session.run_async(work(store))
        if summary is not None:
            of_run |= {"store": store, "run": summary.run}
        result = suggestion(read, found, level=level, **of_run)
    if output is not None:
        listed = [each.model_dump(mode="json", exclude_none=True) for each in result.usable]
        with atomic_file(output.expanduser(), overwrite=force) as stream:
            stream.write(json.dumps(listed, ensure_ascii=False, indent=2).encode() + b"\n")
    session.present(result, show_suggestion, as_json=as_json)
    if summary is not None:
        if summary.stopped_by is not None and not as_json:
            show_summary(session.out(), session.err(), summary)
        raise typer.Exit(exit_code_of(summary))


def show_suggestion(console: Console, found: CriteriaSuggestion) -> None:
    from rich.text import Text

    shown = f"{number(found.prompts)} of {counted(found.prompts_in_all, 'prompt')}"
    tried = ""
    if found.run is not None:
        tried = f"; tested on {counted(found.labels, 'labelled pair')} in run {found.run}"
    head = one_line(f"criteria by {found.judge} from {shown}{tried}")
    session.print_line(console, Text(head, "bold"))
    console.print()
    for each in found.criteria:
        described = f"{each.name}: {each.description}" if each.description else each.name
        facts: list[tuple[str, str]] = [(each.status, described)]
        facts += [("", line) for line in _reasons(each.reason, each.unseen, found.level)]
        show_facts(console, ((name, one_line(line)) for name, line in facts), width=10)
    if found.usable:
        console.print()
        for line in config_lines(found.usable):
            console.print(Text(line), soft_wrap=True)
        console.print()
        for line in option_lines(found.usable):
            console.print(Text(line), soft_wrap=True)
    show_notes(console, found.notes, apart=True)


def _reasons(reason: str | None, unseen: CriterionAgreement | None, level: float) -> Iterator[str]:
    if reason is not None:
        yield reason
    if unseen is None:
        return
    own, pairs = unseen.agreement, counted(unseen.pairs, "pair")
    if own.value is None or own.low is None or own.high is None:
        yield f"on unseen prompts: {own.reason}"
        return
    longer = "" if unseen.longer is None else f"; picking the longer response: {unseen.longer:.2f}"
    yield (
        f"agrees with people on {own.value:.2f} ({interval(own.low, own.high)}, {percent(level)}) "
        f"of {pairs} of unseen prompts{longer}"
    )


def config_lines(criteria: tuple[Criterion, ...]) -> Iterator[str]:
    """For evenhand.toml; a text in JSON, escaped throughout, is one in TOML."""
    yield "criteria = ["
    for each in criteria:
        fields = each.model_dump(mode="json", exclude_none=True)
        inner = ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
        yield f"  {{ {inner} }},"
    yield "]"


def option_lines(criteria: tuple[Criterion, ...]) -> Iterator[str]:
    """For the command line: those whose names can be written there."""
    from evenhand.contract import read_criteria
    from evenhand.contract.pair import criterion_in

    for each in criteria:
        text = f"{each.name}: {each.description}" if each.description else each.name
        if read_criteria([criterion_in(text)]) == (each,):
            yield f"-c {shlex.quote(text)}"
