"""The figures that a chart draws, as rows: for the table beside it and for CSV. A chart leaves out
what does not fit; these rows leave out nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Literal

from evenhand.report.files import csv_line

if TYPE_CHECKING:
    from evenhand.report.claims import ClaimedRate
    from evenhand.report.conclusions import Conclusion, Conclusions, GroupRate, SideRate
    from evenhand.stats.calibration.reliability import CalibrationChange, CalibrationError
    from evenhand.stats.estimates import EstimatedShare
    from evenhand.stats.ranking.result import Ranking


RunChart = Literal["win-rate", "outcomes", "criteria", "tags", "length"]
RankingChart = Literal["leaderboard", "matrix"]
Figure = Literal[
    "win_rate",
    "equal_length",
    "longer_won",
    "won",
    "tie",
    "inconsistent",
    "lost",
    "invalid",
    "score",
    "rank",
    "expected_score",
    "share_right",
    "share",
]


@dataclass(frozen=True, slots=True)
class ChartRow:
    """`of` is what tells rows of one name apart: a comparison, an opponent, before and after.

    `at` is where a point stands on the other axis, in a chart that has two. Counts and figures
    without an interval have no limits; `note` says why.
    """

    chart: str
    name: str
    of: str
    figure: Figure
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    at: float | None = None
    note: str | None = None

    @property
    def reason(self) -> str | None:
        """As other figures with an interval call it."""
        return self.note


COLUMNS = tuple(each.name for each in fields(ChartRow))


def chart_csv(rows: Iterable[ChartRow]) -> bytes:
    lines = [",".join(COLUMNS).encode() + b"\n"]
    lines += (csv_line(getattr(row, name) for name in COLUMNS) for row in rows)
    return b"".join(lines)


def conclusion_rows(conclusions: Conclusions, chart: RunChart | None = None) -> Iterator[ChartRow]:
    """Of one chart, or of all of them."""
    named = [(_named(each), each) for each in conclusions.conclusions]
    if chart in (None, "win-rate"):
        for name, each in named:
            yield _rate("win-rate", name, "", each.claimed)
    if chart in (None, "outcomes"):
        for name, each in named:
            yield from _outcomes(name, each)
    if chart in (None, "criteria"):
        yield from _groups("criteria", [(name, each.by_criterion) for name, each in named])
    if chart in (None, "tags"):
        yield from _groups("tags", [(name, each.by_tag) for name, each in named])
    if chart in (None, "length"):
        for name, each in named:
            yield from _length(name, each)


def ranking_rows(
    ranking: Ranking, chart: RankingChart | None = None, *, most: int | None = None
) -> Iterator[ChartRow]:
    """`most`: of the best models alone."""
    if chart in (None, "leaderboard"):
        for each in islice(ranking.models, most):
            note = each.note or (ranking.reason if each.low is None and each.high is None else None)
            yield ChartRow(
                *("leaderboard", each.model, "", "score", each.score, each.low, each.high),
                n=each.games,
                note=note,
            )
            yield ChartRow(
                *("leaderboard", each.model, "", "rank", each.rank, each.rank_low, each.rank_high),
                n=each.games,
            )
    if chart in (None, "matrix"):
        yield from _matrix(ranking, most)


def reliability_rows(change: CalibrationChange) -> Iterator[ChartRow]:
    for of, error in (("before", change.before), ("after", change.after_all)):
        if error is not None:
            yield from _bins(of, error)


def share_rows(chart: str, shares: Sequence[tuple[str, EstimatedShare]]) -> Iterator[ChartRow]:
    for name, share in shares:
        yield ChartRow(
            *(chart, name, "", "share", share.value, share.low, share.high),
            n=share.of,
            note=share.reason,
        )


def _named(each: Conclusion) -> str:
    own, other = each.names
    return f"{own} / {other} / {each.judge}"


def _rate(
    chart: str, name: str, of: str, rate: SideRate | ClaimedRate, figure: Figure = "win_rate"
) -> ChartRow:
    return ChartRow(
        *(chart, name, of, figure, rate.rate, rate.low, rate.high), n=rate.n, note=rate.reason
    )


def _outcomes(name: str, each: Conclusion) -> Iterator[ChartRow]:
    counts = each.win_rate.counts
    own, other = counts.wins_a, counts.wins_b
    if each.side == "B":
        own, other = other, own
    total = own + other + counts.ties + counts.inconsistent + counts.invalid
    parts: tuple[tuple[Figure, int], ...] = (
        *(("won", own), ("tie", counts.ties), ("inconsistent", counts.inconsistent)),
        *(("lost", other), ("invalid", counts.invalid)),
    )
    for figure, count in parts:
        yield ChartRow("outcomes", name, "", figure, count, None, None, n=total)


def _groups(chart: str, named: Sequence[tuple[str, tuple[GroupRate, ...]]]) -> Iterator[ChartRow]:
    names = dict.fromkeys(group.name for _, groups in named for group in groups)
    for name in names:
        for of, groups in named:
            yield from (_rate(chart, name, of, each.rate) for each in groups if each.name == name)


def _length(name: str, each: Conclusion) -> Iterator[ChartRow]:
    yield _rate("length", name, "", each.win_rate)
    for rate in each.length.controlled:
        yield ChartRow(
            *("length", name, rate.model or "", "equal_length", rate.rate, rate.low, rate.high),
            n=rate.n,
            note=rate.reason,
        )
    longer = each.length.longer_wins
    yield ChartRow(
        *("length", name, "", "longer_won", longer.value, longer.low, longer.high),
        n=longer.of,
        note=longer.reason,
    )


def _matrix(ranking: Ranking, most: int | None) -> Iterator[ChartRow]:
    names = [each.model for each in ranking.models[:most]]
    low, high = ranking.win_matrix_low, ranking.win_matrix_high
    for row, (name, rates) in enumerate(zip(names, ranking.win_matrix, strict=False)):
        for column, (other, rate) in enumerate(zip(names, rates, strict=False)):
            if row != column:
                yield ChartRow(
                    *("matrix", name, other, "expected_score", rate),
                    low=low[row][column] if low else None,
                    high=high[row][column] if high else None,
                    n=None,
                )


def _bins(of: str, error: CalibrationError) -> Iterator[ChartRow]:
    for each in error.bins:
        share = each.share_right
        yield ChartRow(
            *("reliability", f"{each.low:.3f}-{each.high:.3f}", of, "share_right"),
            value=share.value,
            low=share.low,
            high=share.high,
            n=each.n,
            at=None if math.isnan(each.mean_probability) else each.mean_probability,
            note=share.reason,
        )
