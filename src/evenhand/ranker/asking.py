"""Comparisons of responses by their numbers: some at a time, each kept, a failure as a value."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from evenhand.contract import (
    ErrorBody,
    Metadata,
    Outcome,
    Pair,
    Usage,
    Verdict,
)
from evenhand.errors import (
    EvenhandError,
    JudgeAuthentication,
    JudgeError,
    JudgeQuotaExceeded,
    NoVerdict,
)
from evenhand.passes import add_usage
from evenhand.ranker.merge_insertion import Batch, Told
from evenhand.ranker.ranking import ResponseComparison

Ask = Callable[[Pair], Awaitable[Verdict]]
Heard = Callable[[int, int], None]

# What is wrong with the judge and not with the pair: no other comparison would fare better.
_HOPELESS = (JudgeAuthentication, JudgeQuotaExceeded)


class Comparisons:
    """Everything that was asked, in the order in which it was."""

    def __init__(
        self,
        pairs: Callable[[int, int], Pair],
        *,
        ask: Ask,
        at_once: int,
        most: int,
        limit: int | None,
        told: Heard | None,
    ) -> None:
        self._pairs = pairs
        self._ask = ask
        self._slots = asyncio.Semaphore(at_once)
        self._most = most if limit is None else min(most, limit)
        self._left = limit
        self._told = told
        self._finished = 0
        self._first_error: EvenhandError | None = None
        self.unasked = 0  # for want of more that were allowed
        self.made: list[ResponseComparison] = []
        self.metadata: list[Metadata] = []

    @property
    def usage(self) -> Usage:
        return add_usage(each.usage for each in self.metadata)

    def among(self, one: int, other: int) -> bool:
        return any({one, other} == {each.first, each.second} for each in self.made)

    async def of(self, batch: Batch) -> list[Told]:
        asked = batch if self._left is None else batch[: self._left]
        if self._left is not None:
            self._left -= len(asked)
        unasked = len(batch) - len(asked)
        self.unasked += unasked
        made = await _all([self._compare(*sorted(pair)) for pair in asked])
        self.made += made
        self._refuse_silence()
        told = [_told(pair, each) for pair, each in zip(asked, made, strict=True)]
        return told + [Told.NOTHING] * unasked

    def _refuse_silence(self) -> None:
        """A judge that cannot be asked at all is an error, not a ranking without places."""
        heard = any(each.outcome is not Outcome.INVALID for each in self.made)
        if isinstance(self._first_error, JudgeError) and not heard:
            raise self._first_error

    async def _compare(self, first: int, second: int) -> ResponseComparison:
        async with self._slots:
            try:
                verdict = await self._ask(self._pairs(first, second))
            except _HOPELESS:
                raise
            except (NoVerdict, JudgeError) as error:
                made = self._failed(first, second, error)
            else:
                self.metadata.append(verdict.metadata)
                made = _compared(first, second, verdict)
        self._finished += 1
        if self._told is not None:
            self._told(self._finished, max(self._finished, self._most))
        return made

    def _failed(self, first: int, second: int, error: EvenhandError) -> ResponseComparison:
        # A judge's error is what to raise if nothing ever comes of it; no verdict is an answer.
        if not isinstance(self._first_error, JudgeError):
            self._first_error = error
        if isinstance(error.metadata, Metadata):
            self.metadata.append(error.metadata)
        return ResponseComparison(
            first=first,
            second=second,
            outcome=Outcome.INVALID,
            winner=None,
            error=ErrorBody(kind=error.kind, message=error.message, retryable=error.retryable),
        )


def _compared(first: int, second: int, verdict: Verdict) -> ResponseComparison:
    winner = None
    if verdict.outcome is Outcome.WIN:
        winner = first if verdict.winner == "A" else second
    return ResponseComparison(
        first=first,
        second=second,
        outcome=verdict.outcome,
        winner=winner,
        confidence=verdict.confidence,
        abstained=verdict.metadata.abstained,
        reasoning=verdict.overall_reasoning,
    )


def _told(pair: tuple[int, int], made: ResponseComparison) -> Told:
    if made.outcome is Outcome.INVALID:
        return Told.NOTHING
    if made.winner is None or made.abstained:
        return Told.EQUAL
    return Told.FIRST if made.winner == pair[0] else Told.SECOND


async def _all(asked: Sequence[Any]) -> list[ResponseComparison]:
    """All of them at once; the first error ends the others, and none is left running."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await _end(task for task in tasks if not task.done())


async def _end(tasks: Iterable[asyncio.Future[ResponseComparison]]) -> None:
    running = list(tasks)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
