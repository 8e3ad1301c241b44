"""Comparisons of clients: admitted in turn, within the limits and in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from evenhand import comparer
from evenhand.contract import Order, Pair, Pass, Verdict, read_pair
from evenhand.errors import EvenhandError, JudgeError, JudgeTimeout, TooLarge
from evenhand.passes import Made
from evenhand.ranker import RankedResponses, rank_responses
from evenhand.runs import JudgePlan
from evenhand.serve.admission import Admission
from evenhand.serve.bounds import refuse_large, refuse_large_given, too_long
from evenhand.serve.config import Limits
from evenhand.serve.offers import Offers
from evenhand.serve.values import RankResponses
from evenhand.serve.watch import Watch

# So many are made, of so many.
Told = Callable[[int, int], None]
# A pass, as soon as it is made.
Heard = Callable[[Made], None]
# A ranking has one place among the comparisons, and asks so many at a time.
_RANKING_AT_ONCE = 4


class Comparing:
    def __init__(
        self,
        offers: Offers,
        admission: Admission,
        limits: Limits,
        *,
        watch: Callable[[], Watch],
    ) -> None:
        self._offers = offers
        self._admission = admission
        self._limits = limits
        self._watch = watch

    async def compare(
        self,
        pair: Mapping[str, Any] | Pair,
        judge: str | None,
        told: Told | None,
        heard: Heard | None = None,
    ) -> Verdict:
        plan = self._offers.plan(judge)
        if isinstance(pair, Mapping):
            refuse_large_given(pair, self._limits)
        checked = read_pair(pair, criteria_needed=plan.judge.traits.needs_prompt)
        refuse_large(checked, self._limits)
        name = self._offers.offer(judge).name
        begun = time.perf_counter()
        try:
            async with self._admission.admitted():
                verdict = await self._judged(checked, plan, told, heard)
        except EvenhandError as error:
            self._watch().compared(name, error, seconds=time.perf_counter() - begun)
            raise
        self._watch().compared(name, verdict, seconds=time.perf_counter() - begun)
        return verdict

    async def rank(self, request: RankResponses, told: Told | None) -> RankedResponses:
        limits = self._limits
        plan = self._offers.plan(request.judge)
        name = self._offers.offer(request.judge).name
        if len(request.responses) > limits.rank_responses:
            raise TooLarge(
                f"responses has {len(request.responses)}; this server ranks "
                f"{limits.rank_responses} at most; give fewer"
            )
        for index, response in enumerate(request.responses):
            if len(response) > limits.field_chars:
                what = too_long(f"responses[{index}]", len(response), limits.field_chars)
                raise TooLarge(what)

        async def ask(pair: Pair) -> Verdict:
            begun = time.perf_counter()
            try:
                verdict = await self._judged(pair, plan, None)
            except EvenhandError as error:
                self._watch().compared(name, error, seconds=time.perf_counter() - begun)
                raise
            self._watch().compared(name, verdict, seconds=time.perf_counter() - begun)
            return verdict

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
                told=told,
            )

    async def _judged(
        self, pair: Pair, plan: JudgePlan, told: Told | None, heard: Heard | None = None
    ) -> Verdict:
        try:
            async with asyncio.timeout(self._limits.compare_timeout_s):
                if told is None and heard is None:
                    return await comparer.compare(pair, plan.judge, plan.procedure)
                return await self._told(pair, plan, told, heard)
        except TimeoutError:
            raise JudgeTimeout(
                f"no verdict within {self._limits.compare_timeout_s:g} s, which is all that this "
                "server gives a comparison; ask again, or shorten the responses"
            ) from None

    async def _told(
        self, pair: Pair, plan: JudgePlan, told: Told | None, heard: Heard | None
    ) -> Verdict:
        orders = 2 if pair.swap_positions else 1
        keeper = _Counter(orders * plan.procedure.samples, told=told, heard=heard)
        settled = await comparer.settle(pair, plan.judge, plan.procedure, keeper=keeper)
        if isinstance(settled, Verdict):
            return settled
        failure, error = settled
        error.metadata = failure.metadata
        raise error


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

    def __init__(self, total: int, *, told: Told | None, heard: Heard | None) -> None:
        self._told = told
        self._heard = heard
        self._total = total
        self._done = 0

    def recall(self, order: Order, sample: int) -> Pass | None:
        return None

    def keep(self, made: Made) -> None:
        self._done += 1
        if self._heard is not None:
            self._heard(made)
        if self._told is not None:
            self._told(self._done, self._total)

    def failed(self, order: Order, sample: int, error: JudgeError) -> None:
        pass
