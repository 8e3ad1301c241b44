"""The penalised regression against cases with a closed form and a second, general optimiser."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from evenhand.stats.logistic_regression import LogisticFit, fit_logistic

Floats = NDArray[np.float64]


def _alone(columns: Floats, responses: Floats) -> LogisticFit:
    rows = responses.size
    return fit_logistic(columns, responses, clusters=np.arange(rows), count=rows)


@pytest.mark.parametrize(("wins", "rows"), [(7, 10), (10, 10), (0, 25)])
def test_a_constant_alone_adds_half_a_win_and_half_a_loss(wins: int, rows: int) -> None:
    # Firth's penalty on one share is Jeffreys' prior: log((wins + 1/2) / (losses + 1/2))
    responses = np.array([1.0] * wins + [0.0] * (rows - wins))
    fit = _alone(np.ones((1, rows)), responses)
    assert fit.coefficients[0] == pytest.approx(math.log((wins + 0.5) / (rows - wins + 0.5)))
    assert fit.converged
    assert fit.separated is (wins in {0, rows})


def test_a_general_optimiser_finds_the_same_maximum() -> None:
    rng = np.random.default_rng(1)
    columns = np.stack([np.ones(40), rng.normal(size=40)])
    responses = rng.choice([0.0, 0.5, 1.0], size=40)

    def loss(coefficients: Floats) -> float:
        shares = expit(coefficients @ columns)
        information = (columns * shares * (1 - shares)) @ columns.T
        likelihood = responses * np.log(shares) + (1 - responses) * np.log(1 - shares)
        return -float(likelihood.sum()) - 0.5 * math.log(np.linalg.det(information))

    expected = minimize(
        loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    assert _alone(columns, responses).coefficients == pytest.approx(expected.x, abs=1e-6)


def test_separated_rows_stay_finite_and_are_said_to_be_separated() -> None:
    columns = np.stack([np.ones(20), np.linspace(-1, 1, 20)])
    fit = _alone(columns, (columns[1] > 0).astype(np.float64))
    assert fit.separated
    assert fit.converged
    assert np.isfinite(fit.coefficients).all()
    assert fit.coefficients[1] > 0


def test_a_tie_at_the_wrong_place_ends_separation() -> None:
    columns = np.stack([np.ones(20), np.linspace(-1, 1, 20)])
    responses = (columns[1] > 0).astype(np.float64)
    responses[[2, 17]] = 0.5
    assert not _alone(columns, responses).separated


def test_influence_is_the_change_when_a_cluster_is_left_out() -> None:
    rng = np.random.default_rng(2)
    columns = np.stack([np.ones(200), rng.normal(size=200)])
    responses = (rng.random(200) < expit(columns[1])).astype(np.float64)
    clusters = np.arange(200) // 5
    fit = fit_logistic(columns, responses, clusters=clusters, count=40)
    for cluster in range(5):
        kept = clusters != cluster
        refit = _alone(columns[:, kept], responses[kept])
        change = (fit.coefficients - refit.coefficients) * math.sqrt(39 / 40)
        assert fit.influence[cluster] == pytest.approx(change, abs=0.02)


def test_a_cluster_that_alone_tells_a_coefficient_does_not_break_the_fit() -> None:
    columns = np.stack([np.ones(30), np.array([0.0] * 27 + [1.0, 2.0, 3.0])])
    responses = np.array([1.0, 0.0, 0.5] * 10)
    fit = fit_logistic(columns, responses, clusters=np.arange(30) // 3, count=10)
    assert np.isfinite(fit.influence).all()
