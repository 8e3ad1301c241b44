"""`/v1/runs/{id}/report`, `/v1/rank`, `/v1/audits`: a report, a ranking of models, an audit of a
judge.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from evenhand.serve.http.endpoint import BodySpec, Endpoint, HttpCall, ResponseSpec, answer
from evenhand.serve.http.idempotency import once
from evenhand.serve.http.requests import NoQuery, read_body
from evenhand.serve.values import AuditRun, RankRuns, ReportOptions


async def report(call: HttpCall[ReportOptions]) -> Response:
    """What a run came to and took, and what can be concluded: win rates with intervals, by
    criterion and tag, length and position. A run that still goes on is reported as it is now."""
    return answer(await call.service.report(call.run_id, call.query))


async def rank(call: HttpCall[RankRuns]) -> Response:
    """The models of one or more runs, ranked by their verdicts (Bradley-Terry or Davidson), with
    intervals of scores and of ranks."""
    return answer(await call.service.rank(call.query))


async def rank_by_body(call: HttpCall[NoQuery]) -> Response:
    """The same, with the request as a body."""
    body = await call.body()

    async def ranked() -> Response:
        return answer(await call.service.rank(read_body(body, RankRuns, call.limits)))

    return await once(
        call.request, ranked, store=call.service.store, token=call.token, content=body
    )


async def audit(call: HttpCall[AuditRun]) -> Response:
    """A run's judge against the labels of its pairs, or against people's votes: accuracy,
    agreement, kappa, biases, and findings that hold it to thresholds."""
    return answer(await call.service.audit(call.query))


async def audit_by_body(call: HttpCall[NoQuery]) -> Response:
    """The same, with the request as a body."""
    body = await call.body()

    async def audited() -> Response:
        return answer(await call.service.audit(read_body(body, AuditRun, call.limits)))

    return await once(
        call.request, audited, store=call.service.store, token=call.token, content=body
    )


_RANKING = ResponseSpec(
    "The ranking", late_model="evenhand.report.ranking:RunRanking", example="ranking"
)
_AUDIT = ResponseSpec(
    "The audit and its findings", late_model="evenhand.serve.reports:AuditReport", example="audit"
)

ENDPOINTS: tuple[Endpoint[Any], ...] = (
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/report",
        name="reportRun",
        summary="Report on a run",
        work=report,
        query=ReportOptions,
        answers={
            200: ResponseSpec(
                "The report", late_model="evenhand.serve.reports:Report", example="report"
            )
        },
        tag="reports",
    ),
    Endpoint(
        method="GET",
        path="/v1/rank",
        name="rankRuns",
        summary="Rank the models of runs",
        work=rank,
        query=RankRuns,
        answers={200: _RANKING},
        refusals=(404,),
        tag="reports",
    ),
    Endpoint(
        method="POST",
        path="/v1/rank",
        name="rankRunsByBody",
        summary="Rank the models of runs",
        work=rank_by_body,
        query=NoQuery,
        bodies={"application/json": BodySpec(model=RankRuns, examples=("rank-runs",))},
        answers={200: _RANKING},
        refusals=(404,),
        tag="reports",
    ),
    Endpoint(
        method="GET",
        path="/v1/audits",
        name="auditRun",
        summary="Hold a judge against labels",
        work=audit,
        query=AuditRun,
        answers={200: _AUDIT},
        refusals=(404,),
        tag="reports",
    ),
    Endpoint(
        method="POST",
        path="/v1/audits",
        name="auditRunByBody",
        summary="Hold a judge against labels",
        work=audit_by_body,
        query=NoQuery,
        bodies={"application/json": BodySpec(model=AuditRun, examples=("audit-run",))},
        answers={200: _AUDIT},
        refusals=(404,),
        tag="reports",
    ),
)
