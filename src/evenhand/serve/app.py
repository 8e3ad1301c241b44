"""The server as one ASGI app: endpoints, /mcp and pages over one service, the guard around all of
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, NoMatchFound, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.errors import EvenhandError
from evenhand.serve.config import ServerConfig
from evenhand.serve.http.compare import ENDPOINTS as COMPARE
from evenhand.serve.http.document import add_document
from evenhand.serve.http.endpoint import Endpoint
from evenhand.serve.http.health import ENDPOINTS as HEALTH
from evenhand.serve.http.problems import UnexpectedErrors, add_handlers
from evenhand.serve.http.reports import ENDPOINTS as REPORTS
from evenhand.serve.http.runs import ENDPOINTS as RUNS
from evenhand.serve.mcp.endpoint import McpEndpoint
from evenhand.serve.security.access import is_page
from evenhand.serve.security.guard import Guard, refusal_of
from evenhand.serve.security.policy import RequestInfo, RequestPolicy
from evenhand.serve.service import Service
from evenhand.serve.startup import refuse_without

if TYPE_CHECKING:
    from starlette.datastructures import URLPath

    from evenhand.serve.pages.page import Page
    from evenhand.settings import Settings


# The most used one first: routes are tried in their order.
ENDPOINTS: tuple[Endpoint[Any], ...] = (
    *COMPARE,
    *RUNS,
    *REPORTS,
    *HEALTH,
)
# FastAPI's own spans would hold queries and the messages of errors.
_TELEMETRY: Any = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def make_app(config: ServerConfig, settings: Settings | None = None) -> FastAPI:
    """The service is opened when the server starts, and closed when it ends."""
    from evenhand import __version__

    refuse_without("mcp")  # /mcp loads what it needs when it is first asked
    policy = RequestPolicy(config)
    mcp = McpEndpoint()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with Service.opened(config, settings, observer=policy.metrics) as service:
            policy.metrics.follow(service.admission)
            app.state.service = service
            policy.has_ended = service.store.session_has_ended
            async with mcp.serving(service):
                yield

    app = FastAPI(
        title="evenhand",
        version=__version__,
        lifespan=lifespan,
        # Their pages load scripts from elsewhere; the document is at /openapi.json.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_TELEMETRY,
    )
    app.state.policy = policy
    for endpoint in ENDPOINTS:
        endpoint.add_to(app)
    app.router.routes.append(Route("/mcp", endpoint=mcp))
    app.router.routes.append(LazyPages(app))
    add_document(app, ENDPOINTS, needs_token=bool(config.tokens))
    add_handlers(app, respond=_respond)
    # The last that is added stands before the others.
    app.add_middleware(HeadRequests)
    app.add_middleware(UnexpectedErrors, respond=_respond)
    app.add_middleware(Guard, policy=policy)
    return app


def _respond(scope: Scope, error: EvenhandError) -> Response:
    return refusal_of(RequestInfo(scope), scope, error)


class HeadRequests:
    """An event stream is told at once that its client is gone, so that it ends with its head."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        ended = False

        async def gone() -> Message:
            return {"type": "http.disconnect"}

        async def head_alone(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                await send(message)
            elif not ended and not message.get("more_body", False):
                ended = True
                await send({"type": "http.response.body", "body": b""})

        await self._app({**scope, "method": "GET"}, gone, head_alone)
        if not ended:
            await send({"type": "http.response.body", "body": b""})


class LazyPages(BaseRoute):
    """Stands for every page until the first visit, which loads them: templates and statistics come
    along, and a server that only programs call needs neither."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._loading = asyncio.Lock()
        self._loaded = False

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        stands_for = not self._loaded and scope["type"] == "http" and is_page(scope["path"])
        return (Match.FULL if stands_for else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Those who come at once wait for the same loading, and are then routed anew."""
        async with self._loading:
            if not self._loaded:
                for page in await asyncio.to_thread(_pages):
                    page.add_to(self._app)
                self._loaded = True
        await self._app.router(scope, receive, send)


def _pages() -> tuple[Page, ...]:
    from evenhand.serve.pages.routes import PAGES

    return PAGES
