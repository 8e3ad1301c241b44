"""A ranking as a value: its options, the models best first, and what made it. Separate from the fit
because it loads no NumPy: pages and charts read it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import computed_field, model_validator

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Sentence

Ties = Literal["half", "davidson"]
Intervals = Literal["sandwich", "bootstrap"]
Scale = Literal["elo", "log-odds"]

CENTRE = 1000.0
MOST_WITH_LIMITS = 100
_COMPUTED = frozenset({"win_matrix", "winMatrix"})
_LEAST_PRIOR = 1e-6
POINTS = 400.0 / math.log(10)  # a log-odds of log(10) is 400 points


@dataclass(frozen=True, slots=True)
class RankingOptions:
    ties: Ties = "half"
    intervals: Intervals | None = "sandwich"
    level: float = 0.95
    scale: Scale = "elo"
    prior: float | None = None
    replicates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kinds in (
            ("ties", get_args(Ties)),
            ("intervals", (*get_args(Intervals), None)),
            ("scale", get_args(Scale)),
        ):
            value = getattr(self, name)
            if value not in kinds:
                raise InputError.of("stats.choice_unknown", name=name, value=value, taken=kinds)
        if not 0 < self.level < 1:
            raise InputError.of("stats.level_outside", level=self.level)
        # Less is negligible beside a battle, and leaves the equations without a solution.
        if self.prior and not _LEAST_PRIOR <= self.prior < math.inf:
            raise InputError.of("stats.prior_outside", prior=self.prior, least=_LEAST_PRIOR)
        if self.replicates < 100:
            given = {"name": "replicates", "value": self.replicates}
            raise InputError.of("stats.at_least", least=100, **given)


class RankedModel(Model):
    """A model's place. `low` and `high` are limits of `score`; None if battles set none.

    `rank_low` and `rank_high` are the best and worst rank that it may truly have. The rank ranges
    hold jointly at the ranking's level; a score's limits hold alone.
    """

    model: str
    score: float
    log_odds: float
    low: float | None
    high: float | None
    rank: int
    rank_low: int | None
    rank_high: int | None
    games: int
    note: Sentence | None = None


class IndistinguishableModels(Model):
    """Two adjacent models in the ranking that are not significantly different.

    `difference` is on the scale of the scores; its limits hold jointly for all pairs of models.
    """

    better: str
    worse: str
    difference: float
    low: float | None
    high: float | None


class Ranking(Model):
    """Bradley–Terry scores of the models, best first. `anchor` says what their scale rests on."""

    models: tuple[RankedModel, ...]
    indistinguishable: tuple[IndistinguishableModels, ...] | None
    undefeated: tuple[str, ...]
    winless: tuple[str, ...]
    never_compared: tuple[str, ...]
    disconnected: tuple[tuple[str, ...], ...]
    notes: tuple[Sentence, ...]
    reason: Sentence | None  # why there are no intervals, where they were asked for
    ties: Ties
    tie_parameter: float | None  # Davidson's; None where ties count as half
    scale: Scale
    anchor: Sentence
    intervals: Intervals | None
    level: float
    clusters: Literal["prompt", "row"]
    cluster_count: int
    games: int
    prior: float  # virtual ties of each model with an average one; 0 where none was needed
    converged: bool
    iterations: int
    replicates: int | None
    refitted: int | None
    seed: int | None
    # Limits of the win matrix, which hold jointly, as rank ranges do. None for a cell without
    # information, and altogether without intervals or for more models.
    win_matrix_low: tuple[tuple[float | None, ...], ...] | None = None
    win_matrix_high: tuple[tuple[float | None, ...], ...] | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, given: Any) -> Any:
        """Drops the computed matrix when a ranking's JSON is read."""
        if not isinstance(given, dict):
            return given
        return {name: each for name, each in given.items() if name not in _COMPUTED}

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def win_matrix(self) -> tuple[tuple[float, ...], ...]:
        """The expected score of a row's model against a column's; a tie is half."""
        import numpy as np

        from evenhand.stats.ranking.bradley_terry import expected_scores

        strength = np.array([row.log_odds for row in self.models])
        ties = self.tie_parameter
        scores = expected_scores(strength, math.log(ties) if ties else None)
        return tuple(map(tuple, scores.tolist()))

    def find(self, model: str) -> RankedModel | None:
        return next((row for row in self.models if row.model == model), None)
