"""The caps of a command, before anything is sent: a batch is paid for once it is submitted."""

from __future__ import annotations

from evenhand.contract import Usage
from evenhand.errors import CapReached
from evenhand.judges.batch import BATCH_RATE
from evenhand.judges.prices import cost_usd
from evenhand.runs.budget import Budget
from evenhand.runs.estimate import TOKENIZERS_HIGH, output_tokens
from evenhand.runs.executor import Seat
from evenhand.runs.options import RunOptions
from evenhand.runs.pricing import model_of
from evenhand.runs.stop import Stop
from evenhand.store import WorkItem
from evenhand.store.batches import BatchRecord

# From so many answers on, what they cost says more than what was expected of them; a little more
# is reckoned, since the dear ones may come last.
_ENOUGH_ANSWERS = 20
_MARGIN = 1.1


class Allowance:
    """For all judges of a run together. What is at the provider counts at what it may cost, also
    where an earlier command sent it: this one pays for it."""

    def __init__(self, options: RunOptions, budget: Budget) -> None:
        self._max_calls = options.max_calls
        self._max_cost = options.max_cost
        self._budget = budget
        self._reserved: dict[int, float] = {}  # by batch
        self._here: set[int] = set()  # batches of this command
        self._drafted_calls = 0
        self._drafted_usd = 0.0
        self._priced = 0

    def expected_usd(self, seat: Seat, work: WorkItem, input_tokens: float) -> float | None:
        """What a request may cost at most, or about, by what the others did."""
        if self._priced >= _ENOUGH_ANSWERS:
            return self._budget.cost_usd / self._priced * _MARGIN
        mode = seat.procedure.mode_for(seat.judge)
        usage = Usage(
            input_tokens=round(input_tokens * TOKENIZERS_HIGH),
            output_tokens=round(output_tokens(mode, len(work.pair.criteria)).high),
        )
        model = model_of(seat.judge)
        cost = cost_usd(usage, model=model, traits=seat.judge.traits, price=seat.price)
        return None if cost is None else cost * BATCH_RATE

    def take(self, expected_usd: float | None) -> CapReached | None:
        """One more request for a draft, unless a cap is reached by it."""
        calls = self._budget.calls + self._drafted_calls
        if self._max_calls is not None and calls >= self._max_calls:
            return CapReached(f"--max-calls {self._max_calls} is reached")
        if self._max_cost is not None:
            spoken_for = sum(self._reserved.values()) + self._drafted_usd
            if self._budget.cost_usd + spoken_for + (expected_usd or 0.0) > self._max_cost:
                return CapReached(f"--max-cost {self._max_cost:g} is reached")
        self._drafted_calls += 1
        self._drafted_usd += expected_usd or 0.0
        return None

    def closed(self, calls: int, reserved_usd: float | None) -> None:
        """These are in a batch now, or were given up."""
        self._drafted_calls -= calls
        self._drafted_usd -= reserved_usd or 0.0

    def submitting(self, batch: BatchRecord) -> None:
        """Its requests are this command's calls from now on, whether or not it sees them arrive."""
        self._here.add(batch.id)
        self._budget.submitted(batch.requests)
        self.found(batch)

    def found(self, batch: BatchRecord) -> None:
        """An earlier command sent it: its calls were that one's, what it costs is to come."""
        self._reserved[batch.id] = batch.reserved_usd or 0.0

    def ended(self, batch: BatchRecord) -> None:
        self._reserved.pop(batch.id, None)

    def dropped(self, batch: BatchRecord) -> None:
        """It did not come to be there, or was refused as a whole: nobody makes its calls."""
        self.ended(batch)
        if batch.id in self._here:
            self._here.discard(batch.id)
            self._budget.refused(batch.requests)

    def came(self, usage: Usage, cost: float | None) -> None:
        self._priced += cost is not None
        self._budget.came(
            cost_usd=cost, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens
        )

    @staticmethod
    def stop(stop: Stop, reached: CapReached) -> None:
        """Once nothing is at the provider any more."""
        stop.ask("max-calls" if "--max-calls" in reached.message else "max-cost", reached)
