"""MCP on the HTTP server; the SDK behind it is loaded by the first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.errors import ServerBusy, WrongMethod
from evenhand.messages import Message
from evenhand.serve.http.problems import problem_response
from evenhand.serve.security.limits import MCP_VALUES, refuse_many_values

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette import types as asgi
    from starlette.types import Receive, Scope, Send

    from evenhand.serve.service import Service


class McpEndpoint:
    """An ASGI app for `/mcp`: streamable HTTP without sessions, so that any worker may answer.

    Built with the app, before there is a service:

        endpoint = McpEndpoint()
        routes = [Route("/mcp", endpoint=endpoint)]      # a Route, not a Mount: no redirect
        async with endpoint.serving(service):            # in the app's lifespan
            yield

    Host, Origin, tokens and the size of bodies are the guard's, which stands before it.
    """

    def __init__(self) -> None:
        self._service: Service | None = None
        self._ended = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._entered: asyncio.Future[StreamableHTTPSessionManager] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            # Without sessions there is nothing to listen to (GET) and nothing to end (DELETE).
            refusal = WrongMethod(Message("serve.mcp_post_only"))
            await problem_response(refusal, headers={"Allow": "POST"})(scope, receive, send)
            return
        if self._service is None:
            raise ServerBusy(Message("serve.not_ready"), retry_after_s=1)
        receive = await _checked(self._service, receive)
        manager = await self._manager(self._service)
        await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def serving(self, service: Service) -> AsyncIterator[None]:
        self._service = service
        self._ended = asyncio.Event()
        try:
            yield
        finally:
            self._service = None
            self._ended.set()
            if self._running is not None:
                await self._running

    async def _manager(self, service: Service) -> StreamableHTTPSessionManager:
        """All who come at once wait for the same one; after a failure the next tries again."""
        if self._entered is None or self._running is None or self._running.done():
            self._entered = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(service, self._entered))
        return await asyncio.shield(self._entered)

    async def _run(
        self, service: Service, entered: asyncio.Future[StreamableHTTPSessionManager]
    ) -> None:
        """The SDK's session manager, in a task of its own: it must be left where it was entered,
        and whoever asked first may be gone by then."""
        try:
            server = await asyncio.to_thread(_load, service)
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

            manager = StreamableHTTPSessionManager(
                server,
                stateless=True,
                max_request_body_size=service.config.limits.compare_bytes,
            )
            async with manager.run():
                entered.set_result(manager)
                await self._ended.wait()
        except Exception as error:  # whatever it is, whoever asked is to hear of it
            if entered.done():  # a fault while it ended: nobody waits for it any more
                raise
            entered.set_exception(error)
            entered.exception()  # whoever asked may be gone


async def _checked(service: Service, receive: Receive) -> Receive:
    """The body whole, after it was found small enough: the SDK reads it on the event loop."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return _again(message, receive)
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    body = b"".join(pieces)
    await service.read_in(body, partial(refuse_many_values, most=MCP_VALUES))
    return _again({"type": "http.request", "body": body, "more_body": False}, receive)


def _again(message: asgi.Message, receive: Receive) -> Receive:
    """What was read already, and then whatever comes."""
    kept = [message]

    async def from_kept() -> asgi.Message:
        return kept.pop() if kept else await receive()

    return from_kept


def _load(service: Service) -> Server[Any]:
    from evenhand.serve.mcp.server import make_server

    return make_server(service)
