"""A batch's results, from the provider into the store; each is counted once."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from evenhand.errors import JudgeConnectionLost
from evenhand.judges.batch import BATCH_RATE, BatchApi, BatchStatus
from evenhand.judges.prices import cost_usd
from evenhand.runs.batch.allowance import Allowance
from evenhand.runs.batch.drafting import place_of
from evenhand.runs.executor import Seat
from evenhand.store import Store
from evenhand.store.batches import BatchRecord

_STORED_AT_ONCE = 500


async def fetch_results(
    batch: BatchRecord,
    status: BatchStatus,
    api: BatchApi,
    *,
    seat: Seat,
    store: Store,
    allowance: Allowance,
) -> int:
    """Store what the batch has brought and was not stored yet; how many answers of it there are.

    Raises JudgeConnectionLost where there are more to come, after what came is stored.
    """
    assert batch.provider_id is not None  # noqa: S101 - only batches that are there have results
    lacking = await asyncio.to_thread(store.batches.lacking, batch.id)
    came: dict[int, str] = {}

    async def put_away() -> None:
        await asyncio.to_thread(store.batches.receive, batch.id, list(came.items()))
        for answer in came.values():
            _count(answer, api, seat, allowance)
        came.clear()

    try:
        async with aclosing(api.results(batch.provider_id, status)) as results:
            async for result in results:
                place = place_of(result.custom_id, batch.nonce)
                if place not in lacking or result.answer is None:
                    continue
                lacking.discard(place)
                came[place] = result.answer
                if len(came) >= _STORED_AT_ONCE:
                    await put_away()
    finally:
        await put_away()
    answers = batch.requests - len(lacking)
    if answers < status.answered:
        raise JudgeConnectionLost(
            f"{api.host} gave {answers:,} results of batch {batch.provider_id} and counts "
            f"{status.answered:,}; they are fetched again"
        )
    return answers


def _count(answer: str, api: BatchApi, seat: Seat, allowance: Allowance) -> None:
    """What it cost; a request that failed costs nothing."""
    used = api.usage(answer)
    if used is None:
        return
    usage, model = used
    cost = cost_usd(usage, model=model, traits=seat.judge.traits, price=seat.price)
    allowance.came(usage, None if cost is None else cost * BATCH_RATE)
