"""What is still to be submitted, and so still to be paid for."""

from __future__ import annotations

from evenhand.judges.batch import BATCH_RATE
from evenhand.runs.estimate import Estimate
from evenhand.store import Store


def still_to_submit(whole: Estimate, store: Store, run_id: int, judge_id: int) -> Estimate:
    """Without what is at the provider, or has come from there and waits for its pass."""
    there = sum(batch.requests for batch in store.batches.unfinished(run_id, judge_id))
    asked = there + store.batches.count_came(run_id, judge_id)
    left = max(0, whole.calls - asked) / whole.calls if whole.calls else 0.0
    return whole.share(left).at_batch_rates(BATCH_RATE)
