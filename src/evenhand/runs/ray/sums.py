"""What is new in a worker's report, added to the run's own sums."""

from __future__ import annotations

from evenhand.runs.budget import Budget
from evenhand.runs.executor import Seat
from evenhand.runs.ray.messages import SeatReport, Spending


def add_spending(budget: Budget, new: Spending) -> None:
    budget.calls += new.calls
    budget.cost_usd += new.cost_usd
    budget.unpriced += new.unpriced
    budget.uncounted += new.uncounted
    budget.input_tokens += new.input_tokens
    budget.output_tokens += new.output_tokens


def add_counts(seat: Seat, told: SeatReport, before: SeatReport | None) -> None:
    for name in _COUNTED:
        new = getattr(told, name) - (getattr(before, name) if before else 0)
        setattr(seat.count, name, getattr(seat.count, name) + new)


_COUNTED = (
    "wins_a", "wins_b", "ties", "inconsistent", "invalid", "passes", "unread", "reused",
)  # fmt: skip
