"""What the parts of a lane share: who is asked for what, where it is kept, who is told."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.errors import JudgeError
from evenhand.judges.batch import BatchApi, BatchLimits
from evenhand.runs.batch.allowance import Allowance
from evenhand.runs.batch.timing import BatchTiming
from evenhand.runs.batch.waiting import Waiting
from evenhand.runs.executor import Seat
from evenhand.runs.observer import Observer
from evenhand.runs.stop import Stop
from evenhand.store import Store


@dataclass(slots=True)
class Course:
    run_id: int
    seat: Seat
    api: BatchApi
    store: Store
    stop: Stop
    observer: Observer
    allowance: Allowance
    timing: BatchTiming
    waiting: Waiting
    limits: BatchLimits
    # Cancel what is at the provider, settle what it brings, ask nothing more.
    giving_up: bool = False
    # Requests may be wanted anywhere in the data, and not only where a batch has just ended.
    looks_everywhere: bool = True
    # The provider has no room for more, until something of ours is done there.
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
        """The provider could not be asked: wait, or give it up. Its first failure is told."""
        first = not self.waiting.is_failing
        if not self.waiting.failed(error):
            self.stop.ask("judge", error)
        elif first:
            self.observer.announce(error.message)
