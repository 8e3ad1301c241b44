"""A jury whose votes count by what labels have taught, how often it is right on prompts that it was
not learned from, and what each judge adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.stats.clusters import Labels, label_codes, not_enough, row_clusters
from evenhand.stats.columns import Floats
from evenhand.stats.estimates import EstimatedShare, EstimatedValue, estimate_share, mean_of_rows
from evenhand.stats.juries.votes import (
    NO_VOTE,
    JuryVerdicts,
    VoteModel,
    Winners,
    class_chances,
    fit_votes,
    majority_vote,
    naive_bayes,
    vote_patterns,
    vote_table,
    weighted_vote,
)
from evenhand.stats.outcomes import code_array, confidence_level, same_length

JuryMethod: TypeAlias = Literal["majority", "learned", "naive Bayes"]

FEWEST_LABELS = 20
FEWEST_PROMPTS = 10
FOLDS = 5
# In labels' worth; the strongest is chosen where it predicts as well as any.
PENALTIES = (30.0, 10.0, 3.0, 1.0)


class JuryScore(Model):
    """How well a rule did on prompts it was not learned from."""

    rule: str
    accuracy: float
    log_loss: float | None


class Jury(Model):
    """A frozen jury: who sits on it, how their votes count, and what it was learned from."""

    model_config = ConfigDict(allow_inf_nan=False)

    judges: tuple[str, ...]
    method: JuryMethod
    weights: tuple[float, ...] | None
    tie_weights: tuple[float, ...] | None
    tie_level: float | None
    ties: bool
    penalty: float | None
    labels: int
    prompts: int
    folds: int
    seed: int
    scores: tuple[JuryScore, ...]
    reason: Sentence | None

    def predict(self, votes: Any) -> JuryVerdicts:
        """`votes` has a row a pair and a column a judge, in the order of `judges`."""
        codes = vote_table(votes, judges=len(self.judges))
        if self.weights is None:
            return majority_vote(codes)
        model = VoteModel(
            weights=np.array(self.weights),
            tie_weights=np.array(self.tie_weights or (0.0,) * len(self.weights)),
            tie_level=self.tie_level or 0.0,
            ties=self.ties,
        )
        return weighted_vote(codes, model)


def majority_jury(judges: Sequence[str]) -> Jury:
    return _jury(tuple(judges), method="majority", model=None)


def learn_jury(
    votes: Any,
    label_winners: Any,
    *,
    judges: Sequence[str] | None = None,
    prompts: Labels | None = None,
    method: JuryMethod = "learned",
    folds: int = FOLDS,
    seed: int = 0,
) -> Jury:
    """Weights of the judges from labels, one row a label; too few labels give the majority.

    A multinomial regression on all judges at once: what two judges have in common counts once.
    Its penalty is chosen, and all rules are compared, on folds that keep a prompt's rows together.
    """
    codes = vote_table(votes)
    labels = code_array(label_winners, name="label_winners", low=-1, high=2).astype(np.int8)
    same_length(codes.shape[0], label_winners=labels, prompts=prompts)
    names = tuple(judges) if judges is not None else tuple(map(str, range(codes.shape[1])))
    if len(names) != codes.shape[1]:
        raise InputError(
            Message("stats.judges_and_votes_differ", n=len(names), columns=codes.shape[1])
        )
    if method not in ("majority", "learned", "naive Bayes"):
        raise InputError(
            Message(
                "stats.method_unknown",
                method=method,
                methods=["majority", "learned", "naive Bayes"],
            )
        )
    if folds < 2:
        raise InputError(Message("stats.at_least", value=folds, name="folds", least=2))
    prompt = np.arange(labels.size) if prompts is None else label_codes(prompts)[0]
    usable = (labels >= 0) & (codes >= 0).any(axis=1)
    codes, labels = codes[usable], labels[usable]
    prompt, own = label_codes(prompt[usable])
    reason = None
    if labels.size < FEWEST_LABELS:
        reason = not_enough(labels.size, "label", FEWEST_LABELS)
    elif len(own) < FEWEST_PROMPTS:
        reason = not_enough(len(own), "prompt", FEWEST_PROMPTS)
    if reason is not None:
        return _jury(names, method="majority", model=None, labels=labels.size, reason=reason)
    fold = np.random.default_rng(seed).permutation(len(own))[prompt] % folds
    scores, penalty = _cross_validate(codes, labels, fold, folds=folds, names=names)
    model = None
    if method == "learned":
        model = fit_votes(*vote_patterns(codes, labels), penalty=penalty)
    elif method == "naive Bayes":
        model = naive_bayes(codes, labels)
    return _jury(
        names,
        method=method,
        model=model,
        penalty=penalty if method == "learned" else None,
        labels=labels.size,
        prompts=len(own),
        folds=folds,
        seed=seed,
        scores=scores,
    )


def _cross_validate(
    codes: Winners, labels: Winners, fold: NDArray[np.intp], *, folds: int, names: tuple[str, ...]
) -> tuple[tuple[JuryScore, ...], float]:
    """Accuracy and log loss of every rule on the folds left out, and the best penalty."""
    rules = [f"learned {penalty}" for penalty in PENALTIES] + ["naive Bayes"]
    losses = dict.fromkeys(rules, 0.0)
    right = dict.fromkeys(rules, 0)
    patterns, counts = vote_patterns(codes, labels, fold=fold, folds=folds)
    for left_out in range(folds):
        rest = counts.sum(axis=0) - counts[left_out]
        models = {
            f"learned {penalty}": fit_votes(patterns, rest, penalty=penalty)
            for penalty in PENALTIES
        }
        models["naive Bayes"] = naive_bayes(codes[fold != left_out], labels[fold != left_out])
        for rule, model in models.items():
            chances = class_chances(patterns, model)
            held = counts[left_out]
            losses[rule] -= float((held * np.log(np.maximum(chances, 1e-12))).sum())
            chosen = weighted_vote(patterns, model).winners
            decided = np.flatnonzero(chosen >= 0)
            right[rule] += int(held[decided, chosen[decided]].sum())
    best = min(losses[f"learned {penalty}"] for penalty in PENALTIES)
    # A tenth of a nat in all is no difference; the stronger penalty then is the safer one.
    penalty = next(p for p in PENALTIES if losses[f"learned {p}"] <= best + 0.1)
    number = labels.size
    scores = [
        JuryScore(rule=rule, accuracy=right[key] / number, log_loss=losses[key] / number)
        for rule, key in (("learned", f"learned {penalty}"), ("naive Bayes", "naive Bayes"))
    ]
    majority = majority_vote(codes).winners
    scores.append(
        JuryScore(rule="majority", accuracy=float((majority == labels).mean()), log_loss=None)
    )
    scores.extend(
        JuryScore(rule=name, accuracy=float((codes[:, place] == labels).mean()), log_loss=None)
        for place, name in enumerate(names)
    )
    return tuple(scores), penalty


def _jury(
    names: tuple[str, ...],
    *,
    method: JuryMethod,
    model: VoteModel | None,
    penalty: float | None = None,
    labels: int = 0,
    prompts: int = 0,
    folds: int = 0,
    seed: int = 0,
    scores: tuple[JuryScore, ...] = (),
    reason: str | None = None,
) -> Jury:
    return Jury(
        judges=names,
        method=method,
        weights=None if model is None else tuple(model.weights.tolist()),
        tie_weights=None if model is None else tuple(model.tie_weights.tolist()),
        tie_level=None if model is None else model.tie_level,
        ties=model is None or model.ties,
        penalty=penalty,
        labels=labels,
        prompts=prompts,
        folds=folds,
        seed=seed,
        scores=scores,
        reason=reason,
    )


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
    reason: Sentence | None


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
        raise InputError(Message("stats.at_least", value=folds, name="folds", least=2))
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
