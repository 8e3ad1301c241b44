"""Several responses to one prompt, ranked with the fewest comparisons.

responses ──► merge_insertion ──► comparisons ──► places ──► ranking
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.case import milliseconds_since
from evenhand.contract import Outcome, Pair, read_pair
from evenhand.errors import InputError
from evenhand.ranker.asking import Ask as Ask
from evenhand.ranker.asking import Comparisons, Heard
from evenhand.ranker.merge_insertion import Order, merge_insertion
from evenhand.ranker.notes import notes_on_ranking
from evenhand.ranker.places import Places
from evenhand.ranker.ranking import RankedResponses as RankedResponses
from evenhand.ranker.ranking import RankingMetadata

# How many comparisons are under way at a time, unless told.
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
    told: Heard | None = None,
) -> RankedResponses:
    """`ask` compares a pair in both orders, as `comparer.compare` does, and raises what failed.

    A comparison without a verdict is reported and nothing is guessed from it; where the judge
    could never be asked, its error is raised. `check` spends up to two more comparisons a
    response on looking for contradictions. Where `max_comparisons` do not suffice, some responses
    share more places than they need. `told` hears how many comparisons are done, and how many
    there can be.
    """
    begun = time.perf_counter()
    for name, number in (("max_comparisons", max_comparisons), ("at_once", at_once)):
        if number is not None and (type(number) is not int or number < 1):
            raise InputError(f"{name} is {number!r}; it takes a whole number from 1")
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
    comparisons = Comparisons(
        pair, ask=ask, at_once=at_once, most=most, limit=max_comparisons, told=told
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
    return _told(places, comparisons, repeated=len(responses) - len(distinct), begun=begun)


def most_comparisons(count: int) -> int:
    """How many merge insertion takes at worst for so many responses, each telling something: the
    sum of ⌈log2(3k/4)⌉ for k from 1 to `count`."""
    return sum((3 * k - 1).bit_length() - 2 for k in range(2, count + 1))


def _most_checks(count: int) -> int:
    return max(count - 1, 0) + max(count - 2, 0)


async def _sorted(items: list[int], comparisons: Comparisons) -> Order:
    sorting = merge_insertion(items)
    try:
        batch = next(sorting)
        while True:
            batch = sorting.send(await comparisons.of(batch))
    except StopIteration as finished:
        order: Order = finished.value
        return order


def _checked(plain: Mapping[str, Any], responses: Sequence[str]) -> Pair:
    """The first pair, once every response has passed the rules of a pair's."""
    if isinstance(responses, str) or not isinstance(responses, Sequence):
        raise InputError("responses takes a list of texts; give the answers to compare")
    if len(responses) < 2:
        raise InputError(f"responses has {len(responses)}; a ranking takes at least 2")
    given = {key: value for key, value in plain.items() if value is not None}
    pair = read_pair({**given, "responseA": "", "responseB": ""})
    for index, response in enumerate(responses):
        try:
            read_pair({**given, "responseA": response, "responseB": ""})
        except InputError as error:
            message = error.message.replace("responseA", f"responses[{index}]", 1)
            raise InputError(message) from None
    return pair


def _twins(responses: Sequence[str]) -> dict[int, list[int]]:
    """Identical texts by the first of them: they need no comparison."""
    first: dict[str, int] = {}
    twins: dict[int, list[int]] = {}
    for index, response in enumerate(responses):
        twins.setdefault(first.setdefault(response, index), []).append(index)
    return twins


def _told(
    places: Places, comparisons: Comparisons, *, repeated: int, begun: float
) -> RankedResponses:
    made, heard = tuple(comparisons.made), comparisons.metadata
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
            locale=next((each.locale for each in heard if each.locale), "en"),
        ),
        metadata=RankingMetadata(
            responses=len(places.ranking),
            comparisons=len(made),
            invalid=sum(each.outcome is Outcome.INVALID for each in made),
            evaluation_time_ms=milliseconds_since(begun),
            judge=next((each.judge for each in heard if each.judge), None),
            judge_caveat=next((each.judge_caveat for each in heard if each.judge_caveat), None),
            usage=comparisons.usage,
        ),
    )
