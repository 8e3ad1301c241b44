"""Hard caps on what a command may spend. A call that might exceed them does not begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.errors import CapReached
from evenhand.runs.stop import Stop

if TYPE_CHECKING:
    from evenhand.runs.ray.messages import WorkerSpending


class Budget:
    """Counts calls and spending of all judges of a run."""

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
        """If a price is unknown from the start, calls are capped instead."""
        self._max_calls, self._unpriced_allowed = most_calls, True

    def begin(self) -> bool:
        """Whether one more call may begin; if not, the run is asked to stop."""
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
        # Calls in flight, including this one, are counted at the mean so far.
        mean = self.cost_usd / self._priced
        return self.cost_usd + (self._in_flight + 1) * mean > most

    def submitted(self, calls: int) -> None:
        """Calls delegated elsewhere, within caps that were checked before."""
        self.calls += calls
        self._in_flight += calls

    def refused(self, calls: int) -> None:
        """Delegated calls that will not be made."""
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
        """Hook for further accounts."""

    def add(self, spent: WorkerSpending) -> None:
        """Add another process's spending."""
        self.calls += spent.calls
        self.cost_usd += spent.cost_usd
        self.unpriced += spent.unpriced
        self.uncounted += spent.uncounted
        self.input_tokens += spent.input_tokens
        self.output_tokens += spent.output_tokens

    def stop_at_calls(self) -> None:
        self._stop.ask(
            "max-calls", CapReached.of("runs.reached_max_calls", max_calls=self._max_calls)
        )

    def stop_at_cost(self) -> None:
        self._stop.ask("max-cost", CapReached.of("runs.reached_max_cost", max_cost=self._max_cost))

    def stop_where_unpriced(self) -> None:
        if self._max_cost is not None and self.unpriced and not self._unpriced_allowed:
            self._stop.ask("max-cost", CapReached.of("runs.cost_unknown"))

    @property
    def known_cost_usd(self) -> float | None:
        """A sum is known only if every part is."""
        return None if self.unpriced else self.cost_usd

    @property
    def known_input_tokens(self) -> int | None:
        return None if self.uncounted else self.input_tokens

    @property
    def known_output_tokens(self) -> int | None:
        return None if self.uncounted else self.output_tokens
