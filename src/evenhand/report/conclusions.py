"""What a run says about its two sides: how often one wins, how sure that is, what else may be
behind it. One conclusion for each judge and each two models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INVALID, WIN_B
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.judges.families import Families, OwnFamilies, shared_message
from evenhand.messages import Message, Sentence
from evenhand.report.abstentions import Abstentions, count_abstentions
from evenhand.report.baselines import JudgeAccuracy, benchmark_accuracy
from evenhand.report.claims import Blocked, ClaimedRate, Hold, settled, trust_messages
from evenhand.report.families import (
    FamilyEffect,
    effect_notes,
    family_effects,
    judge_families,
)
from evenhand.report.labelled import LabelledRate, RunLabels, with_absent
from evenhand.report.lookup import find_run
from evenhand.report.topics import TopicColumn, Topics
from evenhand.report.win_rates import (
    ConclusionLimits,
    LabelRecord,
    Matchup,
    OutcomeGroup,
    PaddingRecord,
    RateOptions,
    Rows,
    Side,
    SideRate,
    by_tag,
    exchange,
    matchups,
    side_rate,
)
from evenhand.runs.settled_prefix import SettledPrefix
from evenhand.stats.intervals import holm_adjusted
from evenhand.stats.outcomes import confidence_level
from evenhand.stats.rates.length_bias import LengthEffect, PromptDifficulty, length_effect
from evenhand.stats.rates.position_bias import SPLIT, PositionBias, position_bias
from evenhand.stats.rates.win_rate import FEWEST_DECIDED, Circumstances, Ties
from evenhand.stats.stopping.sequential import SequentialDecision
from evenhand.store import JudgeRecord, OutcomeColumns, RunRecord, RunState, Store, Tally
from evenhand.store.faults import of_run
from evenhand.store.runs import Survey

__all__ = [
    "Conclusion",
    "ConclusionLimits",
    "Conclusions",
    "GroupRate",
    "Side",
    "SideRate",
    "Ties",
    "conclude",
]

# Row means that differ by more are worth a word.
_ESTIMANDS_DIFFER = 0.005
_NAMED = 8  # parts, in one note
_LONGER_IN_MOST = 0.95  # of the pairs


class GroupRate(Model):
    """The win rate of a part: a criterion, or a tag.

    `adjusted_p` is that of its sign test among all parts of its kind, of all judges and models that
    met in the run, by Holm's method (1979).
    """

    name: str
    rate: SideRate
    adjusted_p: float | None = None


class Conclusion(Model):
    """One judge on one two models; `model` is the side's, `against` the other's.

    `decision` is that of a run until it is decided, at the run's own alpha, and `account` what
    came of it; the interval of `win_rate` is at the level that was asked for. Sentence and gate go
    by `claimed`, as far as no hold blocks it.
    """

    judge: str
    side: Side
    model: str | None
    against: str | None
    pairs: int
    pending: int
    win_rate: SideRate
    claimed: ClaimedRate
    holds: tuple[Hold, ...] = ()
    topics: Topics | None = None
    decision: SequentialDecision | None
    account: Sentence | None
    by_criterion: tuple[GroupRate, ...]
    by_tag: tuple[GroupRate, ...]
    length: LengthEffect
    position: PositionBias
    labels: LabelRecord | None = None
    labelled: LabelledRate | None = None
    # Of a labelled benchmark, whose A and B name no models.
    accuracy: JudgeAccuracy | None = None
    padding: PaddingRecord | None = None  # where length may explain the claim
    skipped: int = 0  # rows that never became pairs, as far as they fall to this matchup
    left_out: int = 0  # prompts that one of the two did not answer, by --prompts common
    both_orders: int = 0  # valid pairs that were judged in both
    grown_from: tuple[str, ...] = ()  # earlier runs over a part of these pairs: each was a look
    identical: int = 0  # pairs of identical responses: ties by rule, about which nobody was asked
    messages: tuple[Message, ...] = ()
    sentence: str = ""  # the messages in English

    @property
    def names(self) -> tuple[str, str]:
        """What the two are called: by their models, or else by their labels."""
        other = "B" if self.side == "A" else "A"
        return self.model or self.side, self.against or other

    @property
    def by_people(self) -> bool:
        """Whether the claimed rate is people's, as their labels correct the judge's."""
        return self.claimed.estimator == "corrected"

    @property
    def judge_refuted(self) -> bool:
        """Whether labels show that the judge, whose the parts are, is hardly better than a coin."""
        return self.labels is not None and self.labels.is_no_better

    @property
    def length_explains(self) -> bool:
        """Whether length may be all there is to what the judge's verdicts claim."""
        claimed = self.claimed
        if self.by_people or not claimed.excludes_half:
            return False
        above = claimed.low is not None and claimed.low > 0.5
        return self.length.controlled[0].explains("above" if above else "below")

    def blocks(self, what: Blocked) -> bool:
        return any(what in hold.blocks for hold in self.holds)


class RatingCounts(Model):
    """Of a judge's inconsistent pairs, which response scored more when each was scored alone. No
    win rate counts them: the pairs stay inconsistent."""

    judge: str
    rated: int
    a: int
    b: int
    tie: int
    without: int  # where one response has no score

    @classmethod
    def of(cls, store: Store, run: RunRecord, judge: JudgeRecord) -> RatingCounts | None:
        winners = [winner for _, winner in store.ratings(run.id, judge.id)]
        if not winners:
            return None
        a, b, tie, without = (winners.count(each) for each in ("A", "B", "TIE", None))
        rated = len(winners)
        return cls(judge=judge.name, rated=rated, a=a, b=b, tie=tie, without=without)


class Conclusions(Model):
    run: str
    store: str
    state: RunState
    stopped_by: str | None
    whole: bool  # every pair has its verdict
    judges: tuple[str, ...]
    pairs: int
    prompts: int
    pending: int
    skipped_rows: int
    side: Side
    ties: Ties
    level: float
    conclusions: tuple[Conclusion, ...]
    abstentions: tuple[Abstentions, ...] = ()
    ratings: tuple[RatingCounts, ...] = ()
    family_effects: tuple[FamilyEffect, ...] = ()
    notes: tuple[Sentence, ...]


@of_run
def conclude(
    store: Store,
    name: str,
    *,
    side: Side = "B",
    ties: Ties = "half",
    level: float = 0.95,
    parts: bool = True,
    limits: ConclusionLimits | None = None,
    families: OwnFamilies = (),
) -> Conclusions:
    """What the run says of `side`; by its criteria and tags too, unless `parts` is False.
    `families` are the caller's own entries, as the settings have them."""
    if side not in get_args(Side):
        raise InputError(Message("report.side_b", side=side))
    if ties not in get_args(Ties):
        raise InputError(Message("report.ties_unknown", ties=ties))
    confidence_level(level)
    run = find_run(store, name)
    # What was pending before the verdicts are read: then what is whole is read whole.
    tally = store.tally(run.id)
    survey = store.survey(run.id)
    whole = run.intake_done and tally.pending == 0
    wanted = RateOptions(side, ties, level, planned=whole and until_decided(run) is None)
    judges = store.run_judges(run.id)
    conclusions: list[Conclusion] = []
    allowed = (limits or ConclusionLimits()).checked()
    of_models = Families(families)
    models = {name: None for a, b, _ in survey.models for name in (a, b)}
    kin = judge_families(store, run, judges, models, of_models)
    for judge in judges:
        reader = _Reader(store, run, judge, survey, wanted, allowed, tally)
        conclusions += reader.conclusions(parts=parts, kin=kin[judge.id], families=of_models)
    conclusions = _adjusted(conclusions)
    measured = family_effects(
        store, run, judges, kin, models=models, families=of_models, level=level
    )
    found = list(measured if parts else ())
    effects = tuple(each for each in found if isinstance(each, FamilyEffect))
    abstentions = tuple(count_abstentions(store, run, level=level))
    rated = [RatingCounts.of(store, run, judge) for judge in judges]
    ratings = tuple([each for each in rated if each is not None])
    return Conclusions(
        run=run.name,
        store=store.address,
        state=run.state,
        stopped_by=run.stopped_by,
        whole=whole,
        judges=tuple(judge.name for judge in judges),
        pairs=tally.pairs,
        prompts=survey.prompts,
        pending=tally.pending,
        skipped_rows=tally.skipped_rows,
        side=side,
        ties=ties,
        level=level,
        conclusions=tuple(conclusions),
        abstentions=abstentions,
        ratings=ratings,
        family_effects=effects,
        notes=(
            *_notes(run, wanted, conclusions, skipped=tally.skipped_rows),
            *_grown(conclusions, growing=allowed.growing, alpha=1 - level),
            *_tested_parts(conclusions),
            *_abstained(abstentions),
            *(Message("report.rated_alone", **each.model_dump(by_alias=False)) for each in ratings),
            *effect_notes(effects, level=level),
            *(each for each in found if isinstance(each, Message)),
        ),
    )


def _abstained(abstentions: Iterable[Abstentions]) -> Iterator[Message]:
    """Easy pairs are no fair sample of all pairs."""
    if any(each.abstained for each in abstentions):
        yield Message("report.abstained_counted")


def until_decided(run: RunRecord) -> dict[str, Any] | None:
    planned = run.plan.get("until_decided")
    return planned if isinstance(planned, dict) else None


class _Reader:
    """One judge's verdicts."""

    def __init__(
        self,
        store: Store,
        run: RunRecord,
        judge: JudgeRecord,
        survey: Survey,
        wanted: RateOptions,
        limits: ConclusionLimits,
        tally: Tally,
    ) -> None:
        self._store = store
        self._run = run
        self._judge = judge
        self._survey = survey
        self._wanted = wanted
        self._limits = limits
        self._tally = tally

    def conclusions(
        self, *, parts: bool, kin: frozenset[str], families: Families
    ) -> Iterator[Conclusion]:
        grown_from = self._store.grown_from(self._run.id, self._judge.id)
        looked = self._limits.growing or bool(grown_from)
        wanted = replace(self._wanted, planned=self._wanted.planned and not looked)
        columns = self._store.outcome_columns(self._run.id, self._judge.id)
        criteria = self._store.criterion_columns(self._run.id, self._judge.id) if parts else ()
        test = until_decided(self._run)
        decision = at_level = account = None
        if test is not None:
            decision, account = self._decision(alpha=test["alpha"], seed=test["seed"])
            at_level = decision
            # A level like 0.95 leaves an alpha of 0.05, and not of 0.050000000000000044.
            alpha = round(1 - wanted.level, 12) or 1 - wanted.level
            if alpha != test["alpha"]:
                at_level, _ = self._decision(alpha=alpha, seed=test["seed"])
        labels = LabelRecord.of(self._store, (self._judge,), (self._run,))
        met = list(matchups(columns, criteria, self._survey))
        wanted = replace(wanted, matchups=max(1, len(met)))
        difficulty = _difficulty(columns) if len(met) > 1 else None
        rows = RowFacts(columns, self._limits)
        people = RunLabels(
            self._store, self._run, columns, are_random=self._limits.labels_are_random
        )
        column = TopicColumn.of(columns, self._run, self._limits)
        for matchup in met:
            names = matchup.models if wanted.side == "A" else matchup.models[::-1]
            known = self._circumstances(matchup, rows, labels)
            rate = side_rate(
                matchup.outcomes, matchup.prompts, wanted, decision=at_level, circumstances=known
            )
            level = wanted.level_of_each
            topics = None if column is None else column.spread(matchup, level=level)
            position = measure_position(columns, matchup.rows, level=wanted.level)
            one_order, by_rule = rows.in_one_order(matchup), rows.by_rule(matchup)
            trust = trust_messages(
                rate,
                one_order=one_order,
                position=position,
                labels=labels,
                allow_one_order=self._limits.allow_one_order,
                same_family=shared_message(kin, names, families),
                by_rule=by_rule,
            )
            labelled = people.of(matchup, side=wanted.side, level=wanted.level_of_each)
            conclusion = Conclusion(
                judge=self._judge.name,
                side=wanted.side,
                model=names[0],
                against=names[1],
                pairs=matchup.pairs,
                pending=matchup.pairs - matchup.rows.size,
                win_rate=rate,
                claimed=self._claimed(rate, labelled, matchup, known, wanted).over(topics),
                topics=topics,
                decision=decision,
                account=account,
                by_criterion=tuple(
                    _part(part, wanted, rows.of(part.rows, flips=False), known, matchup)
                    for part in matchup.criteria
                ),
                by_tag=tuple(
                    _part(part, wanted, rows.of(part.rows), known, matchup)
                    for part in (by_tag(columns, matchup) if parts else ())
                ),
                length=_length(columns, matchup, wanted, difficulty),
                position=position,
                labels=labels,
                labelled=labelled,
                accuracy=benchmark_accuracy(columns, level=wanted.level)
                if [each.models for each in met] == [(None, None)]
                else None,
                skipped=known.absent,
                left_out=self._without_partner(matchup) if self._run.on_common_prompts else 0,
                both_orders=rate.counts.valid - one_order - rate.drawn_order - by_rule,
                grown_from=grown_from,
                identical=by_rule,
            )
            if conclusion.length_explains:
                padding = PaddingRecord.of(self._store, self._judge)
                conclusion = conclusion.model_copy(update={"padding": padding})
            yield settled(conclusion, self._limits, trust=trust)

    def _claimed(
        self,
        rate: SideRate,
        labelled: LabelledRate | None,
        matchup: Matchup,
        known: Circumstances,
        wanted: RateOptions,
    ) -> ClaimedRate:
        """People's rate where labels allow one, whatever it says. Looks on the way are the judge's
        verdicts' own matter: such a run keeps the judge's."""
        judge = ClaimedRate.of(rate)
        if labelled is None or labelled.corrected is None:
            return judge
        if not wanted.planned or wanted.ties != "half":
            return judge
        pairs = int(matchup.rows.size)
        estimate = with_absent(labelled.corrected, pairs=pairs, absent=known.absent)
        return ClaimedRate.of_parts(
            estimate, judge, estimator="corrected", always_valid=False, people=labelled.counts
        )

    def _circumstances(
        self, matchup: Matchup, rows: RowFacts, labels: LabelRecord | None
    ) -> Circumstances:
        pending = 0
        if not self._wanted.planned and not in_random_order(self._run):
            pending = matchup.pairs - matchup.rows.size
        known = rows.of(matchup.rows)
        return replace(
            known,
            absent=self._skipped(matchup),
            pending=pending,
            # Elsewhere in the run, or by labels: then a tie here is no shrug.
            discriminates=rows.decided_twice >= FEWEST_DECIDED
            or (labels is not None and labels.tells_apart),
        )

    def _skipped(self, matchup: Matchup) -> int:
        """Prompts that only one of the two answered, and of the rows that do not name their models
        a share."""
        pairs, skipped = self._tally.pairs, self._tally.skipped_rows - self._run.unpaired_rows
        others = -(-skipped * matchup.pairs // pairs) if pairs else skipped
        return others if self._run.on_common_prompts else others + self._without_partner(matchup)

    def _without_partner(self, matchup: Matchup) -> int:
        models = {matchup.models, matchup.models[::-1]}
        lost = self._run.without_partner
        return sum(each.prompts for each in lost if (each.model_a, each.model_b) in models)

    def _decision(self, *, alpha: float, seed: int) -> tuple[SequentialDecision | None, str | None]:
        """With its account."""
        if not self._survey.prompts:
            return None, None
        prefix = SettledPrefix.of(self._store, self._run.id, self._judge.id, alpha=alpha, seed=seed)
        look = prefix.look()
        # The queue of a run that never came to judging is empty, and so nothing in it pending.
        came_to_the_end = prefix.test.prompts == prefix.test.plan.planned
        decision = prefix.conclusion() if came_to_the_end else look
        return decision, prefix.describe(decision, asked=self._asked())

    def _asked(self) -> int | None:
        """Prompts that were asked about, where each prompt has one row."""
        tally = self._store.tally(self._run.id, self._judge.id)
        return tally.judged if tally.pairs == self._survey.prompts else None


def _part(
    part: OutcomeGroup,
    wanted: RateOptions,
    own: Circumstances,
    whole: Circumstances,
    matchup: Matchup,
) -> GroupRate:
    """Which parts the absent and the pending pairs belong to is not known: to each as often as the
    judged ones do."""

    def share(missing: int) -> int:
        return -(-missing * part.rows.size // max(1, matchup.rows.size))

    known = replace(
        own,
        discriminates=whole.discriminates,
        absent=share(whole.absent),
        pending=share(whole.pending),
    )
    rate = side_rate(part.outcomes, part.prompts, wanted, circumstances=known)
    return GroupRate(name=part.name, rate=rate)


def in_random_order(run: RunRecord) -> bool:
    """Whether what is judged of an unfinished run is a random part of it."""
    return until_decided(run) is not None or "rank_adaptive" in run.plan


def _adjusted(conclusions: list[Conclusion]) -> list[Conclusion]:
    """Each part with its p-value adjusted for all of its kind: of twenty tags one is bound to stand
    out, and of twenty pairs of models with one tag as well."""
    for kind in ("by_criterion", "by_tag"):
        tests = [part.rate.sign_test for each in conclusions for part in getattr(each, kind)]
        p_values = iter(holm_adjusted([test.p_value if test else None for test in tests]))
        conclusions = [
            each.model_copy(
                update={
                    kind: tuple(
                        part.model_copy(update={"adjusted_p": next(p_values)})
                        for part in getattr(each, kind)
                    )
                }
            )
            for each in conclusions
        ]
    return conclusions


def _grown(conclusions: list[Conclusion], *, growing: bool, alpha: float) -> Iterator[Message]:
    """Looking again at a file that grows is a new chance to be wrong each time."""
    if growing:
        yield Message("report.growing", alpha=alpha)
        return
    earlier = {each.judge: each.grown_from for each in conclusions if each.grown_from}
    for before in dict.fromkeys(earlier.values()):
        yield Message(
            "report.grown_data", looks=len(before) + 1, before=before[-3:], alpha=2 * alpha
        )


def _tested_parts(conclusions: list[Conclusion]) -> Iterator[str]:
    """Significant is what its interval says too, which holds for what the judge did not decide."""
    judges = len({each.judge for each in conclusions})
    met = len({each.names for each in conclusions})
    for what, kind in (("report.criteria", "by_criterion"), ("report.tags", "by_tag")):
        tested = [
            (part, each)
            for each in conclusions
            if not each.blocks("claim") and not each.judge_refuted
            for part in getattr(each, kind)
            if part.adjusted_p is not None
        ]
        clear = [found for found in tested if found[0].rate.shows_difference]
        alone = sum(part.rate.sign_test.p_value < 0.05 for part, _ in clear)
        if len(tested) < 2 or not alone:
            continue
        clear.sort(key=lambda found: found[0].adjusted_p)
        names = []
        for part, each in clear:
            if part.adjusted_p < 0.05:
                of = [each.judge] * (judges > 1) + [" – ".join(each.names)] * (met > 1)
                names.append(f"{part.name} ({', '.join(of)})" if of else part.name)
        counts = {"n": len(tested), "alone": alone}
        if names:
            shown = [*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])]
            yield Message(f"{what}_significant", names=shown, left=len(names), **counts)
        else:
            yield Message(f"{what}_insignificant", **counts)


class RowFacts:
    """What is known of a judge's rows beside their outcomes."""

    def __init__(self, columns: OutcomeColumns, limits: ConclusionLimits) -> None:
        first, second = (np.asarray(each) for each in (columns.first_winner, columns.second_winner))
        read_twice = (first >= 0) & (second >= 0)
        # An order whose samples split was read too, and agrees with nothing.
        self._flipped = read_twice & (first != second) | (first == SPLIT) | (second == SPLIT)
        # A judge panel's columns say nothing of orders, and so of drawn ones.
        self._drawn = np.asarray(columns.drawn_order) == 1
        self._by_rule = np.asarray(columns.by_rule) == 1
        self._one_order = np.asarray(columns.both_orders) == 0
        if self._by_rule.size:
            self._one_order &= ~self._by_rule  # a tie by rule depends on no order
        if self._drawn.size:
            self._one_order &= ~self._drawn
        self._limits = limits
        won = np.asarray(columns.outcome) <= WIN_B
        for others in (self._flipped, self._drawn):
            won = won & ~others if others.size else won
        # Prompts with a winner that both orders named.
        self.decided_twice = np.unique(np.asarray(columns.prompt_key)[won]).size

    def by_rule(self, matchup: Matchup) -> int:
        return int(self._by_rule[matchup.rows].sum()) if self._by_rule.size else 0

    def in_one_order(self, matchup: Matchup) -> int:
        if not self._one_order.size:
            return 0
        return int((self._one_order[matchup.rows] & (matchup.outcomes != INVALID)).sum())

    def of(self, rows: Rows, *, flips: bool = True) -> Circumstances:
        one_order = None
        if self._one_order.size and not self._limits.allow_one_order:
            one_order = self._one_order[rows]
        return Circumstances(
            flipped=self._flipped[rows] if flips and self._flipped.size else None,
            one_order=one_order,
            drawn=self._drawn[rows] if self._drawn.size else None,
            missing=self._limits.missing,
        )


def _difficulty(columns: OutcomeColumns) -> PromptDifficulty:
    """Where several models met: what the others tell of each prompt."""
    outcomes = np.asarray(columns.outcome)
    return PromptDifficulty(
        np.asarray(columns.model_a),
        np.asarray(columns.model_b),
        np.array([1.0, 0.0, 0.5, 0.5, 0.5])[outcomes],
        prompts=np.asarray(columns.prompt_key),
        valid=outcomes != INVALID,
    )


def _length(
    columns: OutcomeColumns,
    matchup: Matchup,
    wanted: RateOptions,
    difficulty: PromptDifficulty | None,
) -> LengthEffect:
    first, second = (
        np.asarray(each)[matchup.rows] for each in (columns.length_a, columns.length_b)
    )
    turned = matchup.exchanged ^ (wanted.side == "B")
    ease = None if difficulty is None else difficulty.of(matchup.rows)
    return length_effect(
        exchange(matchup.outcomes, wanted.side == "B"),
        length_a=np.where(turned, second, first),
        length_b=np.where(turned, first, second),
        prompts=matchup.prompts,
        difficulty=None if ease is None else np.where(turned, -ease, ease),
        side=wanted.side,
        level=wanted.level,
    )


def measure_position(
    columns: OutcomeColumns, rows: NDArray[np.intp] | None = None, *, level: float
) -> PositionBias:
    """Of all rows, or of these."""
    # Places are those of the data's rows, whichever model stands there. A pair that was asked in
    # one drawn order has no second one that could have gone unread, and a tie by rule has neither.
    if rows is None:
        rows = np.arange(len(columns.number))
    for others in (columns.drawn_order, columns.by_rule):
        if others:
            rows = rows[np.asarray(others)[rows] == 0]
    return position_bias(
        np.asarray(columns.first_winner)[rows],
        np.asarray(columns.second_winner)[rows],
        prompts=np.asarray(columns.prompt_key)[rows],
        level=level,
    )


def _notes(
    run: RunRecord, wanted: RateOptions, conclusions: list[Conclusion], *, skipped: int
) -> Iterator[str]:
    met = max((each.win_rate.matchups for each in conclusions), default=1)
    if met > 1:
        yield Message("report.several_matchups", n=met, level=wanted.level)
    if until_decided(run) is not None:
        yield (Message("report.sequential_interval"))
        if wanted.ties != "half":
            yield (Message("report.sequential_ties_half", ties=wanted.ties))
    elif not wanted.planned:
        if "rank_adaptive" in run.plan:
            yield Message("report.chosen_adaptively")
        else:
            yield Message("report.not_finished", run=run.name)
    if skipped:
        yield Message("report.rows_skipped", n=skipped)
    invalid = sum(each.win_rate.counts.invalid for each in conclusions)
    if invalid:
        yield Message("report.invalid_verdicts", n=invalid)
    identical = sum(each.identical for each in conclusions)
    if identical:
        yield Message("report.ties_by_rule", n=identical)
    models = {name for each in conclusions for name in (each.model, each.against)}
    if len(models) > 2:
        yield Message("report.many_models", n=len(models), name=run.name)
    for judge in dict.fromkeys(each.judge for each in conclusions if each.position.favours):
        yield (Message("report.position_bias", judge=judge))
    for each in conclusions:
        if (longer := _longer_in_most(each)) is not None:
            yield longer
        if (beside := _labels_beside(each)) is not None:
            yield beside
        own = each.win_rate
        if own.rate is None or own.row_rate is None or own.always_valid:
            continue
        if abs(own.rate - own.row_rate) > _ESTIMANDS_DIFFER:
            model, against = each.names
            values = {"model": model, "against": against, "rate": own.row_rate}
            yield Message("report.prompts_weigh_the_same", **values)


def _longer_in_most(conclusion: Conclusion) -> Message | None:
    """The side that is claimed to be better is the longer one nearly always: no verdicts can tell
    whether it wins by that."""
    claimed, controlled = conclusion.claimed, conclusion.length.controlled[0]
    if claimed.low is None or not claimed.excludes_half or conclusion.by_people:
        return None
    better = claimed.low > 0.5
    share = controlled.share_longer if better else controlled.share_shorter
    if share is None or share < _LONGER_IN_MOST:
        return None
    model = conclusion.names[0 if better else 1]
    return Message("report.longer_in_most", model=model, share=share, n=controlled.n)


def _labels_beside(conclusion: Conclusion) -> Message | None:
    """Labels that correct nothing, and what they say."""
    own = conclusion.labelled
    if own is None or own.people.rate is None or own.judge is None or conclusion.by_people:
        return None
    values = {"model": conclusion.names[0], "n": own.pairs, "people": own.people.rate}
    if own.corrected is not None:
        return Message("report.labels_not_used", judge=own.judge, **values)
    return Message("report.labels_compared", judge=own.judge, reason=own.reason, **values)
