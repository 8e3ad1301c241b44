"""The server as one ASGI app: endpoints, /mcp and pages over one service, the guard around all of
it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from evenhand.errors import EvenhandError
from evenhand.serve.config import ServerConfig
from evenhand.serve.http.compare import ENDPOINTS as COMPARE
from evenhand.serve.http.document import add_document
from evenhand.serve.http.endpoint import Endpoint
from evenhand.serve.http.health import ENDPOINTS as HEALTH
from evenhand.serve.http.problems import UnexpectedErrors, add_handlers
from evenhand.serve.http.reports import ENDPOINTS as REPORTS
from evenhand.serve.http.runs import RUN_ENDPOINTS as RUNS
from evenhand.serve.http.runs import START_ENDPOINTS as START
from evenhand.serve.mcp.endpoint import McpEndpoint
from evenhand.serve.routing import HeadRequests, LazyPages
from evenhand.serve.security.guard import Guard, refusal_of
from evenhand.serve.security.policy import RequestInfo, RequestPolicy
from evenhand.serve.service import Service
from evenhand.serve.startup import refuse_without

if TYPE_CHECKING:
    from evenhand.settings import Settings


# The most used one first: routes are tried in their order.
ENDPOINTS: tuple[Endpoint[Any], ...] = (
    *COMPARE,
    *START,
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
    doorway = RequestPolicy(config)
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
    app.router.routes.append(LazyPages(app))
    add_document(app, ENDPOINTS, needs_token=bool(config.tokens))
    add_handlers(app, tell=_tell)
    # The last that is added stands before the others.
    app.add_middleware(HeadRequests)
    app.add_middleware(UnexpectedErrors, tell=_tell)
    app.add_middleware(Guard, doorway=doorway)
    return app


def _tell(scope: Scope, error: EvenhandError) -> Response:
    return refusal_of(RequestInfo(scope), scope, error)
