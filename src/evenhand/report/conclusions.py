"""What a run says about its two sides: how often one wins, how sure that is, what else may be
behind it. One conclusion for each judge and each two models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.judges.families import Families, OwnFamilies, shared_message
from evenhand.messages import Message, Sentence
from evenhand.report.abstentions import Abstentions, count_abstentions
from evenhand.report.baselines import JudgeAccuracy, benchmark_accuracy
from evenhand.report.claims import Blocked, ClaimedRate, Hold, settled, trust_messages
from evenhand.report.evidence import (
    RowFacts,
    in_random_order,
    measure_length,
    measure_position,
    prompt_difficulty,
    until_decided,
)
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
    Models,
    OutcomeGroup,
    PaddingRecord,
    RateOptions,
    Side,
    SideRate,
    by_tag,
    matchups,
    side_rate,
)
from evenhand.stats.intervals import holm_adjusted
from evenhand.stats.outcomes import confidence_level
from evenhand.stats.rates.length_bias import LengthEffect, PromptDifficulty
from evenhand.stats.rates.position_bias import PositionBias
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
    """The judge's win rate of a part: a criterion, or a tag.

    `adjusted_p` is that of its sign test among all parts of its kind, of all judges and models that
    met in the run, by Holm's method (1979). `claimed` is what a gate goes by where that is another
    rate: people's, by the labels of a tag's pairs, or over the topics of the part. Labels say
    nothing of single criteria.
    """

    name: str
    rate: SideRate
    adjusted_p: float | None = None
    claimed: ClaimedRate | None = None
    labelled: LabelledRate | None = None
    topics: Topics | None = None
    skipped: int = 0  # rows that never became pairs, as far as they fall to this part
    identical: int = 0  # pairs of identical responses


class Conclusion(Model):
    """One judge on one two models; `model` is the side's, `against` the other's.

    `decision` is that of a run until it is decided, at the run's own alpha, and `account` what
    came of it; the interval of `win_rate` is at the level that was asked for. Sentence and gate go
    by `claimed`, as far as no hold blocks it.
    """

    judge: str
    side: Side
    model: Sentence | None
    against: Sentence | None
    pairs: int
    pending: int
    win_rate: SideRate
    claimed: ClaimedRate
    holds: tuple[Hold, ...] = ()
    topics: Topics | None = None
    decision: SequentialDecision | None = None
    account: Sentence | None = None
    by_criterion: tuple[GroupRate, ...] = ()
    by_tag: tuple[GroupRate, ...] = ()
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
    def claims(self) -> bool:
        """Whether it says that one side is better: by the claimed rate, and nothing blocks it. Few
        outright wins are no loss."""
        if self.win_rate.ties == "wins" and (self.claimed.low or 0.0) <= 0.5:
            return False
        return self.claimed.excludes_half and not self.blocks("claim")

    @property
    def judge_claims(self) -> bool:
        """Whether what the judge's own rates show, of the whole and of its parts, may be claimed:
        not where something holds it back, nor where labels contradict or refute the judge."""
        if self.blocks("claim") or (self.labels is not None and self.labels.is_no_better):
            return False
        if not self.by_people:
            return True
        own, people = self.win_rate, self.claimed
        same_side = ((own.low or 0.0) > 0.5) == ((people.low or 0.0) > 0.5)
        return own.excludes_half and people.excludes_half and same_side

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
    tally = store.verdicts.count(run.id)
    survey = store.runs.survey(run.id)
    whole = run.intake_done and tally.pending == 0
    wanted = RateOptions(side, ties, level, planned=whole and until_decided(run) is None)
    judges = store.runs.judges(run.id)
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
        family_effects=effects,
        notes=(
            *_notes(run, wanted, conclusions, skipped=tally.skipped_rows),
            *_grown(conclusions, growing=allowed.growing, alpha=1 - level),
            *_tested_parts(conclusions),
            *_abstained(abstentions),
            *effect_notes(effects, level=level),
            *(each for each in found if isinstance(each, Message)),
        ),
    )


def _abstained(abstentions: Iterable[Abstentions]) -> Iterator[Message]:
    """Easy pairs are no fair sample of all pairs."""
    if any(each.abstained for each in abstentions):
        yield Message("report.abstained_counted")


class Concluder:
    """Verdicts of one judge on a run, or several such columns joined, and all that the store knows
    beside them. `people` are their labels."""

    def __init__(
        self,
        store: Store,
        columns: OutcomeColumns,
        judged: Sequence[tuple[RunRecord, JudgeRecord]],
        *,
        people: RunLabels,
        wanted: RateOptions,
        limits: ConclusionLimits,
    ) -> None:
        self.columns = columns
        self.rows = RowFacts(columns, limits)
        self._store = store
        self._judges = tuple({judge.id: judge for _, judge in judged}.values())
        runs = {run.id: run for run, _ in judged}.values()
        earlier = [store.runs.grown_from(run.id, judge.id) for run, judge in judged]
        self._grown_from = tuple(dict.fromkeys(name for names in earlier for name in names))
        looked = limits.growing or bool(self._grown_from)
        self.wanted = replace(wanted, planned=wanted.planned and not looked)
        self._limits = limits
        self._labels = LabelRecord.of(store, self._judges, runs)
        self._people = people
        self._topics = TopicColumn.of(columns, *runs, limits=limits) if len(runs) == 1 else None

    def circumstances(self, matchup: Matchup, *, absent: int, pending: int) -> Circumstances:
        labels = self._labels
        return replace(
            self.rows.of(matchup.rows),
            absent=absent,
            pending=pending,
            # Elsewhere in the run, or by labels: then a tie here is no shrug.
            discriminates=self.rows.decided_twice >= FEWEST_DECIDED
            or (labels is not None and labels.tells_apart),
        )

    def conclude(
        self,
        matchup: Matchup,
        names: tuple[Sentence | None, Sentence | None],
        known: Circumstances,
        *,
        tested: SequentialDecision | None = None,
        difficulty: PromptDifficulty | None = None,
        same_family: Message | None = None,
        **facts: Any,
    ) -> Conclusion:
        """`tested` is a decision at the level of the interval; `facts` are fields of the
        conclusion."""
        wanted, rows = self.wanted, self.rows
        rate = side_rate(
            matchup.outcomes, matchup.prompts, wanted, decision=tested, circumstances=known
        )
        level = wanted.level_of_each
        topics = None if self._topics is None else self._topics.spread(matchup, level=level)
        position = measure_position(self.columns, matchup.rows, level=wanted.level)
        one_order, by_rule = rows.in_one_order(matchup), rows.by_rule(matchup)
        labelled = self._people.of(matchup, side=wanted.side, level=level)
        claimed = self._claimed(rate, labelled, pairs=matchup.rows.size, absent=known.absent)
        conclusion = Conclusion(
            judge=", ".join(judge.name for judge in self._judges),
            side=wanted.side,
            model=names[0],
            against=names[1],
            pairs=matchup.pairs,
            pending=matchup.pairs - matchup.rows.size,
            win_rate=rate,
            claimed=claimed.over(topics),
            topics=topics,
            length=measure_length(self.columns, matchup, wanted, difficulty),
            position=position,
            labels=self._labels,
            labelled=labelled,
            skipped=known.absent,
            both_orders=rate.counts.valid - one_order - rate.drawn_order - by_rule,
            grown_from=self._grown_from,
            identical=by_rule,
            **facts,
        )
        if conclusion.length_explains and len(self._judges) == 1:
            padding = PaddingRecord.of(self._store, *self._judges)
            conclusion = conclusion.model_copy(update={"padding": padding})
        trust = trust_messages(
            rate,
            one_order=one_order,
            position=position,
            labels=self._labels,
            allow_one_order=self._limits.allow_one_order,
            same_family=same_family,
            by_rule=by_rule,
        )
        return settled(conclusion, self._limits, trust=trust)

    def conclude_part(
        self, group: OutcomeGroup, matchup: Matchup, whole: Circumstances, *, tag: bool
    ) -> GroupRate:
        """A tag or a criterion, by the topics of its own pairs, as the whole is; of a tag by their
        labels too. Which parts the absent and the pending pairs belong to is not known: to each as
        often as the judged ones do."""

        def share(missing: int) -> int:
            return -(-missing * group.rows.size // max(1, matchup.rows.size))

        wanted, level, absent = self.wanted, self.wanted.level_of_each, share(whole.absent)
        known = replace(
            self.rows.of(group.rows, flips=tag),
            discriminates=whole.discriminates,
            absent=absent,
            pending=share(whole.pending),
        )
        rate = side_rate(group.outcomes, group.prompts, wanted, circumstances=known)
        topics = None if self._topics is None else self._topics.spread(group, level=level)
        if topics is not None and topics.topics == 1:
            topics = None  # the part is a topic, and speaks for itself
        labelled = None
        if tag:
            own = matchup.only(np.isin(matchup.rows, group.rows))
            labelled = self._people.of(own, side=wanted.side, level=level)
        claimed = self._claimed(rate, labelled, pairs=group.rows.size, absent=absent).over(topics)
        return GroupRate(
            name=group.name,
            rate=rate,
            claimed=None if claimed == ClaimedRate.of(rate) else claimed,
            labelled=labelled,
            topics=topics,
            skipped=absent,
            identical=self.rows.by_rule(group),
        )

    def _claimed(
        self, rate: SideRate, labelled: LabelledRate | None, *, pairs: int, absent: int
    ) -> ClaimedRate:
        """People's rate where labels allow one, whatever it says. Looks on the way are the judge's
        verdicts' own matter: such a run keeps the judge's."""
        judge = ClaimedRate.of(rate)
        if labelled is None or labelled.corrected is None:
            return judge
        if not self.wanted.planned or self.wanted.ties != "half":
            return judge
        estimate = with_absent(labelled.corrected, pairs=pairs, absent=absent)
        return ClaimedRate.of_parts(
            estimate, judge, estimator="corrected", always_valid=False, people=labelled.counts
        )


class _Reader:
    """One judge's verdicts on a run, matchup by matchup."""

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
        self._absences = Absences(run, tally)

    def conclusions(
        self, *, parts: bool, kin: frozenset[str], families: Families
    ) -> Iterator[Conclusion]:
        columns = self._store.columns.outcomes(self._run.id, self._judge.id)
        criteria = self._store.columns.criteria(self._run.id, self._judge.id) if parts else ()
        met = list(matchups(columns, criteria, self._survey))
        by_people = RunLabels.of_run(
            self._store, self._run, columns, are_random=self._limits.labels_are_random
        )
        concluder = Concluder(
            self._store,
            columns,
            [(self._run, self._judge)],
            people=by_people,
            wanted=replace(self._wanted, matchups=max(1, len(met))),
            limits=self._limits,
        )
        wanted = concluder.wanted
        decision, at_level, account = self._decisions(wanted.level)
        difficulty = prompt_difficulty(columns) if len(met) > 1 else None
        benchmark = [each.models for each in met] == [(None, None)]
        for matchup in met:
            names = matchup.models if wanted.side == "A" else matchup.models[::-1]
            pending = 0
            if not self._wanted.planned and not in_random_order(self._run):
                pending = matchup.pairs - matchup.rows.size
            known = concluder.circumstances(
                matchup,
                absent=self._absences.of([matchup.models], matchup.pairs),
                pending=pending,
            )
            yield concluder.conclude(
                matchup,
                names,
                known,
                tested=at_level,
                difficulty=difficulty,
                same_family=shared_message(kin, names, families),
                account=account,
                by_criterion=tuple(
                    concluder.conclude_part(part, matchup, known, tag=False)
                    for part in matchup.criteria
                ),
                by_tag=tuple(
                    concluder.conclude_part(part, matchup, known, tag=True)
                    for part in (by_tag(columns, matchup) if parts else ())
                ),
                accuracy=benchmark_accuracy(columns, level=wanted.level) if benchmark else None,
                left_out=self._absences.left_out([matchup.models]),
                decision=decision,
            )

    def _decisions(
        self, level: float
    ) -> tuple[SequentialDecision | None, SequentialDecision | None, str | None]:
        """Of a run until it is decided: at its own alpha, and at that of the level; the account."""
        test = until_decided(self._run)
        if test is None:
            return None, None, None
        decision, account = self._decision(alpha=test["alpha"], seed=test["seed"])
        # A level like 0.95 leaves an alpha of 0.05, and not of 0.050000000000000044.
        alpha = round(1 - level, 12) or 1 - level
        if alpha == test["alpha"]:
            return decision, decision, account
        return decision, self._decision(alpha=alpha, seed=test["seed"])[0], account

    def _decision(self, *, alpha: float, seed: int) -> tuple[SequentialDecision | None, str | None]:
        """With its account."""
        if not self._survey.prompts:
            return None, None
        from evenhand.runs.settled_prefix import SettledPrefix

        prefix = SettledPrefix.of(self._store, self._run.id, self._judge.id, alpha=alpha, seed=seed)
        look = prefix.look()
        # The queue of a run that never came to judging is empty, and so nothing in it pending.
        came_to_the_end = prefix.test.prompts == prefix.test.plan.planned
        decision = prefix.conclusion() if came_to_the_end else look
        return decision, prefix.describe(decision, asked=self._asked())

    def _asked(self) -> int | None:
        """Prompts that were asked about, where each prompt has one row."""
        tally = self._store.verdicts.count(self._run.id, self._judge.id)
        return tally.judged if tally.pairs == self._survey.prompts else None


@dataclass(frozen=True, slots=True)
class Absences:
    """Pairs that never came to be, as far as they fall to some models."""

    run: RunRecord
    tally: Tally

    def of(self, models: Iterable[Models], pairs: int) -> int:
        """Prompts that only one of two models answered, and of the rows that do not name theirs
        the share of these pairs."""
        every, skipped = self.tally.pairs, self.tally.skipped_rows - self.run.unpaired_rows
        others = -(-skipped * pairs // every) if every else skipped
        return others if self.run.on_common_prompts else others + self._alone(models)

    def left_out(self, models: Iterable[Models]) -> int:
        """Prompts that one of the two did not answer, at the caller's word."""
        return self._alone(models) if self.run.on_common_prompts else 0

    def _alone(self, models: Iterable[Models]) -> int:
        met = {each for a, b in models for each in ((a, b), (b, a))}
        lost = self.run.without_partner
        return sum(each.prompts for each in lost if (each.model_a, each.model_b) in met)


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
            if each.judge_claims
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
