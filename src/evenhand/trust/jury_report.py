"""What a jury comes to, as values: its outcomes and rates, its accuracy, and its judges."""

from __future__ import annotations

from typing import Literal

from evenhand.contract.model import Model
from evenhand.report.conclusions import GroupRate
from evenhand.report.side_rate import Side, SideRate
from evenhand.stats.estimated_share import EstimatedShare
from evenhand.stats.estimated_value import EstimatedValue
from evenhand.stats.jury_accuracy import RuleAccuracy
from evenhand.stats.win_rate import Ties
from evenhand.trust.jurors import Juror


class JuryCounts(Model):
    """How many pairs came to each outcome; `unanimous` are those on which all judges agree."""

    wins_a: int
    wins_b: int
    ties: int
    hung: int
    no_quorum: int
    unanimous: int


class JurorReport(Model):
    """One judge on the jury; `abstained` are wins and ties that its calibration does not vouch for,
    and that are no vote. `worth` is how much worse the learned jury does without it, in nats a
    label, on prompts it was not learned from; `redundant` is None where nothing can be told."""

    title: str
    judge: Juror
    votes: int
    inconsistent: int
    invalid: int
    abstained: int
    not_judged: int
    against: EstimatedShare  # its votes that are not the jury's verdict
    weight: float | None
    tie_weight: float | None
    worth: EstimatedValue | None
    redundant: bool | None
    finding: str | None


class JurorsAgree(Model):
    """Two judges on the pairs on which both voted."""

    first: str
    second: str
    pairs: int
    agreement: EstimatedShare
    kappa: EstimatedValue


class JuryRate(Model):
    """The jury's win rate for one two models, and each judge's own beside it."""

    model: str | None
    against: str | None
    pairs: int
    jury: SideRate
    judges: tuple[GroupRate, ...]


class JuryReport(Model):
    run: str
    runs: tuple[str, ...]
    store: str
    weights: Literal["majority", "learned", "naive Bayes"]
    quorum: int
    pairs: int
    counts: JuryCounts
    dissent: float | None  # the mean share of votes against the verdict, where there is one
    side: Side
    ties: Ties
    level: float
    rates: tuple[JuryRate, ...]
    labels: int
    accuracy: tuple[RuleAccuracy, ...]
    accuracy_reason: str | None
    judges: tuple[JurorReport, ...]
    between: tuple[JurorsAgree, ...]
    notes: tuple[str, ...]
