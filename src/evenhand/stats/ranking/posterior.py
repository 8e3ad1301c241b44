"""The posterior of every model's strength (Bradley–Terry with a normal prior), and the certainty of
the order. Works on a stack of leagues (leagues, models, models), so that simulations run the code
that chooses; one league is a stack of one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from evenhand.contract.model import Model
from evenhand.stats.columns import Floats

# The prior's own prior: a scaled inverse chi-square, as strong as one model with deviation 1.
PRIOR_MODELS = 1.0
PRIOR_VARIANCE = 1.0

_ENOUGH_ITERATIONS = 200
_TOLERANCE = 1e-8
# The most that a Newton step may move a strength, so that it cannot overshoot the mode.
_LONGEST_STEP = 2.0
# The prior weight against ties reducing noise, in rows without any.
_ROWS_WITHOUT_TIES = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class StrengthPosterior:
    """A normal approximation (Laplace) in log-odds; strengths sum to about zero."""

    mean: Floats  # (leagues, models)
    covariance: Floats  # (leagues, models, models)
    prior_variance: Floats  # (leagues,)
    dispersion: Floats  # (leagues,)
    converged: bool
    iterations: int


def win_probability(mean: Floats) -> Floats:
    chance: Floats = expit(mean[:, :, None] - mean[:, None, :])
    return chance


def laplacian(weights: Floats) -> Floats:
    """The matrix whose quadratic form is the weighted sum of squared differences."""
    diagonal = np.arange(weights.shape[-1])
    matrix = -weights
    matrix[:, diagonal, diagonal] = 0.0
    matrix[:, diagonal, diagonal] = -matrix.sum(axis=2)
    return matrix


def inverse(matrices: Floats) -> Floats:
    inverted: Floats = np.asarray(np.linalg.inv(matrices), dtype=np.float64)
    # Rounding leaves the halves slightly different, and the updates rely on symmetry.
    return (inverted + inverted.transpose(0, 2, 1)) / 2.0


def gap_variance(covariance: Floats) -> Floats:
    """The variance of the difference of each two strengths; 0 on the diagonal."""
    own = np.diagonal(covariance, axis1=1, axis2=2)
    variance: Floats = own[:, :, None] + own[:, None, :] - 2.0 * covariance
    return variance


def fit_posterior(
    scores: Floats,
    *,
    prior_variance: float | None = None,
    dispersion: Floats | float = 1.0,
) -> StrengthPosterior:
    """scores[., i, j] is what i won against j, a tie being half for each.

    Without a prior variance, it is estimated with the strengths (MacKay's fixed point of the
    Laplace evidence, 1992). A dispersion below 1 means that ties make results less noisy than coin
    tosses (quasi-likelihood, Wedderburn 1974), above 1 that prompts make them noisier.
    """
    leagues, models, _ = scores.shape
    spread = np.broadcast_to(np.asarray(dispersion, dtype=np.float64), (leagues,))
    games = (scores + scores.transpose(0, 2, 1)) / spread[:, None, None]
    won = scores.sum(axis=2) / spread[:, None]
    diagonal = np.arange(models)
    mean = np.zeros((leagues, models))
    variance = np.full(leagues, PRIOR_VARIANCE if prior_variance is None else prior_variance)
    converged = False
    iterations = 0
    while True:
        chance = win_probability(mean)
        precision = laplacian(games * chance * (1.0 - chance))
        precision[:, diagonal, diagonal] += 1.0 / variance[:, None]
        covariance = inverse(precision)
        if converged or iterations == _ENOUGH_ITERATIONS:
            break
        iterations += 1
        slope = won - (games * chance).sum(axis=2) - mean / variance[:, None]
        step = (covariance @ slope[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1)
        mean = mean + step * np.minimum(1.0, _LONGEST_STEP / np.maximum(longest, 1e-300))[:, None]
        change = float(longest.max())
        if prior_variance is None:
            known = models - np.trace(covariance, axis1=1, axis2=2) / variance
            # Never zero: rounding must not make an infinitely certain prior.
            variance_before = variance
            variance = (PRIOR_MODELS * PRIOR_VARIANCE + (mean**2).sum(axis=1)) / (
                PRIOR_MODELS + np.maximum(known, 0.0)
            )
            change = max(change, float(np.abs(variance / variance_before - 1.0).max()))
        converged = change < _TOLERANCE
    return StrengthPosterior(mean, covariance, variance, spread.copy(), converged, iterations)


def tie_dispersion(scores: Floats, ties: Floats) -> Floats:
    """The noise of results relative to coin tosses with the same chances: at most 1, less with
    ties.

    ties[., i, j] counts the ties of i and j, and is symmetric.
    """
    # Fitted without ties; the prior's pull hardly affects this ratio.
    chance = win_probability(fit_posterior(scores, prior_variance=PRIOR_VARIANCE).mean)
    decisive = scores - ties / 2.0
    squares = decisive * (1.0 - chance) ** 2 + ties / 2.0 * (0.5 - chance) ** 2
    games = (scores + scores.transpose(0, 2, 1)) / 2.0
    tossed = (games * chance * (1.0 - chance)).sum(axis=(1, 2))
    # Each unordered pair is visited from both sides: every row's square is counted once above (a
    # win from the winner's side, half a tie from either), and the coin's variance likewise.
    assumed = _ROWS_WITHOUT_TIES / 4.0
    ratio: Floats = (squares.sum(axis=(1, 2)) + assumed) / (tossed + assumed)
    return np.minimum(ratio, 1.0)


class RankCertainty(Model):
    """Probabilities under the normal posterior: right on average over leagues like its prior."""

    models: tuple[str, ...]  # best first
    log_odds: tuple[float, ...]
    expected_tau: float
    neighbours: tuple[float, ...]  # how probably each model is better than the next

    @property
    def least_neighbour(self) -> float:
        return min(self.neighbours)


def misorder_probability(posterior: StrengthPosterior) -> Floats:
    """The probability that each two models are in the wrong order; one half without data."""
    gaps = posterior.mean[:, :, None] - posterior.mean[:, None, :]
    variance = np.maximum(gap_variance(posterior.covariance), np.finfo(np.float64).tiny)
    chance: Floats = ndtr(-np.abs(gaps) / np.sqrt(variance))
    return chance


def expected_tau(posterior: StrengthPosterior) -> Floats:
    """Kendall's tau of the order by mean strength, averaged over the posterior."""
    models = posterior.mean.shape[1]
    above = np.triu_indices(models, 1)
    wrong: Floats = misorder_probability(posterior)[:, above[0], above[1]].mean(axis=1)
    return 1.0 - 2.0 * wrong


def neighbour_certainty(posterior: StrengthPosterior) -> Floats:
    """The probability that each model, best first, beats the next one."""
    order = np.argsort(-posterior.mean, axis=1, kind="stable")
    leagues = np.arange(order.shape[0])[:, None]
    certainty: Floats = 1.0 - misorder_probability(posterior)[leagues, order[:, :-1], order[:, 1:]]
    return certainty


def describe_certainty(models: tuple[str, ...], posterior: StrengthPosterior) -> RankCertainty:
    """For a stack of one league."""
    order = np.argsort(-posterior.mean[0], kind="stable")
    return RankCertainty(
        models=tuple(models[i] for i in order),
        log_odds=tuple(posterior.mean[0, order].tolist()),
        expected_tau=float(expected_tau(posterior)[0]),
        neighbours=tuple(neighbour_certainty(posterior)[0].tolist()),
    )
