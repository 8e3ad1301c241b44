"""MCP over standard input and output: one client, until its input ends or a signal comes.

Not the SDK's own transport: that bounds no line, passes over what is no message in silence, and
ends with its input before what was asked is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from evenhand.contract.json_text import RepeatedKey, refuse_repeated_key
from evenhand.errors import TooLarge
from evenhand.serve.mcp.server import make_server
from evenhand.serve.security.limits import MCP_VALUES, refuse_many_values

if TYPE_CHECKING:
    from evenhand.serve.service import Service


# Standard input and output as the protocol's wire: lines in, lines out, nothing else on either.
#
# Reading and writing block in threads that end with the process, so that neither a silent client
# nor one that does not read can keep it from ending.

_BLOCK = 64 * 1024


class LineTooLong(Exception):
    """A line longer than the wire takes; it was passed over."""


class Wire:
    """Lines of UTF-8. `read` gives None at the end; `write` is over when the line is out."""

    def __init__(self, reads: int, writes: int, *, longest_line: int) -> None:
        self._reads = reads
        self._writes = writes
        self._longest = longest_line
        self._loop = asyncio.get_running_loop()
        # One line ahead: a client that sends faster than it is served waits.
        self._lines: asyncio.Queue[bytes | LineTooLong | None] = asyncio.Queue(1)
        self._out: SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = SimpleQueue()
        for name, work in (("reads", self._read_all), ("writes", self._write_all)):
            threading.Thread(target=work, name=f"evenhand-mcp-{name}", daemon=True).start()

    async def read(self) -> bytes | None:
        line = await self._lines.get()
        if isinstance(line, LineTooLong):
            raise line
        return line

    async def write(self, line: bytes) -> None:
        """OSError where nobody reads any more."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._out.put((line + b"\n", written))
        await written

    def end(self) -> None:
        self._out.put(None)

    def _read_all(self) -> None:
        line = bytearray()
        passing_over = False
        with contextlib.suppress(CancelledError, RuntimeError):  # the event loop has ended
            while block := self._block():
                *ended, rest = block.split(b"\n")
                for part in ended:
                    line += part
                    if passing_over or len(line) > self._longest:
                        self._hand_over(LineTooLong())
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

    def _hand_over(self, line: bytes | LineTooLong | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()

    def _write_all(self) -> None:
        while (message := self._out.get()) is not None:
            line, written = message
            failure: OSError | None = None
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(self._writes, left) :]
            except OSError as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(_settle, written, failure)


def _settle(written: asyncio.Future[None], failure: OSError | None) -> None:
    if written.done():
        return
    if failure is None:
        written.set_result(None)
    else:
        written.set_exception(failure)


@asynccontextmanager
async def standard_wire(*, longest_line: int) -> AsyncIterator[Wire]:
    """The process's own input and output. While it is held, whatever else reads finds an end, and
    whatever else prints, a child too, prints to standard error."""
    sys.stdout.flush()
    reads, writes = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    wire = Wire(reads, writes, longest_line=longest_line)
    try:
        yield wire
    finally:
        wire.end()
        sys.stdout.flush()
        # Theirs again, not closed: a thread may still be reading.
        os.dup2(reads, 0)
        os.dup2(writes, 1)


logger = logging.getLogger(__name__)

_Received = MemoryObjectReceiveStream[SessionMessage | Exception]


async def serve_stdio(service: Service) -> None:
    """Answers to what was asked before the end of the input are still given."""
    limits = service.config.limits
    longest = min(limits.compare_bytes, limits.body_bytes)
    async with standard_wire(longest_line=longest) as wire, _ending() as ended:
        talk = _Talk(wire, longest_line=longest)
        serving = asyncio.ensure_future(_serve_all(make_server(service), talk))
        talking = asyncio.ensure_future(talk.go_on(drain_s=limits.shutdown_s))
        ending = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait((serving, talking, ending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            await talk.close()
            # What is in flight is cancelled by the end of its stream, and answered as closed.
            await asyncio.wait((serving, talking), timeout=limits.shutdown_s)
            for task in (serving, talking):
                task.cancel()
            await asyncio.gather(serving, talking, ending, return_exceptions=True)


async def _serve_all(server: Server[Any], talk: _Talk) -> None:
    """One session after another; nearly always there is but one."""
    options = server.create_initialization_options()
    with talk.sent:
        while (received := talk.next_session()) is not None:
            await server.run(received, talk.sent.clone(), options)


class _Talk:
    """The wire's lines as the SDK's messages, and back.

    The SDK holds a connection to the era of its first request. But clients ask which eras there
    are (`server/discover`), and some wait a second for that and then shake hands after all, which
    a server that is slow to start must still take: then a session of its own begins.
    """

    def __init__(self, wire: Wire, *, longest_line: int) -> None:
        self._wire = wire
        self._longest = longest_line
        self._sessions: list[_Received] = []
        self._to_server = self._begin_session()
        self._only_probed, self._probes = True, list[Any]()
        self.sent, self._from_server = anyio.create_memory_object_stream[SessionMessage]()
        self._unanswered: dict[Any, int] = {}
        self._answered = asyncio.Event()

    async def go_on(self, *, drain_s: float) -> None:
        """Until the input ends and what was asked is answered, or until nobody reads."""
        reading = asyncio.ensure_future(self._read_all())
        writing = asyncio.ensure_future(self._write_all())
        try:
            await asyncio.wait((reading, writing), return_when=asyncio.FIRST_COMPLETED)
            if not writing.done():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._drained(writing), drain_s)
                await self.close()
                await writing
        finally:
            reading.cancel()
            writing.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)

    async def _drained(self, writing: asyncio.Future[None]) -> None:
        while self._unanswered and not writing.done():
            self._answered.clear()
            answered = asyncio.ensure_future(self._answered.wait())
            await asyncio.wait((answered, writing), return_when=asyncio.FIRST_COMPLETED)
            answered.cancel()

    async def close(self) -> None:
        await self._to_server.aclose()

    def next_session(self) -> _Received | None:
        return self._sessions.pop(0) if self._sessions else None

    def _begin_session(self) -> MemoryObjectSendStream[SessionMessage | Exception]:
        to_server, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
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

    async def _read_all(self) -> None:
        while True:
            try:
                line = await self._wire.read()
            except LineTooLong:
                await self._refuse(
                    types.INVALID_REQUEST,
                    f"the message is longer than {self._longest:,} bytes; send less",
                )
                continue
            if line is None:
                return
            message = await self._parsed(line)
            if message is None:
                continue
            await self._leave_the_probe(message)
            self._note(message)
            try:
                await self._to_server.send(SessionMessage(message))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

    async def _parsed(self, line: bytes) -> types.JSONRPCMessage | None:
        """What is no message is answered here; the SDK would pass over it in silence."""
        try:
            refuse_many_values(line, MCP_VALUES)
        except TooLarge as error:
            await self._refuse(types.INVALID_REQUEST, error.message)
            return None
        with contextlib.suppress(orjson.JSONDecodeError):  # what is no JSON is told below
            try:
                refuse_repeated_key(line, orjson.loads(line))
            except RepeatedKey as error:
                await self._refuse(types.INVALID_REQUEST, str(error))
                return None
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            message = None
        # A request whose id is none would pass as a notification, and never be answered.
        if message is not None and not isinstance(message, types.JSONRPCNotification):
            return message
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            await self._refuse(types.PARSE_ERROR, "the line is not JSON; send one message a line")
            return None
        if message is not None and "id" not in given:
            return message
        number = given.get("id") if isinstance(given, dict) else None
        plain = type(number) is int or isinstance(number, str)
        await self._refuse(
            types.INVALID_REQUEST,
            "this is not a JSON-RPC 2.0 message; send one object with jsonrpc, method and, "
            "unless it is a notification, id",
            number if plain else None,
        )
        return None

    async def _refuse(self, code: int, message: str, number: Any = None) -> None:
        error = {"code": code, "message": message}
        answer = {"jsonrpc": "2.0", "id": number, "error": error}
        with contextlib.suppress(OSError):
            await self._wire.write(json.dumps(answer).encode("utf-8", "backslashreplace"))

    def _note(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._unanswered[message.id] = self._unanswered.get(message.id, 0) + 1
        elif (
            isinstance(message, types.JSONRPCNotification)
            and message.method == "notifications/cancelled"
        ):
            self._settle((message.params or {}).get("requestId"))

    def _settle(self, number: Any) -> None:
        with contextlib.suppress(TypeError):  # what a hostile client calls an id
            self._unanswered.pop(number, None)
        self._answered.set()

    async def _write_all(self) -> None:
        """Until the server has no more to say, or nobody reads."""
        async for sent in self._from_server:
            message = sent.message
            try:
                line = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            except ValueError as error:  # a text that no UTF-8 can hold
                logger.error("an answer could not be written: %s", type(error).__name__)
                failed = types.ErrorData(code=types.INTERNAL_ERROR, message="not writable")
                number = getattr(message, "id", None)
                line = (
                    types.JSONRPCError(jsonrpc="2.0", id=number, error=failed)
                    .model_dump_json()
                    .encode("utf-8", "backslashreplace")
                )
            try:
                await self._wire.write(line)
            except OSError:
                return
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                self._settle(message.id)


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
