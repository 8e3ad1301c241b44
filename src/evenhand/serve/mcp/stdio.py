"""MCP over standard input and output: one client, until its input ends or a signal comes.

The transport and the server are the SDK's. But its reader bounds no line and is silent about what
is no message, and its server gives up what was asked when its input ends: so lines come to it
checked, and the end of the input once everything is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import mcp_types as types
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from evenhand.contract.json_text import RepeatedKey, refuse_repeated_key
from evenhand.errors import TooLarge
from evenhand.serve.mcp.server import make_server
from evenhand.serve.security.limits import MCP_VALUES, refuse_many_values

if TYPE_CHECKING:
    from evenhand.serve.service import Service

logger = logging.getLogger(__name__)

_BLOCK = 64 * 1024
_Item = SessionMessage | Exception
_T = TypeVar("_T")


async def serve_stdio(service: Service) -> None:
    """Answers to what was asked before the end of the input are still given."""
    limits = service.config.limits
    with _standard_input() as reads:
        lines = _Lines(reads, longest=min(limits.compare_bytes, limits.body_bytes))
        async with _ending() as ended:
            talking = asyncio.ensure_future(_talk(service, lines))
            ending = asyncio.ensure_future(ended.wait())
            await asyncio.wait((talking, ending), return_when=asyncio.FIRST_COMPLETED)
            ending.cancel()
            lines.cut_off()
            await asyncio.wait((talking,), timeout=limits.shutdown_s)
            talking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await talking


async def _talk(service: Service, lines: _Lines) -> None:
    server = make_server(service)
    options = server.create_initialization_options()
    try:
        # Of its input the SDK asks for lines alone.
        async with stdio_server(stdin=cast("Any", lines)) as (received, sent):
            talk = _Talk(lines, sent.send, drain_s=service.config.limits.shutdown_s)
            async with anyio.create_task_group() as group:
                group.start_soon(talk.pass_in, received)
                group.start_soon(talk.pass_out)
                with talk.answers:
                    while (session := talk.next_session()) is not None:
                        await server.run(session, talk.answers.clone(), options)
            lines.cut_off()
            await sent.aclose()
    except* OSError:
        pass  # nobody reads any more


@contextmanager
def _standard_input() -> Iterator[int]:
    """The process's own, for us alone: whatever else reads meanwhile finds an end. The SDK does the
    same with standard output."""
    reads, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        yield reads
    finally:
        os.dup2(reads, 0)  # not closed: a thread may still be reading


class _LineTooLong(Exception):
    """It was passed over."""


class _Lines:
    """The input's messages, a line each and none longer than it may be.

    A thread reads, which ends with the process: a silent client cannot keep it from ending.
    """

    def __init__(self, reads: int, *, longest: int) -> None:
        self._reads = reads
        self._longest = longest
        self._loop = asyncio.get_running_loop()
        # One line ahead: a client that sends faster than it is served waits.
        self._lines: asyncio.Queue[bytes | _LineTooLong | None] = asyncio.Queue(1)
        self._end = asyncio.Event()
        self.refuse: Callable[[types.JSONRPCError], Awaitable[None]] | None = None
        threading.Thread(target=self._read_all, name="evenhand-mcp-reads", daemon=True).start()

    @property
    def was_cut_off(self) -> bool:
        return self._end.is_set()

    def cut_off(self) -> None:
        """Whatever comes now is not read."""
        self._end.set()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while (line := await self.unless_cut_off(self._lines.get())) is not None:
            refusal = (
                _refusal(
                    types.INVALID_REQUEST, f"the message is longer than {self._longest:,} bytes"
                )
                if isinstance(line, _LineTooLong)
                else _refusal_of(line)
            )
            if refusal is None and isinstance(line, bytes):
                return line.decode()
            if refusal is not None and self.refuse is not None:
                await self.refuse(refusal)
        raise StopAsyncIteration

    async def unless_cut_off(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        coming, end = asyncio.ensure_future(work), asyncio.ensure_future(self._end.wait())
        try:
            await asyncio.wait((coming, end), return_when=asyncio.FIRST_COMPLETED)
            return None if self.was_cut_off else coming.result()
        finally:
            coming.cancel()
            end.cancel()

    def _read_all(self) -> None:
        line = bytearray()
        passing_over = False
        with contextlib.suppress(CancelledError, RuntimeError):  # the event loop has ended
            while block := self._block():
                *ended, rest = block.split(b"\n")
                for part in ended:
                    line += part
                    if passing_over or len(line) > self._longest:
                        self._hand_over(_LineTooLong())
                    elif line.strip():
                        self._hand_over(bytes(line))
                    line.clear()
                    passing_over = False
                line += rest
                if len(line) > self._longest:
                    passing_over = True
                    line.clear()
            if line.strip():  # the last line needs no end
                self._hand_over(bytes(line))
            self._hand_over(None)

    def _block(self) -> bytes:
        try:
            return os.read(self._reads, _BLOCK)
        except OSError:  # whoever wrote is gone
            return b""

    def _hand_over(self, line: bytes | _LineTooLong | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


def _refusal_of(line: bytes) -> types.JSONRPCError | None:
    """Of what is no message; the SDK would pass over it in silence."""
    try:
        refuse_many_values(line, MCP_VALUES)
        with contextlib.suppress(orjson.JSONDecodeError):  # what is no JSON is told below
            refuse_repeated_key(line, orjson.loads(line))
    except TooLarge as error:
        return _refusal(types.INVALID_REQUEST, error.message)
    except RepeatedKey as error:
        return _refusal(types.INVALID_REQUEST, str(error))
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        message = None
    # A request whose id is none would pass as a notification, and never be answered.
    if message is not None and not isinstance(message, types.JSONRPCNotification):
        return None
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return _refusal(types.PARSE_ERROR, "the line is not JSON; send one message per line")
    if message is not None and "id" not in given:
        return None
    number = given.get("id") if isinstance(given, dict) else None
    return _refusal(
        types.INVALID_REQUEST,
        "this is not a JSON-RPC 2.0 message; send one object with jsonrpc, method and, unless it "
        "is a notification, id",
        number if type(number) is int or isinstance(number, str) else None,
    )


def _refusal(code: int, message: str, number: int | str | None = None) -> types.JSONRPCError:
    error = types.ErrorData(code=code, message=message)
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=error)


class _Talk:
    """Between the transport and the server: who waits for an answer, and when a session begins.

    The SDK holds a connection to the era of its first request. But clients ask which eras there
    are (`server/discover`), and some wait a second for that and then shake hands after all, which
    a server that is slow to start must still take: then a session of its own begins.
    """

    def __init__(
        self, lines: _Lines, send: Callable[[SessionMessage], Awaitable[None]], *, drain_s: float
    ) -> None:
        self._lines = lines
        lines.refuse = self._refuse
        self._send = send
        self._drain_s = drain_s
        self._sessions: list[MemoryObjectReceiveStream[_Item]] = []
        self._to_server = self._begin_session()
        self._only_probed, self._probes = True, list[Any]()
        self.answers, self._to_client = anyio.create_memory_object_stream[SessionMessage]()
        self._unanswered: set[Any] = set()
        self._answered = asyncio.Event()

    def next_session(self) -> MemoryObjectReceiveStream[_Item] | None:
        return self._sessions.pop(0) if self._sessions else None

    async def pass_in(self, received: AsyncIterator[_Item]) -> None:
        """To the end of the input, and until what was asked by then is answered."""
        async for item in received:
            if isinstance(item, SessionMessage):
                await self._leave_the_probe(item.message)
                self._note(item.message)
            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self._to_server.send(item)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._drain_s):
                while self._unanswered and not self._lines.was_cut_off:
                    self._answered.clear()
                    await self._lines.unless_cut_off(self._answered.wait())
        await self._to_server.aclose()

    async def pass_out(self) -> None:
        async for answer in self._to_client:
            await self._send(_writable(answer))
            if isinstance(answer.message, types.JSONRPCResponse | types.JSONRPCError):
                self._settle(answer.message.id)

    async def _refuse(self, refusal: types.JSONRPCError) -> None:
        await self._send(SessionMessage(refusal))

    def _begin_session(self) -> MemoryObjectSendStream[_Item]:
        to_server, received = anyio.create_memory_object_stream[_Item]()
        self._sessions.append(received)
        return to_server

    async def _leave_the_probe(self, message: types.JSONRPCMessage) -> None:
        if not isinstance(message, types.JSONRPCRequest):
            return
        if message.method == "initialize" and self._only_probed and self._probes:
            # Whoever shakes hands now has given up on what it asked before.
            for number in self._probes:
                self._settle(number)
            ended, self._to_server = self._to_server, self._begin_session()
            await ended.aclose()
        self._only_probed = self._only_probed and message.method == "server/discover"
        if self._only_probed:
            self._probes.append(message.id)

    def _note(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._unanswered.add(message.id)
        elif (
            isinstance(message, types.JSONRPCNotification)
            and message.method == "notifications/cancelled"
        ):
            self._settle((message.params or {}).get("requestId"))

    def _settle(self, number: Any) -> None:
        with contextlib.suppress(TypeError):  # what a hostile client calls an id
            self._unanswered.discard(number)
        self._answered.set()


def _writable(answer: SessionMessage) -> SessionMessage:
    """The SDK's transport would end over a text that no UTF-8 can hold."""
    try:
        answer.message.model_dump_json()
    except ValueError as error:
        logger.error("could not write a response: %s", type(error).__name__)
        number = getattr(answer.message, "id", None)
        return SessionMessage(_refusal(types.INTERNAL_ERROR, "not writable", number))
    return answer


@asynccontextmanager
async def _ending() -> AsyncIterator[asyncio.Event]:
    """Set by the first SIGTERM or SIGINT; a second one ends the process at once."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def end() -> None:
        ended.set()
        for number in numbers:
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        try:
            loop.add_signal_handler(number, end)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
    try:
        yield ended
    finally:
        for number, handler in before.items():
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)
