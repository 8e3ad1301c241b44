"""A frozen jury, and how the weights of its votes are learned from labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.stats.clusters import Labels, label_codes, not_enough
from evenhand.stats.juries.votes import (
    JuryVerdicts,
    VoteModel,
    Winners,
    class_chances,
    fit_votes,
    majority_vote,
    member_vote,
    naive_bayes,
    plurality_vote,
    vote_patterns,
    vote_table,
    weighted_vote,
    whole_votes,
)
from evenhand.stats.outcomes import code_array, same_length

JuryMethod: TypeAlias = Literal["plurality", "majority", "learned", "naive Bayes", "member"]
LearnedMethod: TypeAlias = Literal["majority", "learned", "naive Bayes"]

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
    """A frozen jury: who sits on it, how their votes count, and what it was learned from.

    `member` is the place of the judge that speaks for all, where that is the method. `labels` are
    those that taught its weights or chose its method: none for one that was made without.
    """

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
    member: int | None = None

    def predict(self, votes: Any) -> JuryVerdicts:
        """`votes` has a row a pair and a column a judge, in the order of `judges`."""
        codes = vote_table(votes, judges=len(self.judges))
        if self.method == "plurality":
            return plurality_vote(codes)
        if self.member is not None:
            return member_vote(codes, self.member)
        if self.weights is None:
            return majority_vote(codes)
        model = VoteModel(
            weights=np.array(self.weights),
            tie_weights=np.array(self.tie_weights or (0.0,) * len(self.weights)),
            tie_level=self.tie_level or 0.0,
            ties=self.ties,
        )
        return weighted_vote(codes, model)


def learn_jury(
    votes: Any,
    label_winners: Any,
    *,
    judges: Sequence[str] | None = None,
    prompts: Labels | None = None,
    method: LearnedMethod = "learned",
    folds: int = FOLDS,
    seed: int = 0,
) -> Jury:
    """Weights of the judges from labels, one row a label; too few labels give the majority.

    A multinomial regression on all judges at once: what two judges have in common counts once.
    Its penalty is chosen, and all rules are compared, on folds that keep a prompt's rows together.
    """
    codes = whole_votes(vote_table(votes))
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
        return make_jury(names, method="majority", labels=labels.size, reason=reason)
    fold = np.random.default_rng(seed).permutation(len(own))[prompt] % folds
    scores, penalty = _cross_validate(codes, labels, fold, folds=folds, names=names)
    model = None
    if method == "learned":
        model = fit_votes(*vote_patterns(codes, labels), penalty=penalty)
    elif method == "naive Bayes":
        model = naive_bayes(codes, labels)
    return make_jury(
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


def make_jury(
    judges: Sequence[str],
    *,
    method: JuryMethod,
    model: VoteModel | None = None,
    member: int | None = None,
    penalty: float | None = None,
    labels: int = 0,
    prompts: int = 0,
    folds: int = 0,
    seed: int = 0,
    scores: tuple[JuryScore, ...] = (),
    reason: str | None = None,
) -> Jury:
    return Jury(
        judges=tuple(judges),
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
        member=member,
    )
