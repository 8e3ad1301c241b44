"""A run's batches at a provider: where each is, how large, and what it may cost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from evenhand.contract.model import Model
from evenhand.report.lookup import find_run
from evenhand.store import Store
from evenhand.store.batches import BatchRecord

# `sent`: nobody saw whether it arrived, and it is looked for; `open`: it is at the provider.
BatchStage = Literal["intended", "sent", "open", "done"]


class BatchReport(Model):
    """`id` is the provider's, null until it is known; `reserved_usd` what it may cost at most,
    as it was reckoned before it was sent, null where no price is known."""

    id: str | None
    judge: str
    state: BatchStage
    requests: int
    sent_at: datetime | None
    reserved_usd: float | None


def report_batches(store: Store, name: str) -> tuple[BatchReport, ...]:
    """Oldest first."""
    run = find_run(store, name)
    names = {judge.id: judge.name for judge in store.run_judges(run.id)}
    return tuple(
        BatchReport(
            id=batch.provider_id,
            judge=names.get(batch.judge_id, ""),
            state=_stage(batch),
            requests=batch.requests,
            sent_at=None if batch.sent_at is None else datetime.fromtimestamp(batch.sent_at, UTC),
            reserved_usd=batch.reserved_usd,
        )
        for batch in store.batches.of_run(run.id)
    )


def _stage(batch: BatchRecord) -> BatchStage:
    if batch.state == "intended":
        return "intended" if batch.sent_at is None else "sent"
    return batch.state
