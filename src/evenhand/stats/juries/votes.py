"""The votes of several judges on a pair: the model that weighs them, and the resulting verdict,
with the dissent kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.columns import Floats
from evenhand.stats.outcomes import code_array

Winners: TypeAlias = NDArray[np.int8]

MOST_STEPS = 40
SETTLED = 1e-8
# Patterns of votes are numbers to the base 7; more judges than this do not fit.
MOST_JUDGES = 22


@dataclass(frozen=True, slots=True)
class VoteModel:
    """Log-odds: A has w·s, B has -w·s, a tie has the level and v·t.

    s is +1, -1 or 0 for each judge's A, B, and tie or no vote; t is 1 for its tie. So exchanging A
    and B exchanges their chances. Labels without ties have no class of ties.
    """

    weights: Floats
    tie_weights: Floats
    tie_level: float
    ties: bool


def vote_patterns(
    votes: Winners, labels: Winners, fold: NDArray[np.intp], folds: int
) -> tuple[NDArray[np.intp], Winners, Floats]:
    """Each row's vote pattern, the patterns, and label counts by fold and pattern."""
    if votes.shape[1] > MOST_JUDGES:
        patterns, pattern = np.unique(votes, axis=0, return_inverse=True)
        pattern = pattern.reshape(-1)
    else:  # many times as fast
        packed = (votes.astype(np.int64) + 1) @ (7 ** np.arange(votes.shape[1], dtype=np.int64))
        _, first, pattern = np.unique(packed, return_index=True, return_inverse=True)
        patterns = votes[first]
    size = len(patterns) * 3
    totals = np.bincount(fold * size + pattern * 3 + labels, minlength=folds * size)
    return pattern, patterns, totals.astype(np.float64).reshape(folds, -1, 3)


def class_chances(votes: Winners, model: VoteModel) -> Floats:
    leaning, tied = _features(votes)
    score = leaning @ model.weights
    levels = np.stack([score, -score, model.tie_level + tied @ model.tie_weights], axis=1)
    if not model.ties:
        levels[:, 2] = -np.inf
    return _softmax(levels)


def fit_votes(patterns: Winners, counts: Floats, *, penalty: float) -> VoteModel:
    """Regularised multinomial regression by Newton's method; convex, so the answer is unique.

    A ridge penalty on the weights shares a weight among copies of a judge, so a copy changes the
    vote only by the weaker shrinkage of a shared weight.
    """
    leaning, tied = _features(patterns)
    ties = bool(counts[:, 2].any())
    judges = leaning.shape[1]
    zeros = np.zeros_like(leaning)
    one = np.ones((len(patterns), 1))
    # One feature table per class; rows are patterns, columns parameters.
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
    parameters = np.zeros(used.size)
    for _ in range(MOST_STEPS):
        step = _newton_step(design, counts, totals, parameters, ridge=ridge, ties=ties)
        furthest = max(float(np.abs(table @ step).max()) for table in design)
        parameters = parameters + (step if furthest <= 4 else step * (4 / furthest))
        if float(np.abs(step).max()) < SETTLED:
            break
    return VoteModel(
        weights=parameters[:judges],
        tie_weights=parameters[judges : 2 * judges] if ties else np.zeros(judges),
        tie_level=float(parameters[-1]) if ties else 0.0,
        ties=ties,
    )


def _newton_step(
    design: list[Floats],
    counts: Floats,
    totals: Floats,
    parameters: Floats,
    *,
    ridge: Floats,
    ties: bool,
) -> Floats:
    levels = np.stack([table @ parameters for table in design], axis=1)
    if not ties:
        levels[:, 2] = -np.inf
    chances = _softmax(levels)
    surplus = counts - totals[:, None] * chances
    gradient: Any = -ridge * parameters
    mean = np.zeros_like(design[0])
    curvature = np.diag(ridge)
    for place, table in enumerate(design):
        gradient = gradient + surplus[:, place] @ table
        mean = mean + chances[:, place, None] * table
        curvature = curvature + (table * (totals * chances[:, place])[:, None]).T @ table
    curvature = curvature - (mean * totals[:, None]).T @ mean
    step: Floats = np.linalg.solve(curvature, gradient)
    return step


def _features(votes: Winners) -> tuple[Floats, Floats]:
    leaning = (votes == 0).astype(np.float64) - (votes == 1)
    return leaning, (votes == 2).astype(np.float64)


def _softmax(levels: Floats) -> Floats:
    raised = np.exp(levels - levels.max(axis=1, keepdims=True))
    chances: Floats = raised / raised.sum(axis=1, keepdims=True)
    return chances


VOTE_A, VOTE_B, VOTE_TIE, NO_VOTE = 0, 1, 2, -1
# A judge whose two orders differ gives half a vote to each choice.
SPLIT_A_B, SPLIT_A_TIE, SPLIT_B_TIE = 3, 4, 5
# Half votes for A, B and a tie, by code; no vote, -1, is the last.
_HALVES = np.array(
    [[2, 0, 0], [0, 2, 0], [0, 0, 2], [1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]], dtype=np.intp
)
# Chances closer than this are equal: rounding must not decide a hung vote.
SAME_CHANCE = 1e-9


@dataclass(frozen=True, slots=True)
class JuryVerdicts:
    """One row a pair. Winners are 0 A, 1 B, 2 tie, and -1 without votes or with a hung jury.

    A hung jury, whose largest groups are equal, is not a tie. `dissent` is the share of votes not
    cast for the winner (or, if hung, for the largest group). `voters` are judges with a whole vote.
    `chances` are of A, B and a tie, if learned from labels.
    """

    winners: Winners
    hung: NDArray[np.bool_]
    dissent: Floats
    voters: NDArray[np.intp]
    votes: Winners
    probability: Floats | None
    chances: Floats | None


def whole_votes(codes: Winners) -> Winners:
    return np.where(codes <= VOTE_TIE, codes, NO_VOTE).astype(np.int8)


def split_votes(first: Any, second: Any) -> Winners:
    """A judge's half votes by its choice in each order; -1 if they agree, or one is unknown."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    split = (low >= 0) & (low != high)
    return np.where(split, low + high + 2, NO_VOTE).astype(np.int8)


def majority_vote(votes: Any) -> JuryVerdicts:
    """The largest group of whole votes wins; a tie is a vote, a half is not."""
    return _largest_group(whole_votes(vote_table(votes)))


def plurality_vote(votes: Any) -> JuryVerdicts:
    """The largest group of votes wins, including half votes."""
    return _largest_group(vote_table(votes))


def member_vote(votes: Any, member: int) -> JuryVerdicts:
    """One judge's vote; hung if its orders differ. The others' votes are dissent."""
    codes = vote_table(votes)
    own = codes[:, member]
    return _verdicts(codes, whole_votes(own), own > VOTE_TIE, None)


def weighted_vote(votes: Winners, model: VoteModel) -> JuryVerdicts:
    """The likeliest class wins; equal chances are a hung jury."""
    codes = whole_votes(votes)
    chances = class_chances(codes, model)
    largest = chances.max(axis=1)
    voted = (codes >= 0).any(axis=1)
    rivals = (chances >= largest[:, None] - SAME_CHANCE).sum(axis=1)
    hung = (rivals > 1) & voted
    winners = np.where(hung | ~voted, NO_VOTE, chances.argmax(axis=1)).astype(np.int8)
    return _verdicts(codes, winners, hung, chances)


def _largest_group(codes: Winners) -> JuryVerdicts:
    halves = _HALVES[codes].sum(axis=1)
    largest = halves.max(axis=1)
    hung = ((halves == largest[:, None]).sum(axis=1) > 1) & (largest > 0)
    winners = np.where(hung | (largest == 0), NO_VOTE, halves.argmax(axis=1)).astype(np.int8)
    return _verdicts(codes, winners, hung, None)


def _verdicts(
    codes: Winners, winners: Winners, hung: NDArray[np.bool_], chances: Floats | None
) -> JuryVerdicts:
    halves = _HALVES[codes].sum(axis=1)
    own = np.where(
        winners >= 0, halves[np.arange(winners.size), np.maximum(winners, 0)], halves.max(axis=1)
    )
    probability = None
    if chances is not None:
        probability = chances.max(axis=1)
    return JuryVerdicts(
        winners=winners,
        hung=hung,
        dissent=1.0 - own / np.maximum(halves.sum(axis=1), 1),
        voters=(whole_votes(codes) >= 0).sum(axis=1),
        votes=codes,
        probability=probability,
        chances=chances,
    )


def vote_table(votes: Any, *, judges: int | None = None) -> Winners:
    try:
        table = np.asarray(votes)
    except ValueError:
        raise InputError.of("stats.votes_ragged") from None
    if table.ndim != 2 or (table.size and table.dtype.kind not in "iu"):
        raise InputError.of("stats.votes_no_table")
    if judges is not None and table.shape[1] != judges:
        raise InputError.of("stats.votes_columns", judges=judges, columns=table.shape[1])
    if table.shape[1] == 0:
        raise InputError.of("stats.votes_empty")
    code_array(table.reshape(-1), name="votes", low=NO_VOTE, high=SPLIT_B_TIE)
    return table.astype(np.int8, copy=False)
