"""The transport on httptools: asyncio's own connections, and llhttp to read what comes back.

A judge call is one POST and one reply, over and over to the same address. With no more than that
to do, a call takes a quarter of aiohttp's CPU time. What goes by way of a proxy is left to aiohttp.
"""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from typing import cast

import httptools

from evenhand.errors import JudgeError, SettingsError
from evenhand.judges.reply_limits import MAX_REPLY_BYTES
from evenhand.judges.transport import JudgeEndpoint, Reply, reason_of
from evenhand.messages import Message

# A server closes what is idle for long, and a request that crosses that is lost.
_IDLE_S = 15.0
# Head and body of a small request leave in one packet; a large body is not copied for that.
_JOINED_BELOW_BYTES = 64 * 1024
# Headers, and what frames the chunks of a body: a chunk of one byte takes six.
_MOST_AROUND_BYTES, _MOST_AROUND_SHARE = 1024 * 1024, 8
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_COMPRESSED = frozenset({"gzip", "x-gzip", "deflate"})


class HttptoolsTransport:
    def __init__(self, endpoint: JudgeEndpoint, headers: Mapping[str, str]) -> None:
        if endpoint.proxy is not None:
            raise SettingsError(Message("judges.httptools_no_proxy"))
        self.endpoint = endpoint
        self._begin = _begin_of_request(endpoint, headers)
        self._tls = _tls_context() if endpoint.speaks_tls else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: set[_Connection] = set()
        self._idle: list[_Connection] = []  # the one used last is at the end
        self._closed = False

    async def post(self, body: bytes, *, timeout_s: float | None = None) -> Reply:
        loop = self._loop_here()
        if timeout_s is None:
            timeout_s = self.endpoint.timeout_s
        deadline = loop.time() + timeout_s
        connection = self._idle_one() or await self._connected(loop, deadline)
        request = b"%b%d\r\n\r\n" % (self._begin, len(body))
        answer: asyncio.Future[Reply] = loop.create_future()
        alarm = loop.call_at(deadline, connection.forsake, answer, self.endpoint.too_late)
        try:
            connection.send(request, body, answer)
            return await answer
        except BaseException:
            connection.forsake(answer)
            raise
        finally:
            alarm.cancel()

    async def close(self) -> None:
        self._closed = True
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        if loop is asyncio.get_running_loop():
            self._drop_all()
            # A connection closes in the loop's next turns; whoever ends the loop has waited.
            await asyncio.sleep(0)
        elif loop.is_running():
            loop.call_soon_threadsafe(self._drop_all)
        elif self._open:
            raise self.endpoint.in_a_stopped_loop()

    def _drop_all(self) -> None:
        self._idle.clear()
        for connection in tuple(self._open):
            connection.give_up(self.endpoint.closed_while_asking)

    def _loop_here(self) -> asyncio.AbstractEventLoop:
        if self._closed:
            raise self.endpoint.closed()
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise self.endpoint.in_another_loop()
        return loop

    def _idle_one(self) -> _Connection | None:
        idle = self._idle
        while idle:
            newest = idle.pop()
            if newest.is_closing:
                continue  # the server has closed it, and the loop is about to say so
            if time.monotonic() - newest.idle_since <= _IDLE_S:
                return newest
            # All others are older.
            for connection in (newest, *idle):
                connection.drop()
            idle.clear()
        return None

    async def _connected(self, loop: asyncio.AbstractEventLoop, deadline: float) -> _Connection:
        endpoint, url = self.endpoint, self.endpoint.url
        within_s = min(endpoint.connect_timeout_s, deadline - loop.time())
        try:
            async with asyncio.timeout(within_s):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self),
                    cast("str", url.host),
                    cast("int", url.port),
                    ssl=self._tls,
                    server_hostname=url.host if self._tls else None,
                )
        except TimeoutError:
            failure: JudgeError = endpoint.not_connected_in_time()
        except ssl.SSLCertVerificationError as error:
            failure = endpoint.certificate_not_trusted(error.verify_message or str(error))
        except ssl.SSLError as error:
            failure = endpoint.no_tls(error.reason or str(error))
        except (socket.gaierror, UnicodeError):
            failure = endpoint.unresolved()
        except OSError as error:
            failure = endpoint.unreachable(reason_of(error))
        else:
            if not self._closed:
                # Not sooner: uvloop says of a connection that was cancelled as it opened that it
                # is made, and never that it is lost.
                if not connection.is_closing:
                    self._open.add(connection)
                return connection
            connection.drop()
            failure = endpoint.closed_while_asking()
        raise failure

    def lost(self, connection: _Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def idles(self, connection: _Connection) -> None:
        self._idle.append(connection)


class _Connection(asyncio.Protocol):
    """One connection, with at most one request on it. Its parser calls the `on_…` methods."""

    def __init__(self, owner: HttptoolsTransport) -> None:
        self._owner = owner
        self._endpoint = owner.endpoint
        self._parser = httptools.HttpResponseParser(self)
        self._wire: asyncio.Transport | None = None
        self._answer: asyncio.Future[Reply] | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = io.BytesIO()
        self._status = 0
        self._received = 0  # of the body
        self._came = 0  # of everything
        self._in_body = False
        self._whole = False
        self._reusable = False
        self.idle_since = 0.0

    # What the transport asks of it

    def send(self, head: bytes, body: bytes, answer: asyncio.Future[Reply]) -> None:
        wire = self._wire
        if wire is None or self.is_closing:
            raise self._endpoint.unanswered()
        self._answer = answer
        self._headers = []
        self._body = io.BytesIO()
        self._received = self._came = 0
        self._in_body = self._whole = self._reusable = False
        if len(body) < _JOINED_BELOW_BYTES:
            wire.write(head + body)
        else:
            wire.write(head)
            wire.write(body)

    @property
    def is_closing(self) -> bool:
        return self._wire is None or self._wire.is_closing()

    def forsake(
        self, answer: asyncio.Future[Reply], why: Callable[[], JudgeError] | None = None
    ) -> None:
        """Nobody waits for this answer any more. Once it has come, the connection may be in use
        for another one."""
        if self._answer is not answer:
            return
        if why is not None:
            self._fail(why())
        self.drop()

    def give_up(self, why: Callable[[], JudgeError]) -> None:
        if self._answer is not None:
            self._fail(why())
        self.drop()

    def drop(self) -> None:
        self._answer = None
        if self._wire is not None:
            self._wire.abort()

    # What asyncio tells it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            # Nothing was asked; what comes is for nobody, and whatever follows would be misread.
            self.drop()
            return
        self._came += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(self._endpoint.no_http("it asks for another protocol"))
            self.drop()
        except httptools.HttpParserError as error:
            self._fail(self._endpoint.no_http(_parsers_words(error)))
            self.drop()
            return
        if self._whole:
            self._reply()
        elif self._came > _MOST_AROUND_BYTES + _MOST_AROUND_SHARE * self._received:
            self._fail(self._endpoint.no_http("its headers have no end"))
            self.drop()

    def eof_received(self) -> None:
        """The end of the connection is the end of a body that has no other."""
        if self._answer is not None and self._in_body and self._ends_with_the_connection():
            self._reply()

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.lost(self)
        if self._answer is None:
            return
        if self._in_body:
            self._fail(self._endpoint.broken_off())
        elif isinstance(exc, OSError) and exc.strerror:
            self._fail(self._endpoint.disconnected(reason_of(exc)))
        elif self._came:
            self._fail(self._endpoint.broken_off())
        else:
            self._fail(self._endpoint.unanswered())

    # What the parser tells it

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:  # what follows a body in chunks is no header of it
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        if not self._whole:
            self._in_body = True
            self._status = self._parser.get_status_code()

    def on_body(self, piece: bytes) -> None:
        if self._whole:
            return
        self._received += len(piece)
        if self._received > MAX_REPLY_BYTES:
            self._fail(self._endpoint.too_large())
            self.drop()
            return
        self._body.write(piece)

    def on_message_begin(self) -> None:
        # A second answer, to nobody's question: it ends the connection and is not looked at.
        if self._whole:
            self._reusable = False

    def on_message_complete(self) -> None:
        if self._whole:
            return
        if self._status < 200:
            # "Go on"; the answer itself is still to come.
            self._headers = []
            self._in_body = False
            return
        self._whole = True
        # llhttp forgets it with the message's last byte.
        self._reusable = self._parser.should_keep_alive()

    # What comes of it

    def _reply(self) -> None:
        answer, self._answer = self._answer, None
        headers = _by_name(self._headers)
        body = self._body.getvalue()  # the very bytes, not a copy: there may be 32 MB of them
        self._body = io.BytesIO()
        if self._reusable and not self.is_closing:
            self.idle_since = time.monotonic()
            self._owner.idles(self)
        else:
            self.drop()
        if answer is None or answer.done():
            return
        try:
            body = self._inflated(body, headers)
        except JudgeError as error:
            answer.set_exception(error)
        else:
            answer.set_result(Reply(self._status, headers, body))

    def _inflated(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Nobody asked for a compressed reply, and some servers send one all the same."""
        encoding = headers.get("content-encoding")
        if encoding is None or encoding.strip().lower() in ("", "identity") or not body:
            return body
        if encoding.strip().lower() not in _COMPRESSED:
            raise self._endpoint.no_http(f"its reply is encoded as {encoding[:40]}")
        inflating = zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            plain = inflating.decompress(body, MAX_REPLY_BYTES + 1)
        except zlib.error:
            raise self._endpoint.broken_off() from None
        if len(plain) > MAX_REPLY_BYTES:
            raise self._endpoint.too_large()
        if not inflating.eof:
            raise self._endpoint.broken_off()
        return plain

    def _ends_with_the_connection(self) -> bool:
        named = {name.lower() for name, _ in self._headers}
        return not named & {b"content-length", b"transfer-encoding"}

    def _fail(self, error: JudgeError) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)


def _by_name(read: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Names in lower case; of a header that comes twice the last counts."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in read}


def _begin_of_request(endpoint: JudgeEndpoint, headers: Mapping[str, str]) -> bytes:
    """Up to the length of the body, which alone differs from call to call."""
    url = endpoint.url
    host = f"[{url.host}]" if url.host and ":" in url.host else str(url.raw_host)
    named = {"Host": host if url.is_default_port() else f"{host}:{url.port}", **headers}
    lines = [f"POST {url.raw_path_qs} HTTP/1.1"]
    for name, value in named.items():
        # A line break in a key would begin a header of its own.
        if any(character in value for character in "\r\n\0"):
            raise SettingsError(Message("judges.header_line_break", name=name))
        lines.append(f"{name}: {value}")
    lines.append("Accept-Encoding: identity")
    try:
        return ("\r\n".join(lines) + "\r\nContent-Length: ").encode("latin-1")
    except UnicodeEncodeError:
        raise SettingsError(Message("judges.header_character")) from None


def _tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _parsers_words(error: Exception) -> str:
    return str(error) or type(error).__name__
