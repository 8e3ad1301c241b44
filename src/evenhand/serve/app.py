"""The server as one ASGI app: endpoints, /mcp and pages over one service, the guard around all of
it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, NoMatchFound, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.analyses.registry import analyses
from evenhand.errors import EvenhandError
from evenhand.serve.config import ServerConfig
from evenhand.serve.http import compare, health, runs
from evenhand.serve.http.document import document
from evenhand.serve.http.problems import UnexpectedErrors, add_handlers
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
            policy.has_ended = service.store.requests.session_has_ended
            async with mcp.serving(service):
                yield

    app = FastAPI(
        title="evenhand",
        version=__version__,
        lifespan=lifespan,
        # The most used one first, as they are tried in their order, and flat: FastAPI matches an
        # included router twice.
        routes=[
            *compare.router.routes,
            *health.router.routes,
            *runs.uploads.routes,
            *runs.router.routes,
        ],
        # Their pages load scripts from elsewhere; the document is at /openapi.json.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_TELEMETRY,
    )
    app.state.policy = policy
    pages = LateRoutes(app, is_page, lambda: _pages())
    reports = LateRoutes(app, _is_report, _reports)
    app.router.routes += [Route("/mcp", endpoint=mcp), reports, pages]
    _add_document(app, reports, needs_token=bool(config.tokens))
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


class LateRoutes(BaseRoute):
    """Stands for some addresses until the first request for one, which loads what answers them:
    templates and statistics come along, and a server that only compares needs neither."""

    def __init__(
        self,
        app: FastAPI,
        stands_for: Callable[[str], bool],
        load: Callable[[], Sequence[Page | BaseRoute]],
    ) -> None:
        self._app = app
        self._stands_for = stands_for
        self._load = load
        self._loading = asyncio.Lock()
        self._loaded = False

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        matches = not self._loaded and scope["type"] == "http" and self._stands_for(scope["path"])
        return (Match.FULL if matches else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Those who come at once wait for the same loading, and are then routed anew."""
        await self.load()
        await self._app.router(scope, receive, send)

    async def load(self) -> None:
        async with self._loading:
            if not self._loaded:
                self._add(await asyncio.to_thread(self._load))

    def load_now(self) -> None:
        if not self._loaded:
            self._add(self._load())

    def _add(self, loaded: Sequence[Page | BaseRoute]) -> None:
        for each in loaded:
            if isinstance(each, BaseRoute):
                self._app.router.routes.append(each)
            else:
                each.add_to(self._app)
        self._loaded = True


def _pages() -> Sequence[Page]:
    from evenhand.serve.pages.routes import PAGES

    return PAGES


_REPORTS = re.compile(r"/v1/(?:runs/[^/]+/(\w[\w-]*)|rank|audits)")


def _is_report(path: str) -> bool:
    found = _REPORTS.fullmatch(path)
    return found is not None and (found[1] is None or found[1] in analyses())


def _reports() -> Sequence[BaseRoute]:
    from evenhand.serve.http.reports import router

    return router.routes


def _add_document(app: FastAPI, reports: LateRoutes, *, needs_token: bool) -> None:
    """`/openapi.json`, made when it is first asked for."""

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            reports.load_now()
            app.openapi_schema = document(app, needs_token=needs_token)
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]  # FastAPI's own way to extend it
    writing = asyncio.Lock()
    written: list[bytes] = []

    async def show(request: Request) -> Response:
        # It takes as long as a hundred answers, so it is made aside.
        await reports.load()
        async with writing:
            if not written:
                written.append(await asyncio.to_thread(lambda: orjson.dumps(app.openapi())))
        return Response(written[0], media_type="application/json")

    app.router.routes.append(Route("/openapi.json", show))
