"""Connections that may not be held open for nothing: bounded in number, in head and in patience.

uvicorn times idle connections between requests, but waits for ever for the head of a request, and
its faster parser takes heads of any length. What neither parser can read is answered in the
server's one shape.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

from evenhand.errors import InputError

HEAD_TIMEOUT_S = 20.0
HEAD_BYTES = 128 * 1024
CONNECTIONS = 4096


class _Bounded:
    """Mixed into uvicorn's protocols, whose attributes it reads."""

    connections: set[Any]
    cycle: Any
    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        if len(self.connections) > CONNECTIONS:
            transport.close()
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)  # type: ignore[misc]
        if not self._is_waiting():
            self._stop_timer()
            self._head_bytes = 0
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self.transport.close()
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)  # type: ignore[misc]

    def send_400_response(self, msg: str) -> None:
        """No request came of it, so no app can answer; uvicorn's own answer is a plain text."""
        self.transport.write(_unreadable())
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
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@lru_cache(maxsize=1)
def _unreadable() -> bytes:
    from evenhand.serve.problems import MEDIA_TYPE, problem_of

    error = InputError(
        "the request is not HTTP that can be read; send HTTP/1.1, and percent-encode what is not "
        "ASCII in its address"
    )
    body = problem_of(error).model_copy(update={"status": 400}).model_dump_json().encode()
    head = (
        "HTTP/1.1 400 Bad Request",
        f"Content-Type: {MEDIA_TYPE}",
        f"Content-Length: {len(body)}",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body


@lru_cache(maxsize=1)
def protocol_class() -> type[asyncio.Protocol]:
    """By the parser in C where it is there."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

        uvicorns: type[asyncio.Protocol] = HttpToolsProtocol
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol

        uvicorns = H11Protocol
    return type("BoundedProtocol", (_Bounded, uvicorns), {})
