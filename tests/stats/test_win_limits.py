"""The limits of a win matrix: those of differences, mirrored, and at the level of the ranks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.stats.ranking.leaderboard import rank_battles, rank_counts
from evenhand.stats.ranking.result import Ranking


def battles(seed: int, models: int = 4, rows: int = 200, **options: object) -> Ranking:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    won = rng.random(rows) < 1 / (1 + np.exp(a - b))
    tied = rng.random(rows) < 0.2
    score = np.where(tied, 0.5, won)
    names = [f"m{place}" for place in range(models)]
    return rank_battles(a, b, score, models=names, **options)  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), ties=st.sampled_from(["half", "davidson"]))
def test_limits_mirror_each_other_around_the_matrix(seed: int, ties: str) -> None:
    ranking = battles(seed, ties=ties)
    low, high = ranking.win_matrix_low, ranking.win_matrix_high
    assert low is not None
    assert high is not None
    for row, values in enumerate(ranking.win_matrix):
        for column, value in enumerate(values):
            least, most = low[row][column], high[row][column]
            if row == column:
                assert (least, most) == (None, None)
                continue
            assert least is not None
            assert most is not None
            assert least <= value <= most
            assert least + (high[column][row] or 0) == pytest.approx(1)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_half_is_left_out_where_neighbours_are_told_apart(seed: int) -> None:
    ranking = battles(seed)
    alike = {(each.better, each.worse) for each in ranking.indistinguishable or ()}
    low = ranking.win_matrix_low
    assert low is not None
    names = [each.model for each in ranking.models]
    for place, (better, worse) in enumerate(itertools.pairwise(names)):
        least = low[place][place + 1]
        assert least is not None
        assert ((better, worse) in alike) == (least <= 0.5)


def test_two_models_have_the_interval_of_their_difference() -> None:
    """70 wins of 100: a log-odds of log(7/3) with a variance of 1/70 + 1/30 or nearly so (the
    sandwich's small-sample factor), and Student's quantile of 99 degrees."""
    ranking = rank_counts(["x", "y"], [0], [1], wins_a=[70], wins_b=[30])
    assert ranking.win_matrix_low is not None
    assert ranking.win_matrix_high is not None
    error = math.sqrt(1 / 70 + 1 / 30)
    for found, sign in ((ranking.win_matrix_low, -1), (ranking.win_matrix_high, 1)):
        expected = 1 / (1 + math.exp(-(math.log(7 / 3) + sign * 1.9842 * error)))
        assert found[0][1] == pytest.approx(expected, abs=0.005)


def test_what_battles_do_not_bound_is_open() -> None:
    ranking = rank_battles(["x"] * 9, ["y"] * 9, ["A"] * 9)
    assert ranking.win_matrix_high is not None
    assert ranking.win_matrix_low is not None
    assert ranking.win_matrix_high[0][1] == 1
    assert ranking.win_matrix_low[1][0] == 0


def test_without_intervals_there_are_no_limits() -> None:
    assert battles(1, intervals=None).win_matrix_low is None
    assert battles(1, models=101, rows=3000).win_matrix_high is None


def test_a_ranking_that_was_written_is_read_again() -> None:
    ranking = battles(3)
    again = Ranking.model_validate_json(ranking.model_dump_json())
    assert again == ranking
    assert again.win_matrix == ranking.win_matrix
