"""What Python callers use without a store: one pair, a stream of pairs, several responses to one
prompt; async and sync, with a judge by name and the settings applied.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from evenhand.background import each_in_background, sync_of
from evenhand.contract import Failure, Pair, Verdict, read_criteria, read_pair
from evenhand.errors import DataError, InputError
from evenhand.judges.protocol import Judge, OpenJudge
from evenhand.judging import comparison as comparer
from evenhand.judging.config import JudgeConfig
from evenhand.judging.explanation import failure_of
from evenhand.judging.preparation import Artefacts
from evenhand.settings import Settings, load_settings

if TYPE_CHECKING:
    from evenhand.data.frames import ArrowStream
    from evenhand.data.options import ReadOptions
    from evenhand.data.records import BadRow, Record
    from evenhand.ranker.responses import RankedResponses

# Many pairs: a file of them, a DataFrame, or an iterable.
Pairs: TypeAlias = "str | Path | ArrowStream | Iterable[Pair | Mapping[str, Any]]"


def open_judge(judge: str | None = None, config: JudgeConfig | None = None) -> OpenJudge:
    """Open a judge by name; the environment and config files fill in what `config` leaves open."""
    return resolve(load_settings(), judge, config).open_judge()


def is_judge(value: object) -> TypeGuard[Judge]:
    return hasattr(value, "ask") and hasattr(value, "traits")


def resolve(
    settings: Settings, judge: str | Judge | None, config: JudgeConfig | None
) -> JudgeConfig:
    if judge is not None and not isinstance(judge, str):
        if not is_judge(judge):
            if callable(judge):
                raise InputError.of("api.judge_function")
            raise InputError.of("api.judge_no_name", judge=judge)
        return JudgeConfig.resolve(settings, config, own=judge)
    chosen = JudgeConfig() if config is None else config
    if judge is not None and isinstance(chosen, JudgeConfig):  # what is none, resolve refuses
        chosen = replace(chosen, judge=judge)
    return JudgeConfig.resolve(settings, chosen)


async def compare(
    pair: Pair | Mapping[str, Any] | None = None,
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
    *,
    prompt: str | None = None,
    a: str | None = None,
    b: str | None = None,
    criteria: Sequence[Any] | None = None,
    context: str | None = None,
    reference: str | None = None,
    allow_tie: bool | None = None,
    swap_positions: bool | None = None,
) -> Verdict:
    """Judge which of two responses is better: a pair's, or the texts `a` and `b`.

    A judge given by name is opened and closed here.
    """
    fields: dict[str, Any] = {"prompt": prompt, "a": a, "b": b, "criteria": criteria}
    fields |= {"context": context, "reference": reference}
    fields |= {"allow_tie": allow_tie, "swap_positions": swap_positions}
    settings = load_settings()
    given = _given(pair, {name: value for name, value in fields.items() if value is not None})
    if isinstance(given, Mapping) and "criteria" not in given and settings.criteria:
        given = {**given, "criteria": settings.criteria}
    resolved = resolve(settings, judge, config)
    checked = read_pair(given, criteria_needed=_needs_prompt(judge, resolved))
    async with _opened_judge(judge, resolved) as opened:
        return await comparer.compare(checked, opened, resolved)


compare_sync = sync_of(compare)


def _given(
    pair: Pair | Mapping[str, Any] | None, fields: dict[str, Any]
) -> Pair | Mapping[str, Any]:
    """A pair, or its fields, but not both."""
    if pair is not None:
        if fields:
            raise InputError.of("api.pair_given_twice", names=list(fields))
        return pair
    missing = [name for name in ("prompt", "a", "b") if name not in fields]
    if missing:
        code = "api.field_missing" if fields else "api.no_pair"
        raise InputError.of(code, names=missing)
    return {"response_a": fields.pop("a"), "response_b": fields.pop("b"), **fields}


_AT_ONCE = 8
# How many may be finished or waiting while the next in order is being judged.
_AHEAD = 4


def compare_many(
    pairs: Pairs,
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
    *,
    criteria: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    concurrency: int = _AT_ONCE,
) -> AsyncGenerator[Verdict | Failure, None]:
    """Verdicts on many pairs, in their order, at most `concurrency` at once.

    A pair that fails gives a `Failure`. Nothing is stored; use `run` for that.
    """
    from evenhand.data.options import ReadOptions

    if type(concurrency) is not int or concurrency < 1:
        raise InputError.of("option.whole", where="concurrency", value=concurrency, least=1)
    settings = load_settings()
    resolved = resolve(settings, judge, config)
    reading = ReadOptions(
        columns=columns or {},
        criteria=read_criteria(criteria) if criteria else settings.criteria,
        criteria_needed=_needs_prompt(judge, resolved),
    )
    return _verdicts(_rows(pairs, reading), judge, resolved, concurrency)


def compare_many_sync(
    pairs: Pairs,
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
    *,
    criteria: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    concurrency: int = _AT_ONCE,
) -> Iterator[Verdict | Failure]:
    """The same for code that is not async."""
    return each_in_background(
        compare_many(
            pairs, judge, config, criteria=criteria, columns=columns, concurrency=concurrency
        )
    )


def _rows(pairs: Pairs, reading: ReadOptions) -> Iterator[Pair | Record | BadRow]:
    from evenhand.data.pairs import read_pairs, read_rows
    from evenhand.data.source import open_source

    if not isinstance(pairs, str | Path):
        yield from read_rows(pairs, reading)
        return
    with open_source(pairs) as source:
        yield from read_pairs([source], reading)


async def _verdicts(
    rows: Iterator[Pair | Record | BadRow],
    judge: str | Judge | None,
    config: JudgeConfig,
    concurrency: int,
) -> AsyncGenerator[Verdict | Failure, None]:
    from evenhand.data.records import BadRow

    waiting: deque[asyncio.Task[Verdict | Failure]] = deque()
    artefacts = Artefacts()
    async with _opened_judge(judge, config) as opened:
        at_once = concurrency if opened.traits.parallel else 1
        turns = asyncio.Semaphore(at_once)

        async def settle(row: Pair | Record | BadRow) -> Verdict | Failure:
            if isinstance(row, BadRow):
                return failure_of(DataError(row.message))
            pair = row if isinstance(row, Pair) else row.pair
            async with turns:
                settled = await comparer.settle(pair, opened, config, artefacts=artefacts)
            return settled.failure if isinstance(settled, comparer.Failed) else settled

        try:
            for row in rows:
                waiting.append(asyncio.create_task(settle(row)))
                await asyncio.sleep(0)  # it begins, also where the next row takes its time
                while waiting[0].done() or len(waiting) >= at_once * _AHEAD:
                    yield await waiting.popleft()
                    if not waiting:
                        break
            while waiting:
                yield await waiting.popleft()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


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
    """Rank several responses to one prompt with few comparisons, each in both orders.

    `check` spends a few more to look for contradictions.
    """
    from evenhand.ranker.responses import AT_ONCE, rank_responses

    if hasattr(responses, "to_list"):  # a column of a DataFrame
        responses = responses.to_list()
    resolved = resolve(load_settings(), judge, config)
    artefacts = Artefacts()
    async with _opened_judge(judge, resolved) as opened:

        async def ask(pair: Pair) -> Verdict:
            return await comparer.compare(pair, opened, resolved, artefacts=artefacts)

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


def _needs_prompt(judge: str | Judge | None, config: JudgeConfig) -> bool:
    if judge is None or isinstance(judge, str):
        return config.needs_prompt
    return judge.traits.needs_prompt


@asynccontextmanager
async def _opened_judge(judge: str | Judge | None, config: JudgeConfig) -> AsyncIterator[Judge]:
    """The caller's own judge stays open; one given by name is opened and closed here."""
    if judge is not None and not isinstance(judge, str):
        yield judge
        return
    async with config.open_judge() as opened:
        yield opened
