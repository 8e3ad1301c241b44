"""Comparisons for clients: admitted in turn, within the limits and in time; and who counts them."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from evenhand.contract import Order, Pair, Pass, Verdict, read_pair
from evenhand.errors import EvenhandError, JudgeError, JudgeTimeout, ServerBusy, TooLarge
from evenhand.judging import comparison as comparer
from evenhand.judging.decision import PassResult
from evenhand.judging.explanation import pass_in_contract
from evenhand.messages import Message
from evenhand.ranker.responses import RankedResponses, rank_responses
from evenhand.runs.plan import JudgePlan
from evenhand.serve.config import ServerLimits
from evenhand.serve.judges import JudgeCatalog
from evenhand.serve.security.limits import refuse_large, refuse_large_given, too_long
from evenhand.serve.values import RankResponses


class ServiceObserver:
    def compared(self, judge: str, ended: Verdict | EvenhandError, *, seconds: float) -> None:
        """A comparison has ended: with a verdict, or with what was raised."""

    def run_advanced(self, judge: str, *, calls: int, verdicts: int) -> None:
        """A background run has made so many more calls and verdicts; `judge` is its first."""

    def run_ended(self, state: str) -> None:
        """A background run was let go of: finished, stopped, failed, or queued for later."""


# Of the last comparison's time in the mean of all; some ten of them say how fast it goes.
_NEWEST_SHARE = 0.1


class Admission:
    """First come, first served; of one event loop."""

    def __init__(self, slots: int, queue: int) -> None:
        self._slots = slots
        self._queue = queue
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._took_s = 1.0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.changed: Callable[[Admission], None] | None = None  # called whenever it is

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """A slot, at once or after waiting; ServerBusy where even the queue is full."""
        await self._enter()
        began = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            took_s = asyncio.get_running_loop().time() - began
            self._took_s += _NEWEST_SHARE * (took_s - self._took_s)
            self._leave()

    def close(self) -> None:
        """Nobody is let in any more; those who wait are sent away, those inside may finish."""
        self._closed = True
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(_ending())
        self._look()

    async def drained(self, timeout_s: float) -> bool:
        """Whether nobody is inside any more, waiting for that so long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def _enter(self) -> None:
        if self._closed:
            raise _ending()
        if self._in_flight < self._slots and not self._waiting:
            self._in_flight += 1
            self._look()
            return
        if len(self._waiting) >= self._queue:
            raise ServerBusy(
                Message(
                    "serve.too_many_comparisons",
                    in_flight=self._in_flight,
                    n=len(self._waiting),
                ),
                retry_after_s=self._until_free_s(),
            )
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._look()
        try:
            await waiter  # whoever leaves hands its slot over, so it stays counted
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._leave()  # the slot came together with the cancellation
            else:
                self._forget(waiter)
            raise

    def _leave(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._look()
                return
        self._in_flight -= 1
        self._look()

    def _forget(self, waiter: asyncio.Future[None]) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        self._look()

    def _look(self) -> None:
        if self._in_flight or self._waiting:
            self._idle.clear()
        else:
            self._idle.set()
        if self.changed is not None:
            self.changed(self)

    def _until_free_s(self) -> float:
        """When the queue will have moved on by half, as things go now."""
        ahead = max(1.0, len(self._waiting) / 2)
        return float(min(60, math.ceil(ahead * self._took_s / self._slots)))


def _ending() -> ServerBusy:
    return ServerBusy(Message("serve.shutting_down"), retry_after_s=5)


# So many are made, of so many.
OnProgress = Callable[[int, int], None]
# A pass, as soon as it is made.
OnPass = Callable[[Pass], None]
# A ranking has one place among the comparisons, and asks so many at a time.
_RANKING_AT_ONCE = 4


class Comparisons:
    def __init__(
        self,
        offers: JudgeCatalog,
        admission: Admission,
        limits: ServerLimits,
        *,
        observer: ServiceObserver,
    ) -> None:
        self._offers = offers
        self._admission = admission
        self._limits = limits
        self._observer = observer

    async def compare(
        self,
        pair: Mapping[str, Any] | Pair,
        *,
        judge: str | None = None,
        options: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        heard: OnPass | None = None,
    ) -> Verdict:
        """The verdict on one pair; raises an EvenhandError, with the contract's metadata.

        `options` are those that a client sets; the others are as the judge is offered.
        """
        plan = self._offers.plan(judge).choosing(options or {})
        if isinstance(pair, Mapping):
            refuse_large_given(pair, self._limits)
        checked = read_pair(pair, criteria_needed=plan.judge.traits.needs_prompt)
        refuse_large(checked, self._limits)

        async def admitted() -> Verdict:
            async with self._admission.admitted():
                return await self._judged(checked, plan, on_progress, heard)

        return await self._observed(self._offers.offer(judge).name, admitted())

    async def rank(
        self, request: RankResponses, *, on_progress: OnProgress | None = None
    ) -> RankedResponses:
        limits = self._limits
        plan = self._offers.plan(request.judge)
        name = self._offers.offer(request.judge).name
        if len(request.responses) > limits.rank_responses:
            raise TooLarge(
                Message(
                    "serve.too_many_responses",
                    n=len(request.responses),
                    rank_responses=limits.rank_responses,
                )
            )
        for index, response in enumerate(request.responses):
            if len(response) > limits.field_chars:
                what = too_long(f"responses[{index}]", len(response), limits.field_chars)
                raise TooLarge(what)

        async def ask(pair: Pair) -> Verdict:
            return await self._observed(name, self._judged(pair, plan, None))

        refuse_large(_with_texts(request), limits)
        async with self._admission.admitted():
            return await rank_responses(
                request.prompt,
                request.responses,
                criteria=request.criteria,
                ask=ask,
                context=request.context,
                reference=request.reference,
                allow_tie=request.allow_tie,
                check=request.check,
                max_comparisons=request.max_comparisons,
                at_once=_RANKING_AT_ONCE if plan.judge.traits.parallel else 1,
                on_progress=on_progress,
            )

    async def _observed(self, judge: str, comparing: Awaitable[Verdict]) -> Verdict:
        begun = time.perf_counter()
        try:
            verdict = await comparing
        except EvenhandError as error:
            self._observer.compared(judge, error, seconds=time.perf_counter() - begun)
            raise
        self._observer.compared(judge, verdict, seconds=time.perf_counter() - begun)
        return verdict

    async def _judged(
        self,
        pair: Pair,
        plan: JudgePlan,
        on_progress: OnProgress | None,
        heard: OnPass | None = None,
    ) -> Verdict:
        try:
            async with asyncio.timeout(self._limits.compare_timeout_s):
                if on_progress is None and heard is None:
                    return await comparer.compare(pair, plan.judge, plan.config)
                return await self._reported(pair, plan, on_progress, heard)
        except TimeoutError:
            raise JudgeTimeout(
                Message(
                    "serve.comparison_timeout", compare_timeout_s=self._limits.compare_timeout_s
                )
            ) from None

    async def _reported(
        self, pair: Pair, plan: JudgePlan, on_progress: OnProgress | None, heard: OnPass | None
    ) -> Verdict:
        keeper = _Counter(
            pair,
            len(pair.orders) * plan.config.samples_per_order,
            on_progress=on_progress,
            heard=heard,
        )
        settled = await comparer.settle(pair, plan.judge, plan.config, keeper=keeper)
        if isinstance(settled, Verdict):
            return settled
        raise settled.error


def _with_texts(request: RankResponses) -> Pair:
    """What all its pairs have in common, to be held to the limits of a pair."""
    return Pair.model_construct(
        prompt=request.prompt,
        response_a="",
        response_b="",
        criteria=request.criteria,
        id=None,
        context=request.context,
        reference=request.reference,
    )


class _Counter:
    """Keeps no passes: it counts them, and lets them be heard."""

    def __init__(
        self, pair: Pair, total: int, *, on_progress: OnProgress | None, heard: OnPass | None
    ) -> None:
        self._pair = pair
        self._on_progress = on_progress
        self._heard = heard
        self._total = total
        self._done = 0

    def recall(self, order: Order, sample: int) -> PassResult | None:
        return None

    def keep(self, made: PassResult) -> None:
        self._done += 1
        if self._heard is not None:
            self._heard(pass_in_contract(self._pair, made))
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)

    def failed(self, order: Order, sample: int, error: JudgeError) -> None:
        pass
