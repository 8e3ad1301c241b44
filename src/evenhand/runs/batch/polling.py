"""Batches at the provider: recovered after a crash, polled, collected, cancelled."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import aclosing

from evenhand.errors import JudgeConnectionLost, JudgeError, JudgeRejected
from evenhand.judges.batch import (
    BATCH_RATE,
    UNSURE,
    BatchLimits,
    BatchStatus,
    UnconfirmedBatch,
)
from evenhand.judges.prices import cost_usd
from evenhand.messages import Message
from evenhand.runs.batch.context import BatchContext
from evenhand.runs.batch.requests import place_of
from evenhand.store.batches import BatchRecord, is_artefact

_STORED_AT_ONCE = 500


async def fetch_results(context: BatchContext, batch: BatchRecord, status: BatchStatus) -> int:
    """Store a batch's new results; returns how many answers it has.

    Raises JudgeConnectionLost if more are to come, after storing those that arrived.
    """
    assert batch.provider_id is not None  # noqa: S101 - only batches that are there have results
    api, batches = context.api, context.store.batches
    lacking = await asyncio.to_thread(batches.lacking, batch.id)
    received: dict[int, str] = {}
    artefacts = {place for place, pair_id in lacking.items() if is_artefact(pair_id)}
    # Pairs anywhere in the data may wait for an artefact.
    context.looks_everywhere = context.looks_everywhere or bool(artefacts)

    async def put_away() -> None:
        await asyncio.to_thread(batches.receive, batch.id, list(received.items()))
        for place, answer in received.items():
            _count(context, answer, artefact=place in artefacts)
        received.clear()

    try:
        async with aclosing(api.results(batch.provider_id, status)) as results:
            async for result in results:
                place = place_of(result.custom_id, batch.nonce)
                if place is None or place not in lacking or result.answer is None:
                    continue
                del lacking[place]
                received[place] = result.answer
                if len(received) >= _STORED_AT_ONCE:
                    await put_away()
    finally:
        await put_away()
    answers = batch.requests - len(lacking)
    if answers < status.answered:
        raise JudgeConnectionLost.of(
            "runs.batch_results_missing",
            host=api.host,
            answers=answers,
            provider_id=batch.provider_id,
            answered=status.answered,
        )
    return answers


def _count(context: BatchContext, answer: str, *, artefact: bool) -> None:
    """Add its cost; a failed request is free."""
    used = context.api.usage(answer)
    if used is None:
        return
    usage, model = used
    run_judge = context.run_judge
    cost = cost_usd(usage, model=model, traits=run_judge.judge.traits, price=run_judge.price)
    cost = None if cost is None else cost * BATCH_RATE
    context.batch_budget.record(usage, cost, artefact=artefact)


class BatchPoller:
    def __init__(self, context: BatchContext) -> None:
        self._context = context
        self._batches = context.store.batches
        self._through: dict[int, int] = {}  # by batch: how many of its requests are through
        self._fetches: Counter[int] = Counter()
        self._cancelled: set[int] = set()
        self._announced: set[int] = set()
        self._empty = 0
        self.at_provider: tuple[BatchRecord, ...] = ()

    @property
    def in_flight(self) -> int:
        return sum(
            max(0, batch.requests - self._through.get(batch.id, 0)) for batch in self.at_provider
        )

    @property
    def certain_in_s(self) -> float | None:
        """When an unconfirmed submission is certain to have arrived or not, or None."""
        doubted = [batch.sent_at for batch in self.at_provider if batch.state == "intended"]
        sent = [sent_at for sent_at in doubted if sent_at is not None]
        if not sent:
            return None
        return max(0.05, min(sent) + self._context.timing.arrives_within_s - time.time())

    async def unfinished(self) -> tuple[BatchRecord, ...]:
        context = self._context
        unfinished = await asyncio.to_thread(
            self._batches.unfinished, context.run_id, context.run_judge.judge_id
        )
        self.at_provider = tuple(unfinished)
        return self.at_provider

    async def look(self) -> list[BatchRecord]:
        """Poll each batch; returns those whose results are now stored."""
        context = self._context
        collected = []
        for batch in await self.unfinished():
            if context.is_stopped:
                break
            try:
                if batch.state == "intended":
                    await self._seek(batch)
                elif await self._looked_at(batch):
                    collected.append(batch)
            except JudgeError as error:
                context.failed(error)
                break
            context.waiting.worked()
        return collected

    async def opened(self, batch: BatchRecord, provider_id: str) -> None:
        await asyncio.to_thread(self._batches.opened, batch.id, provider_id)
        self._context.waiting.anew()

    async def drop(self, batch: BatchRecord) -> None:
        """It is not at the provider: its requests are wanted again."""
        await asyncio.to_thread(self._batches.drop, batch.id)
        self._context.batch_budget.dropped(batch)
        self._context.looks_everywhere = True

    async def _seek(self, batch: BatchRecord) -> None:
        """Look for a batch whose submission was not confirmed."""
        context = self._context
        if batch.sent_at is None:
            await self.drop(batch)
            return
        others = await asyncio.to_thread(self._batches.provider_ids)
        answer = await context.api.find(
            UnconfirmedBatch(batch.nonce, batch.requests, batch.sent_at, others)
        )
        if isinstance(answer, str):
            values = {"batch": answer, "n": batch.requests, "host": context.host}
            context.observer.announce(Message("runs.batch_already_submitted", **values))
            await self.opened(batch, answer)
        elif answer is UNSURE:
            if batch.id not in self._announced:
                self._announced.add(batch.id)
                context.observer.announce(
                    Message("runs.batch_unsure", n=batch.requests, host=context.host)
                )
        elif time.time() - batch.sent_at >= context.timing.arrives_within_s:
            await self.drop(batch)

    async def _looked_at(self, batch: BatchRecord) -> bool:
        """Whether it has ended and all its results are stored."""
        assert batch.provider_id is not None  # noqa: S101 - an open one has one
        api = self._context.api
        try:
            status = await api.look(batch.provider_id)
        except JudgeRejected:
            if not self._context.giving_up:
                raise
            # It is inaccessible, at least with this key; giving it up is the user's decision.
            status = BatchStatus("cancelled")
        self._through[batch.id] = status.through
        if status.phase == "running":
            if self._context.giving_up and batch.id not in self._cancelled:
                await api.cancel(batch.provider_id)
                self._cancelled.add(batch.id)
            return False
        if status.phase == "refused":
            await self._refused(batch, status)
            return False
        return await self._collected(batch, status)

    async def _refused(self, batch: BatchRecord, status: BatchStatus) -> None:
        """Refused as a whole, before any request was asked."""
        context = self._context
        await self.drop(batch)
        if status.crowded:
            smaller = max(1, batch.requests // 2)
            context.limits = BatchLimits(
                min(context.limits.requests, smaller), context.limits.bytes
            )
            context.crowded = True
            context.waiting.hold_back()
            values = {"host": context.host, "n": batch.requests, "why": status.why}
            context.observer.announce(Message("runs.batch_no_room", **values))
            return
        context.stop.ask(
            "judge",
            JudgeRejected.of(
                "runs.batch_refused",
                host=context.host,
                provider_id=batch.provider_id,
                why=status.why,
            ),
        )

    async def _collected(self, batch: BatchRecord, status: BatchStatus) -> bool:
        context = self._context
        answers = None
        try:
            answers = await fetch_results(context, batch, status)
        except (JudgeConnectionLost, JudgeRejected):  # cut short, or gone
            self._fetches[batch.id] += 1
            if self._fetches[batch.id] < context.timing.fetches:
                context.waiting.anew()
                return False
        lapsed = await asyncio.to_thread(self._batches.finish, batch.id)
        context.batch_budget.ended(batch)
        self._room_again()
        self._empty = self._empty + 1 if lapsed == batch.requests else 0
        if lapsed:
            context.looks_everywhere = True
            those = Message("runs.batch_part", lapsed=lapsed, n=batch.requests)
            self._lapsed(batch, status, those, answers)
        return True

    def _room_again(self) -> None:
        """A batch that ends makes room to try more."""
        context = self._context
        if context.limits.requests < context.api.limits.requests:
            more = min(2 * context.limits.requests, context.api.limits.requests)
            context.limits = BatchLimits(more, context.limits.bytes)
        if context.crowded:
            context.crowded = False
            context.looks_everywhere = True

    def _lapsed(
        self, batch: BatchRecord, status: BatchStatus, those: str, answers: int | None
    ) -> None:
        """Its unanswered requests are asked again, unless it was cancelled on purpose."""
        context = self._context
        own = {"batch": batch.provider_id, "requests": those}
        if answers is None:
            attempts = context.timing.fetches
            context.observer.announce(Message("runs.batch_unfetched", attempts=attempts, **own))
        elif status.phase == "cancelled" and context.giving_up:
            context.observer.announce(Message("runs.batch_is_cancelled", **own))
        elif status.phase == "cancelled":
            cancelled = JudgeRejected.of("runs.batch_cancelled", host=context.host, **own)
            context.stop.ask("judge", cancelled)
        elif self._empty >= context.timing.empty_batches:
            empty = Message("runs.batches_empty", n=self._empty, host=context.host)
            context.stop.ask("judge", JudgeRejected(empty))
        else:
            context.observer.announce(
                Message(
                    "runs.batch_expired" if status.phase == "expired" else "runs.batch_ended", **own
                )
            )
