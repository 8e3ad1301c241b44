"""`POST /v1/compare`: one pair, one verdict. The hot path: bytes in, bytes out, read once."""

from __future__ import annotations

from functools import partial

from pydantic import Field
from starlette.responses import Response

from evenhand.contract import Pair, Verdict
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.serve.http.endpoint import (
    BodySpec,
    Endpoint,
    HttpCall,
    ResponseSpec,
    answer,
    unless_gone,
)
from evenhand.serve.http.idempotency import key_of, once
from evenhand.serve.http.requests import parsed
from evenhand.serve.security.limits import values_of_a_pair


class CompareQuery(Model):
    judge: Text | None = Field(
        default=None, description="An offered judge's name; the first offered one if not given"
    )


async def compare(call: HttpCall[CompareQuery]) -> Response:
    """Which of two responses is better, judged in both orders. The body is the contract's input
    (names in either case), the answer its output. The comparison ends when its client goes away,
    unless it has a key under which its answer is kept."""
    body = await call.body()

    async def judged() -> Response:
        most_values = values_of_a_pair(call.limits)
        pair = await call.service.read_in(body, partial(parsed, most_values=most_values))
        return answer(await call.service.compare(pair, judge=call.query.judge))

    if key_of(call.request) is None:
        return await unless_gone(call.request, judged())
    return await once(
        call.request, judged, store=call.service.store, token=call.token, content=body
    )


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/compare",
        name="compare",
        summary="Compare two responses to a prompt",
        work=compare,
        query=CompareQuery,
        bodies={"application/json": BodySpec(model=Pair, examples=("pair", "pair-in-full"))},
        answers={
            200: ResponseSpec(
                "The verdict: a win, a tie or an inconsistent pair", Verdict, example="verdict"
            )
        },
        refusals=(402, 501, 502, 504),
        tag="compare",
    ),
)
