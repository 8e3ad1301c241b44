"""How much of a curve stands beside the base rate, against arithmetic and a finer search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from evenhand.stats.calibration.curves import (
    Constant,
    Curve,
    Isotonic,
    curve_weight,
    fit_isotonic,
    fit_logistic_signals,
    fit_platt,
    tempered,
)
from evenhand.stats.calibration.fit import fit_calibration

RNG = np.random.default_rng(5)
SIGNAL = RNG.normal(size=200)
RIGHT = (RNG.random(200) < expit(1 + SIGNAL)).astype(np.float64)
GAPS = np.where(RNG.random(200) < 0.2, np.nan, SIGNAL)
CURVES: dict[str, Curve] = {
    "constant": Constant(probability=0.8),
    "isotonic": fit_isotonic("s", GAPS, RIGHT),
    "platt": fit_platt("s", GAPS, RIGHT),
    "logistic": fit_logistic_signals({"s": GAPS, "t": SIGNAL**2}, RIGHT, penalty=1.0)[0],
}
# Where the curves were fitted, and beyond; isotonic at its knots, between which it is straight.
COLUMNS = {"s": GAPS, "t": SIGNAL**2}


@pytest.mark.parametrize("kind", ["isotonic", "platt", "logistic"])
def test_a_tempered_curve_has_its_log_odds_drawn_to_the_base_rate(kind: str) -> None:
    curve = CURVES[kind]
    columns = COLUMNS
    if isinstance(curve, Isotonic):
        columns = {"s": np.array([*curve.knots, np.nan])}
    rows = columns["s"].size
    before = curve.predict(columns, rows=rows)
    after = tempered(curve, 0.3, towards=0.7).predict(columns, rows=rows)
    assert after == pytest.approx(expit(0.3 * logit(before) + 0.7 * logit(0.7)), abs=1e-12)
    assert tempered(curve, 0.3, towards=0.7).kind == kind


@pytest.mark.parametrize("kind", CURVES)
def test_all_of_it_is_the_curve_and_nothing_is_the_base_rate(kind: str) -> None:
    curve = CURVES[kind]
    assert tempered(curve, 1.0, towards=0.7) is curve
    if kind != "constant":
        assert tempered(curve, 0.0, towards=0.7) == Constant(probability=0.7)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 3))
def test_the_weight_is_the_tenth_nearest_to_the_best(seed: int, truth: float) -> None:
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=300)
    right = (rng.random(300) < expit(truth * odds)).astype(np.float64)
    curve, base = expit(odds), np.full(300, 0.5)

    def loss(weight: float) -> float:
        mixed = expit(weight * odds)
        return float(-np.log(np.where(right > 0, mixed, 1 - mixed)).mean())

    best = minimize_scalar(loss, bounds=(0, 1), method="bounded").x
    # The loss is convex in the weight: the best tenth is beside the best of all.
    assert abs(curve_weight(curve, base, right) - best) <= 0.1 + 1e-4


def test_a_curve_that_says_the_opposite_has_no_weight() -> None:
    right = np.array([1.0, 0.0] * 50)
    wrong = np.where(right > 0, 0.3, 0.7)
    assert curve_weight(wrong, np.full(100, 0.5), right) == 0
    assert curve_weight(1 - wrong, np.full(100, 0.5), right) == 1


@pytest.mark.slow
def test_noise_costs_less_where_the_curve_is_drawn_in() -> None:
    """Over 60 draws without any signal, the mean squared distance from the true 0.75."""
    drawn_in, whole = [], []
    for draw in range(60):
        rng = np.random.default_rng([draw, 8])
        right = rng.random(60) < 0.75
        signals, fresh = (
            {name: rng.normal(size=size) for name in ("a", "b")} for size in (60, 200)
        )
        fitted = fit_calibration(right, signals, seed=draw)
        if fitted.weight == 1 or isinstance(fitted.curve, Constant):
            continue
        own = {name: signals[name] for name in fitted.goes_by}
        undrawn = fit_calibration(right, own, method=fitted.curve.kind, seed=draw)
        drawn_in.append(float(((fitted.predict(fresh) - 0.75) ** 2).mean()))
        whole.append(float(((undrawn.predict(fresh) - 0.75) ** 2).mean()))
    assert len(whole) > 3  # some curves were learned from noise
    assert np.mean(drawn_in) < np.mean(whole)


def test_one_method_that_was_asked_for_is_given_whole() -> None:
    fitted = fit_calibration(RIGHT, {"s": SIGNAL}, method="platt")
    assert fitted.weight == 1
    assert fitted.curve == fit_platt("s", SIGNAL, RIGHT)
