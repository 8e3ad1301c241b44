"""Connections of the transport on httptools: whose they are, and what a server may send on them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from yarl import URL

from evenhand.errors import JudgeError, JudgeGarbled, JudgeTimeout
from evenhand.judges.redaction import Redactor
from evenhand.judges.transport import JudgeEndpoint

pytest.importorskip("httptools")

from evenhand.judges.httptools_transport import HttptoolsTransport

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
UNREADABLE = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n??"


@contextlib.asynccontextmanager
async def answering(
    *answers: bytes, timeout_s: float = 5.0
) -> AsyncIterator[tuple[HttptoolsTransport, list[int]]]:
    """A transport, and the ports that its requests came from; the last answer is for the rest."""
    ports: list[int] = []
    serving: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\nask")
                ports.append(writer.get_extra_info("peername")[1])
                writer.write(answers[min(len(ports), len(answers)) - 1])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = URL(f"http://127.0.0.1:{port}/")
    endpoint = JudgeEndpoint(url, timeout_s=timeout_s, connect_timeout_s=2.0, redact=Redactor())
    transport = HttptoolsTransport(endpoint, {})
    try:
        yield transport, ports
    finally:
        await transport.close()
        server.close()
        await asyncio.gather(*serving)


def when_it_idles(
    transport: HttptoolsTransport, then: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, at the moment when a connection may be used again and its asker does not know yet."""
    idles, waiting = transport.idles, [then]

    def told(connection: Any) -> None:
        idles(connection)
        while waiting:
            waiting.pop()()

    monkeypatch.setattr(transport, "idles", told)


async def test_an_answer_that_cannot_be_read_ends_no_other_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with answering(UNREADABLE, OK) as (transport, ports):
        others: list[asyncio.Task[Any]] = []
        when_it_idles(
            transport,
            lambda: others.append(asyncio.create_task(transport.post(b"ask"))),
            monkeypatch,
        )
        with pytest.raises(JudgeGarbled, match="encoded as br"):
            await transport.post(b"ask")
        reply = await asyncio.wait_for(others[0], 20)
        assert reply.body == b"ok"
        assert ports[0] == ports[1]  # or nothing was shown


async def test_a_cancelled_request_ends_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(OK) as (transport, ports):
        others: list[asyncio.Task[Any]] = []
        asking = asyncio.create_task(transport.post(b"ask"))

        def cancelled_as_another_begins() -> None:
            others.append(asyncio.create_task(transport.post(b"ask")))
            asking.cancel()

        when_it_idles(transport, cancelled_as_another_begins, monkeypatch)
        with pytest.raises(asyncio.CancelledError):
            await asking
        reply = await asyncio.wait_for(others[0], 20)
        assert reply.body == b"ok"
        assert ports[0] == ports[1]


async def test_a_cancelled_request_closes_its_connection() -> None:
    async with answering(b"", OK) as (transport, ports):
        asking = asyncio.create_task(transport.post(b"ask"))
        await asyncio.wait([asking], timeout=0.3)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await transport.post(b"ask")).body == b"ok"
        assert ports[0] != ports[1]


async def cancel_while_connecting() -> None:
    async with answering(OK) as (transport, _):
        for turns in range(12):
            asking = asyncio.create_task(transport.post(b"ask"))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
        await transport.post(b"ask")
        assert len(transport._open) == len(transport._idle) == 1


async def test_a_request_cancelled_as_its_connection_opens_is_forgotten() -> None:
    await cancel_while_connecting()


def test_it_is_forgotten_on_uvloop_too() -> None:
    pytest.importorskip("uvloop").run(cancel_while_connecting())


async def test_a_request_that_comes_too_late_closes_its_connection() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n", OK, timeout_s=0.2) as (transport, ports):
        with pytest.raises(JudgeTimeout):
            await transport.post(b"ask")
        assert (await transport.post(b"ask", timeout_s=5.0)).body == b"ok"
        assert ports[0] != ports[1]


async def test_a_connection_that_is_closing_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server's farewell was read, and the loop has yet to say that the connection is lost."""
    async with answering(OK) as (transport, ports):
        kept: list[Any] = []
        idles = transport.idles

        def told(connection: Any) -> None:
            kept.append(connection)
            idles(connection)

        monkeypatch.setattr(transport, "idles", told)
        await transport.post(b"ask")
        kept[0]._wire.close()
        assert (await transport.post(b"ask")).body == b"ok"
        assert ports[0] != ports[1]


async def test_headers_without_end_are_not_collected() -> None:
    endless = b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(200_000))
    assert len(endless) > 2**21
    async with answering(endless) as (transport, _):
        with pytest.raises(JudgeGarbled, match="headers have no end"):
            await transport.post(b"ask")


async def test_one_header_without_end_is_not_collected() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 2**22) as (transport, _):
        with pytest.raises(JudgeGarbled, match="headers have no end"):
            await transport.post(b"ask")


async def test_a_long_body_in_chunks_of_one_byte_is_read() -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 500_000
    async with answering(chunks + b"0\r\n\r\n") as (transport, _):
        assert (await transport.post(b"ask")).body == b"x" * 500_000


async def test_what_follows_the_chunks_is_no_header() -> None:
    trailed = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: head\r\n\r\n"
        b"2\r\nok\r\n0\r\nContent-Encoding: br\r\nX-A: tail\r\n\r\n"
    )
    async with answering(trailed) as (transport, ports):
        for _ in range(2):
            reply = await transport.post(b"ask")
            assert (reply.body, reply.headers["x-a"]) == (b"ok", "head")
        assert ports[0] == ports[1]


async def test_the_status_is_that_of_the_first_answer() -> None:
    forged = b"HTTP/1.1 503 Busy\r\nRetry-After: 99\r\nContent-Length: 0\r\n\r\n"
    async with answering(OK + forged) as (transport, ports):
        for _ in range(2):
            with contextlib.suppress(JudgeError):
                reply = await transport.post(b"ask")
                assert (reply.status, "retry-after" in reply.headers) == (200, False)
        assert ports[0] != ports[1]
