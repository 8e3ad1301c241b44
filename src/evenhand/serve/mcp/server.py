"""The MCP server of a Service, and its door on the HTTP server.

The official SDK speaks both eras of the protocol: requests that stand by themselves (2026-07-28),
and those that follow a handshake (2025 and before).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from evenhand.serve.service import Service


def make_server(service: Service) -> Server[Any]:
    """The low-level server with every tool, prompt and resource, for any transport."""
    raise NotImplementedError


class McpEndpoint:
    """An ASGI app for `/mcp`: streamable HTTP without sessions, so that any worker may answer.

    Built with the app, before there is a service:

        endpoint = McpEndpoint()
        routes = [Route("/mcp", endpoint=endpoint)]      # a Route, not a Mount: no redirect
        async with endpoint.serving(service):            # in the app's lifespan
            yield

    Host, Origin, tokens and the size of bodies are the guard's, which stands before it.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError

    @asynccontextmanager
    async def serving(self, service: Service) -> AsyncIterator[None]:
        raise NotImplementedError
        yield
