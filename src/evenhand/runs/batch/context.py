"""What the parts of a batch run share: caps reserved before submission, polling intervals, and the
context of one judge.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass

from evenhand.contract import ArtefactKind, Usage
from evenhand.errors import CapReached, JudgeError
from evenhand.judges.batch import BATCH_RATE, BatchApi, BatchLimits
from evenhand.judges.prices import cost_usd
from evenhand.runs.budget import Budget
from evenhand.runs.estimate import ARTEFACT_TOKENS, TOKENIZERS_HIGH, output_tokens
from evenhand.runs.executor import RunJudge
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import model_of
from evenhand.runs.progress import Observer
from evenhand.runs.stop import Stop, StoppedBy
from evenhand.store import Store, WorkItem
from evenhand.store.batches import BatchRecord

# From this many answers on, their mean cost replaces the estimate, with a margin because expensive
# ones may come last.
_ENOUGH_ANSWERS = 20
_MARGIN = 1.1


class BatchBudget:
    """For all judges of a run. Requests at the provider count at their maximum cost, even if an
    earlier command sent them, since this one pays for them."""

    def __init__(self, options: RunOptions, budget: Budget) -> None:
        self._max_calls = options.max_calls
        self._max_cost = options.max_cost
        self._budget = budget
        self._reserved: dict[int, float] = {}  # by batch
        self._here: set[int] = set()  # batches of this command
        self._drafted_calls = 0
        self._drafted_usd = 0.0
        # Answers by whether they were for a pass, since costs differ.
        self._priced = {True: 0, False: 0}
        self._cost_usd = {True: 0.0, False: 0.0}

    def expected_usd(
        self,
        run_judge: RunJudge,
        work: WorkItem,
        input_tokens: float,
        artefact: ArtefactKind | None = None,
    ) -> float | None:
        """What a request may cost at most, or about, by answers of the same sort."""
        sort = artefact is not None
        if self._priced[sort] >= _ENOUGH_ANSWERS:
            return self._cost_usd[sort] / self._priced[sort] * _MARGIN
        mode = run_judge.config.mode_for(run_judge.judge)
        output = (
            ARTEFACT_TOKENS[artefact] if artefact else output_tokens(mode, len(work.pair.criteria))
        )
        usage = Usage(
            input_tokens=round(input_tokens * TOKENIZERS_HIGH), output_tokens=round(output.high)
        )
        model = model_of(run_judge.judge)
        cost = cost_usd(usage, model=model, traits=run_judge.judge.traits, price=run_judge.price)
        return None if cost is None else cost * BATCH_RATE

    def take(self, expected_usd: float | None) -> tuple[StoppedBy, CapReached] | None:
        """Reserve one more request for a draft, unless that reaches a cap."""
        calls = self._budget.calls + self._drafted_calls
        if self._max_calls is not None and calls >= self._max_calls:
            return "max-calls", CapReached.of("runs.reached_max_calls", max_calls=self._max_calls)
        if self._max_cost is not None:
            committed_usd = sum(self._reserved.values()) + self._drafted_usd
            if self._budget.cost_usd + committed_usd + (expected_usd or 0.0) > self._max_cost:
                return "max-cost", CapReached.of("runs.reached_max_cost", max_cost=self._max_cost)
        self._drafted_calls += 1
        self._drafted_usd += expected_usd or 0.0
        return None

    def closed(self, calls: int, reserved_usd: float | None) -> None:
        """These are now in a batch, or were given up."""
        self._drafted_calls -= calls
        self._drafted_usd -= reserved_usd or 0.0

    def submitting(self, batch: BatchRecord) -> None:
        """Its requests count as this command's calls, whether or not it sees the answers."""
        self._here.add(batch.id)
        self._budget.submitted(batch.requests)
        self.reserve(batch)

    def reserve(self, batch: BatchRecord) -> None:
        """An earlier command sent it: that one counted its calls, but its cost is still to come."""
        self._reserved[batch.id] = batch.reserved_usd or 0.0

    def ended(self, batch: BatchRecord) -> None:
        self._reserved.pop(batch.id, None)

    def dropped(self, batch: BatchRecord) -> None:
        """It did not reach the provider, or was refused as a whole: it makes no calls."""
        self.ended(batch)
        if batch.id in self._here:
            self._here.discard(batch.id)
            self._budget.refused(batch.requests)

    def record(self, usage: Usage, cost: float | None, *, artefact: bool = False) -> None:
        if cost is not None:
            self._priced[artefact] += 1
            self._cost_usd[artefact] += cost
        self._budget.end(
            requests=1,
            cost_usd=cost,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """In seconds. The polling interval grows from `first_look_s` to `look_s`."""

    first_look_s: float = 2.0
    look_s: float = 60.0
    grows_by: float = 1.5
    # An unconfirmed batch has appeared by then, or never will.
    arrives_within_s: float = 60.0
    # A provider that is silent for this long is given up; its batches can be collected later.
    patience_s: float = 3600.0
    first_patience_s: float = 60.0  # where it has not answered this command at all
    fetches: int = 5  # of results that come cut short
    empty_batches: int = 3  # that expire in a row with nothing answered

    @classmethod
    def looking_every(cls, seconds: float | None) -> BatchTiming:
        if seconds is None:
            return cls()
        return cls(first_look_s=seconds, look_s=seconds)


class PollTimer:
    """The polling interval; it grows, and a stop ends the wait."""

    def __init__(self, timing: BatchTiming, stop: Stop) -> None:
        self._timing = timing
        self._stopped = asyncio.Event()
        self._next_s = timing.first_look_s
        self._at_least_s = 0.0
        self._failing_since: float | None = None
        self._patience_s = timing.first_patience_s
        stop.listen(self._stopped.set)

    def anew(self) -> None:
        """Something new was submitted and may finish soon."""
        self._next_s = self._timing.first_look_s

    def worked(self) -> None:
        self._failing_since = None
        self._patience_s = self._timing.patience_s

    def hold_back(self) -> None:
        """The provider has no room, perhaps for long."""
        self._at_least_s = self._timing.look_s

    @property
    def is_failing(self) -> bool:
        return self._failing_since is not None

    def failed(self, error: JudgeError) -> bool:
        """Whether to go on."""
        if error.retry_after_s:
            self._at_least_s = error.retry_after_s
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        return error.retryable and now - self._failing_since <= self._patience_s

    async def rest(self, *, at_most_s: float | None = None) -> None:
        """Wait for the next poll, or until the run is stopped."""
        wait_s = self._next_s if at_most_s is None else min(self._next_s, at_most_s)
        wait_s, self._at_least_s = max(wait_s, self._at_least_s), 0.0
        self._next_s = min(self._timing.look_s, self._next_s * self._timing.grows_by)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), wait_s)


@dataclass(slots=True)
class BatchContext:
    run_id: int
    run_judge: RunJudge
    api: BatchApi
    store: Store
    stop: Stop
    observer: Observer
    batch_budget: BatchBudget
    timing: BatchTiming
    waiting: PollTimer
    limits: BatchLimits
    # Cancel batches, settle what they return, ask nothing more.
    giving_up: bool = False
    # Requests may be wanted anywhere in the data, not only where a batch has just ended.
    looks_everywhere: bool = True
    # The provider has no room until one of our batches finishes.
    crowded: bool = False

    @property
    def may_submit(self) -> bool:
        return not (self.giving_up or self.crowded or self.is_stopped)

    @property
    def is_stopped(self) -> bool:
        return self.stop.by is not None

    @property
    def host(self) -> str:
        return self.api.host

    def failed(self, error: JudgeError) -> None:
        """The provider could not be asked: wait, or give up. Announces its first failure."""
        first = not self.waiting.is_failing
        if not self.waiting.failed(error):
            self.stop.ask("judge", error)
        elif first:
            self.observer.announce(error.message)
