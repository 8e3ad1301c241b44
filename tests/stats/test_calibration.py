"""Learning the probability that a verdict is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit

from evenhand.errors import InputError
from evenhand.stats.calibration.curves import Isotonic, Logistic, Platt, fit_isotonic, fit_platt
from evenhand.stats.calibration.fit import (
    Calibration,
    Method,
    cross_fitted,
    fit_calibration,
    prompt_folds,
)
from evenhand.stats.logistic_regression import fit_ridge
from parts import examples

Floats = NDArray[np.float64]


def _drawn(rows: int, *, seed: int = 0) -> tuple[NDArray[np.bool_], dict[str, Floats], Floats]:
    """Rightness, signals and the true probabilities: agreement and margin matter, length not."""
    rng = np.random.default_rng(seed)
    signals = {
        "agreement": rng.integers(0, 2, rows).astype(np.float64),
        "margin": rng.normal(size=rows),
        "length": rng.normal(size=rows),
    }
    chance = expit(-0.5 + 2 * signals["agreement"] + signals["margin"])
    return rng.random(rows) < chance, signals, chance


def test_isotonic_pools_what_falls_and_smooths_by_one_row() -> None:
    column = np.array([1.0, 1, 2, 2, 3, 3])
    right = np.array([0.0, 1, 0, 0, 1, 1])
    found = fit_isotonic("confidence", column, right)
    # the base rate is Laplace's (3 + 1) / (6 + 2); values 1 and 2 pool to 1 of 4
    assert found.increasing
    assert list(found.knots) == [1, 2, 3]
    assert found.probabilities == pytest.approx([(1 + 0.5) / 5, (1 + 0.5) / 5, (2 + 0.5) / 3])


def test_isotonic_falls_where_the_signal_says_the_opposite() -> None:
    found = fit_isotonic("confidence", np.array([1.0, 2, 3, 4]), np.array([1.0, 1, 0, 0]))
    assert not found.increasing
    assert found.probabilities[0] > found.probabilities[-1]


def test_isotonic_is_level_beyond_its_ends_and_straight_between() -> None:
    found = fit_isotonic("x", np.repeat([0.0, 1.0], 10), np.repeat([0.0, 1.0], 10))
    low, middle, high = found.predict({"x": np.array([-5.0, 0.5, 9.0])}, rows=3)
    # 0 of 10 and 10 of 10, each with one more row at one half
    assert (low, high) == pytest.approx((0.5 / 11, 10.5 / 11))
    assert middle == pytest.approx((low + high) / 2)


def test_platt_does_not_turn_a_perfect_signal_into_certainty() -> None:
    found = fit_platt("x", np.repeat([0.0, 1.0], 10), np.repeat([0.0, 1.0], 10))
    low, high = found.predict({"x": np.array([0.0, 1.0])}, rows=2)
    # Platt's targets: 1 / (10 + 2) and (10 + 1) / (10 + 2)
    assert (low, high) == pytest.approx((1 / 12, 11 / 12), abs=1e-4)


def test_a_ridge_of_nearly_nothing_gives_the_shares_of_two_groups() -> None:
    fitted = fit_ridge(
        np.repeat([0.0, 1.0], 10)[:, np.newaxis],
        np.array([1.0] * 3 + [0.0] * 7 + [1.0] * 8 + [0.0] * 2),
        penalty=1e-9,
    )
    assert expit(fitted[0]) == pytest.approx(0.3, abs=1e-5)
    assert expit(fitted.sum()) == pytest.approx(0.8, abs=1e-5)


def test_several_signals_are_learned_and_a_useless_one_has_a_small_slope() -> None:
    right, signals, chance = _drawn(4000)
    found = fit_calibration(right, signals)
    assert isinstance(found.curve, Logistic)
    assert float(np.abs(found.predict(signals) - chance).mean()) < 0.02
    slopes = {part.signal: part.slope for part in found.curve.signals}
    assert abs(slopes["length"]) < 0.15
    assert found.reason is None


def test_a_useless_signal_leaves_the_base_rate() -> None:
    rng = np.random.default_rng(4)
    right = rng.random(400) < 0.7
    found = fit_calibration(right, {"length": rng.normal(size=400)})
    assert found.curve.kind == "constant"
    assert found.reason is None


def test_a_signal_that_steps_is_learned_by_isotonic() -> None:
    rng = np.random.default_rng(5)
    signal = rng.random(3000)
    chance = np.select([signal > 0.9, signal > 0.3], [0.95, 0.7], 0.2)
    found = fit_calibration(rng.random(3000) < chance, {"confidence": signal})
    assert isinstance(found.curve, Isotonic)
    assert float(np.abs(found.predict({"confidence": signal}) - chance).mean()) < 0.03


def test_missing_signals_get_their_own_probability() -> None:
    rng = np.random.default_rng(6)
    margin = np.where(rng.random(4000) < 0.3, np.nan, rng.normal(size=4000))
    chance = np.where(np.isnan(margin), 0.35, expit(1 + np.nan_to_num(margin)))
    right = rng.random(4000) < chance
    share = float(right[np.isnan(margin)].mean())
    for method in ("platt", "isotonic"):
        found = fit_calibration(right, {"margin": margin}, method=method)
        assert found.predict({"margin": [None]})[0] == pytest.approx(share, abs=0.01)
    several = fit_calibration(
        right, {"margin": margin, "length": rng.normal(size=4000)}, method="logistic"
    )
    assert several.predict({"margin": [None], "length": [0]})[0] == pytest.approx(share, abs=0.03)


def test_a_signal_that_was_never_missing_and_now_is_gives_the_base_rate() -> None:
    right, signals, _ = _drawn(500)
    for method in ("platt", "logistic"):
        found = fit_calibration(right, signals, method=method)
        guess = found.predict({"length": [0.1, None]})
        # Laplace's: one more right and one more wrong
        assert guess == pytest.approx([(right.sum() + 1) / 502] * 2, abs=0.003)


def test_too_few_prompts_give_the_base_rate_and_say_so() -> None:
    found = fit_calibration([1] * 15 + [0] * 5, {"margin": range(20)})
    assert found.reason == "not enough data: 20 labelled prompts; at least 30 are needed"
    assert found.predict({"margin": [1.0]})[0] == pytest.approx(16 / 22)
    few = fit_calibration([1] * 95 + [0] * 5, {"margin": range(100)})
    assert few.reason == (
        "not enough data: 95 right and 5 wrong verdicts; at least 10 of each are needed"
    )
    silent = fit_calibration([1, 0] * 50, {"margin": [None] * 100, "length": [3.0] * 100})
    assert silent.reason == "no signal: none of them has two values"
    assert silent.unused == ("margin", "length")


def test_rows_of_one_prompt_are_one_prompt() -> None:
    found = fit_calibration([1, 0] * 100, {"margin": range(200)}, prompts=[1, 2, 3, 4] * 50)
    assert found.prompts == 4
    assert found.reason == "not enough data: 4 labelled prompts; at least 30 are needed"


def test_a_prompts_rows_are_never_in_two_folds() -> None:
    groups = np.random.default_rng(0).integers(0, 40, 500)
    fold = prompt_folds(groups, 40, folds=10, seed=3)
    assert all(np.unique(fold[groups == prompt]).size == 1 for prompt in range(40))
    assert set(fold) == set(range(10))


def test_copies_of_a_prompt_do_not_make_noise_look_like_a_signal() -> None:
    # each prompt has its own number and its own luck: only folds that part a prompt can see a link
    rng = np.random.default_rng(8)
    right = np.repeat(rng.random(60) < 0.5, 10)
    number = np.repeat(rng.random(60), 10)
    kept = fit_calibration(right, {"number": number}, prompts=np.repeat(np.arange(60), 10))
    parted = fit_calibration(right, {"number": number})
    assert kept.curve.kind == "constant"
    assert parted.curve.kind == "isotonic"


def test_predictions_are_the_same_after_a_trip_through_json() -> None:
    right, signals, _ = _drawn(400)
    signals["margin"][::7] = np.nan
    for method in ("auto", "isotonic", "platt", "logistic"):
        found = fit_calibration(right, signals, method=method)
        again = Calibration.model_validate_json(found.model_dump_json())
        assert again == found
        assert np.array_equal(again.predict(signals), found.predict(signals))


def test_cross_fitted_probabilities_never_saw_their_prompt() -> None:
    right, signals, chance = _drawn(1500)
    found = cross_fitted(right, signals, prompts=np.arange(1500) // 3)
    assert float(np.abs(found - chance).mean()) < 0.05
    # turning one prompt's labels round moves nothing of its own
    turned = right.copy()
    turned[:3] = ~turned[:3]
    again = cross_fitted(turned, signals, prompts=np.arange(1500) // 3)
    assert np.array_equal(found[:3], again[:3])


@pytest.mark.parametrize(
    ("correct", "signals", "message"),
    [
        ([0, 2], {"x": [1, 2]}, "correct has 2.0 in row 1"),
        ([0, 1], {"x": [1, float("inf")]}, "signal 'x' has inf in row 1"),
        ([0, 1], {"x": [1]}, "signal 'x' has length 1"),
        ([0, 1], {"x": ["high", "low"]}, "signal 'x' is no column of numbers"),
        ([], {"x": []}, "there are no labelled verdicts"),
    ],
)
def test_mistakes_are_named(
    correct: list[int], signals: dict[str, list[float]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit_calibration(correct, signals)


@given(
    st.lists(
        st.tuples(st.booleans(), st.one_of(st.none(), st.floats(-1e6, 1e6))),
        min_size=1,
        max_size=80,
    ),
    st.sampled_from(["auto", "isotonic", "platt", "logistic"]),
)
@settings(max_examples=examples(40))
def test_every_probability_is_above_0_and_below_1(
    rows: list[tuple[bool, float | None]], method: Method
) -> None:
    found = fit_calibration(
        [right for right, _ in rows], {"x": [value for _, value in rows]}, method=method
    )
    guesses = found.predict({"x": [-1e9, *(value for _, value in rows), 1e9]})
    assert ((guesses > 0) & (guesses < 1)).all()


@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=60))
@settings(max_examples=examples(60))
def test_isotonic_and_platt_never_turn_round(rows: list[tuple[int, bool]]) -> None:
    column = np.array([float(value) for value, _ in rows])
    right = np.array([float(hit) for _, hit in rows])
    grid = np.linspace(-7, 7, 57)
    curves: list[Isotonic | Platt] = [
        fit_isotonic("x", column, right),
        fit_platt("x", column, right),
    ]
    for curve in curves:
        steps = np.diff(curve.predict({"x": grid}, rows=grid.size))
        assert (steps >= -1e-12).all() or (steps <= 1e-12).all()


def test_a_curve_can_tell_of_rows_that_have_one_of_its_signals() -> None:
    rng = np.random.default_rng(0)
    sure = rng.random(400)
    right = rng.random(400) < sure
    fitted = fit_calibration(right, {"sure": sure, "same": np.ones(400)}, method="platt")
    assert fitted.goes_by == ("sure",)
    told = fitted.can_tell({"sure": [0.5, None, 0.7], "same": [1.0, 1.0, None]})
    assert told.tolist() == [True, False, True]
    assert fitted.can_tell({"other": [1.0, 2.0]}).tolist() == [False, False]
    constant = fit_calibration([1, 0, 1], {"sure": [0.1, 0.2, 0.3]})
    assert constant.goes_by == ()
    assert constant.can_tell({"sure": [None, 0.1]}).tolist() == [True, True]


def test_the_largest_signals_are_only_large() -> None:
    rng = np.random.default_rng(0)
    sure = rng.random(200)
    right = rng.random(200) < sure
    for method in ("platt", "isotonic", "logistic"):
        plain = fit_calibration(right, {"sure": sure}, method=method)
        huge = fit_calibration(right, {"sure": sure * 1e300}, method=method)
        assert huge.predict({"sure": [3e299, 9e299]}) == pytest.approx(
            plain.predict({"sure": [0.3, 0.9]})
        )
