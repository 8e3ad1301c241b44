"""Analyses that judge first, on the command line: the options for that, and the runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.analyses.registry import AnalysisEntry, stages_of
from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.options import (
    JUDGING_SHOWN,
    JudgeChoices,
    PairRules,
    RunLimits,
    flags_given,
    parameter,
    with_help_all,
)
from evenhand.errors import InputError, StoreError
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.analyses.judging import JudgedStage, Stage
    from evenhand.judging.config import JudgeConfig
    from evenhand.runs import RunOptions, RunSummary
    from evenhand.store import Store

FILE_OR_RUN = Annotated[
    str | None,
    typer.Argument(
        metavar="LABELLED",
        help="A file of labelled pairs (judged by --judge), or a run whose pairs have "
        "labels or votes.",
    ),
]
_OF_A_FILE = (
    parameter("columns", opt.ColumnMap, None),
    parameter("values", opt.Values, None),
    parameter("bad_rows", opt.OnBadRows, "stop"),
    parameter("criteria", opt.Criteria, None),
    parameter("no_tie", opt.NoTie, False),
    parameter("no_swap", opt.NoSwap, False),
)
_OF_JUDGING = (
    parameter("judge", opt.JudgeName, None),
    parameter("name", opt.RunName, None),
    *RunLimits.flags,
    *JudgeChoices.flags,
)


def judging_flags(
    analysis: AnalysisEntry, own: tuple[inspect.Parameter, ...]
) -> tuple[inspect.Parameter, ...]:
    """Its own, and those of judging that it does not declare otherwise; --help shows the common
    ones."""
    file = _OF_A_FILE if analysis.judges_first == "file" else ()
    every = {each.name: each for each in (*file, *_OF_JUDGING)} | {each.name: each for each in own}
    common = {row.name for row in analysis.options.rows() if row.option.common}
    common |= {name for name, _ in (*analysis.files, *analysis.shows)}
    ordered = {each.name: every[each.name] for each in (*own, *every.values())}
    shown = with_help_all(ordered.values(), JUDGING_SHOWN.union(common, ("columns", "criteria")))
    return (parameter("context", typer.Context, inspect.Parameter.empty), *shown)


@contextmanager
def judged_first(
    analysis: AnalysisEntry, options: Any, given: Mapping[str, Any], *, as_json: bool
) -> Iterator[tuple[Store | None, Sequence[JudgedStage]]]:
    """The store and the runs of what was to be judged; without those where a stored run is named,
    without either where nobody is to be asked. `given` is what the command got."""
    from evenhand.analyses.judging import JudgingRequest, judge_stages
    from evenhand.cli.inputs import data_path, read_options
    from evenhand.cli.judging import end, run_loaded, watched
    from evenhand.data.source import open_source
    from evenhand.store import open_store

    own = {row.name for row in analysis.options.rows()}
    if analysis.judges_first == "file":
        own.add("store")  # which has the run
    flags = (*_OF_A_FILE, *_OF_JUDGING)
    named: str | None = given["named"]
    used = flags_given(given["context"], (each.name for each in flags if each.name not in own))
    limits, judging = RunLimits.among(given), JudgeChoices.among(given)
    if analysis.judges_first == "file" and not _is_file(named):
        _refuse_unknown_file(session.named_store(limits.store), str(named))
        if used:
            raise InputError(Message("command.run_judged_already", options=used, run=named))
        with session.opened_store(limits.store) as store:
            yield store, ()
        return

    def config(judge: str | None = None, **chosen: Any) -> JudgeConfig:
        resolved = judging.config(judge or given["judge"], **chosen)
        if resolved.judge is None:
            raise InputError(Message("command.no_judge"))
        return resolved

    def reading(config: JudgeConfig) -> Any:
        rules = PairRules(given["criteria"], given["no_tie"], given["no_swap"])
        needed = config.needs_prompt
        columns, values = given["columns"], given["values"]
        return read_options(columns, rules, criteria_needed=needed, values=values)

    request = JudgingRequest(
        given=used,
        named=named,
        config=config,
        options=limits.options(given["name"], bad_rows=given.get("bad_rows", "stop")),
        open_data=lambda: open_source(data_path(str(named))),
        reading=reading,
    )
    spent = 0.0

    async def judge(stage: Stage, left: RunOptions) -> RunSummary:
        nonlocal spent
        above = limits.asks_above  # of all of them together
        summary = await watched(
            stage.sources,
            [stage.plan],
            left,
            store=store,
            as_json=as_json,
            confirm_above=None if above is None else max(0.0, above - spent),
        )
        spent += summary.cost_usd or 0.0
        return summary

    stages = iter(stages_of(analysis, options, request))
    if (first := next(stages, None)) is None:
        yield None, ()
        return
    with open_store(request.options.store) as store:
        judged = run_loaded(judge_stages(chain([first], stages), request.options, judge))
        last = judged[-1].summary
        if not last.finished and not analysis.unfinished:
            end(last, store, request.options, as_json=as_json)
        yield store, judged


def show_stop(summary: RunSummary, store: str | None) -> None:
    """Why the last run is not finished, and how it goes on."""
    from evenhand.cli.progress import show_errors

    if not summary.finished:
        show_errors(session.err(), summary, store)


def _is_file(named: str | None) -> bool:
    from evenhand.cli.inputs import data_path
    from evenhand.data.remote import url_in

    if named is None:
        raise InputError(Message("command.nothing_to_audit"))
    path = data_path(named)
    return (
        path == "-" or url_in(path) is not None or (Path(path).exists() and not Path(path).is_dir())
    )


def _refuse_unknown_file(address: str | None, run: str) -> None:
    """A missing file must not be reported as a missing run or store."""
    from evenhand.store import open_store

    if Path(run).suffix == "" and "/" not in run:
        return
    try:
        with open_store(address, create=False) as store:
            known = store.runs.find(run) is not None
    except StoreError:
        known = False
    if not known:
        raise InputError(Message("command.no_file_or_run", run=run))
