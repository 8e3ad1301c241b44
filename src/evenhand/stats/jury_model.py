"""From judges' votes to the chances of A, B and a tie: the regression behind a learned jury."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.clusters import Floats

Votes = NDArray[np.int8]

MOST_STEPS = 40
SETTLED = 1e-8
# Half a label a class keeps a judge that never erred from an endless weight.
PRIOR_LABELS = 0.5


@dataclass(frozen=True, slots=True)
class VoteModel:
    """Log-odds: A has w·s, B has -w·s, a tie has the level and v·t.

    s is +1, -1 or 0 for each judge's A, B, and tie or no vote; t is 1 for its tie. So exchanging
    A and B exchanges their chances. Without ties among the labels there is no class of ties.
    """

    weights: Floats
    tie_weights: Floats
    tie_level: float
    ties: bool


def vote_patterns(
    votes: Votes,
    labels: Votes,
    *,
    fold: NDArray[np.intp] | None = None,
    folds: int | None = None,
) -> tuple[Votes, Floats]:
    """The distinct rows of votes, and how many labels of each class each has (in each fold)."""
    patterns, places = np.unique(votes, axis=0, return_inverse=True)
    places = places.reshape(-1)
    cells = places * 3 + labels
    if fold is None or folds is None:
        counts = np.bincount(cells, minlength=len(patterns) * 3).astype(np.float64)
        return patterns, counts.reshape(-1, 3)
    cells = cells + fold * (len(patterns) * 3)
    counts = np.bincount(cells, minlength=folds * len(patterns) * 3).astype(np.float64)
    return patterns, counts.reshape(folds, -1, 3)


def class_chances(votes: Votes, model: VoteModel) -> Floats:
    leaning, tied = _features(votes)
    score = leaning @ model.weights
    levels = np.stack([score, -score, model.tie_level + tied @ model.tie_weights], axis=1)
    if not model.ties:
        levels[:, 2] = -np.inf
    return _softmax(levels)


def fit_votes(patterns: Votes, counts: Floats, *, penalty: float) -> VoteModel:
    """Regularised multinomial regression by Newton's method; convex, so there is one answer.

    The penalty is ridge on the weights. It shares a weight among copies of a judge, and so a
    copy changes the vote by no more than the weaker shrinking of a weight that is shared.
    """
    leaning, tied = _features(patterns)
    ties = bool(counts[:, 2].any())
    judges = leaning.shape[1]
    zeros = np.zeros_like(leaning)
    one = np.ones((len(patterns), 1))
    # One table of features for each class; rows are patterns, columns the parameters.
    design = [
        np.hstack([leaning, zeros, 0 * one]),
        np.hstack([-leaning, zeros, 0 * one]),
        np.hstack([zeros, tied, one]),
    ]
    used = np.arange(2 * judges + 1) if ties else np.arange(judges)
    design = [table[:, used] for table in design]
    ridge = np.full(used.size, penalty)
    if ties:
        ridge[-1] = 1e-6  # the level is not shrunk; this only keeps the equations solvable
    totals = counts.sum(axis=1)
    present = totals > 0
    design = [table[present] for table in design]
    counts, totals = counts[present], totals[present]
    found = np.zeros(used.size)
    for _ in range(MOST_STEPS):
        step = _newton_step(design, counts, totals, found, ridge=ridge, ties=ties)
        furthest = max(float(np.abs(table @ step).max()) for table in design)
        found = found + (step if furthest <= 4 else step * (4 / furthest))
        if float(np.abs(step).max()) < SETTLED:
            break
    return VoteModel(
        weights=found[:judges],
        tie_weights=found[judges : 2 * judges] if ties else np.zeros(judges),
        tie_level=float(found[-1]) if ties else 0.0,
        ties=ties,
    )


def naive_bayes(votes: Votes, labels: Votes) -> VoteModel:
    """Each judge by its own accuracy, as if judges erred independently (Nitzan, Paroush 1982)."""
    decisive = labels < 2
    ties = bool((~decisive).any())
    own = votes[decisive]
    right = (own == labels[decisive, None]).sum(axis=0) + PRIOR_LABELS
    wrong = (own == 1 - labels[decisive, None]).sum(axis=0) + PRIOR_LABELS
    # The two classes lie 2 w·s apart, so that a weight is half the log-odds of being right.
    weights = 0.5 * np.log(right / wrong)
    if not ties:
        return VoteModel(weights, np.zeros(votes.shape[1]), 0.0, ties=False)
    on_ties = ((votes == 2) & ~decisive[:, None]).sum(axis=0) + PRIOR_LABELS
    on_others = ((votes == 2) & decisive[:, None]).sum(axis=0) + PRIOR_LABELS
    prior = float(np.log(((~decisive).sum() + PRIOR_LABELS) / (decisive.sum() + 1.0) * 2))
    tie_weights = np.log(on_ties / (~decisive).sum()) - np.log(on_others / max(1, decisive.sum()))
    return VoteModel(weights, tie_weights, prior, ties=True)


def _newton_step(
    design: list[Floats],
    counts: Floats,
    totals: Floats,
    found: Floats,
    *,
    ridge: Floats,
    ties: bool,
) -> Floats:
    levels = np.stack([table @ found for table in design], axis=1)
    if not ties:
        levels[:, 2] = -np.inf
    chances = _softmax(levels)
    surplus = counts - totals[:, None] * chances
    gradient: Any = -ridge * found
    mean = np.zeros_like(design[0])
    curvature = np.diag(ridge)
    for place, table in enumerate(design):
        gradient = gradient + surplus[:, place] @ table
        mean = mean + chances[:, place, None] * table
        curvature = curvature + (table * (totals * chances[:, place])[:, None]).T @ table
    curvature = curvature - (mean * totals[:, None]).T @ mean
    step: Floats = np.linalg.solve(curvature, gradient)
    return step


def _features(votes: Votes) -> tuple[Floats, Floats]:
    leaning = (votes == 0).astype(np.float64) - (votes == 1)
    return leaning, (votes == 2).astype(np.float64)


def _softmax(levels: Floats) -> Floats:
    raised = np.exp(levels - levels.max(axis=1, keepdims=True))
    chances: Floats = raised / raised.sum(axis=1, keepdims=True)
    return chances
