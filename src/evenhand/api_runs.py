"""What Python callers use with a store: many pairs judged and kept, and what a stored run says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.analyses.registry import (
    AUDIT,
    CALIBRATE,
    CORRECT,
    DIFF,
    GATE,
    RANK,
    REPORT,
    AnalysisEntry,
    analyse,
    finished,
)
from evenhand.api import Pairs, is_judge, resolve
from evenhand.background import sync_of
from evenhand.contract import read_criteria
from evenhand.data.frames import ArrowStream
from evenhand.data.options import ReadOptions
from evenhand.data.orders import OrderDraw
from evenhand.data.source import Source, open_source
from evenhand.errors import InputError
from evenhand.judges.protocol import Judge
from evenhand.judging.config import JudgeConfig
from evenhand.runs import (
    JudgePlan,
    Observer,
    PairFiles,
    Progress,
    RunOptions,
    RunSummary,
    Sources,
    Stop,
    given_outputs,
    given_pairs,
    judge_pairs,
)
from evenhand.runs.sources import spool_rows
from evenhand.settings import Settings, load_settings
from evenhand.store import Store, open_store

if TYPE_CHECKING:
    from evenhand.analyses.audit import AuditReport
    from evenhand.analyses.calibrate import CalibrationReport
    from evenhand.analyses.correct import Corrections
    from evenhand.analyses.diff import RunDiff
    from evenhand.analyses.gate import GateReport
    from evenhand.analyses.rank import RunRanking
    from evenhand.analyses.report import Report
    from evenhand.analysis_options import (
        AuditOptions,
        CalibrateOptions,
        CorrectOptions,
        DiffOptions,
        GateOptions,
        RankOptions,
        ReportOptions,
    )
    from evenhand.report.conclusions import Conclusions
    from evenhand.report.records import FlaggedPair
    from evenhand.runs.ab import AbSummary, SideChoice
    from evenhand.trust.criteria import CriteriaSuggestion

# One model's outputs: a file, a DataFrame, or rows.
Outputs: TypeAlias = str | Path | ArrowStream | Iterable[Mapping[str, Any]]


async def run(
    pairs: Pairs | None = None,
    judge: str | Judge | Sequence[str | Judge] | None = None,
    config: JudgeConfig | None = None,
    *,
    a: Outputs | None = None,
    b: Outputs | None = None,
    criteria: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    orders: OrderDraw | None = None,
    options: RunOptions | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> RunSummary:
    """Judge many pairs: a file, a DataFrame, any iterable; or the outputs of two models, `a` and
    `b`. Call it again to continue. With `orders`, each pair is judged in one random order.

    Raises errors that prevent the start, and those of the judge or the store that stopped it; a cap
    that was reached is in the summary.
    """
    _refuse_data(pairs, a, b)
    settings = load_settings()
    options = (options or RunOptions()).over(settings)
    stop = Stop()
    async with _opened_plans(judge, config, settings) as plans:
        sources = _sources(pairs, a, b, _reading(plans, criteria, columns, orders, settings))
        try:
            with open_store(options.store) as store:
                summary = await judge_pairs(
                    sources,
                    plans,
                    options,
                    store=store,
                    stop=stop,
                    observer=_listener(on_progress),
                )
        finally:
            sources.close()
    if summary.error is not None and stop.error is not None:
        raise stop.error
    return summary


run_sync = sync_of(run)


async def ab(
    prompts: str | Path | ArrowStream | Iterable[str | Mapping[str, Any]],
    a: str | SideChoice | None = None,
    b: str | SideChoice | None = None,
    judge: str | Judge | Sequence[str | Judge] | None = None,
    config: JudgeConfig | None = None,
    *,
    criteria: Sequence[Any] = (),
    repeats: int = 1,
    columns: Mapping[str, str] | None = None,
    orders: OrderDraw | None = None,
    options: RunOptions | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> AbSummary:
    """Compare two models, templates, commands or files on the same prompts: generate, judge,
    conclude.

    Call it again to continue. Raises errors that prevent the start, and those of a model, the judge
    or the store that stopped it; a cap that was reached is in the summary.
    """
    from evenhand.runs.ab import GeneratedPairs, SideChoice, open_prompts, open_sides, run_ab
    from evenhand.runs.generation import Generation, ModelSide

    settings = load_settings()
    options = (options or RunOptions()).over(settings)
    stop = Stop()
    mapped = dict(columns or {})
    chosen = [each if isinstance(each, SideChoice) else SideChoice(spec=each) for each in (a, b)]
    sides = open_sides(chosen[0], chosen[1], settings, mapped)
    try:
        async with _opened_plans(judge, config, settings) as plans:
            source = open_prompt_rows(prompts)
            try:
                found, _ = open_prompts(source, mapped, bad_rows=options.bad_rows)
                with open_store(options.store) as store:
                    generation = Generation(store, found, sides, repeats, options)
                    pairs = GeneratedPairs(
                        generation, source, _reading(plans, criteria, columns, orders, settings)
                    )
                    observer = _listener(on_progress)
                    summary = await run_ab(pairs, plans, options, stop=stop, observer=observer)
            finally:
                source.close()
    finally:
        for side in sides:
            if isinstance(side, ModelSide):
                await side.model.close()
    if summary.error is not None and stop.error is not None:
        raise stop.error
    return summary


ab_sync = sync_of(ab)


async def suggest_criteria(
    data: str | Path | ArrowStream | Iterable[str | Mapping[str, Any]],
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
    *,
    prompts: int = 30,
    pairs: int = 200,
    columns: Mapping[str, str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    options: RunOptions | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> CriteriaSuggestion:
    """Have a judge suggest criteria from a sample of prompts; if rows are labelled pairs, a run
    tests them and keeps those that agree with people. Call it again to continue.

    Raises errors of the judge or the store that stopped it; a cap that was reached is in the run.
    """
    from evenhand.runs.criteria import read_criteria_data, suggest_within
    from evenhand.trust.criteria import stored_criteria, suggestion

    settings = load_settings()
    options = (options or RunOptions()).over(settings)
    with open_prompt_rows(data) as source:
        read = read_criteria_data(
            source,
            columns=columns,
            bad_rows=options.bad_rows,
            prompts=prompts,
            pairs=pairs,
            seed=seed,
        )
    async with _opened_plans(judge, config, settings) as plans:
        plan = plans[0]
        language = plan.config.language
        made: dict[str, Any] = {"judge": plan.judge.name, "locale": language}
        made |= {"seed": seed, "level": level}
        if not read.rows:
            found, _ = await suggest_within(plan, read.prompts, options)
            return suggestion(read, found, **made)
        name = options.name or read.name(plan.judge, language)
        with open_store(options.store) as store:
            known = None if options.fresh else stored_criteria(store, name)
            if known is None:
                known, options = await suggest_within(plan, read.prompts, options)
            stop, sources = Stop(), read.pairs(known)
            try:
                summary = await judge_pairs(
                    sources,
                    plans,
                    replace(options, name=name),
                    store=store,
                    stop=stop,
                    observer=_listener(on_progress),
                )
            finally:
                sources.close()
            if summary.error is not None and stop.error is not None:
                raise stop.error
            return suggestion(read, known, store=store, run=summary.run, **made)


suggest_criteria_sync = sync_of(suggest_criteria)


def open_prompt_rows(
    prompts: str | Path | ArrowStream | Iterable[str | Mapping[str, Any]],
) -> Source:
    """A file, a DataFrame, rows, or texts alone."""
    if isinstance(prompts, str | Path):
        return open_source(prompts)
    rows: Any = prompts
    if isinstance(prompts, Sequence):
        rows = [{"prompt": each} if isinstance(each, str) else each for each in prompts]
    return spool_rows(rows, "prompts", lambda _: None)


@asynccontextmanager
async def _opened_plans(
    judge: str | Judge | Sequence[str | Judge] | None,
    config: JudgeConfig | None,
    settings: Settings,
) -> AsyncIterator[list[JudgePlan]]:
    """Judges given by name are opened and closed here."""
    plans: list[JudgePlan] = []
    ours: list[Judge] = []
    try:
        for each in _each(judge):
            resolved = resolve(settings, each, config)
            if each is None or isinstance(each, str):
                ours.append(resolved.open_judge())
                each = ours[-1]
            plans.append(JudgePlan(each, resolved))
        yield plans
    finally:
        for opened in ours:
            await opened.close()


def _reading(
    plans: Sequence[JudgePlan],
    criteria: Sequence[Any],
    columns: Mapping[str, str] | None,
    orders: OrderDraw | None,
    settings: Settings,
) -> ReadOptions:
    return ReadOptions(
        columns=columns or {},
        criteria=read_criteria(criteria) if criteria else settings.criteria,
        criteria_needed=any(plan.judge.traits.needs_prompt for plan in plans),
        orders=orders,
    )


def _each(judge: str | Judge | Sequence[str | Judge] | None) -> list[str | Judge | None]:
    """One judge or several; anything else is refused before a judge is opened."""
    if judge is None or isinstance(judge, str) or is_judge(judge):
        return [judge]
    several = list(judge) if isinstance(judge, Sequence) else [judge]
    for each in several:
        if not isinstance(each, str) and not is_judge(each):
            if callable(each):
                raise InputError.of("api.judge_function")
            raise InputError.of("api.judges_no_name", each=each)
    if not several:
        raise InputError.of("api.no_judge")
    return [*several]


def _refuse_data(pairs: Pairs | None, a: Outputs | None, b: Outputs | None) -> None:
    """Pairs, or both models' outputs: exactly one of the two."""
    if pairs is not None and (a is not None or b is not None):
        raise InputError.of("api.data_given_twice")
    if pairs is None and (a is None or b is None):
        missing = [name for name, given in (("a", a), ("b", b)) if given is None]
        code = "api.no_data" if len(missing) == 2 else "api.outputs_missing"
        raise InputError.of(code, name=missing[0])


def _sources(
    pairs: Pairs | None, a: Outputs | None, b: Outputs | None, reading: ReadOptions
) -> Sources:
    if a is not None and b is not None:
        return given_outputs(a, b, reading)
    if isinstance(pairs, str | Path):
        return PairFiles.of([pairs], reading)
    return given_pairs(() if pairs is None else pairs, reading)


def _listener(on_progress: Callable[[Progress], None] | None) -> Observer:
    class Listener(Observer):
        def progress(self, progress: Progress) -> None:
            if on_progress is not None:
                on_progress(progress)

    return Listener()


def conclude(
    run: str, options: ReportOptions | None = None, *, store: str | Path | Store | None = None
) -> Conclusions:
    """A run's conclusions for one side: win rates, length, position, as in `evenhand report`. What
    is not given is as [gate] of the config file says."""
    report: Report = _analysed(REPORT, run, options, store)
    return report.conclusions


def gate(
    run: str, options: GateOptions | None = None, *, store: str | Path | Store | None = None
) -> GateReport:
    """Whether a run's interval is above a threshold, below it, or neither; or the same for each
    requirement in `require` ("overall>0.5", "safety>=0.45", "tag:refunds>=0.4"). Defaults come from
    [gate] in the config file, otherwise 0.5 and 0.05."""
    result: GateReport = _analysed(GATE, run, options, store)
    return result


def _analysed(
    analysis: AnalysisEntry,
    runs: str | Sequence[str],
    options: Any,
    store: str | Path | Store | None,
) -> Any:
    """As its command does it, in this process."""
    options = options or analysis.options()
    names = (runs,) if isinstance(runs, str) else runs
    with _opened(store) as opened:
        result = analyse(analysis, opened, names, options, load_settings())
    return finished(analysis, result, options)


def rank(
    *runs: str, options: RankOptions | None = None, store: str | Path | Store | None = None
) -> RunRanking:
    """Rank the models of one or more runs; `stats.ranking.leaderboard` ranks columns."""
    result: RunRanking = _analysed(RANK, runs, options, store)
    return result


def diff(
    first: str,
    second: str,
    options: DiffOptions | None = None,
    *,
    store: str | Path | Store | None = None,
) -> RunDiff:
    """What changed between two runs over the same pairs, or two judges of one run."""
    result: RunDiff = _analysed(DIFF, (second, first), options, store)
    return result


def flag(
    run: str,
    pair: str,
    *,
    comment: str | None = None,
    remove: bool = False,
    store: str | Path | Store | None = None,
) -> FlaggedPair:
    """Flag a pair of a run by its id or number, or unflag it."""
    from evenhand.report.records import flag_pair

    with _opened(store) as opened:
        return flag_pair(opened, run, pair, comment=comment, remove=remove)


def audit(
    run: str, options: AuditOptions | None = None, *, store: str | Path | Store | None = None
) -> AuditReport:
    """Compare a judge with its run's labels or people's votes, as `evenhand audit` does."""
    result: AuditReport = _analysed(AUDIT, run, options, store)
    return result


def calibrate(
    run: str, options: CalibrateOptions | None = None, *, store: str | Path | Store | None = None
) -> CalibrationReport:
    """Learn from a run's labels how likely its judge's verdicts are to be right; `save` stores it
    for `open_calibration`."""
    result: CalibrationReport = _analysed(CALIBRATE, run, options, store)
    return result


def correct(
    run: str, options: CorrectOptions | None = None, *, store: str | Path | Store | None = None
) -> Corrections:
    """A run's win rates, corrected for the judge's errors with human labels; `jury` replaces the
    judge: "plurality", "majority" or a saved jury."""
    result: Corrections = _analysed(CORRECT, run, options, store)
    return result


@contextmanager
def _opened(store: str | Path | Store | None) -> Iterator[Store]:
    """The caller's own stays open; a store given by address is never created."""
    if isinstance(store, Store):
        yield store
        return
    with open_store(store or load_settings().store, create=False) as opened:
        yield opened
