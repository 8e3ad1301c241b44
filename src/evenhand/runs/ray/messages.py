"""What a driver and its workers tell each other. No key and no password is part of it."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.judges.prices import Price
from evenhand.procedure import Procedure
from evenhand.runs.recipe import JudgeRecipe
from evenhand.runs.stop import StoppedBy


@dataclass(frozen=True, slots=True)
class SeatTask:
    """A judge as a worker opens it. `key` is what the driver knows it by: a worker that comes to
    another one would give other answers, and must not begin."""

    judge_id: int
    recipe: JudgeRecipe
    procedure: Procedure
    price: Price | None
    key: str
    name: str
    proven: bool


@dataclass(frozen=True, slots=True)
class Assignment:
    run_id: int
    store: str  # without its password
    salt: str | None
    seats: tuple[SeatTask, ...]
    concurrency: int | None
    paced_by_requests: bool
    paced_by_tokens: bool
    capped_calls: bool
    capped_cost: bool
    keep_going_unread: bool


@dataclass(frozen=True, slots=True)
class Shard:
    """Pending items of one judge, from one number to another."""

    number: int
    seat: int
    first: int
    last: int
    firsts: bool  # of items with the same content only the first; else only the others


@dataclass(frozen=True, slots=True)
class Permits:
    """So many requests, and so many tokens, may go out soon."""

    requests: float = 0.0
    tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class Grant:
    """What a worker gets: work, and leave to spend. All of it ends after `valid_s`."""

    valid_s: float
    shards: tuple[Shard, ...] = ()
    calls: int = 0
    cost_usd: float = 0.0
    mean_cost_usd: float | None = None
    permits: tuple[Permits, ...] = ()
    done: bool = False  # there is no more work
    stop: bool = False


@dataclass(frozen=True, slots=True)
class SeatReport:
    """Of one judge at one worker; sums since the worker began, verdicts as far as stored."""

    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int
    passes: int
    unread: int
    reused: int
    wants_shard: bool
    wants: Permits
    unused: Permits  # since the last report; it goes back


@dataclass(frozen=True, slots=True)
class Spending:
    """Sums since the worker began."""

    calls: int = 0
    cost_usd: float = 0.0
    priced: int = 0
    unpriced: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a worker stopped, or could not begin."""

    by: StoppedBy
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    seats: tuple[SeatReport, ...]
    spending: Spending
    returned_calls: int  # sums, too
    returned_cost_usd: float
    wants_calls: int
    wants_cost: bool
    starving: bool  # calls wait, none is in flight, and what is leased allows none
    idle: bool  # everything that it was given is at its end
    in_flight: int
    limit: int
    paused_s: float
    finished: tuple[int, ...]  # shards, by their numbers
    ended: bool = False
    expired: bool = False  # it heard nothing for too long, and ended by itself
    trouble: Trouble | None = None
    accounts: tuple[str, ...] = ()  # at its end: what its judges have to say of that time
