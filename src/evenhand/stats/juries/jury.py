"""A frozen jury, and how its weights are learned from labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import ConfigDict, Field

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Sentence
from evenhand.stats.clusters import Labels, label_codes, not_enough
from evenhand.stats.columns import Floats
from evenhand.stats.juries.votes import (
    JuryVerdicts,
    VoteModel,
    Winners,
    class_chances,
    fit_votes,
    majority_vote,
    member_vote,
    plurality_vote,
    vote_patterns,
    vote_table,
    weighted_vote,
    whole_votes,
)
from evenhand.stats.outcomes import code_array, same_length

JuryMethod: TypeAlias = Literal["plurality", "majority", "learned", "member"]

FEWEST_LABELS = 20
FEWEST_PROMPTS = 10
FOLDS = 5
# In labels' worth; the strongest that predicts as well as any is chosen.
PENALTIES = (30.0, 10.0, 3.0, 1.0)
_SMALLEST_CHANCE = 1e-12


class Jury(Model):
    """A frozen jury: its members, how their votes count, and what it was learned from.

    `member` is the place of the judge that decides, if that is the method. `labels` are those that
    taught its weights or chose its method: none for one made without.
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
    reason: Sentence | None
    member: int | None = None
    # In files of earlier versions; unused.
    scores: object = Field(default=None, exclude=True, repr=False)

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
    folds: int = FOLDS,
    seed: int = 0,
) -> Jury:
    """Weights of the judges from labels, one row a label; too few labels give the majority.

    One multinomial regression on all judges, so that what two judges share counts once. Its penalty
    is chosen by cross-validation with prompts kept together.
    """
    codes = whole_votes(vote_table(votes))
    labels = code_array(label_winners, name="label_winners", low=-1, high=2).astype(np.int8)
    same_length(codes.shape[0], label_winners=labels, prompts=prompts)
    names = tuple(judges) if judges is not None else tuple(map(str, range(codes.shape[1])))
    if len(names) != codes.shape[1]:
        raise InputError.of("stats.judges_and_votes_differ", n=len(names), columns=codes.shape[1])
    if folds < 2:
        raise InputError.of("stats.at_least", value=folds, name="folds", least=2)
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
    _, patterns, counts = vote_patterns(codes, labels, fold, folds)
    penalty, _ = choose_penalty(patterns, counts)
    return make_jury(
        names,
        method="learned",
        model=fit_votes(patterns, counts.sum(axis=0), penalty=penalty),
        penalty=penalty,
        labels=labels.size,
        prompts=len(own),
        folds=folds,
        seed=seed,
    )


def choose_penalty(patterns: Winners, counts: Floats) -> tuple[float, list[VoteModel]]:
    """The penalty that predicts held-out folds best, and its model of each fold, learned from the
    others; `counts` are of labels, by fold and pattern."""
    total = counts.sum(axis=0)
    losses = dict.fromkeys(PENALTIES, 0.0)
    models: dict[float, list[VoteModel]] = {penalty: [] for penalty in PENALTIES}
    for held in counts:
        for penalty in PENALTIES:
            models[penalty].append(fit_votes(patterns, total - held, penalty=penalty))
            chances = label_chances(patterns, models[penalty][-1])
            losses[penalty] -= float((held * np.log(chances)).sum())
    # Less than a tenth of a nat in all is no difference; the stronger penalty is safer.
    best = min(losses.values())
    chosen = next(each for each in PENALTIES if losses[each] <= best + 0.1)
    return chosen, models[chosen]


def label_chances(patterns: Winners, model: VoteModel) -> Floats:
    """Never 0, so that each has a logarithm."""
    chances: Floats = np.maximum(class_chances(patterns, model), _SMALLEST_CHANCE)
    return chances


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
        reason=reason,
        member=member,
    )
