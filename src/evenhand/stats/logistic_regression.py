"""Logistic regression: with Firth's penalty and standard errors clustered by prompt, and with a
ridge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.columns import Floats
from evenhand.stats.distributions import expit

MOST_STEPS = 60
# A smaller step changes no printed digit.
SETTLED = 1e-8
# The most that a step may move a row's log-odds.
LONGEST_STEP = 5.0
# If the plain likelihood has a maximum, Newton finds it from the penalised one in a few steps.
PLAIN_STEPS = 15
# Keeps a quotient finite if a fitted share is 0 or 1 to the last bit.
TINY_WEIGHT = 1e-12
# With this many clusters, leaving one out moves the fit by less than a report's rounding.
LEAVE_OUT_BELOW = 2_000
# Keeps a ridge's intercept finite if all rows are alike.
INTERCEPT_PENALTY = 1e-6


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """Coefficients, each cluster's influence on them (a row each), and how the fit went.

    `dispersion` is Pearson's: 1 for wins and losses, less with ties.
    """

    coefficients: Floats
    influence: Floats
    model_covariance: Floats
    dispersion: float
    converged: bool
    iterations: int
    separated: bool


def fit_logistic(
    columns: Floats, responses: Floats, *, clusters: NDArray[np.intp], count: int
) -> LogisticFit:
    """One row of `columns` for each coefficient, of full rank; responses are shares from 0 to 1.

    Firth's penalty (1993), half the log-determinant of the information, keeps the estimates finite
    if the data are separated (Heinze and Schemper 2002), and otherwise removes their first-order
    bias. `separated` says that without it no finite estimate exists.
    """
    coefficients = np.zeros(columns.shape[0])
    converged, steps = False, 0
    while not converged and steps < MOST_STEPS:
        steps += 1
        step = _newton_step(columns, responses, coefficients, penalised=True)
        coefficients = coefficients + step
        converged = float(np.abs(step).max()) < SETTLED
    probabilities = expit(coefficients @ columns)
    weights = probabilities * (1 - probabilities)
    residuals = responses - probabilities
    information = (columns * weights) @ columns.T
    pearson = float((residuals * residuals / np.maximum(weights, TINY_WEIGHT)).sum())
    return LogisticFit(
        coefficients=coefficients,
        influence=_influence(columns, weights, residuals, information, clusters, count),
        model_covariance=np.asarray(np.linalg.inv(information), dtype=np.float64),
        dispersion=pearson / max(1, responses.size - columns.shape[0]),
        converged=converged,
        iterations=steps,
        separated=_separated(columns, responses, coefficients),
    )


def _newton_step(
    columns: Floats, responses: Floats, coefficients: Floats, *, penalised: bool
) -> Floats:
    probabilities = expit(coefficients @ columns)
    weights = probabilities * (1 - probabilities)
    information = (columns * weights) @ columns.T
    residuals = responses - probabilities
    if penalised:
        leverage = weights * ((np.linalg.inv(information) @ columns) * columns).sum(axis=0)
        residuals = residuals + leverage * (0.5 - probabilities)
    step: Floats = np.linalg.solve(information, columns @ residuals).astype(np.float64)
    return _shortened(step, columns)


def _shortened(step: Floats, columns: Floats) -> Floats:
    furthest = float(np.abs(step @ columns).max())
    return step if furthest <= LONGEST_STEP else step * (LONGEST_STEP / furthest)


def _separated(columns: Floats, responses: Floats, start: Floats) -> bool:
    coefficients = start
    for _ in range(PLAIN_STEPS):
        try:
            step = _newton_step(columns, responses, coefficients, penalised=False)
        except np.linalg.LinAlgError:
            return True
        coefficients = coefficients + step
        if float(np.abs(step).max()) < SETTLED:
            return False
    return True


def _influence(
    columns: Floats,
    weights: Floats,
    residuals: Floats,
    information: Floats,
    clusters: NDArray[np.intp],
    count: int,
) -> Floats:
    """How far each cluster moves the coefficients; the squares add up to their covariance.

    With few clusters, one Newton step of leaving it out (CR3; MacKinnon, Nielsen and Webb 2023);
    with many, the usual sandwich, by then the same.
    """
    scores = _cluster_sums(columns * residuals, clusters, count)
    if count >= LEAVE_OUT_BELOW:
        factor = np.sqrt(count / (count - 1))
        return np.asarray(scores @ np.linalg.inv(information) * factor, dtype=np.float64)
    width = columns.shape[0]
    products = (columns[:, None, :] * columns[None, :, :] * weights).reshape(width * width, -1)
    own = _cluster_sums(products, clusters, count).reshape(count, width, width)
    remaining = information - own
    try:
        moved = np.linalg.solve(remaining, scores[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        # Without one of the clusters there may be no fit: the pseudo-inverse drops the direction
        # that only that cluster determines.
        moved = np.einsum("cij,cj->ci", np.linalg.pinv(remaining), scores)
    return np.asarray(moved * np.sqrt((count - 1) / count), dtype=np.float64)


def _cluster_sums(rows: Floats, clusters: NDArray[np.intp], count: int) -> Floats:
    sums: list[NDArray[Any]] = [np.bincount(clusters, weights=row, minlength=count) for row in rows]
    return np.stack(sums, axis=1)


def fit_ridge(
    design: Floats, responses: Floats, *, penalty: float, start: Floats | None = None
) -> Floats:
    """Intercept and slopes that maximise the likelihood less penalty / 2 times squared slopes.

    Newton's method; strictly concave, so the maximum is unique. `responses` may be shares.
    """
    rows, width = design.shape
    columns = np.empty((width + 1, rows))
    columns[0] = 1.0
    columns[1:] = design.T
    ridge = np.full(width + 1, penalty)
    ridge[0] = INTERCEPT_PENALTY
    coefficients = np.zeros(width + 1) if start is None else start.copy()
    for _ in range(MOST_STEPS):
        probabilities = expit(coefficients @ columns)
        weights = probabilities * (1 - probabilities)
        information = (columns * weights) @ columns.T + np.diag(ridge)
        slope = columns @ (responses - probabilities) - ridge * coefficients
        step = _shortened(np.linalg.solve(information, slope), columns)
        coefficients = coefficients + step
        if float(np.abs(step).max()) < SETTLED:
            break
    return coefficients


def ridge_log_evidence(
    design: Floats, responses: Floats, fitted: Floats, *, penalty: float, weight: float = 1.0
) -> float:
    """A ridge's log evidence, by Laplace's approximation.

    `penalty` is the inverse variance of the slopes' normal prior. A row counts as `weight`
    independent ones, for a fit with a penalty of penalty / weight. Constants shared by every design
    of the same responses are left out: only differences matter.
    """
    rows, width = design.shape
    columns = np.concatenate([np.ones((1, rows)), design.T])
    odds = fitted @ columns
    probabilities = expit(odds)
    likelihood = float((responses * odds - np.logaddexp(0, odds)).sum())
    ridge = np.full(width + 1, penalty)
    ridge[0] = INTERCEPT_PENALTY
    information = weight * (columns * (probabilities * (1 - probabilities))) @ columns.T
    slopes = fitted[1:]
    return float(
        weight * likelihood
        - penalty / 2 * (slopes @ slopes)
        + width / 2 * np.log(penalty)
        - np.linalg.slogdet(information + np.diag(ridge))[1] / 2
    )
