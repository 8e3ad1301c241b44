"""Hard caps on what a command may spend. A call that might go beyond them does not begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.errors import CapReached
from evenhand.messages import Message
from evenhand.runs.stop import Stop

if TYPE_CHECKING:
    from evenhand.runs.ray.messages import WorkerSpending


class Budget:
    """Counts what was begun and what was spent, for all judges of a run together."""

    def __init__(
        self, stop: Stop, *, max_calls: int | None = None, max_cost: float | None = None
    ) -> None:
        self._stop = stop
        self._max_calls = max_calls
        self._max_cost = max_cost
        self._unpriced_allowed = False
        self._in_flight = 0
        self._priced = 0
        self.calls = 0
        self.cost_usd = 0.0
        self.unpriced = 0  # calls whose cost nobody knows
        self.uncounted = 0  # answers that came without their tokens
        self.input_tokens = 0
        self.output_tokens = 0

    def cap_unpriced(self, most_calls: int | None) -> None:
        """Where a price is not known from the start, calls are capped in its place."""
        self._max_calls, self._unpriced_allowed = most_calls, True

    def begin(self) -> bool:
        """Whether one more call may begin; where not, the run is asked to stop."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            self.stop_at_calls()
            return False
        if self._max_cost is not None and self._would_exceed(self._max_cost):
            self.stop_at_cost()
            return False
        self.calls += 1
        self._in_flight += 1
        return True

    def _would_exceed(self, most: float) -> bool:
        if self.cost_usd >= most:
            return True
        if not self._priced:
            return False
        # What is in flight is counted at the mean so far, this call included.
        mean = self.cost_usd / self._priced
        return self.cost_usd + (self._in_flight + 1) * mean > most

    def submitted(self, calls: int) -> None:
        """Calls that somebody else makes for us, within caps that were looked at before."""
        self.calls += calls
        self._in_flight += calls

    def refused(self, calls: int) -> None:
        """Of those, calls that nobody will make."""
        self.submitted(-calls)

    def end(
        self,
        *,
        requests: int,
        cost_usd: float | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        answered: bool = True,
    ) -> None:
        self._in_flight -= 1
        self.calls += requests - 1
        self.input_tokens += input_tokens or 0
        self.output_tokens += output_tokens or 0
        self.uncounted += answered and (input_tokens is None or output_tokens is None)
        if cost_usd is not None:
            self.cost_usd += cost_usd
            self._priced += 1
        elif answered:
            self.unpriced += 1
            self.stop_where_unpriced()
        self._settle(requests, cost_usd)

    def _settle(self, requests: int, cost_usd: float | None) -> None:
        """For whoever keeps other books too."""

    def add(self, spent: WorkerSpending) -> None:
        """What another process has spent of it."""
        self.calls += spent.calls
        self.cost_usd += spent.cost_usd
        self.unpriced += spent.unpriced
        self.uncounted += spent.uncounted
        self.input_tokens += spent.input_tokens
        self.output_tokens += spent.output_tokens

    def stop_at_calls(self) -> None:
        self._stop.ask(
            "max-calls", CapReached(Message("runs.reached_max_calls", max_calls=self._max_calls))
        )

    def stop_at_cost(self) -> None:
        self._stop.ask(
            "max-cost", CapReached(Message("runs.reached_max_cost", max_cost=self._max_cost))
        )

    def stop_where_unpriced(self) -> None:
        if self._max_cost is not None and self.unpriced and not self._unpriced_allowed:
            self._stop.ask("max-cost", CapReached(Message("runs.cost_unknown")))

    @property
    def known_cost_usd(self) -> float | None:
        """A sum is known only where every part is."""
        return None if self.unpriced else self.cost_usd

    @property
    def known_input_tokens(self) -> int | None:
        return None if self.uncounted else self.input_tokens

    @property
    def known_output_tokens(self) -> int | None:
        return None if self.uncounted else self.output_tokens
