"""`POST /v1/compare`: one pair, one verdict."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from pydantic import Field, PlainValidator
from starlette.responses import Response

from evenhand.contract import Pair, Verdict
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.options import JudgingOptions
from evenhand.serve.fields import options_of, taking
from evenhand.serve.http.document import refuses, shows
from evenhand.serve.http.routes import KeyedRoute, ServiceOf, answer, key_of, unless_gone

router = APIRouter(route_class=KeyedRoute, tags=["compare"])


@taking(JudgingOptions)
class CompareQuery(Model):
    judge: Text | None = Field(
        default=None, description="An offered judge's name; default: the first"
    )


def _as_it_came(given: Any) -> Any:
    """The comparison itself reads the pair, as for every caller, once its size is checked."""
    return given


PairBody = Annotated[Any, PlainValidator(_as_it_came, json_schema_input_type=Pair)]


@router.post(
    "/v1/compare",
    operation_id="compare",
    summary="Compare two responses to a prompt",
    response_model=Verdict,
    response_description="The verdict: a win, a tie or an inconsistent pair",
    responses=shows(200, "verdict") | refuses(402, 501, 502, 504),
)
async def compare(
    request: Request,
    service: ServiceOf,
    query: Annotated[CompareQuery, Query()],
    pair: Annotated[PairBody, Body(openapi_examples={"pair": {}, "pair-in-full": {}})],
) -> Response:
    """Judge which of two responses is better, in both orders. The body is the contract's input
    (camelCase or snake_case names), the response its output. The comparison is cancelled when its
    client disconnects, unless an Idempotency-Key keeps its result."""

    async def judged() -> Response:
        verdict = await service.comparisons.compare(
            pair,
            judge=query.judge,
            options=options_of(query, JudgingOptions),
        )
        return answer(verdict)

    if key_of(request) is None:
        return await unless_gone(request, judged())
    return await judged()
