"""How often a jury is right on prompts it was not learned from, and what each judge adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.agreement import row_clusters
from evenhand.stats.clusters import Floats, Labels
from evenhand.stats.estimated_share import EstimatedShare, estimate_share
from evenhand.stats.estimated_value import EstimatedValue, mean_of_rows
from evenhand.stats.jury import FEWEST_LABELS, FEWEST_PROMPTS, FOLDS, PENALTIES
from evenhand.stats.jury_model import class_chances, fit_votes
from evenhand.stats.jury_votes import NO_VOTE, Winners, majority_vote, vote_table, weighted_vote
from evenhand.stats.outcomes import code_array, confidence_level, same_length
from evenhand.stats.win_rate import not_enough

# A judge that is right on 57 % of pairs adds this much, in nats a label, to knowing nothing.
LITTLE = 0.01
_SMALLEST_CHANCE = 1e-12
# Patterns of votes are numbers to the base 4; more judges than these do not fit into one.
MOST_JUDGES = 31


class RuleAccuracy(Model):
    """A rule's share of labelled pairs whose verdict is the label; no verdict is not right."""

    rule: str
    accuracy: EstimatedShare
    log_loss: float | None


class JuryAccuracy(Model):
    """`worth` has for each judge how much worse, in nats a label, a learned jury does without it.

    The penalty of the learned rule is chosen, and its weights are learned, without the prompts
    that it is tried on. `reason` says why there is no learned rule to try.
    """

    labels: int
    prompts: int
    rules: tuple[RuleAccuracy, ...]
    worth: tuple[EstimatedValue, ...] | None
    folds: int
    seed: int
    level: float
    reason: str | None


def jury_accuracy(
    votes: Any,
    label_winners: Any,
    *,
    judges: Sequence[str],
    prompts: Labels | None = None,
    quorum: int = 1,
    folds: int = FOLDS,
    seed: int = 0,
    level: float = 0.95,
) -> JuryAccuracy:
    """Learned, majority and each judge alone, on the rows that have a label.

    A jury of fewer votes than the quorum has no verdict. Rows of a prompt stay together.
    """
    confidence_level(level)
    codes = vote_table(votes, judges=len(judges))
    labels = code_array(label_winners, name="label_winners", low=-1, high=2).astype(np.int8)
    same_length(codes.shape[0], label_winners=labels, prompts=prompts)
    if folds < 2:
        raise InputError(f"folds is {folds}; give 2 or more")
    known = labels >= 0
    cluster, count, independent = row_clusters(prompts, known)
    codes, labels = codes[known], labels[known]
    enough = (codes >= 0).sum(axis=1) >= quorum

    def tried(rule: str, winners: Winners, log_loss: float | None = None) -> RuleAccuracy:
        right = winners == labels
        hits = np.bincount(cluster[right], minlength=count).astype(np.float64)
        misses = np.bincount(cluster[~right], minlength=count).astype(np.float64)
        share = estimate_share(
            hits, misses, independent=independent, level=level, unit="labelled pair"
        )
        return RuleAccuracy(rule=rule, accuracy=share, log_loss=log_loss)

    rules = [tried("majority", np.where(enough, majority_vote(codes).winners, NO_VOTE))]
    rules += [tried(name, codes[:, place]) for place, name in enumerate(judges)]
    worth = None
    voted: NDArray[np.bool_] = np.asarray((codes >= 0).any(axis=1))
    reason = _too_few(cluster[voted])
    if reason is None and len(judges) > MOST_JUDGES:
        reason = f"{len(judges)} judges are too many to learn from; at most {MOST_JUDGES} are tried"
    if reason is None:
        fold = np.random.default_rng(seed).permutation(count)[cluster] % folds
        trial = _Trial(labels=labels, fold=fold, folds=folds)
        whole = trial.of(codes)
        winners = np.where(enough, whole.winners, NO_VOTE).astype(np.int8)
        rules.insert(0, tried("learned", winners, float(whole.losses[voted].mean())))
        lost = [
            trial.of(np.delete(codes, place, axis=1)).losses - whole.losses
            for place in range(len(judges) if len(judges) > 1 else 0)
        ]
        worth = tuple(
            mean_of_rows(each[voted], clusters=cluster[voted], count=count, level=level)
            for each in lost
        )
    return JuryAccuracy(
        labels=labels.size,
        prompts=count,
        rules=tuple(rules),
        worth=worth,
        folds=folds,
        seed=seed,
        level=level,
        reason=reason,
    )


def _too_few(cluster: NDArray[np.intp]) -> str | None:
    """Each fold is tried by a jury that was learned from four fifths of the labels."""
    if cluster.size < 2 * FEWEST_LABELS:
        return not_enough(cluster.size, "label", 2 * FEWEST_LABELS)
    prompts = np.unique(cluster).size
    if prompts < 2 * FEWEST_PROMPTS:
        return not_enough(prompts, "prompt", 2 * FEWEST_PROMPTS)
    return None


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """Of each row, by the jury that was learned without its fold."""

    winners: Winners
    losses: Floats


@dataclass(frozen=True, slots=True)
class _Trial:
    labels: Winners
    fold: NDArray[np.intp]
    folds: int

    def of(self, codes: Winners) -> _LeftOut:
        """A jury learns from rows with a vote, and is tried on all."""
        labels, fold = self.labels, self.fold
        used = (codes >= 0).any(axis=1)
        packed = (codes.astype(np.int64) + 1) @ (4 ** np.arange(codes.shape[1], dtype=np.int64))
        _, first, pattern = np.unique(packed, return_index=True, return_inverse=True)
        patterns = codes[first]
        size = len(patterns) * 3
        cells = (fold * size + pattern * 3 + labels)[used]
        totals = np.bincount(cells, minlength=self.folds * size).astype(np.float64)
        counts = totals.reshape(self.folds, -1, 3)
        winners = np.empty(labels.size, dtype=np.int8)
        losses = np.empty(labels.size)
        for left_out in range(self.folds):
            rest = np.delete(counts, left_out, axis=0)
            model = fit_votes(patterns, rest.sum(axis=0), penalty=_best_penalty(patterns, rest))
            chances = np.maximum(class_chances(patterns, model), _SMALLEST_CHANCE)
            own = fold == left_out
            winners[own] = weighted_vote(patterns, model).winners[pattern[own]]
            losses[own] = -np.log(chances[pattern[own], labels[own]])
        return _LeftOut(winners, losses)


def _best_penalty(patterns: Winners, counts: Floats) -> float:
    """By the folds that are left, each tried by a jury of the others."""
    losses = dict.fromkeys(PENALTIES, 0.0)
    for held in range(len(counts)):
        rest = counts.sum(axis=0) - counts[held]
        for penalty in PENALTIES:
            chances = class_chances(patterns, fit_votes(patterns, rest, penalty=penalty))
            losses[penalty] -= float(
                (counts[held] * np.log(np.maximum(chances, _SMALLEST_CHANCE))).sum()
            )
    best = min(losses.values())
    return next(penalty for penalty in PENALTIES if losses[penalty] <= best + 0.1)
