"""A ranking as it is drawn: every model's interval on one scale, neighbours that are not
significantly different, and the matrix of expected scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.stats.ranking.result import IndistinguishableModels, RankedModel, Ranking

SHOWN_MODELS = 200
MOST_IN_MATRIX = 10
_MOST_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class BoardRow:
    """`at`, `low` and `high` are shares of the scale that all rows are drawn on; a limit that the
    battles do not set is its end. `like_next`: it is not significantly different from the next.
    `groups` are the places of its groups, of which no two models differ significantly."""

    model: RankedModel
    at: float
    low: float | None
    high: float | None
    like_next: IndistinguishableModels | None
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Board:
    rows: tuple[BoardRow, ...]
    left_out: int
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """What a model is expected to score against another; `significant` where 1/2 is left out."""

    value: float
    low: float | None
    high: float | None
    reason: str | None = None

    @property
    def significant(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 0.5 <= self.high


def board_of(ranking: Ranking, *, most: int = SHOWN_MODELS) -> Board:
    models = ranking.models
    ends = [end for each in models for end in (each.score, each.low, each.high) if end is not None]
    least, greatest = min(ends), max(ends)
    width = greatest - least or 1.0

    def at(score: float) -> float:
        return (score - least) / width

    def limit(own: RankedModel, end: float | None, edge: float) -> float | None:
        return None if own.low is None and own.high is None else at(edge if end is None else end)

    alike = {each.better: each for each in ranking.indistinguishable or ()}
    groups = groups_of(ranking)
    columns = _columns_of(groups)
    rows = [
        BoardRow(
            model=own,
            at=at(own.score),
            low=limit(own, own.low, least),
            high=limit(own, own.high, greatest),
            like_next=alike.get(own.model),
            groups=tuple(
                column
                for column, (begin, end) in zip(columns, groups, strict=True)
                if begin <= place <= end and column < _MOST_COLUMNS
            ),
        )
        for place, own in enumerate(models[:most])
    ]
    return Board(tuple(rows), max(0, len(models) - most), least, greatest)


def groups_of(ranking: Ranking) -> list[tuple[int, int]]:
    """The longest runs of models, first to last, of which no two differ significantly: by the
    matrix, whose limits hold for all pairs together. None without intervals."""
    low, high = ranking.win_matrix_low, ranking.win_matrix_high
    if low is None or high is None:
        return []
    count = min(len(low), SHOWN_MODELS)

    def differ(better: int, worse: int) -> bool:
        least, most = low[better][worse], high[better][worse]
        return least is not None and most is not None and not least <= 0.5 <= most

    groups: list[tuple[int, int]] = []
    for begin in range(count):
        end = begin
        while end + 1 < count and not any(differ(own, end + 1) for own in range(begin, end + 1)):
            end += 1
        if end > begin and (not groups or end > groups[-1][1]):
            groups.append((begin, end))
    return groups


def _columns_of(groups: Sequence[tuple[int, int]]) -> list[int]:
    """Where the line of each stands: beside those that it meets, below one that has ended."""
    ends: list[int] = []
    columns = []
    for begin, end in groups:
        column = next((place for place, last in enumerate(ends) if last < begin - 1), len(ends))
        ends[column : column + 1] = [end]
        columns.append(column)
    return columns


def matrix_of(ranking: Ranking, *, most: int = MOST_IN_MATRIX) -> list[list[MatrixCell | None]]:
    """Of the best; None where a model would meet itself."""
    count = min(len(ranking.models), most)
    low, high = ranking.win_matrix_low, ranking.win_matrix_high
    matrix = ranking.win_matrix
    return [
        [
            None
            if row == column
            else MatrixCell(
                matrix[row][column],
                low[row][column] if low else None,
                high[row][column] if high else None,
            )
            for column in range(count)
        ]
        for row in range(count)
    ]
