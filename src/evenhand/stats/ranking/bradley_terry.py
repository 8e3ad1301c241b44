"""Bradley and Terry's model (1952), and Davidson's (1970) with ties as an outcome of their own, by
Newton's method on a tally.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.columns import Floats
from evenhand.stats.distributions import expit

STEPS_MAX = 100
# Newton's steps square the error: after a step this small only rounding is left.
TOLERANCE = 1e-7
_SPREAD_MAX = 600.0  # of log-odds whose exponentials are finite numbers


@dataclass(frozen=True, slots=True)
class Fit:
    """`strength` is in log-odds; `bread` is the information, including the prior's.

    `log_ties` is the log of Davidson's tie parameter, with the last row and column of `bread`; None
    if ties count as half.
    """

    strength: Floats
    bread: Floats
    prior_bread: Floats  # what of `bread` is the prior's, on its diagonal
    iterations: int
    converged: bool
    log_ties: float | None = None


def fit_bradley_terry(won: Floats, *, prior: float) -> Fit:
    """The strengths under which `won[i, j]`, what i scored against j, is most likely.

    `prior` is a number of virtual ties of each model with one of log-odds 0.
    """
    played = won + won.T
    scored = won.sum(axis=1) + prior / 2
    strength = beginning(scored, played)
    iterations, converged = 0, False
    bread, prior_bread = np.empty(0), np.empty(0)
    while not converged and iterations < STEPS_MAX:
        iterations += 1
        gradient, bread, prior_bread = _derivatives(played, scored, strength, prior)
        step = np.linalg.solve(grounded(bread, prior), gradient)
        moved = float(np.ptp(step)) if prior == 0 else 2 * float(np.abs(step).max())
        # A step that changes no difference by more than 1 never lowers a logistic likelihood (Bach
        # 2010, self-concordance); shorter ones are full Newton steps.
        strength = strength + step / max(1.0, moved)
        converged = moved < TOLERANCE
    return Fit(strength, bread, prior_bread, iterations, converged)


def _derivatives(
    played: Floats, scored: Floats, strength: Floats, prior: float
) -> tuple[Floats, Floats, Floats]:
    chance = chances(strength)
    expected = played * chance
    gradient = scored - expected.sum(axis=1)
    expected *= chance.T  # now the information of each pair
    bread = -expected
    diagonal = expected.sum(axis=1)
    prior_bread = np.zeros(len(strength))
    if prior:
        virtual = expit(strength)
        gradient -= prior * virtual
        prior_bread = prior * virtual * (1 - virtual)
    bread.flat[:: len(strength) + 1] += diagonal + prior_bread
    return gradient, bread, prior_bread


def beginning(scored: Floats, played: Floats) -> Floats:
    """The log-odds of each model's score rate: exact if all opponents were average."""
    battles = played.sum(axis=1)
    start = np.log((scored + 0.5) / (battles - scored + 0.5).clip(0.5))
    return np.asarray(start - start.mean())


def chances(strength: Floats) -> Floats:
    """Of each model against each other. Dividing takes a third of exponentiating's time."""
    if np.ptp(strength) > _SPREAD_MAX:
        return np.asarray(expit(strength[:, None] - strength))
    odds = np.exp(strength - strength.max() / 2 - strength.min() / 2)
    return np.asarray(odds[:, None] / (odds[:, None] + odds))


def grounded(bread: Floats, prior: float) -> Floats:
    """Battles determine differences only: without a prior the mean is fixed."""
    if prior:
        return bread
    return np.asarray(bread + bread.trace() / len(bread) ** 2)


def expected_scores(strength: Floats, log_ties: float | None) -> Floats:
    """What each model scores against each other, a tie being half."""
    return expected_score(strength[:, None] - strength, log_ties)


def expected_score(difference: Floats, log_ties: float | None) -> Floats:
    """The same at a difference of strengths."""
    if log_ties is None:
        return np.asarray(expit(difference))
    win, tie = davidson_chances(difference, log_ties)
    return win + tie / 2


def davidson_chances(difference: Floats, log_ties: float) -> tuple[Floats, Floats]:
    """The chances of a win and of a tie at a difference of strengths (Davidson 1970)."""
    top = np.maximum(np.abs(difference) / 2, log_ties)
    win = np.exp(difference / 2 - top)
    loss = np.exp(-difference / 2 - top)
    tie = np.exp(log_ties - top)
    total = win + loss + tie
    return win / total, tie / total


def fit_davidson(won: Floats, tied: Floats, *, prior: float) -> Fit:
    """Davidson's model (1970): ties as an outcome of their own, with one parameter for all pairs.

    `won` holds ties as half; `tied` must hold some ties, and `won` more than ties.
    """
    size = len(won)
    played = won + won.T
    scored = won.sum(axis=1) + prior / 2
    ties = tied.sum() / 2
    strength = beginning(scored, played)
    share = ties / (played.sum() / 2)
    log_ties = float(np.log(2 * share / (1 - share)))
    iterations, converged = 0, False
    bread, prior_bread = np.empty(0), np.empty(0)
    while not converged and iterations < STEPS_MAX:
        iterations += 1
        gradient, bread, prior_bread = _davidson_derivatives(
            played, scored, ties, strength, log_ties, prior
        )
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


def _davidson_derivatives(
    played: Floats, scored: Floats, ties: float, strength: Floats, log_ties: float, prior: float
) -> tuple[Floats, Floats, Floats]:
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
