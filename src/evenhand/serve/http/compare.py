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
    HttpCall,
    ResponseSpec,
    answer,
    endpoint,
    key_of,
    unless_gone,
)
from evenhand.serve.http.requests import parsed
from evenhand.serve.security.limits import values_of_a_pair
from evenhand.serve.values import Prepare


class CompareQuery(Model):
    judge: Text | None = Field(
        default=None, description="An offered judge's name; the first offered one if not given"
    )
    prepare: Prepare = Field(
        default=None,
        description="What is written before the judging, with commas between; else as offered",
    )


@endpoint(
    "POST",
    "/v1/compare",
    "compare",
    "Compare two responses to a prompt",
    CompareQuery,
    bodies={"application/json": BodySpec(model=Pair, examples=("pair", "pair-in-full"))},
    answers={
        200: ResponseSpec(
            "The verdict: a win, a tie or an inconsistent pair", Verdict, example="verdict"
        )
    },
    refusals=(402, 501, 502, 504),
    tag="compare",
)
async def compare(call: HttpCall[CompareQuery]) -> Response:
    """Which of two responses is better, judged in both orders. The body is the contract's input
    (names in either case), the answer its output. The comparison ends when its client goes away,
    unless it has a key under which its answer is kept."""
    body = await call.body()

    async def judged() -> Response:
        most_values = values_of_a_pair(call.limits)
        pair = await call.service.read_in(body, partial(parsed, most_values=most_values))
        return answer(
            await call.service.comparisons.compare(
                pair, judge=call.query.judge, prepare=call.query.prepare
            )
        )

    if key_of(call.request) is None:
        return await unless_gone(call.request, judged())
    return await call.once(judged, body)


ENDPOINTS = (compare,)
