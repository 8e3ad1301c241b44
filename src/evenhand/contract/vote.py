"""Of a pass only what decides: what a run of many pairs keeps beside the judge's own text."""

from __future__ import annotations

from typing import NamedTuple

from evenhand.contract.ballot import Ballot, CriterionBallot
from evenhand.contract.labels import Order, Winner
from evenhand.contract.verdict import Pass, Usage


class Vote(NamedTuple):
    """A ballot without its prose, in the caller's labels.

    `raw` is the answer it was read from: the native one, which names a winner for every criterion,
    so that the whole ballot can be read from it whenever somebody looks.
    """

    order: Order
    sample: int
    winner: Winner
    confidence: float | None
    criteria: tuple[tuple[str, Winner], ...]  # each criterion's name, in the caller's order
    raw: str

    def bare_ballot(self) -> Ballot:
        return Ballot(
            order=self.order,
            sample=self.sample,
            winner=self.winner,
            confidence=self.confidence,
            confidence_source="none" if self.confidence is None else "stated",
            criteria=tuple([CriterionBallot(criterion=n, winner=w) for n, w in self.criteria]),
            raw=self.raw,
        )


class VotePass(NamedTuple):
    """A pass of which only the vote was read."""

    vote: Vote
    usage: Usage
    time_ms: float
    model: str | None
    request_ids: tuple[str, ...]

    @property
    def order(self) -> Order:
        return self.vote.order

    @property
    def sample(self) -> int:
        return self.vote.sample

    def with_ballot(self, ballot: Ballot) -> Pass:
        return Pass(
            order=ballot.order,
            sample=ballot.sample,
            ballot=ballot,
            usage=self.usage,
            time_ms=self.time_ms,
            model=self.model,
            request_ids=self.request_ids,
        )
