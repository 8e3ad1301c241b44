"""The server as one ASGI app: endpoints and /mcp over a service, the guard around all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from evenhand.errors import EvenhandError, MissingExtra

try:
    from fastapi import FastAPI
except ImportError:
    raise MissingExtra("fastapi", "serve") from None
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from evenhand.serve.config import ServerConfig
from evenhand.serve.doorway import Asked, Doorway
from evenhand.serve.extras import refuse_without
from evenhand.serve.guard import Guard
from evenhand.serve.http import compare, health, reports, runs, start_run
from evenhand.serve.http.document import add_document
from evenhand.serve.http.endpoint import Endpoint
from evenhand.serve.http.head import Heads
from evenhand.serve.late_pages import LatePages
from evenhand.serve.mcp.endpoint import McpEndpoint
from evenhand.serve.problems import Unexpected, add_handlers
from evenhand.serve.refusals import refusal_of
from evenhand.serve.service import Service

if TYPE_CHECKING:
    from evenhand.settings import Settings

# The most used one first: routes are tried in their order.
ENDPOINTS: tuple[Endpoint[Any], ...] = (
    *compare.ENDPOINTS,
    *start_run.ENDPOINTS,
    *runs.ENDPOINTS,
    *reports.ENDPOINTS,
    *health.ENDPOINTS,
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
    doorway = Doorway(config)
    mcp = McpEndpoint()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with Service.opened(config, settings) as service:
            service.watch = doorway.metrics
            doorway.metrics.follow(service.admission)
            app.state.service = service
            doorway.has_ended = service.store.session_has_ended
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
    app.state.doorway = doorway
    for endpoint in ENDPOINTS:
        endpoint.add_to(app)
    app.router.routes.append(Route("/mcp", endpoint=mcp))
    app.router.routes.append(LatePages(app))
    add_document(app, ENDPOINTS, needs_token=bool(config.tokens))
    add_handlers(app, tell=_tell)
    # The last that is added stands before the others.
    app.add_middleware(Heads)
    app.add_middleware(Unexpected, tell=_tell)
    app.add_middleware(Guard, doorway=doorway)
    return app


def _tell(scope: Scope, error: EvenhandError) -> Response:
    return refusal_of(Asked(scope), scope, error)
