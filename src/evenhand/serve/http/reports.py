"""`/v1/runs/{id}/report`, `/v1/rank`, `/v1/audits`: a report, a ranking of models, an audit of a
judge.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from evenhand.serve.http.endpoint import (
    BodySpec,
    Endpoint,
    HttpCall,
    ResponseSpec,
    answer,
    endpoint,
)
from evenhand.serve.http.requests import NoQuery
from evenhand.serve.values import AuditRun, DiffRuns, RankRuns, ReportOptions

_RANKING = ResponseSpec(
    "The ranking", late_model="evenhand.report.ranking:RunRanking", example="ranking"
)
_AUDIT = ResponseSpec(
    "The audit and its findings", late_model="evenhand.serve.reports:AuditReport", example="audit"
)


@endpoint(
    "GET",
    "/v1/runs/{id}/report",
    "reportRun",
    "Report on a run",
    ReportOptions,
    answers={
        200: ResponseSpec(
            "The report", late_model="evenhand.serve.reports:Report", example="report"
        )
    },
    tag="reports",
)
async def report(call: HttpCall[ReportOptions]) -> Response:
    """What a run came to and took, and what can be concluded: win rates with intervals, by
    criterion and tag, length and position. A run that still goes on is reported as it is now."""
    return answer(await call.service.report(call.run_id, call.query))


@endpoint(
    "GET",
    "/v1/runs/{id}/diff",
    "diffRuns",
    "Compare two runs over the same pairs",
    DiffRuns,
    answers={
        200: ResponseSpec("What changed", late_model="evenhand.report.diff:RunDiff", example="diff")
    },
    tag="reports",
)
async def diff(call: HttpCall[DiffRuns]) -> Response:
    """What changed against another run over the same pairs (another judge, prompt or model): the
    difference with its interval, the flow of outcomes, the pairs behind it with both reasons."""
    return answer(await call.service.diff(call.run_id, call.query))


@endpoint(
    "GET",
    "/v1/rank",
    "rankRuns",
    "Rank the models of runs",
    RankRuns,
    answers={200: _RANKING},
    refusals=(404,),
    tag="reports",
)
async def rank(call: HttpCall[RankRuns]) -> Response:
    """The models of one or more runs, ranked by their verdicts (Bradley-Terry or Davidson), with
    intervals of scores and of ranks."""
    return answer(await call.service.rank(call.query))


@endpoint(
    "POST",
    "/v1/rank",
    "rankRunsByBody",
    "Rank the models of runs",
    NoQuery,
    bodies={"application/json": BodySpec(model=RankRuns, examples=("rank-runs",))},
    answers={200: _RANKING},
    refusals=(404,),
    tag="reports",
)
async def rank_by_body(call: HttpCall[NoQuery]) -> Response:
    """The same, with the request as a body."""
    return await call.once_for(RankRuns, call.service.rank)


@endpoint(
    "GET",
    "/v1/audits",
    "auditRun",
    "Hold a judge against labels",
    AuditRun,
    answers={200: _AUDIT},
    refusals=(404,),
    tag="reports",
)
async def audit(call: HttpCall[AuditRun]) -> Response:
    """A run's judge against the labels of its pairs, or against people's votes: accuracy,
    agreement, kappa, biases, and findings that hold it to thresholds."""
    return answer(await call.service.audit(call.query))


@endpoint(
    "POST",
    "/v1/audits",
    "auditRunByBody",
    "Hold a judge against labels",
    NoQuery,
    bodies={"application/json": BodySpec(model=AuditRun, examples=("audit-run",))},
    answers={200: _AUDIT},
    refusals=(404,),
    tag="reports",
)
async def audit_by_body(call: HttpCall[NoQuery]) -> Response:
    """The same, with the request as a body."""
    return await call.once_for(AuditRun, call.service.audit)


ENDPOINTS: tuple[Endpoint[Any], ...] = (report, diff, rank, rank_by_body, audit, audit_by_body)
