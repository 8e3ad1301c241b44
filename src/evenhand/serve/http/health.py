"""What the server is and how it does: judges, health, readiness, metrics."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from starlette.responses import Response

from evenhand.contract.model import Model
from evenhand.errors import EvenhandError
from evenhand.serve.http.endpoint import Endpoint, HttpCall, ResponseSpec, answer, endpoint
from evenhand.serve.http.requests import NoQuery
from evenhand.serve.judges import OfferView
from evenhand.serve.values import Readiness


class JudgeList(Model):
    """The first is the one that is asked where none is named."""

    judges: tuple[OfferView, ...]


class Health(Model):
    status: Literal["ok"] = "ok"


@endpoint(
    "GET",
    "/v1/judges",
    "listJudges",
    "List the judges",
    NoQuery,
    answers={200: ResponseSpec("The judges on offer", JudgeList, example="judges")},
    tag="compare",
)
async def judges(call: HttpCall[NoQuery]) -> Response:
    """The judges that clients may name, without their addresses and keys."""
    return answer(JudgeList(judges=tuple(call.service.judges.offered())))


@endpoint(
    "GET",
    "/healthz",
    "healthz",
    "Whether it lives",
    NoQuery,
    answers={200: ResponseSpec("It does", Health, example="health")},
    tag="operation",
)
async def healthz(call: HttpCall[NoQuery]) -> Response:
    """Whether the process answers at all; it needs no token and touches nothing."""
    return answer(Health())


@endpoint(
    "GET",
    "/readyz",
    "readyz",
    "Whether it can serve",
    NoQuery,
    answers={
        200: ResponseSpec("It can", Readiness, example="ready"),
        503: ResponseSpec(
            "It cannot, and why",
            Readiness,
            example="not-ready",
        ),
    },
    tag="operation",
)
async def readyz(call: HttpCall[NoQuery]) -> Response:
    """Whether the store answers and a judge is configured; if not, why."""
    readiness = await call.service.ready()
    return answer(readiness, 200 if readiness.ready else 503)


@endpoint(
    "GET",
    "/metrics",
    "metrics",
    "What it counts",
    NoQuery,
    answers={
        200: ResponseSpec(
            "Prometheus' text format",
            schema={"type": "string"},
            media_type="text/plain",
            example="metrics",
        )
    },
    tag="operation",
)
async def metrics(call: HttpCall[NoQuery]) -> Response:
    """Counters, gauges and histograms for Prometheus."""
    from evenhand.serve.metrics import CONTENT_TYPE

    try:
        runs = await call.service.runs_by_state()
    except EvenhandError:  # a store that is ill is when metrics are looked at
        runs = None
    exposition = await asyncio.to_thread(call.request.app.state.policy.metrics.exposition, runs)
    return Response(exposition, headers={"Content-Type": CONTENT_TYPE})


ENDPOINTS: tuple[Endpoint[Any], ...] = (judges, healthz, readyz, metrics)
