"""`rank_responses`: responses to one prompt compared in batches, failures as values."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from evenhand.contract import ErrorBody, Metadata, Outcome, Pair, Usage, Verdict, read_pair
from evenhand.contract.pair import at_field
from evenhand.errors import (
    EvenhandError,
    InputError,
    JudgeAuthentication,
    JudgeError,
    JudgeQuotaExceeded,
    NoVerdict,
)
from evenhand.judging.ballots import add_usage
from evenhand.judging.passes import milliseconds_since
from evenhand.ranker.merge_insertion import Batch, ComparisonResult, Order, merge_insertion
from evenhand.ranker.ranking import Places, RankingMetadata, ResponseComparison, notes_on_ranking
from evenhand.ranker.ranking import RankedResponses as RankedResponses

Ask = Callable[[Pair], Awaitable[Verdict]]
ProgressCallback = Callable[[int, int], None]

# Faults of the judge, not the pair: other comparisons would fail too.
_FATAL = (JudgeAuthentication, JudgeQuotaExceeded)


class ComparisonLog:
    """All comparisons, in order."""

    def __init__(
        self,
        pairs: Callable[[int, int], Pair],
        *,
        ask: Ask,
        at_once: int,
        most: int,
        limit: int | None,
        on_progress: ProgressCallback | None,
    ) -> None:
        self._pairs = pairs
        self._ask = ask
        self._slots = asyncio.Semaphore(at_once)
        self._most = most if limit is None else min(most, limit)
        self._left = limit
        self._on_progress = on_progress
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

    async def of(self, batch: Batch) -> list[ComparisonResult]:
        asked = batch if self._left is None else batch[: self._left]
        if self._left is not None:
            self._left -= len(asked)
        unasked = len(batch) - len(asked)
        self.unasked += unasked
        made = await _all([self._compare(*sorted(pair)) for pair in asked])
        self.made += made
        self._raise_if_unanswered()
        results = [_result_of(pair, each) for pair, each in zip(asked, made, strict=True)]
        return results + [ComparisonResult.NOTHING] * unasked

    def _raise_if_unanswered(self) -> None:
        """A judge that cannot be asked at all is an error, not an empty ranking."""
        answered = any(each.outcome is not Outcome.INVALID for each in self.made)
        if isinstance(self._first_error, JudgeError) and not answered:
            raise self._first_error

    async def _compare(self, first: int, second: int) -> ResponseComparison:
        async with self._slots:
            try:
                verdict = await self._ask(self._pairs(first, second))
            except _FATAL:
                raise
            except (NoVerdict, JudgeError) as error:
                made = self._failed(first, second, error)
            else:
                self.metadata.append(verdict.metadata)
                made = _compared(first, second, verdict)
        self._finished += 1
        if self._on_progress is not None:
            self._on_progress(self._finished, max(self._finished, self._most))
        return made

    def _failed(self, first: int, second: int, error: EvenhandError) -> ResponseComparison:
        # Raised if nothing ever succeeds; no verdict is an answer.
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


def _result_of(pair: tuple[int, int], made: ResponseComparison) -> ComparisonResult:
    if made.outcome is Outcome.INVALID:
        return ComparisonResult.NOTHING
    if made.winner is None or made.abstained:
        return ComparisonResult.EQUAL
    return ComparisonResult.FIRST if made.winner == pair[0] else ComparisonResult.SECOND


async def _all(asked: Sequence[Any]) -> list[ResponseComparison]:
    """All at once; the first error cancels the others."""
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


# Default concurrency.
AT_ONCE = 8


async def rank_responses(
    prompt: str,
    responses: Sequence[str],
    *,
    criteria: Sequence[Any],
    ask: Ask,
    context: str | None = None,
    reference: str | None = None,
    allow_tie: bool = True,
    check: bool = False,
    max_comparisons: int | None = None,
    at_once: int = AT_ONCE,
    on_progress: ProgressCallback | None = None,
) -> RankedResponses:
    """`ask` compares a pair in both orders, as `comparer.compare` does, and raises failures.

    A comparison without a verdict is reported, never guessed; if the judge could never be asked,
    its error is raised. `check` adds up to two comparisons a response to look for contradictions.
    If `max_comparisons` do not suffice, more responses share places. `on_progress` gets the
    comparisons done and their maximum.
    """
    started = time.perf_counter()
    for name, number in (("max_comparisons", max_comparisons), ("at_once", at_once)):
        if number is not None and (type(number) is not int or number < 1):
            raise InputError.of("ranker.no_whole_number", name=name, number=number)
    plain = {
        "prompt": prompt,
        "criteria": list(criteria) if isinstance(criteria, list | tuple) else criteria,
        "context": context,
        "reference": reference,
        "allowTie": allow_tie,
    }
    first = _checked(plain, responses)
    twins = _twins(responses)
    distinct = list(twins)

    def pair(one: int, other: int) -> Pair:
        texts = {"response_a": responses[one], "response_b": responses[other]}
        return first.model_copy(update={"id": f"{one}-{other}", **texts})

    most = most_comparisons(len(distinct)) + (_most_checks(len(distinct)) if check else 0)
    comparisons = ComparisonLog(
        pair, ask=ask, at_once=at_once, most=most, limit=max_comparisons, on_progress=on_progress
    )
    order = await _sorted(distinct, comparisons)
    places = Places(order, comparisons.made, twins)
    if check:
        listed = [each.index for each in places.ranking if each.index in twins]
        await comparisons.of(
            [
                (upper, lower)
                for step in (1, 2)
                for upper, lower in zip(listed, listed[step:], strict=False)
                if not comparisons.among(upper, lower)
            ]
        )
        places = Places(order, comparisons.made, twins)
    return _ranked_responses(
        places, comparisons, repeated=len(responses) - len(distinct), started=started
    )


def most_comparisons(count: int) -> int:
    """Merge insertion's worst case: the sum of ⌈log2(3k/4)⌉ for k from 1 to `count`."""
    return sum((3 * k - 1).bit_length() - 2 for k in range(2, count + 1))


def _most_checks(count: int) -> int:
    return max(count - 1, 0) + max(count - 2, 0)


async def _sorted(items: list[int], comparisons: ComparisonLog) -> Order:
    sorting = merge_insertion(items)
    try:
        batch = next(sorting)
        while True:
            batch = sorting.send(await comparisons.of(batch))
    except StopIteration as finished:
        order: Order = finished.value
        return order


def _checked(plain: Mapping[str, Any], responses: Sequence[str]) -> Pair:
    """The first pair, once every response has been validated."""
    if isinstance(responses, str) or not isinstance(responses, Sequence):
        raise InputError.of("ranker.responses_no_list")
    if len(responses) < 2:
        raise InputError.of("ranker.too_few_responses", n=len(responses))
    given = {key: value for key, value in plain.items() if value is not None}
    pair = read_pair({**given, "responseA": "", "responseB": ""})
    for index, response in enumerate(responses):
        try:
            read_pair({**given, "responseA": response, "responseB": ""})
        except InputError as error:
            raise InputError(at_field(error.message, f"responses[{index}]")) from None
    return pair


def _twins(responses: Sequence[str]) -> dict[int, list[int]]:
    """The first of identical texts for each; they need no comparison."""
    first: dict[str, int] = {}
    twins: dict[int, list[int]] = {}
    for index, response in enumerate(responses):
        twins.setdefault(first.setdefault(response, index), []).append(index)
    return twins


def _ranked_responses(
    places: Places, comparisons: ComparisonLog, *, repeated: int, started: float
) -> RankedResponses:
    made, metadata = tuple(comparisons.made), comparisons.metadata
    return RankedResponses(
        ranking=places.ranking,
        neighbours=places.neighbours,
        comparisons=made,
        contradictions=places.contradictions,
        notes=notes_on_ranking(
            places.ranking,
            made,
            contradictions=places.contradictions,
            repeated=repeated,
            unasked=comparisons.unasked,
            locale=next((each.locale for each in metadata if each.locale), "en"),
        ),
        metadata=RankingMetadata(
            responses=len(places.ranking),
            comparisons=len(made),
            invalid=sum(each.outcome is Outcome.INVALID for each in made),
            evaluation_time_ms=milliseconds_since(started),
            judge=next((each.judge for each in metadata if each.judge), None),
            judge_caveat=next((each.judge_caveat for each in metadata if each.judge_caveat), None),
            usage=comparisons.usage,
        ),
    )
