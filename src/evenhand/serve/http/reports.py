"""Registered analyses, and `/v1/rank`: a ranking of models.
Loaded by the first request for one: its models bring the statistics along.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from starlette.responses import Response

from evenhand.analyses.registry import AnalysisEntry, analyses
from evenhand.serve.fields import options_of, request_for, runs_of
from evenhand.serve.http.document import has_example, refuses, shows
from evenhand.serve.http.routes import KeyedRoute, RunId, ServiceOf, answer
from evenhand.serve.service import Service

router = APIRouter(route_class=KeyedRoute, tags=["reports"])


def _add_analysis(analysis: AnalysisEntry) -> None:
    """The endpoint of a registered analysis: its options are the query, or also a body where its
    address names no run."""
    takes: Any = request_for(analysis)
    about: dict[str, Any] = {
        "summary": analysis.summary.rstrip("."),
        "response_model": analysis.implementation.Result,
        "response_description": "What it says",
        "responses": (shows(200, analysis.name) if has_example(analysis.name) else {})
        | ({} if analysis.addressed else refuses(404)),
    }

    async def analyse(service: Service, run: str | None, options: Any) -> Response:
        chosen = analysis.options(**options_of(options, analysis.options))
        runs = runs_of(options, analysis, run)
        return answer(await service.analyse(analysis, runs, chosen))

    async def addressed(service: ServiceOf, run: RunId, options: Any) -> Response:
        return await analyse(service, run, options)

    async def asked(service: ServiceOf, options: Any) -> Response:
        return await analyse(service, None, options)

    async def sent(service: ServiceOf, options: Any) -> Response:
        return await analyse(service, None, options)

    def add(work: Any, method: str, annotation: Any, name: str) -> None:
        work.__annotations__["options"] = annotation
        work.__doc__ = f"{analysis.summary} {analysis.about}".strip()
        router.add_api_route(analysis.address, work, methods=[method], operation_id=name, **about)

    query = Annotated[takes, Query()]
    if analysis.addressed:
        runs = "Runs" if analysis.takes == "two runs" else "Run"
        add(addressed, "GET", query, f"{analysis.name}{runs}")
        return
    runs = "Run" if analysis.takes == "run" else "Runs"
    add(asked, "GET", query, f"{analysis.name}{runs}")
    body = Annotated[takes, Body(openapi_examples={f"{analysis.name}-{runs.lower()}": {}})]
    add(sent, "POST", body, f"{analysis.name}{runs}ByBody")


for _each in analyses().values():
    if _each.served:
        _add_analysis(_each)
