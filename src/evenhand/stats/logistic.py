"""Logistic regression on shares, with Firth's penalty and a covariance clustered by prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats: TypeAlias = NDArray[np.float64]

MOST_STEPS = 50
# A step this small changes no printed digit.
SETTLED = 1e-8
# No step may move a row's log-odds further than this.
LONGEST_STEP = 5.0
# Where the plain likelihood has a maximum, Newton finds it from the penalised one in a few steps.
PLAIN_STEPS = 15
# From this many clusters on, leaving one out moves the fit by less than its rounding in a report.
LEAVE_OUT_BELOW = 2_000


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """Coefficients, each cluster's influence on them (a row each), and how the fit went.

    `dispersion` is Pearson's: 1 for wins and losses, less where there are ties.
    """

    coefficients: Floats
    influence: Floats
    model_covariance: Floats
    dispersion: float
    converged: bool
    iterations: int
    separated: bool


def fit_logistic(
    design: Floats, responses: Floats, *, clusters: NDArray[np.intp], count: int
) -> LogisticFit:
    """Responses are shares from 0 to 1 (a tie is one half); the design has full rank.

    Firth's penalty (1993), half the log-determinant of the information, keeps the estimates
    finite when the data are separated (Heinze and Schemper 2002) and takes off their first-order
    bias otherwise. `separated` says that without it there would have been no finite estimate.
    """
    coefficients = np.zeros(design.shape[1])
    converged, steps = False, 0
    while not converged and steps < MOST_STEPS:
        steps += 1
        step = _newton_step(design, responses, coefficients, penalised=True)
        coefficients = coefficients + step
        converged = float(np.abs(step).max()) < SETTLED
    probabilities = expit(design @ coefficients)
    weights = probabilities * (1 - probabilities)
    information = design.T @ (design * weights[:, None])
    scores = _cluster_sums(design * (responses - probabilities)[:, None], clusters, count)
    return LogisticFit(
        coefficients=coefficients,
        influence=_influence(design, weights, scores, information, clusters, count),
        model_covariance=np.linalg.inv(information),
        dispersion=float((np.square(responses - probabilities) / weights).sum())
        / max(1, responses.size - design.shape[1]),
        converged=converged,
        iterations=steps,
        separated=_separated(design, responses, coefficients),
    )


def _newton_step(
    design: Floats, responses: Floats, coefficients: Floats, *, penalised: bool
) -> Floats:
    probabilities = expit(design @ coefficients)
    weights = probabilities * (1 - probabilities)
    information = design.T @ (design * weights[:, None])
    residuals = responses - probabilities
    if penalised:
        leverage = weights * np.einsum("ij,ij->i", design @ np.linalg.inv(information), design)
        residuals = residuals + leverage * (0.5 - probabilities)
    step: Floats = np.linalg.solve(information, design.T @ residuals)
    furthest = float(np.abs(design @ step).max())
    return step if furthest <= LONGEST_STEP else step * (LONGEST_STEP / furthest)


def _separated(design: Floats, responses: Floats, start: Floats) -> bool:
    coefficients = start
    for _ in range(PLAIN_STEPS):
        try:
            step = _newton_step(design, responses, coefficients, penalised=False)
        except np.linalg.LinAlgError:
            return True
        coefficients = coefficients + step
        if float(np.abs(step).max()) < SETTLED:
            return False
    return True


def _influence(
    design: Floats,
    weights: Floats,
    scores: Floats,
    information: Floats,
    clusters: NDArray[np.intp],
    count: int,
) -> Floats:
    """How far each cluster moves the coefficients; the squares add up to their covariance.

    With few clusters this is one Newton step of leaving it out (CR3; MacKinnon, Nielsen and Webb
    2023); with many it is the usual sandwich, which by then is the same.
    """
    if count >= LEAVE_OUT_BELOW:
        factor = np.sqrt(count / (count - 1))
        whole: Floats = np.linalg.solve(information, scores.T).T * factor
        return whole
    width = design.shape[1]
    products = (design[:, :, None] * design[:, None, :]) * weights[:, None, None]
    own = _cluster_sums(products.reshape(-1, width * width), clusters, count)
    remaining = information[None, :, :] - own.reshape(count, width, width)
    try:
        moved: Floats = np.linalg.solve(remaining, scores[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        # Without one of the clusters there is no fit at all: pseudo-inverse, which is wide.
        moved = np.einsum("cij,cj->ci", np.linalg.pinv(remaining), scores)
    return moved * np.sqrt((count - 1) / count)


def _cluster_sums(rows: Floats, clusters: NDArray[np.intp], count: int) -> Floats:
    columns: list[NDArray[Any]] = [
        np.bincount(clusters, weights=column, minlength=count) for column in rows.T
    ]
    return np.stack(columns, axis=1)
