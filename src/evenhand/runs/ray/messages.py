"""Messages between a driver and its workers, and the driver's handle to a worker. Contain no keys
or passwords.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from operator import add, sub
from typing import Protocol

from evenhand.contract.codes import OUTCOMES
from evenhand.errors import ClusterError, EvenhandError, JudgeError, StoreError
from evenhand.judges.prices import Price
from evenhand.judging.config import JudgeConfig
from evenhand.runs.stop import StoppedBy


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """A judge for a worker. `key` is the driver's: a worker whose key differs would give other
    answers and must not begin."""

    judge_id: int
    config: JudgeConfig  # without its key, and its writer's
    price: Price | None
    writing_price: Price | None
    key: str
    name: str
    proven: bool


@dataclass(frozen=True, slots=True)
class Assignment:
    run_id: int
    store: str  # without its password
    salt: str | None
    tasks: tuple[JudgeTask, ...]
    concurrency: int | None
    paced_by_requests: bool
    paced_by_tokens: bool
    capped_calls: bool
    capped_cost: bool
    keep_going_unread: bool
    give_up_after_s: float


@dataclass(frozen=True, slots=True)
class Shard:
    """Pending items of one judge in a range of numbers."""

    number: int
    judge_index: int
    first: int
    last: int
    firsts: bool  # of items with the same content only the first; else only the others


@dataclass(frozen=True, slots=True)
class Permits:
    """Requests and tokens that may be used soon."""

    requests: float = 0.0
    tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class Grant:
    """Work and budget for a worker, valid for `valid_s`."""

    valid_s: float
    shards: tuple[Shard, ...] = ()
    calls: int = 0
    cost_usd: float = 0.0
    mean_cost_usd: float | None = None
    permits: tuple[Permits, ...] = ()
    done: bool = False  # there is no more work
    stop: bool = False


WORKER_COUNTED = (*OUTCOMES, "passes", "unread", "reused")


@dataclass(frozen=True, slots=True)
class WorkerCounts:
    """For one judge at one worker: sums since it began, verdicts as stored."""

    counted: Mapping[str, int]  # each of WORKER_COUNTED
    wants_shard: bool
    wants: Permits
    unused: Permits  # since the last report; it goes back


@dataclass(frozen=True, slots=True)
class WorkerSpending:
    calls: int = 0
    cost_usd: float = 0.0
    priced: int = 0
    unpriced: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: WorkerSpending) -> WorkerSpending:
        return WorkerSpending(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: WorkerSpending) -> WorkerSpending:
        return WorkerSpending(*map(sub, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """Why a worker stopped, or could not begin."""

    by: StoppedBy
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class WorkerReport:
    judges: tuple[WorkerCounts, ...]
    spending: WorkerSpending
    returned_calls: int  # sums, too
    returned_cost_usd: float
    wants_calls: int
    wants_cost: bool
    starving: bool  # calls wait, none is in flight, and what is leased allows none
    idle: bool  # everything that it was given is at its end
    in_flight: int
    limit: int
    paused_s: float
    failing: str | None  # why nothing is answered
    finished: tuple[int, ...]  # shards, by their numbers
    ended: bool = False
    trouble: WorkerFailure | None = None
    server_news: tuple[str, ...] = ()  # at its end: what its judges' servers came to


class WorkerLost(Exception):
    """`confirmed`: it is dead, not just out of reach."""

    def __init__(self, why: str, *, confirmed: bool) -> None:
        super().__init__(why)
        self.why = why
        self.confirmed = confirmed


class WorkerHandle(Protocol):
    """Both calls raise WorkerLost."""

    @property
    def place(self) -> str:
        """Where it runs, in words."""

    async def begin(self, assignment: Assignment) -> WorkerFailure | None: ...

    async def exchange(self, grant: Grant, *, within_s: float) -> WorkerReport: ...

    def kill(self) -> None: ...


def error_of(trouble: WorkerFailure, place: str) -> EvenhandError:
    """With its original class, so that the exit code is the same as on one machine."""
    message = f"{trouble.message} (said a worker: {place})"
    if trouble.by == "judge":
        return _of_kind(JudgeError, trouble.kind)(message)
    if trouble.by == "store" or trouble.kind.startswith("store"):
        return StoreError(message)
    return ClusterError(message)


def _of_kind(root: type[EvenhandError], kind: str) -> type[EvenhandError]:
    return next((each for each in root.__subclasses__() if each.kind == kind), root)
