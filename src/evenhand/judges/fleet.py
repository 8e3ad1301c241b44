"""Several servers of one model as one judge: the state of each server, which one gets a call, and
the next one where that fails.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Protocol
from zlib import crc32

from evenhand.contract import Pair
from evenhand.errors import (
    EvenhandError,
    JudgeAuthentication,
    JudgeError,
    JudgeQuotaExceeded,
    JudgeRateLimited,
    JudgeRejected,
    JudgeServerError,
    JudgeTimeout,
    JudgeUnreachable,
    SettingsError,
)
from evenhand.judges.protocol import (
    Account,
    ClosedOnExit,
    Completion,
    Judge,
    JudgeCall,
    News,
    ServerNews,
    Traits,
    identity_of,
)
from evenhand.messages import Message

# Pure: it is told what happened and when, and never looks at a clock.

# Failures in a row after which a server is left alone. One that cannot be reached is at once.
_FAILURES = 3
_OUT_FIRST_S, _OUT_MOST_S = 1.0, 30.0
# Told to slow down, and not for how long.
_REST_FIRST_S, _REST_MOST_S = 0.5, 30.0
# How much one answer's time counts in the usual time.
_WEIGHT = 0.2
# A call that has taken this many times the usual time tells of a slower server before it ends.
_OVERDUE = 4.0


class FleetServer(Judge, Protocol):
    """What a fleet is made of."""

    @property
    def base_url(self) -> str: ...

    async def check(self, *, timeout_s: float) -> None: ...


@dataclass(slots=True, eq=False)
class ServerCall:
    """One call at a server."""

    begun: float


class ServerState:
    """Well, left alone, or on trial: a server that passed its check gets one call, and is well
    again once it answers that."""

    def __init__(self, judge: FleetServer) -> None:
        self.judge = judge
        self.address = judge.base_url
        self.answers = 0
        self.answers_s = 0.0  # what they took, together
        self.times_out = 0
        self.times_limited = 0
        self.why = ""  # it was left alone last
        self._usual_s: float | None = None
        self._turns: dict[ServerCall, None] = {}  # the oldest first
        self._failures = 0
        self._limited = 0
        self._rested_at = self._rests_until = float("-inf")
        self._out_since: float | None = None
        self._out_until = float("-inf")
        self._outs = 0  # since it last answered
        self._on_trial = False
        self._trial: ServerCall | None = None

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

    def begin(self, now: float) -> ServerCall:
        turn = ServerCall(now)
        self._turns[turn] = None
        if self._on_trial:
            self._trial = turn
        return turn

    def end(self, turn: ServerCall) -> None:
        """However it ended: answered, failed, or given up by its caller."""
        del self._turns[turn]
        if self._trial is turn:
            self._trial = None

    def answered(self, turn: ServerCall, now: float) -> bool:
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

    def failed(self, turn: ServerCall, now: float, *, why: str, at_once: bool, slow: bool) -> bool:
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

    def told_to_wait(self, turn: ServerCall, now: float, *, wait_s: float | None) -> None:
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


# All requests of a pair begin alike (criteria, prompt, context; in letter mode all of it but the
# question), which servers keep in their prefix caches; requests of two pairs do not, since each
# pair has a marker of its own. So calls stick to a server by their pair: by rendezvous hashing
# (Thaler and Ravishankar 1998), where a server that goes or comes moves its own pairs alone, and
# with a bound on the load (Mirrokni, Thorup and Zadimoghaddam 2018).

# How far above its share, in calls, a server may be filled for the sake of its cache.
_BOUND = 1.25
# Both orders of a pair leave together, and should find the same server.
_SLACK = 1.0
_64_BITS = 2**64 - 1


def pair_key(pair: Pair) -> int:
    """The same in both orders. What collides goes to the same server, and harms nothing."""
    texts = (pair.prompt, pair.response_a, pair.response_b)
    digest = sum(crc32(text.encode("utf-8", "surrogatepass")) for text in texts)
    return (digest * 0x9E3779B97F4A7C15) & _64_BITS


def server_seed(address: str) -> int:
    """A server's part of the hash: by its address, whatever its place in the list."""
    return int.from_bytes(blake2b(address.encode(), digest_size=8).digest(), "big")


def rendezvous_score(seed: int, key: int) -> int:
    """Which server a key prefers: the one with the highest. The mixing is that of splitmix64."""
    mixed = seed ^ key
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _64_BITS
    return mixed ^ (mixed >> 31)


def choose_server(ready: Sequence[tuple[ServerState, int]], key: int, *, now: float) -> ServerState:
    """Of the servers that can be asked, each with its seed. There is at least one.

    A share is in proportion to speed: where one takes ten times as long, it has a tenth as many in
    flight. Beyond it the call goes where it is answered soonest.
    """
    if len(ready) == 1:
        return ready[0][0]
    scores = [rendezvous_score(seed, key) for _, seed in ready]
    favourite, _ = ready[scores.index(max(scores))]
    if not favourite.in_flight:
        return favourite
    known = [member.usual_s(now) for member, _ in ready]
    times = [usual for usual in known if usual is not None]
    typical = sum(times) / len(times) if times else 1.0
    usual = {
        member: max(its or typical, 1e-6) for (member, _), its in zip(ready, known, strict=True)
    }
    speed = sum(1 / each for each in usual.values())
    calls = 1 + sum(member.in_flight for member in usual)
    share = calls / (usual[favourite] * speed)
    if favourite.in_flight < _BOUND * share + _SLACK:
        return favourite
    return min(usual, key=lambda member: (member.in_flight + 1) * usual[member])


# Servers that take a call and fail it: a text that brings servers down must not meet them all.
_MOST_WORKED = 3
# A rejection is the request's fault where two servers agree that have answered others: one that
# never did may serve another model.
_MOST_REJECTED = 2
# What a server says of our account with it. Where another answers, it speaks for itself alone.
OF_ACCOUNT = (JudgeAuthentication, JudgeQuotaExceeded)
_OF_ONE_SERVER = (JudgeUnreachable, JudgeRejected, *OF_ACCOUNT)


class FleetRequest:
    """One question on its way through the fleet."""

    __slots__ = ("goes_on", "key", "met", "requests")

    def __init__(self, key: int) -> None:
        self.key = key
        self.met: dict[ServerState, JudgeError] = {}
        self.requests = 0  # that brought no answer
        self.goes_on = True

    def failed(self, member: ServerState, error: JudgeError) -> None:
        self.met[member] = error
        worked = sum(
            each.retryable and not isinstance(each, (JudgeUnreachable, JudgeRateLimited))
            for each in self.met.values()
        )
        self.goes_on = (
            self._is_elsewhere(error)
            and len(self._believed()) < _MOST_REJECTED
            and worked < _MOST_WORKED
        )

    def telling_error(self) -> JudgeError | None:
        """The last of those that may pass, since the question is not lost by them; else what is
        said of the question, and at last what is said of us."""
        met = list(self.met.values())
        if not met or not self._is_elsewhere(met[-1]):
            return met[-1] if met else None
        believed = self._believed()
        if len(believed) >= _MOST_REJECTED:
            return believed[0]
        rejected = [error for error in met if isinstance(error, JudgeRejected)]
        passing = [error for error in met if error.retryable]
        limited = [error for error in passing if isinstance(error, JudgeRateLimited)]
        others = [error for error in passing if error not in limited]
        return [*met, *rejected, *limited, *others][-1]

    def _believed(self) -> list[JudgeError]:
        return [
            error
            for member, error in self.met.items()
            if isinstance(error, JudgeRejected) and member.answers
        ]

    @staticmethod
    def _is_elsewhere(error: JudgeError) -> bool:
        """Whether another server may do better."""
        return error.retryable or isinstance(error, _OF_ONE_SERVER)


_NEWS_KEPT = 200
# More servers than this are summed up.
_NAMED_EACH = 6


class FleetLog:
    def __init__(self, judge: str, members: Sequence[ServerState]) -> None:
        self._judge = judge
        self._members = members
        self._news: deque[ServerNews] = deque(maxlen=_NEWS_KEPT)
        self._count = 0

    def left(self, member: ServerState, *, kind: str) -> None:
        self._tell(ServerNews(self._judge, member.address, kind, member.why))

    def returned(self, member: ServerState) -> None:
        self._tell(ServerNews(self._judge, member.address))

    def _tell(self, news: ServerNews) -> None:
        self._news.append(news)
        self._count += 1

    def open_news(self) -> News:
        seen = self._count

        def news() -> tuple[ServerNews, ...]:
            nonlocal seen
            if seen == self._count:
                return ()
            new, seen = self._count - seen, self._count
            return tuple(self._news)[-new:]

        return news

    def open_account(self) -> Account:
        before = [_standing(each) for each in self._members]

        def account() -> tuple[str, ...]:
            shares, troubles = [], []
            for member, was in zip(self._members, before, strict=True):
                now = _standing(member)
                answers, answers_s, out, limited = (a - b for a, b in zip(now, was, strict=True))
                each_s = answers_s / answers if answers else 0.0
                shares.append((member.address, int(answers), each_s))
                if out or member.is_out:
                    troubles.append(_trouble(member, int(out)))
                if limited:
                    troubles.append(f"{member.address} asked to wait{_often(int(limited))}")
            if not any(made for _, made, _ in shares):
                return tuple(f"{self._judge}: {line}" for line in troubles)
            return tuple(f"{self._judge}: {line}" for line in (_shares(shares), *troubles))

        return account


def _standing(member: ServerState) -> tuple[float, ...]:
    return (member.answers, member.answers_s, member.times_out, member.times_limited)


def _shares(shares: Sequence[tuple[str, int, float]]) -> str:
    """Addresses with the calls that each answered, and the seconds that one took."""
    if len(shares) <= _NAMED_EACH:
        lines = [
            f"{address} {made:,} ({each_s:.2f} s each)" if made else f"{address} none"
            for address, made, each_s in shares
        ]
        return f"answers by server: {', '.join(lines)}"
    counts = [made for _, made, _ in shares]
    slowest, _, slowest_s = max(shares, key=lambda each: each[2])
    mean_s = sum(made * each_s for _, made, each_s in shares) / sum(counts)
    return (
        f"{len(shares)} servers gave {min(counts):,} to {max(counts):,} answers each; the slowest "
        f"was {slowest} ({slowest_s:.2f} s each, {mean_s:.2f} s over all)"
    )


def _trouble(member: ServerState, times: int) -> str:
    end = "it had not come back when this ended" if member.is_out else "it came back"
    return f"{member.address} was left alone{_often(times)} ({member.why}); {end}"


def _often(times: int) -> str:
    return {0: "", 1: " once"}.get(times, f" {times:,} times")


_CHECK_S = 5.0


class FleetJudge(ClosedOnExit):
    """The first server names the fleet: its identity, its price. The others may come and go."""

    def __init__(
        self,
        servers: Sequence[FleetServer],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        addresses = [server.base_url for server in servers]
        for place, address in enumerate(addresses):
            if address in addresses[:place]:
                raise SettingsError(Message("judges.server_twice", address=address))
        self._members = [ServerState(server) for server in servers]
        self._seeds = [server_seed(address) for address in addresses]
        self._first = servers[0]
        self._clock = clock
        self._sleep = sleep
        self._story = FleetLog(self._first.name, self._members)
        self._watches: dict[ServerState, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"FleetJudge({self.name!r}, base_url={self.base_urls!r})"

    @property
    def name(self) -> str:
        return self._first.name

    @property
    def traits(self) -> Traits:
        return self._first.traits

    @property
    def identity(self) -> Mapping[str, object]:
        return identity_of(self._first)

    @property
    def base_urls(self) -> tuple[str, ...]:
        """Where the servers are, without credentials and query."""
        return tuple(member.address for member in self._members)

    def open_account(self) -> Account:
        return self._story.open_account()

    def open_news(self) -> News:
        return self._story.open_news()

    async def close(self) -> None:
        for watch in self._watches.values():
            loop = watch.get_loop()
            if loop is asyncio.get_running_loop():
                watch.cancel()
                await asyncio.wait([watch])
            elif not loop.is_closed():
                loop.call_soon_threadsafe(watch.cancel)
        for member in self._members:
            await member.judge.close()

    async def ask(self, call: JudgeCall) -> Completion:
        asking = FleetRequest(pair_key(call.pair))
        while True:
            member = self._next(asking)
            if member is None:
                raise self._given_up(asking)
            turn = member.begin(self._clock())
            try:
                completion = await member.judge.ask(call)
            except JudgeError as error:
                asking.requests += error.requests
                self._failed(member, turn, error)
                asking.failed(member, error)
                if not asking.goes_on:
                    raise self._given_up(asking) from None
            else:
                return self._answered(asking, member, turn, completion)
            finally:
                member.end(turn)

    def _next(self, asking: FleetRequest) -> ServerState | None:
        """None: there is nobody left to ask."""
        now = self._clock()
        members = self._members
        ready = [
            (member, seed)
            for member, seed in zip(members, self._seeds, strict=True)
            if member.is_ready(now) and member not in asking.met
        ]
        if ready:
            return choose_server(ready, asking.key, now=now)
        if not asking.met and all(member.is_out for member in members):
            # A fleet that is all gone is asked like a single server: by trying.
            return min(members, key=lambda member: member.out_s(now))
        return None

    def _answered(
        self, asking: FleetRequest, member: ServerState, turn: ServerCall, completion: Completion
    ) -> Completion:
        now = self._clock()
        if member.answered(turn, now):
            self._story.returned(member)
        for other, error in asking.met.items():
            # What this one takes, the other should have taken.
            if isinstance(error, OF_ACCOUNT):
                self._blame(other, ServerCall(now), error, at_once=True)
            elif isinstance(error, JudgeRejected):
                self._blame(other, ServerCall(now), error, at_once=False)
        if completion.pause_s is not None:
            member.told_to_wait(turn, now, wait_s=completion.pause_s)
            completion = replace(completion, pause_s=self._all_rest_s(now))
        if asking.requests:
            usage = completion.usage
            requests = usage.requests + asking.requests
            usage = usage.model_copy(update={"requests": requests})
            completion = replace(completion, usage=usage)
        return completion

    def _failed(self, member: ServerState, turn: ServerCall, error: JudgeError) -> None:
        if isinstance(error, JudgeRateLimited) or (
            isinstance(error, JudgeServerError) and error.retry_after_s is not None
        ):
            member.told_to_wait(turn, self._clock(), wait_s=error.retry_after_s)
        elif error.retryable or isinstance(error, JudgeUnreachable):
            self._blame(member, turn, error, at_once=isinstance(error, JudgeUnreachable))

    def _blame(
        self, member: ServerState, turn: ServerCall, error: JudgeError, *, at_once: bool
    ) -> None:
        why = error.message
        slow = isinstance(error, JudgeTimeout)
        times_out = member.times_out
        if not member.failed(turn, self._clock(), why=why, at_once=at_once, slow=slow):
            return
        if member.times_out > times_out:  # a trial that failed is no news
            self._story.left(member, kind=error.kind)
        if member in self._watches:
            self._watches[member].cancel()
        self._watches[member] = asyncio.create_task(self._watch(member))

    def _given_up(self, asking: FleetRequest) -> JudgeError:
        now, count = self._clock(), len(self._members)
        error = asking.telling_error()
        wait_s = self._all_rest_s(now)
        if error is None:
            error = JudgeRateLimited(
                Message("judges.all_servers_rest", count=count, wait_s=wait_s or 0),
            )
        elif error.retryable or isinstance(error, JudgeUnreachable):
            error.reword(Message("judges.no_server_answered", n=count, error=error.message))
        if wait_s is not None and isinstance(error, JudgeRateLimited | JudgeServerError):
            error.retry_after_s = wait_s
        error.requests = asking.requests
        return error

    def _all_rest_s(self, now: float) -> float | None:
        """Until the first of them can be asked, where none can and one has said so."""
        if any(member.is_ready(now) for member in self._members):
            return None
        rests = [member.rests_s(now) for member in self._members if not member.is_out]
        return min((rest for rest in rests if rest > 0), default=None)

    async def _watch(self, member: ServerState) -> None:
        """Until its server is well, or has answered a call after all."""
        while True:
            await self._sleep(member.out_s(self._clock()))
            if not member.is_left_alone:
                return
            try:
                await member.judge.check(timeout_s=_CHECK_S)
            except EvenhandError:
                member.checked(self._clock(), well=False)
            else:
                member.checked(self._clock(), well=True)
