"""How sure the order of the models is, from what is known of their strengths."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from evenhand.contract.model import Model
from evenhand.stats.strength_posterior import Floats, StrengthPosterior, gap_variance


class RankCertainty(Model):
    """Probabilities are of the normal posterior: right on average over leagues like its prior."""

    models: tuple[str, ...]  # best first
    log_odds: tuple[float, ...]
    deviations: tuple[float, ...]  # of each strength beside the mean of all
    expected_tau: float
    neighbours: tuple[float, ...]  # how probably each model is better than the next
    least_neighbour: float
    mean_neighbour: float
    prior_deviation: float
    dispersion: float
    comparisons: int
    converged: bool


def misorder_probability(posterior: StrengthPosterior) -> Floats:
    """How probably each two models stand the wrong way round; one half where nothing is known."""
    gaps = posterior.mean[:, :, None] - posterior.mean[:, None, :]
    variance = np.maximum(gap_variance(posterior.covariance), np.finfo(np.float64).tiny)
    chance: Floats = ndtr(-np.abs(gaps) / np.sqrt(variance))
    return chance


def expected_tau(posterior: StrengthPosterior) -> Floats:
    """Kendall's tau that the order by mean strength has, on average over the posterior."""
    models = posterior.mean.shape[1]
    above = np.triu_indices(models, 1)
    wrong: Floats = misorder_probability(posterior)[:, above[0], above[1]].mean(axis=1)
    return 1.0 - 2.0 * wrong


def neighbour_certainty(posterior: StrengthPosterior) -> Floats:
    """How probably each model, best first, is better than the one below it."""
    order = np.argsort(-posterior.mean, axis=1, kind="stable")
    leagues = np.arange(order.shape[0])[:, None]
    certainty: Floats = 1.0 - misorder_probability(posterior)[leagues, order[:, :-1], order[:, 1:]]
    return certainty


def describe_certainty(
    models: tuple[str, ...], posterior: StrengthPosterior, *, comparisons: int
) -> RankCertainty:
    """The certainty of a stack of one league."""
    order = np.argsort(-posterior.mean[0], kind="stable")
    count = len(models)
    centring = np.eye(count) - 1.0 / count
    relative = centring @ posterior.covariance[0] @ centring
    deviations = np.sqrt(np.maximum(np.diagonal(relative), 0.0))
    neighbours = neighbour_certainty(posterior)[0]
    return RankCertainty(
        models=tuple(models[i] for i in order),
        log_odds=tuple(float(posterior.mean[0, i]) for i in order),
        deviations=tuple(float(deviations[i]) for i in order),
        expected_tau=float(expected_tau(posterior)[0]),
        neighbours=tuple(float(chance) for chance in neighbours),
        least_neighbour=float(neighbours.min()),
        mean_neighbour=float(neighbours.mean()),
        prior_deviation=float(np.sqrt(posterior.prior_variance[0])),
        dispersion=float(posterior.dispersion[0]),
        comparisons=comparisons,
        converged=posterior.converged,
    )
