"""The server itself: judges, health, readiness, metrics."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from evenhand.contract.model import Model
from evenhand.errors import EvenhandError
from evenhand.serve.http.document import shows
from evenhand.serve.http.routes import BoundedRoute, ServiceOf, answer
from evenhand.serve.judges import OfferView
from evenhand.serve.values import Readiness

router = APIRouter(route_class=BoundedRoute)


class JudgeList(Model):
    """The first is the default."""

    judges: tuple[OfferView, ...]


class Health(Model):
    status: Literal["ok"] = "ok"


@router.get(
    "/v1/judges",
    operation_id="listJudges",
    summary="List the judges",
    tags=["compare"],
    response_model=JudgeList,
    response_description="The judges on offer",
    responses=shows(200, "judges"),
)
async def judges(service: ServiceOf) -> Response:
    """The judges that clients may name, without their addresses and keys."""
    return answer(JudgeList(judges=tuple(service.judges.offered())))


@router.get(
    "/healthz",
    operation_id="healthz",
    summary="Check that the server is alive",
    tags=["operation"],
    response_model=Health,
    response_description="Alive",
    responses=shows(200, "health"),
)
async def healthz() -> Response:
    """Answers if the process is running; needs no token and touches nothing."""
    return answer(Health())


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Check that the server is ready",
    tags=["operation"],
    response_model=Readiness,
    response_description="Ready",
    responses=shows(200, "ready")
    | {
        503: {
            "model": Readiness,
            "description": "It cannot, and why",
            **shows(503, "not-ready")[503],
        }
    },
)
async def readyz(service: ServiceOf) -> Response:
    """Whether the store answers and a judge is configured; if not, why."""
    readiness = await service.ready()
    return answer(readiness, 200 if readiness.ready else 503)


@router.get(
    "/metrics",
    operation_id="metrics",
    summary="Metrics",
    tags=["operation"],
    response_class=PlainTextResponse,
    response_description="Prometheus' text format",
    responses=shows(200, "metrics", kind="text/plain"),
)
async def metrics(request: Request, service: ServiceOf) -> Response:
    """Counters, gauges and histograms for Prometheus."""
    from evenhand.serve.metrics import CONTENT_TYPE

    try:
        runs = await service.runs_by_state()
    except EvenhandError:  # a store that is ill is when metrics are looked at
        runs = None
    exposition = await asyncio.to_thread(request.app.state.policy.metrics.exposition, runs)
    return Response(exposition, headers={"Content-Type": CONTENT_TYPE})
