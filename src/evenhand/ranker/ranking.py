"""What a ranking of responses is: places, what they rest on, and what they cannot tell."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenhand.contract import ErrorBody, Outcome, Usage
from evenhand.contract.ballot import Texts
from evenhand.contract.model import Model

# `implied`: placed so by other comparisons. `unknown`: nothing says which of the two is better.
Relation = Literal["win", "tie", "inconsistent", "abstained", "identical", "implied", "unknown"]


class RankedResponse(Model):
    """One response and the places that it may have; `index` counts from 0 in the caller's list.

    Responses that could not be told apart share their places: two at the top are both 1 to 2.
    """

    index: int
    rank_from: int
    rank_to: int


class ResponseComparison(Model):
    """One comparison in both orders. `winner` is an index, and null unless the outcome is `win`."""

    first: int
    second: int
    outcome: Outcome
    winner: int | None
    confidence: float | None = Field(default=None, ge=0, le=1)
    abstained: bool = False
    reasoning: str = ""
    error: ErrorBody | None = None  # why there is no verdict, where the outcome is `invalid`


class Neighbours(Model):
    """Two that follow each other in the ranking, and what stands behind that."""

    upper: int
    lower: int
    compared: bool
    relation: Relation
    confidence: float | None = None


class Contradiction(Model):
    """Responses that beat each other in a circle: each is better than the next, the last than
    the first. No order fits them, so they share their places."""

    circle: tuple[int, ...]


class RankingMetadata(Model):
    responses: int
    comparisons: int
    invalid: int
    evaluation_time_ms: float
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
