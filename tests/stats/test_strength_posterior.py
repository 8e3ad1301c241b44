"""The posterior of strengths: its mode, its covariance, its prior, and what ties do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from scipy.optimize import minimize

from evenhand.stats.ranking.posterior import (
    PRIOR_MODELS,
    PRIOR_VARIANCE,
    fit_posterior,
    gap_variance,
    tie_dispersion,
)
from naive_ranking import half_point_tables, played_league
from parts import examples

Floats = NDArray[np.float64]


def naive_log_posterior(strengths: Floats, scores: Floats, variance: float) -> float:
    total = -float((strengths**2).sum()) / (2 * variance)
    for i in range(len(strengths)):
        for j in range(len(strengths)):
            total -= scores[i, j] * np.log1p(np.exp(strengths[j] - strengths[i]))
    return float(total)


def test_mode_is_what_a_general_optimiser_finds() -> None:
    scores = played_league(5, games=60)
    found = minimize(
        lambda x: -naive_log_posterior(x, scores, 0.5), np.zeros(5), options={"gtol": 1e-9}
    )
    fitted = fit_posterior(scores[None], prior_variance=0.5)
    assert fitted.mean[0] == pytest.approx(found.x, abs=1e-6)


def test_covariance_is_the_inverse_of_the_naive_hessian() -> None:
    scores = played_league(4, games=50)
    fitted = fit_posterior(scores[None], prior_variance=0.5)
    step, hessian = 1e-4, np.empty((4, 4))
    for i in range(4):
        for j in range(4):
            total = 0.0
            for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                moved = fitted.mean[0] + step * (a * np.eye(4)[i] + b * np.eye(4)[j])
                total += a * b * naive_log_posterior(moved, scores, 0.5)
            hessian[i, j] = total / (4 * step * step)
    assert fitted.covariance[0] == pytest.approx(np.linalg.inv(-hessian), rel=1e-4)


def test_one_win_of_two_models_solves_its_equation() -> None:
    fitted = fit_posterior(np.array([[[0.0, 1.0], [0.0, 0.0]]]), prior_variance=1.0)
    x = fitted.mean[0, 0]
    # Of log σ(x - y) - (x² + y²) / 2 with y = -x: the slope 1 - σ(2x) equals x.
    assert 1 - 1 / (1 + np.exp(-2 * x)) == pytest.approx(x)
    assert fitted.mean[0, 1] == pytest.approx(-x)


def test_nothing_known_leaves_the_prior() -> None:
    fitted = fit_posterior(np.zeros((1, 3, 3)))
    assert fitted.mean[0] == pytest.approx(np.zeros(3))
    assert fitted.covariance[0] == pytest.approx(np.eye(3) * PRIOR_VARIANCE)
    # The gap of two independent strengths has the sum of their variances.
    assert gap_variance(fitted.covariance)[0, 0, 1] == pytest.approx(2 * PRIOR_VARIANCE)


def test_estimated_prior_recovers_the_deviation_of_many_models() -> None:
    fitted = fit_posterior(played_league(60, games=12_000)[None])
    # 60 strengths of deviation 0.7 know it to 0.7 / √120 = 0.064; three such errors.
    assert np.sqrt(fitted.prior_variance[0]) == pytest.approx(0.7, abs=0.2)


@settings(max_examples=examples(60))
@given(half_point_tables(most=100_000))
def test_fit_always_ends_at_the_mode_and_the_prior_at_its_fixed_point(
    table: tuple[Floats, NDArray[np.int64]],
) -> None:
    scores = table[0]
    fitted = fit_posterior(scores[None])
    assert fitted.converged
    mean, variance = fitted.mean[0], fitted.prior_variance[0]
    chance = 1 / (1 + np.exp(mean[None, :] - mean[:, None]))
    slope = scores.sum(axis=1) - ((scores + scores.T) * chance).sum(axis=1) - mean / variance
    assert np.abs(slope).max() <= 1e-6 * max(1.0, scores.sum())
    models = len(mean)
    left = variance * (PRIOR_MODELS + models) - np.trace(fitted.covariance[0])
    assert left == pytest.approx(PRIOR_MODELS * PRIOR_VARIANCE + (mean**2).sum(), rel=1e-5)


def test_leagues_of_a_stack_do_not_know_one_another() -> None:
    tables = np.stack([played_league(6, games=games, seed=games) for games in (10, 80, 300)])
    together = fit_posterior(tables)
    for index in range(3):
        alone = fit_posterior(tables[index : index + 1])
        assert together.mean[index] == pytest.approx(alone.mean[0], abs=1e-6)
        assert together.covariance[index] == pytest.approx(alone.covariance[0], abs=1e-6)


def test_unbeaten_model_has_a_finite_strength_and_a_wide_one() -> None:
    fitted = fit_posterior(np.array([[[0, 9, 9], [0, 0, 5], [0, 4, 0]]], dtype=float))
    assert 0 < fitted.mean[0, 0] < 5
    variances = np.diagonal(fitted.covariance[0])
    assert variances[0] > variances[1]


def test_dispersion_is_one_without_ties() -> None:
    scores = np.array([[[0.0, 40.0], [40.0, 0.0]]])
    # Each of 80 rows: (1 - 1/2)² beside 1/2 · 1/2.
    assert tie_dispersion(scores, np.zeros((1, 2, 2)))[0] == pytest.approx(1.0)


def test_dispersion_of_nothing_but_ties_falls_with_their_number() -> None:
    ties = np.array([[[0.0, 80.0], [80.0, 0.0]]])
    # No row leaves 1/2, beside 80 · 1/4; the 20 rows assumed without ties add 20 · 1/4 to both.
    assert tie_dispersion(ties / 2, ties)[0] == pytest.approx(5 / (20 + 5))


def test_dispersion_scales_what_a_comparison_tells() -> None:
    scores = played_league(4, games=80)[None]
    calm = fit_posterior(scores, prior_variance=1.0, dispersion=0.5)
    doubled = fit_posterior(2 * scores, prior_variance=1.0)
    assert calm.mean == pytest.approx(doubled.mean)
    assert calm.covariance == pytest.approx(doubled.covariance)
