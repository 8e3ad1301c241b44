"""A running run: counts, a snapshot of progress, and the observer that gets it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.contract import Failure, Outcome
from evenhand.contract.codes import OutcomeCounts
from evenhand.judging.decision import PassResult
from evenhand.messages import Sentence
from evenhand.stats.always_valid import AlwaysValidInterval, always_valid_interval
from evenhand.store import Settled

if TYPE_CHECKING:
    from evenhand.runs.estimate import Estimate

_RATE_OVER_S = 30.0


@dataclass(slots=True)
class JudgeCounts:
    """One judge's pairs, including earlier commands'; passes of this command only."""

    judge: str
    pairs: int
    wins_a: int = 0
    wins_b: int = 0
    ties: int = 0
    inconsistent: int = 0
    invalid: int = 0
    passes: int = 0
    unread: int = 0
    reused: int = 0
    waiting: int = 0  # verdicts that are on their way to the store

    @property
    def done(self) -> int:
        return self.wins_a + self.wins_b + self.ties + self.inconsistent + self.invalid

    @property
    def pending(self) -> int:
        return self.pairs - self.done

    @property
    def proven(self) -> bool:
        """The judge has answered in this run before."""
        return self.done > self.invalid

    @property
    def in_store(self) -> int:
        return self.done - self.waiting

    def stored(self, count: int) -> None:
        self.waiting -= count

    def settled(self, settled: Settled) -> None:
        self.waiting += 1
        if isinstance(settled, Failure):
            self.invalid += 1
        elif settled.decision.outcome is Outcome.INCONSISTENT:
            self.inconsistent += 1
        elif settled.decision.outcome is Outcome.TIE:
            self.ties += 1
        elif settled.decision.winner == "A":
            self.wins_a += 1
        else:
            self.wins_b += 1

    def made(self, made: PassResult) -> None:
        self.passes += 1
        if made.unread is not None:
            self.unread += 1


class Progress(OutcomeCounts):
    """A snapshot of a run, over all its judges."""

    run: str
    done: int
    total: int
    calls: int
    in_flight: int
    limit: int
    paused_s: float
    pairs_per_s: float | None
    cost_usd: float | None
    reused: int
    passes: int
    unread: int
    stopping: bool
    trouble: Sentence | None = None  # why nothing is answered, and when the next call begins
    drawn_orders: bool = False  # most pairs are asked in one order, drawn at random

    @property
    def remaining_s(self) -> float | None:
        if not self.pairs_per_s:
            return None
        return (self.total - self.done) / self.pairs_per_s

    # Always valid: people look repeatedly and may stop at any time.

    @property
    def win_rate_b(self) -> AlwaysValidInterval | None:
        """Ties and inconsistent pairs count as half."""
        halves = self.ties + self.inconsistent
        return always_valid_interval(self.wins_b, halves, self.wins_a)

    @property
    def flips(self) -> AlwaysValidInterval | None:
        """Pairs whose winner changed with the order, of those with a verdict; None if most have
        only one order."""
        if self.drawn_orders:
            return None
        return always_valid_interval(self.inconsistent, 0, self.wins_a + self.wins_b + self.ties)

    @property
    def unread_passes(self) -> AlwaysValidInterval | None:
        return always_valid_interval(self.unread, 0, self.passes - self.unread)


class PairRate:
    """Pairs a second over the last half minute, without a resumed run's past."""

    def __init__(self, now: float, done: int) -> None:
        self._seen: deque[tuple[float, int]] = deque([(now, done)])

    def at(self, now: float, done: int) -> float | None:
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] > _RATE_OVER_S:
            self._seen.popleft()
        earliest, before = self._seen[0]
        return (done - before) / (now - earliest) if now > earliest and done > before else None


class Observer:
    """Notified of a run's progress; this one ignores it."""

    def reading(self, rows: int) -> None:
        """Rows read so far. Called from another thread."""

    def generating(self, done: int, total: int, trouble: str | None = None) -> None:
        """An A/B test's answers so far and in all; why none arrive."""

    def approve(self, estimate: Estimate) -> None:
        """Raise to prevent the run."""

    def announce(self, what: str) -> None:
        """What a stop rule is about to do."""

    def began(self, run: str, store: str, *, done: int, total: int) -> None:
        """The run exists, and its pairs are known."""

    def progress(self, progress: Progress) -> None:
        """Several times a second, and once at the end."""
