"""Which rule suits these judges by labels, how right every rule is on held-out prompts, and what
each judge adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.stats.clusters import Labels, not_enough, row_clusters
from evenhand.stats.columns import Floats
from evenhand.stats.estimates import (
    EstimatedShare,
    EstimatedValue,
    estimate_score,
    estimate_share,
    mean_of_rows,
)
from evenhand.stats.juries.jury import (
    FEWEST_LABELS,
    FEWEST_PROMPTS,
    FOLDS,
    Jury,
    choose_penalty,
    label_chances,
    learn_jury,
    make_jury,
)
from evenhand.stats.juries.votes import (
    MOST_JUDGES,
    NO_VOTE,
    JuryVerdicts,
    Winners,
    fit_votes,
    majority_vote,
    plurality_vote,
    vote_patterns,
    vote_table,
    weighted_vote,
    whole_votes,
)
from evenhand.stats.outcomes import code_array, confidence_level, same_length

# A judge that is right on 57% of pairs gains this much over ignorance, in nats a label.
LITTLE = 0.01
_NO_SCATTER = 1e-9
# The gain over the best member that a rule needs, in standard errors: a paired test at 2.5%.
# Without it, one panel in five of recorded judges did worse than its best member; with two standard
# errors one in eighteen, for a sixth of the gain (docs/calibration.md).
_CLEAR = 2.0

CHOSEN, BEST_MEMBER, THIS_JURY = "chosen", "best member", "this jury"
LEARNED: Literal["learned"] = "learned"
PLURALITY: Literal["plurality"] = "plurality"
MAJORITY: Literal["majority"] = "majority"

# By winner (A, B, tie, none) and label: 1 right, 0 wrong, and one half if nothing is decided, such
# as a tie where the label names a winner.
_CREDIT = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 1.0], [0.5, 0.5, 0.5]])


def half_credit(winners: Any, labels: Any) -> Floats:
    """1 for the label, 0 for another winner, and one half if nothing is decided."""
    credit: Floats = _CREDIT[winners, labels]
    return credit


def usual_quorum(rule: str, judges: int) -> int:
    """How many whole votes a verdict takes; 0 if half votes may decide."""
    return {MAJORITY: (judges + 1) // 2, LEARNED: 1}.get(rule, 0)


def decided_winners(verdicts: JuryVerdicts, quorum: int) -> Winners:
    return np.where(verdicts.voters >= quorum, verdicts.winners, NO_VOTE).astype(np.int8)


class RuleAccuracy(Model):
    """A rule on the labelled pairs, each judged without its own fold.

    `accuracy` is the share of labelled pairs whose verdict is the label; `half_credit` counts the
    undecided (no verdict, or a tie where the label names a winner) as half. `gain` is its half
    credit minus the best member's. `picks` counts, by fold, what a rule chosen on the other prompts
    chose.
    """

    rule: str
    quorum: int
    decided: EstimatedShare
    accuracy: EstimatedShare
    half_credit: EstimatedValue
    gain: EstimatedValue | None
    picks: dict[str, int]
    log_loss: float | None


class JuryAccuracy(Model):
    """`worth` is how much worse, in nats a label, a learned jury does without each judge.

    Everything learned or chosen (weights, their penalty, the best member, the rule) is so without
    the prompts it is tested on. `choice_reason` says why none is chosen, and `reason` why none is
    learned.
    """

    labels: int
    prompts: int
    rules: tuple[RuleAccuracy, ...]
    worth: tuple[EstimatedValue, ...] | None
    folds: int
    seed: int
    level: float
    choice_reason: Sentence | None
    reason: Sentence | None


def choose_jury(
    votes: Any,
    label_winners: Any,
    *,
    judges: Sequence[str],
    prompts: Labels | None = None,
    folds: int = FOLDS,
    seed: int = 0,
) -> Jury:
    """The best judge, or the rule with the most half credit on held-out folds if clearly above it:
    plurality, majority, or learned weights. The plurality, with the reason, if labels are too few.
    """
    trial = _Trial.of(votes, label_winners, judges, prompts, folds=folds, seed=seed)
    reason = trial.too_few(1)
    if reason is not None:
        return make_jury(judges, method=PLURALITY, reason=reason)
    every = np.arange(len(trial.counts))
    trained = trial.train(every, trial.fixed, learn=trial.unlearned is None)
    chosen = trained.chosen
    if chosen == LEARNED:
        return learn_jury(
            votes, label_winners, judges=judges, prompts=prompts, folds=folds, seed=seed
        )
    return make_jury(
        judges,
        method="member" if chosen == BEST_MEMBER else chosen,
        member=trained.member if chosen == BEST_MEMBER else None,
        labels=trial.labels.size,
        prompts=trial.count,
        folds=folds,
        seed=seed,
    )


def jury_accuracy(
    votes: Any,
    label_winners: Any,
    *,
    judges: Sequence[str],
    prompts: Labels | None = None,
    quorum: Mapping[str, int] | None = None,
    given: Winners | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    level: float = 0.95,
) -> JuryAccuracy:
    """Every rule and each judge alone, on the labelled rows; rows of a prompt stay together.
    `quorum` overrides the usual quorum of rules; `given` are the verdicts of an existing jury."""
    confidence_level(level)
    trial = _Trial.of(votes, label_winners, judges, prompts, quorum, folds=folds, seed=seed)
    tried = trial.winners()
    if given is not None:
        tried = {THIS_JURY: _Tried(np.asarray(given)[trial.known]), **tried}
    best = half_credit(tried[BEST_MEMBER].winners, trial.labels) if BEST_MEMBER in tried else None
    alone = [
        (name, _Tried(own)) for name, own in zip(judges, whole_votes(trial.codes).T, strict=True)
    ]
    rules = tuple(
        trial.measure(name, rule, best, level=level) for name, rule in (*tried.items(), *alone)
    )
    worth = None
    losses = tried[LEARNED].losses if LEARNED in tried else None
    if losses is not None:
        voted = trial.voted
        lost = [
            trial.without(place) - losses for place in range(len(judges) if len(judges) > 1 else 0)
        ]
        worth = tuple(
            mean_of_rows(each[voted], clusters=trial.cluster[voted], count=trial.count, level=level)
            for each in lost
        )
    return JuryAccuracy(
        labels=trial.labels.size,
        prompts=trial.count,
        rules=rules,
        worth=worth,
        folds=folds,
        seed=seed,
        level=level,
        choice_reason=trial.too_few(1),
        reason=trial.unlearned,
    )


@dataclass(frozen=True, slots=True)
class _Tried:
    """A rule's verdict on each row, learned without the row's fold."""

    winners: Winners
    losses: Floats | None = None
    picks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Trained:
    """Each rule's winner by pattern, learned from some folds; `gains` over the best member, in
    standard errors and rows, are cross-validated among these folds."""

    winners: dict[str, Winners]
    gains: dict[str, tuple[float, float]]
    member: int
    chances: Floats | None

    @property
    def chosen(self) -> Any:
        """The best member, unless a rule clearly gains over it: the best of several estimates is
        also the luckiest. Among those the largest gain; of equals the first, with learned weights
        last."""
        clear = [name for name, (errors, _) in self.gains.items() if errors > _CLEAR]
        return max(clear, key=lambda name: self.gains[name][1], default=BEST_MEMBER)


@dataclass(frozen=True, slots=True)
class _Trial:
    """The labelled rows, their vote patterns, and label counts by fold and pattern."""

    judges: tuple[str, ...]
    quorum: dict[str, int]
    known: NDArray[np.bool_]
    codes: Winners
    labels: Winners
    cluster: NDArray[np.intp]
    count: int
    independent: bool
    fold: NDArray[np.intp]
    pattern: NDArray[np.intp]
    patterns: Winners
    counts: Floats

    @classmethod
    def of(
        cls,
        votes: Any,
        label_winners: Any,
        judges: Sequence[str],
        prompts: Labels | None,
        quorum: Mapping[str, int] | None = None,
        *,
        folds: int,
        seed: int,
    ) -> _Trial:
        codes = vote_table(votes, judges=len(judges))
        labels = code_array(label_winners, name="label_winners", low=-1, high=2).astype(np.int8)
        same_length(codes.shape[0], label_winners=labels, prompts=prompts)
        if folds < 2:
            raise InputError.of("stats.at_least", value=folds, name="folds", least=2)
        known = labels >= 0
        cluster, count, independent = row_clusters(prompts, known)
        codes, labels = codes[known], labels[known]
        fold = np.random.default_rng(seed).permutation(count)[cluster] % folds
        pattern, patterns, counts = vote_patterns(codes, labels, fold, folds)
        usual = {rule: usual_quorum(rule, len(judges)) for rule in (PLURALITY, MAJORITY, LEARNED)}
        return cls(
            judges=tuple(judges),
            quorum=usual | dict(quorum or {}),
            known=known,
            codes=codes,
            labels=labels,
            cluster=cluster,
            count=count,
            independent=independent,
            fold=fold,
            pattern=pattern,
            patterns=patterns,
            counts=counts,
        )

    @property
    def voted(self) -> NDArray[np.bool_]:
        return _voted(self.codes)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """The judges that may be the best member: one without votes has half credit on every pair,
        more than a wrong one."""
        usable: NDArray[np.bool_] = (whole_votes(self.codes) >= 0).sum(axis=0) >= FEWEST_LABELS
        return usable

    def too_few(self, times: int) -> str | None:
        """Why labels are fewer than so many times a rule's minimum."""
        cluster = self.cluster[self.voted]
        fewest = times * FEWEST_LABELS
        if cluster.size < fewest:
            if cluster.size == self.labels.size:
                return not_enough(cluster.size, "label", fewest)
            counts = {"labels": self.labels.size, "n": cluster.size}
            return Message("stats.too_few_voted", fewest=fewest, **counts)
        if not self.usable.any():
            most = int((whole_votes(self.codes) >= 0).sum(axis=0).max())
            return Message("stats.too_few_of_one_judge", n=most, fewest=FEWEST_LABELS)
        prompts = np.unique(cluster).size
        if prompts < times * FEWEST_PROMPTS:
            return not_enough(prompts, "prompt", times * FEWEST_PROMPTS)
        return None

    @property
    def unlearned(self) -> str | None:
        """Why no weights are learned; each fold is tested with those of four fifths."""
        if len(self.judges) > MOST_JUDGES:
            return Message("stats.jury_too_large", judges=len(self.judges), most=MOST_JUDGES)
        return self.too_few(2)

    @property
    def fixed(self) -> dict[str, Winners]:
        """By pattern, for the rules that learn nothing."""
        return {
            PLURALITY: decided_winners(plurality_vote(self.patterns), self.quorum[PLURALITY]),
            MAJORITY: decided_winners(majority_vote(self.patterns), self.quorum[MAJORITY]),
        }

    def winners(self) -> dict[str, _Tried]:
        fixed = self.fixed
        tried: dict[str, _Tried] = {}
        if self.too_few(1) is None:
            tried = self._left_out(fixed, learn=self.unlearned is None)
        return tried | {name: _Tried(own[self.pattern]) for name, own in fixed.items()}

    def _left_out(self, fixed: dict[str, Winners], *, learn: bool) -> dict[str, _Tried]:
        names = [CHOSEN, BEST_MEMBER, *([LEARNED] if learn else [])]
        winners = {name: np.empty(self.labels.size, dtype=np.int8) for name in names}
        losses = np.empty(self.labels.size)
        picks: dict[str, list[str]] = {name: [] for name in names}
        for left_out in range(len(self.counts)):
            rest = np.delete(np.arange(len(self.counts)), left_out)
            trained = self.train(rest, fixed, learn=learn)
            own = self.fold == left_out
            places = self.pattern[own]
            for name in names:
                source = trained.chosen if name == CHOSEN else name
                winners[name][own] = trained.winners[source][places]
            picks[CHOSEN].append(trained.chosen)
            picks[BEST_MEMBER].append(self.judges[trained.member])
            if trained.chances is not None:
                losses[own] = -np.log(trained.chances[places, self.labels[own]])
        tried = {name: _Tried(winners[name], picks=tuple(picks[name])) for name in names}
        if learn:
            tried[LEARNED] = _Tried(winners[LEARNED], losses)
        return tried

    def train(self, folds: NDArray[np.intp], fixed: dict[str, Winners], *, learn: bool) -> _Trained:
        own, counts = whole_votes(self.patterns), self.counts[folds]
        # By fold and judge: half credit over the patterns.
        members = np.stack([_credit_by_fold(each, counts) for each in own.T], 1)
        totals = np.where(self.usable, members.sum(axis=0), -np.inf)
        member = int(totals.argmax())
        others = (totals - members).argmax(axis=1)
        winners = {BEST_MEMBER: own[:, member], **fixed}
        held = {
            name: np.broadcast_to(each, (len(counts), each.size)) for name, each in fixed.items()
        }
        chances = None
        if learn:
            chances, winners[LEARNED], held[LEARNED] = _learn(
                self.patterns, counts, quorum=self.quorum[LEARNED]
            )
        best = _CREDIT[own[:, others].T]
        gains = {name: self._gain(_CREDIT[each] - best, folds) for name, each in held.items()}
        return _Trained(winners, gains, member, chances)

    def _gain(self, differences: Floats, folds: NDArray[np.intp]) -> tuple[float, float]:
        """Of credit by fold, pattern and label: in standard errors clustered by prompt, and in
        rows."""
        place = np.full(len(self.counts), -1)
        place[folds] = np.arange(len(folds))
        at = place[self.fold]
        rows = at >= 0
        gained = differences[at[rows], self.pattern[rows], self.labels[rows]]
        by_prompt = np.bincount(self.cluster[rows], weights=gained)
        total = float(gained.sum())
        prompts = np.unique(self.cluster[rows]).size
        scatter = float((by_prompt**2).sum()) - total**2 / prompts
        return total / max(scatter, _NO_SCATTER) ** 0.5, total

    def without(self, place: int) -> Floats:
        codes = np.delete(self.codes, place, axis=1)
        pattern, patterns, counts = vote_patterns(codes, self.labels, self.fold, len(self.counts))
        losses = np.empty(self.labels.size)
        for left_out in range(len(counts)):
            chances = _learn(patterns, np.delete(counts, left_out, axis=0))[0]
            own = self.fold == left_out
            losses[own] = -np.log(chances[pattern[own], self.labels[own]])
        return losses

    def measure(self, name: str, own: _Tried, best: Floats | None, *, level: float) -> RuleAccuracy:
        winners, labels = own.winners, self.labels
        credit = half_credit(winners, labels)

        def by_prompt(rows: NDArray[np.bool_]) -> Floats:
            return np.bincount(self.cluster[rows], minlength=self.count).astype(np.float64)

        def share(part: NDArray[np.bool_]) -> EstimatedShare:
            return estimate_share(
                by_prompt(part),
                by_prompt(~part),
                independent=self.independent,
                level=level,
                unit="labelled pair",
            )

        gain = None
        if best is not None and name != BEST_MEMBER:
            gain = mean_of_rows(credit - best, clusters=self.cluster, count=self.count, level=level)
        return RuleAccuracy(
            rule=name,
            quorum=self.quorum.get(name, 0),
            decided=share(winners >= 0),
            accuracy=share(winners == labels),
            half_credit=estimate_score(
                by_prompt(credit == 1),
                by_prompt(credit == 0.5),
                by_prompt(credit == 0),
                independent=self.independent,
                level=level,
                unit="labelled pair",
            ),
            gain=gain,
            picks=dict(Counter(own.picks)),
            log_loss=None if own.losses is None else float(own.losses[self.voted].mean()),
        )


def _voted(codes: Winners) -> NDArray[np.bool_]:
    return np.asarray((whole_votes(codes) >= 0).any(axis=1))


def _credit_by_fold(winners: Winners, counts: Floats) -> Floats:
    credit: Floats = (counts * _CREDIT[winners]).sum(axis=(1, 2))
    return credit


def _learn(
    patterns: Winners, counts: Floats, *, quorum: int = 1
) -> tuple[Floats, Winners, Winners]:
    """Chances and winners by pattern, with the penalty that predicts held-out folds best; and
    winners by fold and pattern, each learned from the other folds."""
    counts = counts * _voted(patterns)[:, None]
    penalty, held = choose_penalty(patterns, counts)
    model = fit_votes(patterns, counts.sum(axis=0), penalty=penalty)
    winners, *of_folds = (
        decided_winners(weighted_vote(patterns, each), quorum) for each in (model, *held)
    )
    return label_chances(patterns, model), winners, np.array(of_folds)
