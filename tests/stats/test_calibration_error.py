"""Calibration error, Brier score, log loss, and what changed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.stats.calibration.reliability import (
    calibration_change,
    calibration_error,
    equal_mass_bins,
)
from parts import examples

# two probabilities, 20 rows each: 12 of 20 right at 0.8, 8 of 20 at 0.3
STATED = [0.8] * 20 + [0.3] * 20
RIGHT = [1] * 12 + [0] * 8 + [1] * 8 + [0] * 12


def test_bins_hold_what_was_said_and_what_happened() -> None:
    low, high = calibration_error(STATED, RIGHT).bins
    assert (low.mean_probability, low.n, low.share_right.value) == pytest.approx((0.3, 20, 0.4))
    assert (high.mean_probability, high.n, high.share_right.value) == pytest.approx((0.8, 20, 0.6))
    assert high.share_right.low is not None


def test_the_error_is_debiased_by_the_variance_of_each_bin() -> None:
    found = calibration_error(STATED, RIGHT)
    # distances 0.1 and 0.2; a bin's mean has variance 0.24 / 19
    assert found.plain_error == pytest.approx(0.15)
    squared = (0.01 + 0.04) / 2 - 0.24 / 19
    assert found.error == pytest.approx(math.sqrt(squared))


def test_noise_around_right_probabilities_is_no_error() -> None:
    found = calibration_error([0.5] * 40, [1] * 21 + [0] * 19)
    assert found.error == 0
    assert found.distinguishable is False


def test_scores_are_beside_those_of_the_base_rate() -> None:
    found = calibration_error(STATED, RIGHT)
    # 12 of 0.2^2 and 8 of 0.8^2; 8 of 0.7^2 and 12 of 0.3^2
    brier = (12 * 0.04 + 8 * 0.64 + 8 * 0.49 + 12 * 0.09) / 40
    assert found.brier.value == pytest.approx(brier)
    assert found.base_brier == pytest.approx(0.25)
    assert found.brier_skill.value == pytest.approx(1 - brier / 0.25)
    loss = 12 * math.log(0.8) + 8 * math.log(0.2) + 8 * math.log(0.3) + 12 * math.log(0.7)
    assert found.log_loss.value == pytest.approx(-loss / 40)
    assert found.base_log_loss == pytest.approx(math.log(2))
    assert calibration_error(STATED, RIGHT, base_rate=0.7).base_brier == pytest.approx(
        (20 * 0.09 + 20 * 0.49) / 40
    )


def test_a_wrong_certainty_has_a_finite_log_loss() -> None:
    found = calibration_error([1.0] * 10, [1] * 9 + [0])
    assert found.log_loss.value == pytest.approx(-(9 * math.log(0.999) + math.log(0.001)) / 10)
    assert found.log_loss_floor == 0.001


def test_equal_probabilities_are_never_parted() -> None:
    stated = np.repeat([0.1, 0.5, 0.9], [70, 5, 25])
    place = equal_mass_bins(stated, bins=10)
    assert all(np.unique(place[stated == value]).size == 1 for value in (0.1, 0.5, 0.9))
    assert set(place) == set(range(int(place.max()) + 1))


def test_bins_are_of_equal_mass() -> None:
    place = equal_mass_bins(np.random.default_rng(0).random(1000), bins=10)
    assert np.bincount(place).tolist() == [100] * 10


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 4])
def test_right_probabilities_are_rarely_told_from_zero_and_wrong_ones_often(rows: int) -> None:
    """Also where rows of a prompt stand and fall together."""
    rng = np.random.default_rng(1)
    alarms = caught = 0
    for draw in range(150):
        stated = np.repeat(rng.uniform(0.5, 0.95, 200), rows)
        right = np.repeat(rng.random(200), rows) < stated
        prompts = np.repeat(np.arange(200), rows)
        fair = calibration_error(stated, right, prompts=prompts, resamples=100, seed=draw)
        overconfident = calibration_error(
            np.minimum(stated + 0.2, 1), right, prompts=prompts, resamples=100, seed=draw
        )
        assert fair.clustered == (rows > 1)
        alarms += bool(fair.distinguishable)
        caught += bool(overconfident.distinguishable)
    # 5% and three standard errors of 150 draws
    assert alarms <= 150 * (0.05 + 3 * (0.05 * 0.95 / 150) ** 0.5)
    assert caught >= 145


def test_the_debiased_error_is_right_on_average_where_the_plain_one_is_not() -> None:
    rng = np.random.default_rng(2)
    squares, plain = [], []
    for draw in range(200):
        stated = rng.uniform(0.3, 0.9, 150)
        right = rng.random(150) < stated - 0.1
        found = calibration_error(stated, right, resamples=100, seed=draw)
        assert found.error is not None
        assert found.plain_error is not None
        squares.append(found.error**2)
        plain.append(found.plain_error)
    # 0.1 below everywhere; clipping at 0 lifts the mean square a little
    assert math.sqrt(np.mean(squares)) == pytest.approx(0.1, abs=0.015)
    assert np.mean(plain) > 0.115


def test_too_little_data_is_a_reason() -> None:
    found = calibration_error([0.5] * 3, [1, 0, 1])
    assert (found.error, found.p_value, found.bins) == (None, None, ())
    assert found.reason == "not enough data: 3 pairs; at least 6 are needed"
    assert calibration_error([], []).base_rate is None


def test_a_probability_beyond_1_is_an_error() -> None:
    with pytest.raises(InputError, match=r"probabilities has 85\.0 in row 1; give numbers"):
        calibration_error([0.5, 85], [1, 0])
    with pytest.raises(InputError, match="probabilities has nan in row 0"):
        calibration_error([float("nan")], [1])


def test_what_changed_is_told_on_the_rows_that_had_a_confidence() -> None:
    found = calibration_change([1.0] * 40 + [None] * 10, [0.7] * 50, ([1] * 7 + [0] * 3) * 5)
    assert (found.without, found.after_all.n) == (10, 50)
    assert found.before is not None
    assert found.before.n == 40
    assert found.brier_change is not None
    # before 0.3 of ones, after 0.7 * 0.3^2 + 0.3 * 0.7^2 = 0.21
    assert found.brier_change.value == pytest.approx(0.21 - 0.3)
    assert found.brier_change.high is not None
    none_before = calibration_change([None] * 10, [0.7] * 10, [1] * 7 + [0] * 3)
    assert (none_before.before, none_before.brier_change) == (None, None)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.integers(0, 15)), max_size=60),
    st.booleans(),
)
@settings(max_examples=examples(40))
def test_results_are_finite_and_survive_json(
    rows: list[tuple[float, bool, int]], clustered: bool
) -> None:
    stated, right, prompts = ([row[place] for row in rows] for place in range(3))
    found = calibration_error(stated, right, prompts=prompts if clustered else None, resamples=100)
    assert "nan" not in found.model_dump_json().lower()
    assert type(found).model_validate_json(found.model_dump_json()) == found
    if found.error is not None:
        assert 0 <= found.error <= 1
        assert sum(each.n for each in found.bins) == len(rows)
