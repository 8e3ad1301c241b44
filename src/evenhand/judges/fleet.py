"""Several servers of one model as one judge: each call goes to the least busy healthy server, and
to the next if that fails.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from evenhand.errors import (
    JudgeAuthentication,
    JudgeError,
    JudgeQuotaExceeded,
    JudgeRateLimited,
    JudgeRejected,
    JudgeServerError,
    JudgeUnreachable,
    SettingsError,
)
from evenhand.judges.protocol import (
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

# Consecutive failures after which a server is skipped; an unreachable one is skipped at once.
_FAILURES = 3
_BACKOFF_FIRST_S, _BACKOFF_MOST_S = 1.0, 30.0
# Servers that may fail the same call: a text that crashes servers must not reach them all.
_MOST_TRIES = 3
# Errors about our account or request. If another server answers the same call, the server was at
# fault.
_OF_ACCOUNT = (JudgeAuthentication, JudgeQuotaExceeded)
_NEWS_KEPT = 200


class FleetServer(Judge, Protocol):
    @property
    def base_url(self) -> str: ...


@dataclass(slots=True, eq=False)
class ServerState:
    """A server that is down gets one trial call after its back-off."""

    judge: FleetServer
    in_flight: int = 0
    answers: int = 0
    is_down: bool = False
    free_at: float = float("-inf")
    failures: int = 0  # in a row
    backoffs: int = 0  # since it last answered

    @property
    def address(self) -> str:
        return self.judge.base_url

    def is_ready(self, now: float) -> bool:
        return now >= self.free_at and not (self.is_down and self.in_flight)

    def back_off(self, now: float, wait_s: float | None = None) -> None:
        """As long as the server asks, else longer each time."""
        if wait_s is None:
            wait_s = min(_BACKOFF_MOST_S, _BACKOFF_FIRST_S * 2.0 ** min(self.backoffs, 10))
            self.backoffs += 1
        self.free_at = max(self.free_at, now + wait_s)


class FleetJudge(ClosedOnExit):
    """The first server gives the fleet its identity and price. The others may come and go."""

    def __init__(
        self, servers: Sequence[FleetServer], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        addresses = [server.base_url for server in servers]
        for place, address in enumerate(addresses):
            if address in addresses[:place]:
                raise SettingsError.of("judges.server_twice", address=address)
        self._servers = [ServerState(server) for server in servers]
        self._first = servers[0]
        self._clock = clock
        self._news: deque[ServerNews] = deque(maxlen=_NEWS_KEPT)
        self._news_count = 0

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
        """The servers' addresses, without credentials and query."""
        return tuple(server.address for server in self._servers)

    async def close(self) -> None:
        for server in self._servers:
            await server.judge.close()

    async def ask(self, call: JudgeCall) -> Completion:
        errors: dict[ServerState, JudgeError] = {}
        while (server := self._least_busy(errors)) is not None:
            server.in_flight += 1
            try:
                completion = await server.judge.ask(call)
            except JudgeError as error:
                errors[server] = error
                self._record_failure(server, error)
                if not _may_pass_elsewhere(errors):
                    break
            else:
                return self._record_answer(server, completion, errors)
            finally:
                server.in_flight -= 1
        raise self._failure(errors)

    def _least_busy(self, tried: Mapping[ServerState, JudgeError]) -> ServerState | None:
        now = self._clock()
        untried = [server for server in self._servers if server not in tried]
        ready = [server for server in untried if server.is_ready(now)]
        if ready:
            return min(ready, key=lambda server: (server.in_flight, server.answers))
        if not tried and all(server.is_down for server in untried):
            # With no server left, try one, as a single server would be.
            return min(untried, key=lambda server: server.free_at)
        return None

    def _record_answer(
        self, server: ServerState, completion: Completion, errors: Mapping[ServerState, JudgeError]
    ) -> Completion:
        server.answers += 1
        server.failures = server.backoffs = 0
        if server.is_down:
            server.is_down, server.free_at = False, self._clock()
            self._add_news(ServerNews(self.name, server.address))
        for other, error in errors.items():
            if isinstance(error, (JudgeRejected, *_OF_ACCOUNT)):
                self._count_failure(other, error, at_once=isinstance(error, _OF_ACCOUNT))
        if completion.pause_s is not None:
            server.back_off(self._clock(), completion.pause_s)
            completion = replace(completion, pause_s=self._wait_s())
        if errors:
            usage = completion.usage
            requests = usage.requests + sum(error.requests for error in errors.values())
            usage = usage.model_copy(update={"requests": requests})
            completion = replace(completion, usage=usage)
        return completion

    def _record_failure(self, server: ServerState, error: JudgeError) -> None:
        retry_after_s = getattr(error, "retry_after_s", None)
        if isinstance(error, JudgeRateLimited) or retry_after_s is not None:
            server.back_off(self._clock(), retry_after_s)
        elif error.retryable or isinstance(error, JudgeUnreachable):
            self._count_failure(server, error, at_once=isinstance(error, JudgeUnreachable))

    def _count_failure(self, server: ServerState, error: JudgeError, *, at_once: bool) -> None:
        now = self._clock()
        server.failures += 1
        if server.is_down:
            if now >= server.free_at:  # calls in flight when it went down are one outage
                server.back_off(now)
        elif at_once or server.failures >= _FAILURES:
            server.is_down = True
            server.back_off(now)
            self._add_news(ServerNews(self.name, server.address, error.kind, error.message))

    def _failure(self, errors: Mapping[ServerState, JudgeError]) -> JudgeError:
        """A retryable error, if there is one."""
        count, wait_s = len(self._servers), self._wait_s()
        failures = list(errors.values())
        if not failures:
            error: JudgeError = JudgeRateLimited.of(
                "judges.all_servers_rest", count=count, wait_s=wait_s or 0
            )
        else:
            error = next((each for each in reversed(failures) if each.retryable), failures[-1])
            if error.retryable or isinstance(error, JudgeUnreachable):
                error.reword(Message("judges.no_server_answered", n=count, error=error.message))
        if wait_s is not None and isinstance(error, JudgeRateLimited | JudgeServerError):
            error.retry_after_s = wait_s
        error.requests = sum(each.requests for each in failures)
        return error

    def _wait_s(self) -> float | None:
        """Until the first server that asked us to wait is free, if none is ready."""
        now = self._clock()
        if any(server.is_ready(now) for server in self._servers):
            return None
        waits = [server.free_at - now for server in self._servers if not server.is_down]
        return min((wait for wait in waits if wait > 0), default=None)

    def open_news(self) -> News:
        seen = self._news_count

        def news() -> tuple[ServerNews, ...]:
            nonlocal seen
            new, seen = self._news_count - seen, self._news_count
            return tuple(self._news)[-new:] if new else ()

        return news

    def _add_news(self, news: ServerNews) -> None:
        self._news.append(news)
        self._news_count += 1


def _may_pass_elsewhere(errors: Mapping[ServerState, JudgeError]) -> bool:
    failures = list(errors.values())
    last = failures[-1]
    if not (last.retryable or isinstance(last, (JudgeUnreachable, JudgeRejected, *_OF_ACCOUNT))):
        return False
    accepted = [e for e in failures if not isinstance(e, JudgeUnreachable | JudgeRateLimited)]
    return len(accepted) < _MOST_TRIES
