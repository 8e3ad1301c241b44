"""Davidson's model (1970): ties as an outcome of their own, with one parameter for all pairs."""

from __future__ import annotations

import numpy as np

from evenhand.stats.bradley_terry import (
    STEPS_MAX,
    TOLERANCE,
    Fit,
    Matrix,
    beginning,
    davidson_chances,
    grounded,
)


def fit_davidson(
    won: Matrix,
    tied: Matrix,
    *,
    prior: float,
    start: Matrix | None = None,
    log_ties: float | None = None,
) -> Fit:
    """`won` holds ties as half; `tied` must hold some ties, and `won` more than ties."""
    size = len(won)
    played = won + won.T
    scored = won.sum(axis=1) + prior / 2
    ties = tied.sum() / 2
    strength = beginning(scored, played) if start is None else start.copy()
    if log_ties is None:
        share = ties / (played.sum() / 2)
        log_ties = float(np.log(2 * share / (1 - share)))
    iterations, converged = 0, False
    bread, prior_bread = np.empty(0), np.empty(0)
    while not converged and iterations < STEPS_MAX:
        iterations += 1
        gradient, bread, prior_bread = _derivatives(played, scored, ties, strength, log_ties, prior)
        full = bread.copy()
        full[:size, :size] = grounded(bread[:size, :size], prior)
        step = np.linalg.solve(full, gradient)
        # The widest change between two outcomes of a pair; see fit_bradley_terry.
        moved = float(np.ptp(step[:size])) + abs(float(step[size]))
        if prior:
            moved = max(moved, 2 * float(np.abs(step[:size]).max()))
        step /= max(1.0, moved)
        strength = strength + step[:size]
        log_ties += float(step[size])
        converged = moved < TOLERANCE
    return Fit(strength, bread, prior_bread, iterations, converged, log_ties)


def _derivatives(
    played: Matrix, scored: Matrix, ties: float, strength: Matrix, log_ties: float, prior: float
) -> tuple[Matrix, Matrix, Matrix]:
    size = len(strength)
    win, tie = davidson_chances(strength[:, None] - strength, log_ties)
    lead = (win - win.T) / 2
    gradient = np.empty(size + 1)
    gradient[:size] = scored - (played * (win + tie / 2)).sum(axis=1)
    gradient[size] = ties - (played * tie).sum() / 2
    pairs = played * ((1 - tie) / 4 - lead * lead)
    np.fill_diagonal(pairs, 0.0)
    bread = np.zeros((size + 1, size + 1))
    bread[:size, :size] = -pairs
    diagonal = pairs.sum(axis=1)
    prior_bread = np.zeros(size)
    if prior:
        virtual = 1 / (1 + np.exp(-strength))
        gradient[:size] -= prior * virtual
        prior_bread = prior * virtual * (1 - virtual)
    bread[np.arange(size), np.arange(size)] = diagonal + prior_bread
    bread[:size, size] = bread[size, :size] = -(played * tie * lead).sum(axis=1)
    bread[size, size] = (played * tie * (1 - tie)).sum() / 2
    return gradient, bread, prior_bread
