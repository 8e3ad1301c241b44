"""Learning the probability that a verdict is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit

from evenhand.errors import InputError
from evenhand.stats.calibration.curves import (
    Bend,
    Logistic,
    LogisticSignal,
    constant_log_evidence,
    fit_logistic_signals,
)
from evenhand.stats.calibration.fit import (
    METHODS,
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


def test_a_ridge_of_nearly_nothing_gives_the_shares_of_two_groups() -> None:
    fitted = fit_ridge(
        np.repeat([0.0, 1.0], 10)[:, np.newaxis],
        np.array([1.0] * 3 + [0.0] * 7 + [1.0] * 8 + [0.0] * 2),
        penalty=1e-9,
    )
    assert expit(fitted[0]) == pytest.approx(0.3, abs=1e-5)
    assert expit(fitted.sum()) == pytest.approx(0.8, abs=1e-5)


def test_the_evidence_is_what_integrating_the_likelihood_gives() -> None:
    rng = np.random.default_rng(2)
    signal = rng.normal(size=80)
    right = (rng.random(80) < expit(0.5 + 0.8 * signal)).astype(np.float64)
    ((curve, evidence),) = fit_logistic_signals({"x": signal}, right, penalties=[2.0])
    found = evidence - constant_log_evidence(right, weight=1.0)
    # The second way: a grid over the intercept (flat) and the slope (normal, variance 1/2).
    part = curve.signals[0]
    standard = (signal - part.centre) / part.scale
    intercepts, slopes = np.linspace(-1.5, 2.5, 201), np.linspace(-3, 3, 301)
    odds = intercepts[:, None, None] + slopes[None, :, None] * standard
    likelihood = np.exp((right * odds - np.logaddexp(0, odds)).sum(axis=2))
    prior = np.sqrt(2 / (2 * np.pi)) * np.exp(-(slopes**2))
    some = (likelihood * prior).sum() * (slopes[1] - slopes[0])
    none = likelihood[:, np.argmin(np.abs(slopes))].sum()
    assert found == pytest.approx(np.log(some / none), abs=0.05)


def test_a_bent_line_is_arithmetic() -> None:
    part = LogisticSignal(
        signal="x",
        centre=1.0,
        scale=2.0,
        low=0.0,
        high=5.0,
        slope=0.5,
        bends=(Bend(at=2.0, slope=-1.0),),
        missing=0.25,
    )
    curve = Logistic(intercept=0.1, signals=(part,), penalty=1.0, otherwise=0.5)
    told = curve.predict({"x": np.array([0.0, 4.0, 9.0, np.nan])}, rows=4)
    # (0 - 1) / 2 * 0.5; (4 - 1) / 2 * 0.5 - (4 - 2) / 2; at most 5: 1 - 1.5; missing: 0.25
    assert told == pytest.approx(expit(0.1 + np.array([-0.25, -0.25, -0.5, 0.25])))


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
    assert found.log_bayes_factor is not None
    assert found.log_bayes_factor < 0
    assert found.reason is not None
    assert found.reason.startswith(
        "no evidence that any signal is more informative than overall accuracy"
    )
    forced = fit_calibration(right, {"length": rng.normal(size=400)}, method="logistic")
    assert forced.curve.kind == "logistic"


def test_a_signal_that_saturates_is_learned_by_a_line_that_bends() -> None:
    rng = np.random.default_rng(5)
    signal = rng.random(3000)
    chance = expit(-2 + 9 * np.minimum(signal, 1 / 3))
    found = fit_calibration(rng.random(3000) < chance, {"confidence": signal})
    assert isinstance(found.curve, Logistic)
    assert len(found.curve.signals[0].bends) == 2
    straight, bent = (
        max(each.log_bayes_factor for each in found.candidates if each.bent is bends)
        for bends in (False, True)
    )
    assert bent > straight
    assert float(np.abs(found.predict({"confidence": signal}) - chance).mean()) < 0.03


def test_of_two_values_no_line_bends() -> None:
    right, signals, _ = _drawn(400)
    found = fit_calibration(right, {"agreement": signals["agreement"]})
    assert isinstance(found.curve, Logistic)
    assert found.curve.signals[0].bends == ()


def test_missing_signals_get_their_own_probability() -> None:
    rng = np.random.default_rng(6)
    margin = np.where(rng.random(4000) < 0.3, np.nan, rng.normal(size=4000))
    chance = np.where(np.isnan(margin), 0.35, expit(1 + np.nan_to_num(margin)))
    right = rng.random(4000) < chance
    share = float(right[np.isnan(margin)].mean())
    found = fit_calibration(right, {"margin": margin})
    assert found.predict({"margin": [None]})[0] == pytest.approx(share, abs=0.01)
    several = fit_calibration(
        right, {"margin": margin, "length": rng.normal(size=4000)}, method="logistic"
    )
    assert several.predict({"margin": [None], "length": [0]})[0] == pytest.approx(share, abs=0.03)


def test_a_signal_that_was_never_missing_and_now_is_gives_the_base_rate() -> None:
    right, signals, _ = _drawn(500)
    found = fit_calibration(right, signals)
    guess = found.predict({"length": [0.1, None]})
    # Laplace's: one more right and one more wrong
    assert guess == pytest.approx([(right.sum() + 1) / 502] * 2)


def test_too_few_prompts_give_the_base_rate_and_say_so() -> None:
    found = fit_calibration([1] * 15 + [0] * 5, {"margin": range(20)})
    assert found.reason == "not enough data: 20 labelled prompts; at least 30 are needed"
    assert found.predict({"margin": [1.0]})[0] == pytest.approx(16 / 22)
    few = fit_calibration([1] * 98 + [0] * 2, {"margin": range(100)})
    assert few.reason == (
        "not enough data: 98 right and 2 wrong verdicts; at least 3 of each are needed"
    )
    silent = fit_calibration([1, 0] * 50, {"margin": [None] * 100, "length": [3.0] * 100})
    assert silent.reason == "no signal varies between the verdicts"
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
    assert parted.curve.kind == "logistic"


def test_predictions_are_the_same_after_a_trip_through_json() -> None:
    right, signals, _ = _drawn(400)
    signals["margin"][::7] = np.nan
    for method in METHODS:
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
        ([0, 1], {"x": ["high", "low"]}, "signal 'x' is not a column of numbers"),
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
    st.sampled_from(["auto", "logistic"]),
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


def test_a_curve_can_tell_of_rows_that_have_one_of_its_signals() -> None:
    rng = np.random.default_rng(0)
    sure = rng.random(400)
    right = rng.random(400) < sure
    fitted = fit_calibration(right, {"sure": sure, "same": np.ones(400)})
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
    plain = fit_calibration(right, {"sure": sure})
    huge = fit_calibration(right, {"sure": sure * 1e300})
    assert plain.curve.kind == huge.curve.kind == "logistic"
    assert huge.predict({"sure": [3e299, 9e299]}) == pytest.approx(
        plain.predict({"sure": [0.3, 0.9]})
    )
