"""What verdicts can be asked for by: the same over HTTP, in tables and in files."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from evenhand.contract import Outcome, Winner
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.errors import InputError
from evenhand.serve.values import Share
from evenhand.store.contests import Named
from evenhand.store.verdict_table import CriterionEnd, Ends, LabelIs

# The verdicts tell these themselves; the rest are told by the marks beside them.
_PLAIN_FILTERS = frozenset(
    {
        *("outcome", "winner", "judge", "tag", "disagrees", "abstained"),
        *("min_confidence", "max_confidence"),
    }
)


class VerdictFilters(Model):
    """Every one that is given must hold."""

    outcome: Outcome | None = None
    winner: Winner | None = None
    judge: Text | None = None
    tag: Text | None = None
    disagrees: bool | None = Field(
        default=None,
        description="Only labelled pairs: those whose label the judge did not come to, or did",
    )
    abstained: bool | None = None
    min_confidence: Share | None = None
    max_confidence: Share | None = None
    ending: Ends | None = Field(
        default=None,
        description="Several outcomes at once: any but invalid; a win or a tie; neither of them",
    )
    label: LabelIs | None = Field(default=None, description="The pair's label; any, or none")
    criterion: Text | None = Field(default=None, description="One of the run's criteria")
    criterion_end: CriterionEnd | None = Field(
        default=None,
        description="How it came out; model and other are the one asked for and its opponent",
    )
    judges_differ: bool | None = Field(
        default=None, description="Whether another judge of the run came to another verdict"
    )
    noted: bool | None = Field(default=None, description="With a note on the pair")
    unread: bool | None = Field(default=None, description="With an answer that was not read")
    model: Text | None = Field(default=None, description="One of the pair's models, A or B")
    against: Text | None = Field(default=None, description="The other one")
    model_wins: bool | None = Field(
        default=None, description="Whether `model` won; false: the other one did"
    )
    named: Named | None = Field(
        default=None, description="Two different models, one against itself, one alone, or none"
    )
    count_votes: bool | None = Field(
        default=None,
        description="With label and disagrees: what most people voted is a label where the data "
        "has none",
    )
    query: Text | None = Field(default=None, max_length=1000, description="Words to be found")

    @property
    def of_table(self) -> bool:
        """Whether something is asked for that only the marks beside verdicts tell."""
        told = self.model_dump(exclude_none=True)
        return not told.keys() <= _PLAIN_FILTERS

    @model_validator(mode="after")
    def _refuse_nobody(self) -> Self:
        for name, asked in (
            ("modelWins", self.model_wins is not None),
            (f"criterionEnd {self.criterion_end}", self.criterion_end in ("model", "other")),
        ):
            if asked and self.model is None:
                raise InputError(f"{name} is of a model, and none is given; give model too")
        return self
