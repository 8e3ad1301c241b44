"""Several responses to one prompt, ranked with the fewest comparisons."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from evenhand.contract import Pair, Verdict
from evenhand.ranker.ranking import RankedResponses as RankedResponses

Ask = Callable[[Pair], Awaitable[Verdict]]


async def rank_responses(
    prompt: str,
    responses: Sequence[str],
    *,
    criteria: Sequence[Any],
    ask: Ask,
    context: str | None = None,
    reference: str | None = None,
    check: bool = False,
    at_once: int = 8,
    told: Callable[[int, int], None] | None = None,
) -> RankedResponses:
    """`ask` compares a pair in both orders, as `comparer.compare` does, and raises what failed.

    `check` spends some more comparisons on looking for contradictions. `told` hears how many
    comparisons are done and how many there can be.
    """
    raise NotImplementedError
