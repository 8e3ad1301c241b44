"""How sure an order is said to be."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.ranking.posterior import (
    StrengthPosterior,
    describe_certainty,
    expected_tau,
    fit_posterior,
    misorder_probability,
    neighbour_certainty,
)
from naive_ranking import played_league


def known(mean: list[float], covariance: np.ndarray) -> StrengthPosterior:
    return StrengthPosterior(
        mean=np.array([mean]),
        covariance=covariance[None],
        prior_variance=np.ones(1),
        dispersion=np.ones(1),
        converged=True,
        iterations=1,
    )


def test_two_models_two_deviations_apart() -> None:
    # The gap is 2 with variance 1/2 + 1/2, and Φ(-2) = 0.02275.
    posterior = known([1.0, -1.0], np.eye(2) / 2)
    assert misorder_probability(posterior)[0, 0, 1] == pytest.approx(0.02275, abs=1e-5)
    assert expected_tau(posterior)[0] == pytest.approx(1 - 2 * 0.02275, abs=1e-5)
    assert neighbour_certainty(posterior)[0] == pytest.approx([0.97725], abs=1e-5)


def test_expected_tau_is_the_mean_tau_of_strengths_drawn_from_the_posterior() -> None:
    posterior = fit_posterior(played_league(6, games=100)[None])
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_normal(posterior.mean[0], posterior.covariance[0], size=20_000)
    above = np.triu_indices(6, 1)
    said = np.sign(posterior.mean[0, above[0]] - posterior.mean[0, above[1]])
    taus = (np.sign(drawn[:, above[0]] - drawn[:, above[1]]) * said).mean(axis=1)
    error = float(taus.std()) / np.sqrt(20_000)
    assert expected_tau(posterior)[0] == pytest.approx(float(taus.mean()), abs=4 * error)


def test_nothing_asked_is_no_certainty_at_all() -> None:
    posterior = fit_posterior(np.zeros((1, 4, 4)))
    assert expected_tau(posterior)[0] == 0.0
    assert neighbour_certainty(posterior)[0] == pytest.approx([0.5, 0.5, 0.5])


def test_description_stands_best_first() -> None:
    posterior = known([-1.0, 3.0, 0.0], np.diag([0.5, 0.5, 0.5]))
    certainty = describe_certainty(("low", "high", "middle"), posterior)
    assert certainty.models == ("high", "middle", "low")
    assert certainty.log_odds == (3.0, 0.0, -1.0)
    # Gaps of 3 and 1 with deviation 1: Φ(3) and Φ(1).
    assert certainty.neighbours == pytest.approx((0.99865, 0.84134), abs=1e-5)
    assert certainty.least_neighbour == pytest.approx(0.84134, abs=1e-5)
