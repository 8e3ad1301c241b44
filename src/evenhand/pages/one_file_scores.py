"""A ranking's scores as people read them, with their limits; an open limit says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from evenhand.pages.figures import rate

if TYPE_CHECKING:
    from evenhand.pages.wording import Wording
    from evenhand.stats.ranking_result import Neighbours, RankedModel, Ranking


class Scores:
    """In one language."""

    def __init__(self, say: Wording) -> None:
        self._say = say

    def of_model(self, model: RankedModel, ranking: Ranking) -> Markup:
        return self._with_limits(model.score, model.low, model.high, ranking)

    def difference(self, between: Neighbours, ranking: Ranking) -> Markup:
        return self._with_limits(between.difference, between.low, between.high, ranking)

    def expected(self, ranking: Ranking, row: int, column: int) -> Markup:
        """What the model of a row is expected to score against that of a column."""
        low, high = (
            None if matrix is None else matrix[row][column]
            for matrix in (ranking.win_matrix_low, ranking.win_matrix_high)
        )
        limits = self._say("figure.no_interval")
        if low is not None and high is not None:
            limits = self._say("figure.between", low=rate(low), high=rate(high))
        shown = Markup('<span class="figure">{}</span> <span class="interval">{}</span>')
        return shown.format(rate(ranking.win_matrix[row][column]), limits)

    def _with_limits(
        self, value: float, low: float | None, high: float | None, ranking: Ranking
    ) -> Markup:
        digits = 0 if ranking.scale == "elo" else 2
        if low is None and high is None:
            limits = self._say("figure.no_interval")
        else:
            limits = self._say("figure.between", low=_told(low, digits), high=_told(high, digits))
        shown = Markup('<span class="figure">{}</span> <span class="interval">{}</span>')
        return shown.format(_told(value, digits), limits)


def _told(value: float | None, digits: int) -> str:
    return "—" if value is None else f"{value + 0.0:.{digits}f}"
