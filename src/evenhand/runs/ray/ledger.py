"""The driver's ledger for the cluster: calls and dollars leased to workers, never twice, and
rate-limit permits. Pure: reports and times are passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from evenhand.runs.ray.messages import Permits, WorkerReport, WorkerSpending

# A worker gets at most its share of half of what is free; the rest is for others and for faster
# workers.
_PARTS = 2
_TINY_USD = 1e-9


@dataclass(slots=True)
class WorkerAccount:
    """One worker's sums since it began."""

    calls_granted: int = 0
    calls_returned: int = 0
    cost_granted: float = 0.0
    cost_returned: float = 0.0
    spent: WorkerSpending = field(default_factory=WorkerSpending)

    @property
    def calls_out(self) -> int:
        """Leased and not begun. Calls of several requests may overdraw it."""
        return max(0, self.calls_granted - self.calls_returned - self.spent.calls)

    @property
    def cost_out(self) -> float:
        """Leased and not spent, including calls in flight."""
        return max(0.0, self.cost_granted - self.cost_returned - self.spent.cost_usd)


@dataclass(frozen=True, slots=True)
class Loan:
    calls: int = 0
    cost_usd: float = 0.0


class BudgetLedger:
    def __init__(self, *, max_calls: int | None = None, max_cost: float | None = None) -> None:
        self._max_calls = max_calls
        self._max_cost = max_cost
        self._accounts: dict[int, WorkerAccount] = {}
        self._closed = WorkerSpending()
        self.lost_calls = 0  # leased to workers that were lost: made or not, nobody knows
        self.lost_cost_usd = 0.0

    def open(self, worker: int) -> None:
        self._accounts[worker] = WorkerAccount()

    def enter(self, worker: int, report: WorkerReport) -> WorkerSpending:
        """What is new in the report."""
        account = self._accounts[worker]
        new = report.spending - account.spent
        account.spent = report.spending
        account.calls_returned = report.returned_calls
        account.cost_returned = report.returned_cost_usd
        return new

    def lease(self, worker: int, report: WorkerReport) -> Loan:
        account = self._accounts[worker]
        loan = Loan(self._calls_for(report), self._cost_for(report))
        account.calls_granted += loan.calls
        account.cost_granted += loan.cost_usd
        return loan

    def close(self, worker: int) -> None:
        """It ended and reported everything; its unused lease is free again."""
        self._closed += self._accounts.pop(worker).spent

    def handle_loss(self, worker: int) -> None:
        """It died. Its lease may have been spent, so it counts as spent."""
        account = self._accounts.pop(worker)
        self.lost_calls += account.calls_out
        self.lost_cost_usd += account.cost_out
        self._closed += account.spent

    def reached(self) -> Literal["max-calls", "max-cost"] | None:
        """A cap that allows no more calls, now or when leases return. For starving workers."""
        accounts = self._accounts.values()
        no_call_out = not any(account.calls_out for account in accounts)
        if self._max_calls is not None and self.free_calls < 1 and no_call_out:
            return "max-calls"
        no_cost_out = all(account.cost_out <= _TINY_USD for account in accounts)
        if self._max_cost is not None and self.free_cost_usd < self._least_cost and no_cost_out:
            return "max-cost"
        return None

    @property
    def free_calls(self) -> int:
        out = sum(account.calls_out for account in self._accounts.values())
        return max(0, (self._max_calls or 0) - self.spent.calls - self.lost_calls - out)

    @property
    def free_cost_usd(self) -> float:
        out = sum(account.cost_out for account in self._accounts.values())
        return max(0.0, (self._max_cost or 0.0) - self.spent.cost_usd - self.lost_cost_usd - out)

    @property
    def spent(self) -> WorkerSpending:
        whole = self._closed
        for account in self._accounts.values():
            whole += account.spent
        return whole

    @property
    def mean_cost_usd(self) -> float | None:
        spent = self.spent
        return spent.cost_usd / spent.priced if spent.priced else None

    @property
    def _least_cost(self) -> float:
        return max(_TINY_USD, self.mean_cost_usd or 0.0)

    @property
    def _shares(self) -> int:
        return _PARTS * max(1, len(self._accounts))

    def _calls_for(self, report: WorkerReport) -> int:
        if self._max_calls is None or report.wants_calls < 1:
            return 0
        free = self.free_calls
        return min(report.wants_calls, free, max(1, free // self._shares))

    def _cost_for(self, report: WorkerReport) -> float:
        if self._max_cost is None or not report.wants_cost:
            return 0.0
        free, least = self.free_cost_usd, self._least_cost
        if free < least:
            return 0.0
        mean = self.mean_cost_usd
        most = free if mean is None else max(1, report.wants_calls) * mean
        return min(free, most, max(least, free / self._shares))


# A permit expires after this time.
VALID_S = 1.5
# How long unused permits accumulate.
_CAUGHT_UP_S = 0.5
_MINUTE_S = 60.0


class PermitIssuer:
    """Requests or tokens a minute for one judge, issued in small, short-lived permits. Slightly
    below the rate: permits are used later than issued, so a minute may contain more than a minute's
    worth."""

    def __init__(self, *, requests: float | None, tokens: float | None) -> None:
        self._requests = None if requests is None else _PermitRate(requests)
        self._tokens = None if tokens is None else _PermitRate(tokens)

    def take_back(self, unused: Permits) -> None:
        if self._requests is not None:
            self._requests.take_back(unused.requests)
        if self._tokens is not None:
            self._tokens.take_back(unused.tokens)

    def give(self, wanted: Permits, now: float) -> Permits:
        calls = int(wanted.requests)
        if calls < 1:
            return Permits()
        requests = 0.0
        if self._requests is not None:
            calls = int(self._requests.give(calls, now, least=1.0, whole=True))
            requests = float(calls)
        tokens = 0.0
        if self._tokens is not None and calls:
            each = wanted.tokens / wanted.requests
            tokens = self._tokens.give(each * calls, now, least=each)
        return Permits(requests, tokens)


class _PermitRate:
    def __init__(self, per_minute: float) -> None:
        self._unit_s = (_MINUTE_S + VALID_S + _CAUGHT_UP_S) / per_minute
        self._free_at = float("-inf")

    def give(self, wanted: float, now: float, *, least: float, whole: bool = False) -> float:
        """As many as have accumulated; `least` in any case, once the next is due."""
        if now < self._free_at or wanted <= 0:
            return 0.0
        begun = max(self._free_at, now - _CAUGHT_UP_S)
        given = min(wanted, max(least, (now - begun) / self._unit_s))
        given = float(int(given)) if whole else given
        self._free_at = begun + given * self._unit_s
        return given

    def take_back(self, amount: float) -> None:
        """A negative amount was overused."""
        self._free_at -= amount * self._unit_s
