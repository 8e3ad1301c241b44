"""What a ranking of responses is: places, what they rest on, and what they cannot tell."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenhand.contract import ErrorBody, Outcome, Usage
from evenhand.contract.ballot import Texts
from evenhand.contract.model import Model

# How two neighbours stand. Of those that were compared: what came of it. Of others: `identical`
# texts; `implied`, one is better by way of other comparisons; `shared`, both were placed beside
# the same one; `unknown`, nothing says which is better.
Relation = Literal[
    "win",
    "tie",
    "inconsistent",
    "abstained",
    "invalid",
    "identical",
    "implied",
    "shared",
    "unknown",
]


class RankedResponse(Model):
    """One response and the places that it may have; `index` counts from 0 in the caller's list.

    Responses that could not be told apart share their places: two at the top are both 1 to 2.
    """

    index: int = Field(ge=0)
    rank_from: int = Field(ge=1)
    rank_to: int = Field(ge=1)


class ResponseComparison(Model):
    """One comparison in both orders. `winner` is an index, and null unless the outcome is `win`."""

    first: int = Field(ge=0)
    second: int = Field(ge=0)
    outcome: Outcome
    winner: int | None
    confidence: float | None = Field(default=None, ge=0, le=1)
    abstained: bool = False
    reasoning: str = ""
    error: ErrorBody | None = None  # why there is no verdict, where the outcome is `invalid`


class Neighbours(Model):
    """Two that follow each other in the ranking, and what stands behind that.

    `winner` and `confidence` are those of their own comparison, null where there was none.
    """

    upper: int = Field(ge=0)
    lower: int = Field(ge=0)
    compared: bool
    relation: Relation
    winner: int | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)


class Contradiction(Model):
    """Responses in a circle: each beat the next, or was not told apart from it, and the last beat
    the first. No order fits them, so they share their places."""

    circle: tuple[int, ...]


class RankingMetadata(Model):
    responses: int
    comparisons: int
    invalid: int = 0
    evaluation_time_ms: float = 0
    judge: str | None = None
    judge_caveat: str | None = None
    usage: Usage = Usage()


class RankedResponses(Model):
    """Best first. Rests on single comparisons: `neighbours` says how sure each step is."""

    success: Literal[True] = True
    ranking: tuple[RankedResponse, ...]
    neighbours: tuple[Neighbours, ...]
    comparisons: tuple[ResponseComparison, ...]
    contradictions: tuple[Contradiction, ...] = ()
    notes: Texts = ()
    metadata: RankingMetadata
