"""What Python callers use: the comparison with a judge by name and the settings applied, async and
sync.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from evenhand.contract import Pair, Verdict, read_criteria, read_pair
from evenhand.errors import InputError
from evenhand.judges import Judge
from evenhand.judging import comparison as comparer
from evenhand.judging.config import JudgeConfig
from evenhand.messages import Message
from evenhand.settings import Settings, load_settings

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


def open_judge(judge: str | None = None, config: JudgeConfig | None = None) -> Judge:
    """A judge by name; what `config` leaves open is as the environment and config files say."""
    return _resolve(load_settings(), judge, config).open_judge()


def _resolve(
    settings: Settings, judge: str | Judge | None, config: JudgeConfig | None
) -> JudgeConfig:
    if judge is not None and not isinstance(judge, str):
        if not _is_judge(judge):
            raise InputError(Message("api.judge_no_name", judge=judge))
        return JudgeConfig.resolve(settings, config, own=judge)
    chosen = JudgeConfig() if config is None else config
    if judge is not None and isinstance(chosen, JudgeConfig):  # what is none, resolve refuses
        chosen = replace(chosen, judge=judge)
    return JudgeConfig.resolve(settings, chosen)


async def compare(
    pair: Pair | Mapping[str, Any],
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
) -> Verdict:
    """Which of two responses is better. A judge given by name is opened and closed here."""
    resolved = _resolve(load_settings(), judge, config)
    own = None if judge is None or isinstance(judge, str) else judge
    needs_prompt = resolved.needs_prompt if own is None else own.traits.needs_prompt
    checked = read_pair(pair, criteria_needed=needs_prompt)
    async with _opened_judge(own, resolved) as opened:
        return await comparer.compare(checked, opened, resolved)


def compare_sync(
    pair: Pair | Mapping[str, Any],
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
) -> Verdict:
    """The same for code that is not async; works inside a running event loop too."""
    return in_background(compare(pair, judge, config))


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

    resolved = _resolve(load_settings(), judge, config)
    own = None if judge is None or isinstance(judge, str) else judge
    async with _opened_judge(own, resolved) as opened:

        async def ask(pair: Pair) -> Verdict:
            return await comparer.compare(pair, opened, resolved)

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
            on_progress=on_progress,
        )


@asynccontextmanager
async def _opened_judge(own: Judge | None, config: JudgeConfig) -> AsyncIterator[Judge]:
    """The caller's own stays open; one by its name is opened and closed here."""
    if own is not None:
        yield own
        return
    opened = config.open_judge()
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
    from evenhand.store import open_store

    options = options or RunOptions()
    settings = load_settings()
    plans: list[JudgePlan] = []
    ours: list[Judge] = []  # to be closed here
    stop = Stop()
    try:
        for each in _each(judge):
            resolved = _resolve(settings, each, config)
            if each is None or isinstance(each, str):
                ours.append(resolved.open_judge())
                each = ours[-1]
            plans.append(JudgePlan(each, resolved))
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
    return in_background(work)


def _is_judge(value: object) -> TypeGuard[Judge]:
    return hasattr(value, "ask") and hasattr(value, "traits")


def _each(judge: str | Judge | Sequence[str | Judge] | None) -> list[str | Judge | None]:
    """One judge or several; what is none is told before anything is opened."""
    if judge is None or isinstance(judge, str) or _is_judge(judge):
        return [judge]
    several = list(judge) if isinstance(judge, Sequence) else [judge]
    for each in several:
        if not isinstance(each, str) and not _is_judge(each):
            raise InputError(Message("api.judges_no_name", each=each))
    if not several:
        raise InputError(Message("api.no_judge"))
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
        learned = calibrate_run(
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
        return learned
    path = save_calibration(learned.calibration, save, overwrite=overwrite)
    return learned.model_copy(update={"saved": str(path)})


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


# One background event loop for all sync calls, so that a judge's connections stay open between
# them, and so that they work inside a running loop (a notebook) too.

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid = 0  # a forked child has the loop, but not the thread that runs it


def in_background(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from sync code; Ctrl-C cancels it and waits for its clean-up."""
    loop = _background_loop()
    if _running_loop() is loop:
        work.close()
        raise RuntimeError("a judge that is asked by sync code cannot use the sync face; await it")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        concurrent.futures.wait([future], timeout=5)
        raise


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop, _pid
    with _lock:
        if _loop is None or _loop.is_closed() or _pid != os.getpid():
            _pid = os.getpid()
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="evenhand", daemon=True).start()
        return _loop


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
