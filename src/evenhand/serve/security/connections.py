"""Connections are bounded in number, in head size and in time."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

from evenhand.errors import InputError
from evenhand.messages import FOR_CLIENTS, Message
from evenhand.serve.config import ServerConfig
from evenhand.serve.security.access import address_key

HEAD_TIMEOUT_S = 20.0
HEAD_BYTES = 128 * 1024
PIPELINED = 64  # requests behind the one that is being answered
LINGER_S = 10.0  # in which what is still to be sent on a closed connection must be read


class OpenConnections:
    """All that are open in a process, by address; those between requests, the oldest first.

    Whoever comes to a full house takes the place of the one that has been idle the longest, of its
    own address where that has all it may: so idle connections keep nobody out, and one address
    keeps out nobody but itself. Proxies that the operator trusts stand for many clients, and are
    bound by the number of all alone.
    """

    def __init__(self, config: ServerConfig) -> None:
        self._most = config.limits.connections
        self._most_of_address = config.limits.connections_per_address
        self._proxies = config.trusted_proxies
        self._open: dict[_Bounded, str] = {}
        self._of_address: Counter[str] = Counter()
        self._idle: dict[_Bounded, None] = {}
        self._idle_of: defaultdict[str, dict[_Bounded, None]] = defaultdict(dict)
        self._closing: set[_Bounded] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    def enter(self, connection: _Bounded, address: str) -> bool:
        """Whether there is a place for it."""
        key = _peer(address, self._proxies)
        full = key and self._of_address[key] >= self._most_of_address
        if full or len(self._open) >= self._most:
            longest_idle = next(iter(self._idle_of.get(key, ()) if full else self._idle), None)
            if longest_idle is None:
                return False
            self.leave(longest_idle)
            longest_idle.drop()
        self._open[connection] = key
        self._of_address[key] += 1
        self.rest(connection)
        if self._sweeping is None:
            self._sweeping = connection.loop.call_later(LINGER_S, self._sweep, connection.loop)
        return True

    def rest(self, connection: _Bounded) -> None:
        """It waits for a request; from now on, if it did not yet."""
        key = self._open.get(connection)
        if key is not None:
            self._idle.setdefault(connection)
            self._idle_of[key].setdefault(connection)

    def work(self, connection: _Bounded) -> None:
        if connection in self._idle:
            del self._idle[connection]
            of_address = self._idle_of[self._open[connection]]
            del of_address[connection]
            if not of_address:
                del self._idle_of[self._open[connection]]

    def leave(self, connection: _Bounded) -> None:
        self.work(connection)
        self._closing.discard(connection)
        key = self._open.pop(connection, None)
        if key is not None:
            self._of_address[key] -= 1
            if not self._of_address[key]:
                del self._of_address[key]

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """A closed connection stays until its client has read the rest, which it may never do."""
        for connection in self._closing:
            connection.transport.abort()
        self._closing = {each for each in self._open if each.transport.is_closing()}
        self._sweeping = loop.call_later(LINGER_S, self._sweep, loop) if self._open else None


class _Bounded:
    """Mixed into uvicorn's protocols, whose attributes it reads."""

    all: OpenConnections
    cycle: Any
    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    client: tuple[str, int] | None
    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)  # type: ignore[misc]  # uvicorn is half typed
        if self.all.enter(self, self.client[0] if self.client else ""):
            self._await_head()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._head_bytes += len(data)
        super().data_received(data)  # type: ignore[misc]  # uvicorn is half typed
        self._look_at_head()
        if self._head_bytes > HEAD_BYTES:
            self.transport.close()
        elif self._is_waiting():
            self._await_head()
        else:
            self.all.work(self)
            self._stop_timer()

    def _look_at_head(self) -> None:
        """What came is no head where a request is being taken in; h11 itself bounds the rest."""
        if not self._is_waiting():
            self._head_bytes = 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.all.leave(self)
        super().connection_lost(exc)  # type: ignore[misc]  # uvicorn is half typed

    def on_response_complete(self) -> None:
        super().on_response_complete()  # type: ignore[misc]  # uvicorn is half typed
        if self._is_waiting():
            self.all.rest(self)

    def timeout_keep_alive_handler(self) -> None:
        self.drop()

    def send_400_response(self, msg: str) -> None:
        """No request came of it, so no app can answer; uvicorn's own answer is a plain text."""
        self.transport.write(_unreadable())
        self.transport.close()

    def drop(self) -> None:
        """An idle one; what its client has not read by now it does not want."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _is_waiting(self) -> bool:
        """Whether the head of the next request is all that it waits for."""
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        if self._is_waiting() and not self.transport.is_closing():
            self.drop()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _BoundedByC(_Bounded):
    """With the parser in C, which leaves more to be bounded."""

    headers: list[tuple[bytes, bytes]]
    pipeline: deque[Any]
    flow: Any
    _took_body = False

    def _look_at_head(self) -> None:
        """Trailers, and what stands beside a chunk's length, are counted as heads are."""
        if self._took_body:
            self._took_body = False
            self._head_bytes = 0
        if len(self.pipeline) > PIPELINED:
            self.pipeline.clear()
            self.transport.abort()

    def on_headers_complete(self) -> None:
        """Whatever headers come after these are trailers, and not to be believed: by then who asks
        has been looked at, or is about to be. They go to a list that nobody reads."""
        super().on_headers_complete()  # type: ignore[misc]  # uvicorn is half typed
        self.headers = []
        self._took_body = True

    def on_body(self, body: bytes) -> None:
        super().on_body(body)  # type: ignore[misc]  # uvicorn is half typed
        self._took_body = self._took_body or not self.cycle.response_complete

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.pipeline and not self.transport.is_closing():  # no more until these are answered
            self.flow.pause_reading()


@lru_cache(maxsize=4096)
def _peer(address: str, proxies: tuple[str, ...]) -> str:
    """Whom a connection is counted for; nobody where it is a trusted proxy's."""
    if not proxies:
        return address_key(address)
    try:
        known = ip_address(address)
    except ValueError:
        return "" if "*" in proxies or address in proxies else address_key(address)
    for proxy in proxies:
        try:
            if proxy == "*" or known in ip_network(proxy):
                return ""
        except ValueError:  # a name; uvicorn compares it as it is
            continue
    return address_key(address)


@lru_cache(maxsize=1)
def _unreadable() -> bytes:
    from evenhand.serve.http.problems import MEDIA_TYPE, problem_of

    error = InputError(Message("serve.request_malformed"))
    body = (
        problem_of(error)
        .model_copy(update={"status": 400})
        .model_dump_json(context=FOR_CLIENTS)
        .encode()
    )
    head = (
        "HTTP/1.1 400 Bad Request",
        f"Content-Type: {MEDIA_TYPE}",
        f"Content-Length: {len(body)}",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body


def protocol_class(config: ServerConfig) -> type[asyncio.Protocol]:
    """Of one server; by the parser in C where it is there."""
    bases: tuple[type, ...]
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

        bases = (_BoundedByC, HttpToolsProtocol)
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol

        bases = (_Bounded, H11Protocol)
    return type("BoundedProtocol", bases, {"all": OpenConnections(config)})
