"""A real chat-completions server on the loopback, scripted by the test that starts it.

    with JudgeServer(lambda request: chat_reply("A is better")) as server:
        judge = OpenAIJudge("m", JudgeOptions(base_url=server.url))
        ...
        assert server.requests[0].json["model"] == "m"

The script is called with each request as it was seen, and returns what to send: a `Reply` (made
by `chat_reply`, `error_reply`, `text_reply`), or a fault (`RESET`, `CLOSE`, `HalfBody`, `Drip`).
`Slow` puts a wait before either. `in_turn` plays a list, `judge_by` answers by the messages'
content. Pytest users take the fixture `start_server`, which also stops what it started.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import pytest
from aiohttp import web

from evenhand.judges import openai
from evenhand.judges.registry import TransportName
from evenhand.judges.transport import JudgeEndpoint, Transport, open_transport
from parts import missing

_START_S = 10.0


@dataclass(frozen=True)
class SeenRequest:
    """One request as it arrived; `count` is 1 for the server's first."""

    count: int
    method: str
    target: str  # the request line's own: a path, or a whole URL when asked as a proxy
    path: str
    headers: Mapping[str, str]  # names in lower case
    raw: bytes
    json: Any  # None where the body is not JSON
    arrived_s: float  # time.monotonic()
    client_port: int  # which connection it came by

    @property
    def messages(self) -> list[dict[str, str]]:
        messages: list[dict[str, str]] = self.json["messages"]
        return messages

    @property
    def prompt(self) -> str:
        """All messages' texts, for scripts that look for something in them."""
        return "\n".join(message["content"] for message in self.messages)


@dataclass(frozen=True)
class Reply:
    """A whole answer. `body` is sent as JSON unless it is bytes."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Reset:
    """The connection is reset (RST) instead of an answer."""


class Close:
    """The connection is closed (FIN) instead of an answer."""


RESET = Reset()
CLOSE = Close()


@dataclass(frozen=True)
class HalfBody:
    """The headers promise the whole reply; half of it is sent, then the connection closes."""

    reply: Reply


@dataclass(frozen=True)
class Drip:
    """The reply comes byte by byte."""

    reply: Reply
    every_s: float = 0.05


@dataclass(frozen=True)
class RawBytes:
    """These bytes and nothing else, HTTP or not; then the connection closes."""

    data: bytes


@dataclass(frozen=True)
class Slow:
    """A wait, and then something else."""

    wait_s: float
    then: Reply | Reset | Close | HalfBody | Drip | RawBytes


Scripted = Reply | Reset | Close | HalfBody | Drip | RawBytes | Slow
Script = Callable[[SeenRequest], Scripted]


def chat_reply(
    text: str | Sequence[Mapping[str, Any]] | None,
    *,
    finish_reason: str | None = "stop",
    usage: Mapping[str, Any] | None = None,
    logprobs: Sequence[Mapping[str, Any]] | None = None,
    refusal: str | None = None,
    model: str = "loopback-1",
    request_id: str = "chatcmpl-loopback",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    message: Mapping[str, Any] | None = None,
) -> Reply:
    """A chat completion with one choice. `message` adds to its message, e.g. reasoning_content."""
    said: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal}
    return Reply(
        {
            "id": request_id,
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "message": {**said, **(message or {})},
                    "finish_reason": finish_reason,
                    "logprobs": None if logprobs is None else {"content": list(logprobs)},
                }
            ],
            "usage": usage
            if usage is not None
            else {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        },
        status=status,
        headers=headers or {},
    )


def token_logprob(
    token: str, logprob: float, top: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """One entry of `chat_reply(logprobs=[...])`."""
    return {
        "token": token,
        "logprob": logprob,
        "bytes": list(token.encode()),
        "top_logprobs": [
            {"token": other, "logprob": value, "bytes": list(other.encode())}
            for other, value in (top or {}).items()
        ],
    }


def error_reply(
    status: int,
    message: str = "it did not work",
    *,
    code: str | int | None = None,
    param: str | None = None,
    kind: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """An error in the shape that OpenAI's API gives it."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return Reply({"error": error}, status=status, headers=headers or {})


def text_reply(
    text: str, *, status: int = 200, content_type: str = "text/html; charset=utf-8"
) -> Reply:
    return Reply(text.encode(), status=status, content_type=content_type)


def _port_of(request: web.BaseRequest) -> int:
    peer = request.transport.get_extra_info("peername") if request.transport else None
    return int(peer[1]) if peer else 0


def in_turn(*replies: Scripted) -> Script:
    """The n-th request gets the n-th reply; the last one repeats."""

    def script(request: SeenRequest) -> Scripted:
        return replies[min(request.count, len(replies)) - 1]

    return script


def judge_by(answer: Callable[[list[dict[str, str]]], str]) -> Script:
    """A deterministic judge: its text depends on the messages alone."""
    return lambda request: chat_reply(answer(request.messages))


class JudgeServer:
    """An HTTP server in a thread of its own. Start and stop it with `with`."""

    def __init__(
        self,
        script: Script,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`port` is for one that comes back where another was; 0 is any that is free."""
        self._script = script
        self._host = host
        self._wanted_port = port
        self._tls = tls
        self._lock = threading.Lock()
        self._seen: list[SeenRequest] = []
        self._failures: list[BaseException] = []
        self._loop = asyncio.new_event_loop()
        self._server: web.Server | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="judge-server", daemon=True)
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(_START_S):
            raise RuntimeError("the loopback server did not start")
        if self.port == 0:
            raise RuntimeError("the loopback server failed to start") from self._failures[0]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None and self._failures:
            raise AssertionError("the server's script failed") from self._failures[0]

    def stop(self) -> None:
        """Stopping twice is fine; afterwards nothing listens on the port."""
        if self._thread.is_alive() and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_START_S)

    @property
    def origin(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    @property
    def url(self) -> str:
        """The base URL for a judge."""
        return f"{self.origin}/v1"

    @property
    def requests(self) -> list[SeenRequest]:
        """Every request so far, in order of arrival."""
        with self._lock:
            return list(self._seen)

    @property
    def open_connections(self) -> int:
        return len(self._server.connections) if self._server is not None else 0

    def wait_until(self, fact: Callable[[], bool], *, within_s: float = 60.0) -> bool:
        """Whether a fact about this server comes true in time."""
        deadline = time.monotonic() + within_s
        while not fact():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def wait_until_idle(self, *, within_s: float = 60.0) -> bool:
        """Whether every client closes its connections in time: nothing leaks."""
        return self.wait_until(lambda: self.open_connections == 0, within_s=within_s)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as error:
            self._failures.append(error)
        finally:
            self._loop.run_until_complete(_end_all_tasks())
            self._loop.close()
            self._ready.set()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        # Cancellation: a client that goes away ends its handler, however slow that is scripted.
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._wanted_port, ssl_context=self._tls).start()
            self.port = runner.addresses[0][1]
            self._ready.set()
            await self._stopping.wait()
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()  # request.read() takes at most 1 MiB
        with self._lock:
            seen = _seen(request, raw, count=len(self._seen) + 1)
            self._seen.append(seen)
        try:
            scripted = self._script(seen)
        except Exception as error:  # a test's own script: kept, and raised where the test ends
            self._failures.append(error)
            scripted = error_reply(500, "the test's script failed")
        if isinstance(scripted, Slow):
            await asyncio.sleep(scripted.wait_s)
            scripted = scripted.then
        match scripted:
            case Reply():
                return _whole(scripted)
            case HalfBody():
                whole = scripted.reply.encoded()
                await _send(request, scripted.reply, [whole[: len(whole) // 2]])
            case Drip():
                data = scripted.reply.encoded()
                pieces = [data[i : i + 1] for i in range(len(data))]
                return await _send(request, scripted.reply, pieces, every_s=scripted.every_s)
            case RawBytes() if request.transport is not None:
                request.transport.write(scripted.data)
            case Reset():
                _reset_on_close(request)
        if request.transport is not None:
            request.transport.close()
        return web.Response()


async def _end_all_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _seen(request: web.BaseRequest, raw: bytes, *, count: int) -> SeenRequest:
    try:
        parsed = json.loads(raw)
    except ValueError:
        parsed = None
    return SeenRequest(
        count=count,
        method=request.method,
        target=request.raw_path,
        path=request.path,
        headers={name.lower(): value for name, value in request.headers.items()},
        raw=raw,
        json=parsed,
        arrived_s=time.monotonic(),
        client_port=_port_of(request),
    )


def _whole(reply: Reply) -> web.Response:
    headers = {"Content-Type": reply.content_type, **reply.headers}
    return web.Response(body=reply.encoded(), status=reply.status, headers=headers)


async def _send(
    request: web.BaseRequest, reply: Reply, pieces: Sequence[bytes], *, every_s: float = 0.0
) -> web.StreamResponse:
    """Promise the whole reply, and send these pieces of it."""
    headers = {"Content-Type": reply.content_type, **reply.headers}
    response = web.StreamResponse(status=reply.status, headers=headers)
    response.content_length = len(reply.encoded())
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
        await asyncio.sleep(every_s)
    return response


def _reset_on_close(request: web.BaseRequest) -> None:
    # Lingering for no time at all makes the kernel send RST instead of FIN.
    connection = request.transport.get_extra_info("socket") if request.transport else None
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


StartServer = Callable[[Script], JudgeServer]


def forget_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the machine's environment must not come between a test and its server."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def start_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StartServer]:
    """Starts servers for one test: `server = start_server(script)`."""
    forget_proxies(monkeypatch)
    started: list[JudgeServer] = []

    def start(script: Script) -> JudgeServer:
        server = JudgeServer(script)
        server.__enter__()
        started.append(server)
        return server

    yield start
    for server in started:
        server.__exit__(None, None, None)


@pytest.fixture(params=["aiohttp", "httptools"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TransportName:
    """The one that a judge takes whose options name none, whatever is installed."""
    fallback: TransportName = request.param
    if fallback == "httptools" and importlib.util.find_spec("httptools") is None:
        missing("httptools is not installed; install the extra speed")

    def opened(
        endpoint: JudgeEndpoint, headers: Mapping[str, str], *, name: TransportName | None = None
    ) -> Transport:
        # What httptools does not do, the default leaves to aiohttp.
        taken = name or (None if endpoint.proxy else fallback)
        return open_transport(endpoint, headers, name=taken)

    monkeypatch.setattr(openai, "open_transport", opened)
    return fallback
