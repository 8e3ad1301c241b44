"""What Python callers use: the comparer with a judge by name, the settings applied, and a sync
face."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from evenhand import judges
from evenhand.contract import Pair, Verdict, read_criteria, read_pair
from evenhand.errors import InputError
from evenhand.judges import Judge, JudgeOptions
from evenhand.judging import comparison as comparer
from evenhand.judging.config import JudgeConfig
from evenhand.settings import Settings, load_settings, split_addresses
from evenhand.sync import run_sync as _in_background

if TYPE_CHECKING:
    from evenhand.ranker.responses import RankedResponses
    from evenhand.report.conclusions import ConclusionLimits, Conclusions, Side, Ties
    from evenhand.report.gate import GateReport
    from evenhand.report.ranking import RankOptions, RunRanking
    from evenhand.runs import Observer, Progress, RunOptions, RunSummary, Sources
    from evenhand.stats.calibration.fit import Method
    from evenhand.store import Store
    from evenhand.trust.audit import Audit
    from evenhand.trust.calibration import CalibrationReport
    from evenhand.trust.correction import Corrections

# Samples taken at temperature 0 are one sample over again.
_SAMPLING_TEMPERATURE = 1.0


def judge_options(
    settings: Settings, spec: str, *, base_url: str | Sequence[str] | None = None
) -> JudgeOptions:
    """What the settings say for the judge named `spec`.

    Their base URL and key are those of OpenAI-compatible servers: no other provider is sent them.
    `base_url` was chosen for this very judge; several are a fleet.
    """
    is_openai = spec.strip().startswith("openai:")
    temperature = settings.temperature
    if temperature is None and (settings.samples or 1) > 1:
        temperature = _SAMPLING_TEMPERATURE
    return JudgeOptions(
        base_url=_addresses(base_url) or _addresses(settings.base_url if is_openai else None),
        api_key=settings.api_key if is_openai else None,
        timeout_s=settings.timeout_s,
        max_tokens=settings.max_tokens,
        temperature=temperature,
        cache_dir=settings.cache_dir,
        transport=settings.transport,
    )


def _addresses(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """An empty one is how shells say that there is none."""
    texts = (given,) if isinstance(given, str) else given or ()
    return tuple(each for text in texts if text.strip() for each in split_addresses(text))


def open_judge_for(
    settings: Settings, spec: str, *, base_url: str | Sequence[str] | None = None
) -> Judge:
    options = judge_options(settings, spec, base_url=base_url)
    return judges.open_judge(spec, options)


def open_judge(spec: str | None = None, options: JudgeOptions | None = None) -> Judge:
    """A judge by name, with the environment's and the config file's settings unless given."""
    return _open(load_settings(), spec, options)


def _open(
    settings: Settings,
    spec: str | None,
    options: JudgeOptions | None = None,
) -> Judge:
    if spec is not None and not isinstance(spec, str):  # callers may be untyped
        raise InputError(f"judge is {spec!r}; it takes a name such as openai:gpt-4o")
    spec = spec or settings.judge
    if spec is None:
        raise InputError("no judge is named; give one such as openai:gpt-4o, or set EVENHAND_JUDGE")
    if options is not None:
        return judges.open_judge(spec, options)
    return open_judge_for(settings, spec)


async def compare(
    pair: Pair | Mapping[str, Any],
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
) -> Verdict:
    """Which of two responses is better. A judge given by name is opened and closed here."""
    if judge is not None and not isinstance(judge, str):
        if not _is_judge(judge):
            raise InputError(f"judge is {judge!r}; it takes a name, or what open_judge gives")
        checked = read_pair(pair, criteria_needed=judge.traits.needs_prompt)
        return await comparer.compare(checked, judge, config)
    samples = config.samples if config else 1
    settings = replace(load_settings(), samples=samples)
    checked = read_pair(pair, criteria_needed=judges.reads_prompt(judge or settings.judge))
    opened = _open(settings, judge)
    try:
        return await comparer.compare(checked, opened, config)
    finally:
        await opened.close()


def compare_sync(
    pair: Pair | Mapping[str, Any],
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
) -> Verdict:
    """The same for code that is not async; works inside a running event loop too."""
    return _in_background(compare(pair, judge, config))


async def rank_responses(
    prompt: str,
    responses: Sequence[str],
    *,
    criteria: Sequence[Any],
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
    context: str | None = None,
    reference: str | None = None,
    allow_tie: bool = True,
    check: bool = False,
    max_comparisons: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> RankedResponses:
    """Several responses to one prompt, ranked with the fewest comparisons, each in both orders.

    `check` spends some more on looking for contradictions.
    """
    from evenhand.ranker.responses import AT_ONCE, rank_responses

    async with _judging(judge, config) as opened:

        async def ask(pair: Pair) -> Verdict:
            return await comparer.compare(pair, opened, config)

        return await rank_responses(
            prompt,
            responses,
            criteria=criteria,
            ask=ask,
            context=context,
            reference=reference,
            allow_tie=allow_tie,
            check=check,
            max_comparisons=max_comparisons,
            at_once=AT_ONCE if opened.traits.parallel else 1,
            told=on_progress,
        )


@asynccontextmanager
async def _judging(judge: str | Judge | None, config: JudgeConfig | None) -> AsyncIterator[Judge]:
    """The caller's own stays open; one by its name is opened and closed here."""
    if judge is not None and not isinstance(judge, str):
        if not _is_judge(judge):
            raise InputError(f"judge is {judge!r}; it takes a name, or what open_judge gives")
        yield judge
        return
    samples = config.samples if config else 1
    opened = _open(replace(load_settings(), samples=samples), judge)
    try:
        yield opened
    finally:
        await opened.close()


async def run(
    pairs: str | Path | Iterable[Pair | Mapping[str, Any]],
    judge: str | Judge | Sequence[str | Judge] | None = None,
    config: JudgeConfig | None = None,
    *,
    criteria: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    options: RunOptions | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> RunSummary:
    """Judge many pairs: a file of them, or any iterable. The same call again goes on.

    Raises what keeps it from beginning, and what the judge or the store stopped it with; a cap
    that was reached is in the summary.
    """
    from evenhand.runs import JudgePlan, RunOptions, Stop, judge_pairs
    from evenhand.runs.plan import JudgeRecipe
    from evenhand.store import open_store

    options = options or RunOptions()
    config = config or JudgeConfig()
    settings = replace(load_settings(), samples=config.samples)
    plans: list[JudgePlan] = []
    ours: list[Judge] = []  # to be closed here
    stop = Stop()
    try:
        for each in _each(judge):
            if each is None or isinstance(each, str):
                ours.append(_open(settings, each))
                spec = each or settings.judge or ""
                recipe = JudgeRecipe.of(spec, judge_options(settings, spec))
                plans.append(JudgePlan(ours[-1], config, recipe=recipe))
            else:
                plans.append(JudgePlan(each, config))
        sources = _sources(pairs, criteria, columns, [plan.judge for plan in plans])
        try:
            with open_store(options.store or settings.store) as store:
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
    finally:
        for each in ours:
            await each.close()
    if summary.error is not None and stop.error is not None:
        raise stop.error
    return summary


def run_sync(
    pairs: str | Path | Iterable[Pair | Mapping[str, Any]],
    judge: str | Judge | Sequence[str | Judge] | None = None,
    config: JudgeConfig | None = None,
    *,
    criteria: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    options: RunOptions | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> RunSummary:
    """The same for code that is not async."""
    work = run(
        pairs,
        judge,
        config,
        criteria=criteria,
        columns=columns,
        options=options,
        on_progress=on_progress,
    )
    return _in_background(work)


def _is_judge(value: object) -> TypeGuard[Judge]:
    return hasattr(value, "ask") and hasattr(value, "traits")


def _each(judge: str | Judge | Sequence[str | Judge] | None) -> list[str | Judge | None]:
    """One judge or several; what is none is told before anything is opened."""
    if judge is None or isinstance(judge, str) or _is_judge(judge):
        return [judge]
    several = list(judge) if isinstance(judge, Sequence) else [judge]
    for each in several:
        if not isinstance(each, str) and not _is_judge(each):
            raise InputError(f"judge is {each!r}; it takes a name, or what open_judge gives")
    if not several:
        raise InputError("no judge is named; give one such as openai:gpt-4o")
    return [*several]


def _sources(
    pairs: str | Path | Iterable[Pair | Mapping[str, Any]],
    criteria: Sequence[Any],
    columns: Mapping[str, str] | None,
    opened: Sequence[Judge],
) -> Sources:
    from evenhand.data import ReadOptions
    from evenhand.runs import PairFiles, given_pairs

    reading = ReadOptions(
        columns=columns or {},
        criteria=read_criteria(criteria) if criteria else (),
        criteria_needed=any(each.traits.needs_prompt for each in opened),
    )
    if isinstance(pairs, str | Path):
        return PairFiles.of([pairs], reading)
    return given_pairs(pairs, reading)


def _listener(on_progress: Callable[[Progress], None] | None) -> Observer:
    from evenhand.runs import Observer

    class Listener(Observer):
        def progress(self, progress: Progress) -> None:
            if on_progress is not None:
                on_progress(progress)

    return Listener()


def conclude(
    run: str,
    *,
    store: str | Path | Store | None = None,
    side: Side = "B",
    ties: Ties = "half",
    level: float = 0.95,
    limits: ConclusionLimits | None = None,
) -> Conclusions:
    """What a run says of one side: win rate, parts, length, position. What `report` shows."""
    from evenhand.report.conclusions import conclude

    with _opened(store) as opened:
        return conclude(opened, run, side=side, ties=ties, level=level, limits=limits)


def gate(
    run: str,
    *,
    store: str | Path | Store | None = None,
    min_win_rate: float = 0.5,
    alpha: float = 0.05,
    side: Side = "B",
    ties: Ties = "half",
    limits: ConclusionLimits | None = None,
    max_inconsistent: float | None = None,
) -> GateReport:
    """Whether a run's interval lies above a threshold, below it, or neither."""
    from evenhand.report.gate import gate_run

    with _opened(store) as opened:
        return gate_run(
            opened,
            run,
            min_win_rate=min_win_rate,
            alpha=alpha,
            side=side,
            ties=ties,
            limits=limits,
            max_inconsistent=max_inconsistent,
        )


def rank(
    *runs: str,
    store: str | Path | Store | None = None,
    options: RankOptions | None = None,
    judge: str | None = None,
    tag: str | None = None,
) -> RunRanking:
    """The models of one or more runs, ranked; `evenhand.stats.rank_battles` ranks columns."""
    from evenhand.report.ranking import rank_runs

    with _opened(store) as opened:
        return rank_runs(opened, runs, options, judge=judge, tag=tag)


def audit(
    run: str,
    *,
    store: str | Path | Store | None = None,
    judge: str | None = None,
    against: str | None = None,
    level: float = 0.95,
    disagreements: int = 20,
) -> Audit:
    """A judge against the labels of its run, or people's votes. What `audit` shows."""
    from evenhand.trust.audit import audit_run

    with _opened(store) as opened:
        return audit_run(
            opened, run, judge=judge, against=against, level=level, disagreements=disagreements
        )


def calibrate(
    run: str,
    *,
    store: str | Path | Store | None = None,
    judge: str | None = None,
    save: str | Path | None = None,
    overwrite: bool = False,
    method: Method = "auto",
    min_agreement: float | None = None,
    error_level: float = 0.05,
    level: float = 0.95,
    seed: int = 0,
) -> CalibrationReport:
    """Learn from a run's labels how likely its judge's verdicts are right; `save` keeps it, for
    `open_calibration`."""
    from evenhand.trust.calibration import calibrate_run, save_calibration

    with _opened(store) as opened:
        found = calibrate_run(
            opened,
            run,
            judge=judge,
            method=method,
            min_agreement=min_agreement,
            error_level=error_level,
            level=level,
            seed=seed,
        )
    if save is None:
        return found
    path = save_calibration(found.calibration, save, overwrite=overwrite)
    return found.model_copy(update={"saved": str(path)})


def correct(
    run: str,
    *,
    store: str | Path | Store | None = None,
    judge: str | None = None,
    jury: str | None = None,
    side: Side = "B",
    level: float = 0.95,
    labels_are_random: bool = False,
    seed: int = 0,
) -> Corrections:
    """A run's win rates corrected for the judge's errors by people's labels; `jury` is "majority"
    or a saved one, in the judge's place."""
    from evenhand.trust.correction import correct_run

    with _opened(store) as opened:
        return correct_run(
            opened,
            run,
            judge=judge,
            jury=jury,
            side=side,
            level=level,
            labels_are_random=labels_are_random,
            seed=seed,
        )


@contextmanager
def _opened(store: str | Path | Store | None) -> Iterator[Store]:
    """The caller's own stays open; one by its address is not made where there is none."""
    from evenhand.store import Store, open_store

    if isinstance(store, Store):
        yield store
        return
    with open_store(store or load_settings().store, create=False) as opened:
        yield opened
