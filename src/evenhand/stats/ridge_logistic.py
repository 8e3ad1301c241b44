"""Logistic regression with a ridge: the log-odds of being right from standardised signals."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from evenhand.stats.clusters import Floats

MOST_STEPS = 60
SETTLED = 1e-8
# No step may move a row's log-odds further than this.
LONGEST_STEP = 5.0
# Keeps the intercept finite where all rows are alike.
INTERCEPT_PENALTY = 1e-6


def fit_ridge(
    design: Floats, responses: Floats, *, penalty: float, start: Floats | None = None
) -> Floats:
    """Intercept and slopes that maximise the likelihood less penalty / 2 times squared slopes.

    Newton's method; the penalised likelihood is strictly concave, so there is one maximum.
    `responses` may be shares.
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
        step = np.linalg.solve(information, slope)
        furthest = float(np.abs(step @ columns).max())
        if furthest > LONGEST_STEP:
            step *= LONGEST_STEP / furthest
        coefficients = coefficients + step
        if float(np.abs(step).max()) < SETTLED:
            break
    return coefficients
