"""What a jury's votes on each pair come to, with its disagreement kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.clusters import Floats
from evenhand.stats.jury_model import VoteModel, class_chances
from evenhand.stats.outcomes import code_array

Winners: TypeAlias = NDArray[np.int8]

VOTE_A, VOTE_B, VOTE_TIE, NO_VOTE = 0, 1, 2, -1
# Chances that differ by less are the same: a vote that is decided by rounding is hung.
SAME_CHANCE = 1e-9


@dataclass(frozen=True, slots=True)
class JuryVerdicts:
    """One row a pair. Winners are 0 A, 1 B, 2 tie, and -1 where no judge voted or the jury hung.

    A hung jury, whose largest groups are equal, has not found the answers equal: it is no tie.
    `dissent` is the share of the votes that were not cast for the winner (or, hung, for the
    largest group). `chances` are of A, B and a tie, where labels have taught them.
    """

    winners: Winners
    hung: NDArray[np.bool_]
    dissent: Floats
    voters: NDArray[np.intp]
    votes: Winners
    probability: Floats | None
    chances: Floats | None


def majority_vote(votes: Any) -> JuryVerdicts:
    """The largest group of the votes cast wins; unread judges have no vote, a tie is a vote."""
    codes = vote_table(votes)
    counts = _counts(codes)
    largest = counts.max(axis=1)
    hung = ((counts == largest[:, None]).sum(axis=1) > 1) & (largest > 0)
    winners = np.where(hung | (largest == 0), NO_VOTE, counts.argmax(axis=1)).astype(np.int8)
    return _verdicts(codes, winners, hung, None)


def weighted_vote(codes: Winners, model: VoteModel) -> JuryVerdicts:
    """The class with the best chance wins; classes with the same chance are a hung jury."""
    chances = class_chances(codes, model)
    largest = chances.max(axis=1)
    voted = (codes >= 0).any(axis=1)
    rivals = (chances >= largest[:, None] - SAME_CHANCE).sum(axis=1)
    hung = (rivals > 1) & voted
    winners = np.where(hung | ~voted, NO_VOTE, chances.argmax(axis=1)).astype(np.int8)
    return _verdicts(codes, winners, hung, chances)


def _verdicts(
    codes: Winners, winners: Winners, hung: NDArray[np.bool_], chances: Floats | None
) -> JuryVerdicts:
    counts = _counts(codes)
    voters = counts.sum(axis=1)
    own = np.where(
        winners >= 0, counts[np.arange(winners.size), np.maximum(winners, 0)], counts.max(axis=1)
    )
    probability = None
    if chances is not None:
        probability = chances.max(axis=1)
    return JuryVerdicts(
        winners=winners,
        hung=hung,
        dissent=1.0 - own / np.maximum(voters, 1),
        voters=voters,
        votes=codes,
        probability=probability,
        chances=chances,
    )


def _counts(codes: Winners) -> NDArray[np.intp]:
    return np.stack([(codes == vote).sum(axis=1) for vote in (VOTE_A, VOTE_B, VOTE_TIE)], axis=1)


def vote_table(votes: Any, *, judges: int | None = None) -> Winners:
    try:
        table = np.asarray(votes)
    except ValueError:
        raise InputError("votes has rows of unequal length; give each judge a column") from None
    if table.ndim != 2 or (table.size and table.dtype.kind not in "iu"):
        raise InputError("votes is no table of codes; give a row a pair and a column a judge")
    if judges is not None and table.shape[1] != judges:
        raise InputError(f"votes has {table.shape[1]} columns; give one for each of {judges}")
    if table.shape[1] == 0:
        raise InputError("votes has no column; give at least one judge")
    code_array(table.reshape(-1), name="votes", low=NO_VOTE, high=VOTE_TIE)
    return table.astype(np.int8, copy=False)
