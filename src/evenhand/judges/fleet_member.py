"""One server of a fleet: how busy it is, how quick, and whether it is to be asked.

Pure: it is told what happened and when, and never looks at a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from evenhand.judges.protocol import Judge

# Failures in a row after which a server is left alone. One that cannot be reached is at once.
_FAILURES = 3
_OUT_FIRST_S, _OUT_MOST_S = 1.0, 30.0
# Told to slow down, and not for how long.
_REST_FIRST_S, _REST_MOST_S = 0.5, 30.0
# How much one answer's time counts in the usual time.
_WEIGHT = 0.2
# A call that has taken this many times the usual time tells of a slower server before it ends.
_OVERDUE = 4.0


class Server(Judge, Protocol):
    """What a fleet is made of."""

    @property
    def base_url(self) -> str: ...

    async def check(self, *, timeout_s: float) -> None: ...


@dataclass(slots=True, eq=False)
class Turn:
    """One call at a server."""

    begun: float


class Member:
    """Well, left alone, or on trial: a server that passed its check gets one call, and is well
    again once it answers that."""

    def __init__(self, judge: Server) -> None:
        self.judge = judge
        self.address = judge.base_url
        self.answers = 0
        self.answers_s = 0.0  # what they took, together
        self.times_out = 0
        self.times_limited = 0
        self.why = ""  # it was left alone last
        self._usual_s: float | None = None
        self._turns: dict[Turn, None] = {}  # the oldest first
        self._failures = 0
        self._limited = 0
        self._rested_at = self._rests_until = float("-inf")
        self._out_since: float | None = None
        self._out_until = float("-inf")
        self._outs = 0  # since it last answered
        self._on_trial = False
        self._trial: Turn | None = None

    @property
    def in_flight(self) -> int:
        return len(self._turns)

    @property
    def is_left_alone(self) -> bool:
        return self._out_since is not None

    @property
    def is_out(self) -> bool:
        """Left alone, or not yet proven well again."""
        return self._out_since is not None or self._on_trial

    def usual_s(self, now: float) -> float | None:
        """How long an answer takes; None where nothing is known yet."""
        usual = self._usual_s
        if usual is not None and self._turns:
            return max(usual, (now - next(iter(self._turns)).begun) / _OVERDUE)
        return usual

    def is_ready(self, now: float) -> bool:
        if self._out_since is not None or now < self._rests_until:
            return False
        return not self._on_trial or self._trial is None

    def rests_s(self, now: float) -> float:
        """How much longer it asked to wait."""
        return max(0.0, self._rests_until - now)

    def out_s(self, now: float) -> float:
        """Until it is looked at again."""
        return max(0.0, self._out_until - now)

    # Calls

    def begin(self, now: float) -> Turn:
        turn = Turn(now)
        self._turns[turn] = None
        if self._on_trial:
            self._trial = turn
        return turn

    def end(self, turn: Turn) -> None:
        """However it ended: answered, failed, or given up by its caller."""
        del self._turns[turn]
        if self._trial is turn:
            self._trial = None

    def answered(self, turn: Turn, now: float) -> bool:
        """Whether it is back by that."""
        took_s = now - turn.begun
        self.answers += 1
        self.answers_s += took_s
        self._learn(took_s)
        since = self._out_since
        if since is not None and turn.begun < since:
            return False  # from before it was left alone
        was_out = self.is_out
        self._out_since, self._on_trial = None, False
        self._failures = self._limited = self._outs = 0
        return was_out

    def failed(self, turn: Turn, now: float, *, why: str, at_once: bool, slow: bool) -> bool:
        """Whether it is left alone from now on."""
        if slow:
            self._learn(now - turn.begun)
        if self._out_since is not None:
            return False  # those that were in flight when it went down are one event
        self._failures += 1
        if not (at_once or self._on_trial or self._failures >= _FAILURES):
            return False
        self.leave_alone(now, why=why)
        return True

    def leave_alone(self, now: float, *, why: str) -> None:
        self.why = why
        self.times_out += not self._on_trial
        self._out_since = now
        self._on_trial, self._failures = False, 0
        self._usual_s = None  # what comes back may be another machine
        self._wait_longer(now)

    def told_to_wait(self, turn: Turn, now: float, *, wait_s: float | None) -> None:
        """As long as it says; where it does not, longer each time."""
        self.times_limited += 1
        if wait_s is None:
            if turn.begun < self._rested_at:
                return  # asked before it began to rest, and told the same
            wait_s = min(_REST_MOST_S, _REST_FIRST_S * 2.0 ** min(self._limited, 10))
            self._limited += 1
        self._rested_at = now
        self._rests_until = max(self._rests_until, now + wait_s)

    def _learn(self, took_s: float) -> None:
        usual = self._usual_s
        self._usual_s = took_s if usual is None else usual + _WEIGHT * (took_s - usual)

    def checked(self, now: float, *, well: bool) -> None:
        if self._out_since is None:
            return  # it has answered a call in the meantime
        if well:
            self._out_since, self._on_trial = None, True
        else:
            self._wait_longer(now)

    def _wait_longer(self, now: float) -> None:
        self._out_until = now + min(_OUT_MOST_S, _OUT_FIRST_S * 2.0 ** min(self._outs, 10))
        self._outs += 1
