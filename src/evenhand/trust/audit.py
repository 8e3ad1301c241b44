"""A judge against labels: accuracy, agreement, biases and baselines, over the data's labels or else
people's majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Locale, Winner
from evenhand.contract.codes import (
    INCONSISTENT,
    INVALID,
    NO_WINNER,
    SAYS_A,
    SAYS_B,
    SAYS_TIE,
    WINNERS,
)
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.report.baselines import (
    AuditRows,
    Baseline,
    PeopleBaseline,
    agreement_of_both_sides,
    baselines,
    either_place,
    people_baseline,
)
from evenhand.report.lookup import chosen_judge, find_run
from evenhand.report.votes import Codes, ItemVotes, item_votes, majority_labels
from evenhand.stats.agreement.labels import Agreement, ConfusionMatrix, agreement
from evenhand.stats.estimates import EstimatedShare, EstimatedValue, share_of_rows
from evenhand.stats.rates.paired_difference import difference_in_halves
from evenhand.store import JudgeRecord, OutcomeColumns, RunRecord, Store, Tally
from evenhand.trust.biases import (
    PositionBiasReport,
    SelfPreference,
    SideBias,
    length_bias,
    measure_position_bias,
    self_preference,
)
from evenhand.trust.pass_counts import MissingPasses, PassCounts, RunPasses

_SIDES, _PLACES = {0: "A", 1: "B"}, {0: "first", 1: "second"}
_ONE_SIDED = 6


class LabelSources(Model):
    """Where the labels of the judged pairs come from, and which votes are no labels.

    `equally_divided` pairs have votes and no majority. `chosen` and `escalated` count votes on
    pairs that were shown for what was known of them, or because the judge was unsure: they say
    nothing of the other pairs.
    """

    by_data: int
    by_people: int
    equally_divided: int
    chosen: int
    escalated: int


@dataclass(frozen=True, slots=True)
class AuditLabels:
    """A label for each judged pair, or none; `votes` are those that may be a yardstick."""

    winners: Codes
    votes: ItemVotes
    sources: LabelSources
    notes: tuple[Sentence, ...]


def audit_labels(store: Store, run: RunRecord, columns: OutcomeColumns) -> AuditLabels:
    """Refused where no judged pair has a label."""
    if not columns.number:
        raise InputError(Message("trust.nothing_judged", name=run.name))
    numbers = np.asarray(columns.number, dtype=np.int64)
    winners = np.asarray(columns.label, dtype=np.int8).copy()
    by_data = winners != NO_WINNER
    votes = item_votes(store, run.id, numbers)
    fair = votes.only(~votes.picked)
    people = majority_labels(fair, numbers)
    by_people = ~by_data & (people.majority != NO_WINNER)
    winners[by_people] = people.majority[by_people]
    sources = LabelSources(
        by_data=int(by_data.sum()),
        by_people=int(by_people.sum()),
        equally_divided=int((~by_data & people.undecided).sum()),
        chosen=int((votes.chosen & ~votes.escalated).sum()),
        escalated=int(votes.escalated.sum()),
    )
    known = by_data | by_people
    if not known.any():
        raise InputError(_refusal(run.name, sources))
    one_order = ~either_place(columns)
    if one_order[known].all():
        refuse_one_sided(f"run {run.name!r}", Counter(winners[known].tolist()))
    doubtful = fair.drawn_by_chance & by_people[fair.row]
    return AuditLabels(
        winners=winners,
        votes=fair,
        sources=sources,
        notes=tuple(_label_notes(sources, drawn_by_doubt=int(np.unique(fair.row[doubtful]).size))),
    )


def refuse_one_sided(what: str, labels: Mapping[int, int]) -> None:
    """Where pairs are shown in one order and all labels, by how many name each response, name the
    same one: so many that it is no accident (2 × 0.5⁶ is the first below 0.05)."""
    if len(labels) != 1:
        return
    ((side, count),) = labels.items()
    if side in _SIDES and count >= _ONE_SIDED:
        raise InputError(
            Message(
                "trust.labels_name_one_side",
                what=what,
                sides=_SIDES[side],
                places=_PLACES[side],
                count=count,
            )
        )


def _label_notes(sources: LabelSources, *, drawn_by_doubt: int) -> Iterator[str]:
    if sources.equally_divided:
        yield Message("trust.pairs_divided", n=sources.equally_divided)
    unfair = sources.chosen + sources.escalated
    if unfair:
        yield Message("trust.votes_left_out", n=unfair)
    if drawn_by_doubt:
        yield Message("trust.drawn_by_doubt", n=drawn_by_doubt)


def _refusal(run: str, sources: LabelSources) -> str:
    if sources.equally_divided:
        return Message("trust.labels_divided", run=run, n=sources.equally_divided)
    unfair = sources.chosen + sources.escalated
    if unfair:
        return Message("trust.votes_chosen", run=run, n=unfair)
    return Message("trust.no_labels", run=run)


# A judge against people: how often it is right, what it leans to, and whether to believe it.

_OUTCOMES = ("win", "win", "tie", "inconsistent", "invalid")


class TagAudit(Model):
    tag: str
    n: int
    accuracy: EstimatedShare
    agreement: EstimatedShare
    consistency: EstimatedShare


class Disagreement(Model):
    """A pair that the judge saw otherwise than its label; `verdict` is null where it has none."""

    id: str
    label: Winner
    verdict: Winner | None
    outcome: Literal["win", "tie", "inconsistent", "invalid"]


class JudgeAgreement(Model):
    """How far this judge agrees with another, or with itself in another language."""

    run: str
    judge: str
    locale: Locale | None
    pairs: int
    agreement: EstimatedShare
    kappa: EstimatedValue


class Audit(Model):
    """`n` pairs have a label, of the data or of people's majority. An inconsistent pair has no
    verdict to agree with: it is not right, and in agreement and kappa it is left out, as is an
    invalid one. In `half_credit`, by which the judge is compared with a coin, it counts as half
    right. Pairs with `missing_passes` were never judged and are in no figure."""

    run: str | None
    store: str | None
    judge: str
    prompt_version: str | None
    locale: Locale | None
    n: int
    unlabelled: int
    labels: LabelSources
    accuracy: EstimatedShare
    agreement: EstimatedShare
    agreement_without_ties: EstimatedShare
    kappa: EstimatedValue
    kappa_without_ties: EstimatedValue
    macro_f1: EstimatedValue
    confusion: ConfusionMatrix
    inconsistent: EstimatedShare
    unread: EstimatedShare
    consistency: EstimatedShare
    first_place_share: EstimatedShare
    place: PositionBiasReport
    length: SideBias
    self_preference: SelfPreference | None
    retest: EstimatedShare | None
    by_tag: tuple[TagAudit, ...]
    yardsticks: tuple[Baseline, ...]
    people: PeopleBaseline | None
    disagreements: tuple[Disagreement, ...]
    disagreements_in_all: int
    # Labelled pairs that were shown in one order alone, in which a judge of places looks right.
    one_order: int = 0
    half_credit: EstimatedValue
    counts: PassCounts
    missing_passes: MissingPasses
    skipped_rows: int = 0
    identical: int = 0  # ties by rule, in no figure: the judge was not asked
    between: JudgeAgreement | None = None
    level: float
    notes: tuple[Sentence, ...] = ()


def audit_run(
    store: Store,
    name: str,
    *,
    judge: str | None = None,
    level: float = 0.95,
    disagreements: int = 20,
    against: str | None = None,
) -> Audit:
    """The audit of a run whose pairs have labels, or votes; `judge` where it has several."""
    run = find_run(store, name)
    record = chosen_judge(store.runs.judges(run.id), run.name, judge)
    judged = store.columns.outcomes(run.id, record.id)
    columns = judged.asked()
    by_rule = len(judged.number) - len(columns.number)
    if by_rule and not columns.number:
        raise InputError(Message("trust.all_identical", name=run.name, n=by_rule))
    labels = audit_labels(store, run, columns)
    passes = RunPasses(columns, store.columns.passes(run.id, record.id))
    labelled = labels.winners != NO_WINNER
    unjudged, missing = passes.missing(labelled)
    labels.winners[unjudged] = NO_WINNER
    rows = AuditRows.of(columns, labels.winners)
    known = rows.only(rows.labelled)
    if not known.numbers.size:
        raise InputError(missing.message("trust.no_pair_recorded_whole", of=missing.pairs))
    overall = agreement(known.verdicts, known.labels, prompts=known.prompts, level=level)
    balanced = agreement_of_both_sides(known, known.verdicts, level=level)
    people = people_baseline(labels.votes, rows, level=level)
    place = measure_position_bias(rows.first, rows.second, rows.prompts, level=level)
    tally = store.verdicts.tally(run.id, record.id)
    return Audit(
        run=run.name,
        store=store.address,
        judge=record.name,
        prompt_version=record.prompt_version,
        locale=record.locale,
        n=overall.n,
        unlabelled=int((~labelled).sum()),
        labels=labels.sources,
        accuracy=overall.accuracy,
        agreement=overall.agreement,
        agreement_without_ties=overall.agreement_without_ties,
        kappa=balanced.kappa,
        kappa_without_ties=balanced.kappa_without_ties,
        macro_f1=balanced.macro_f1,
        confusion=_confusion(overall.confusion, known),
        inconsistent=_share(known, known.outcomes == INCONSISTENT, level),
        unread=_share(known, known.outcomes == INVALID, level),
        consistency=place.test.consistency,
        first_place_share=place.first_place_share,
        place=place,
        length=length_bias(
            known.verdicts,
            known.labels,
            length_a=known.length_a,
            length_b=known.length_b,
            prompts=known.prompts,
            level=level,
        ),
        self_preference=_self_preference(record, columns, rows, level),
        retest=passes.retest(level=level),
        by_tag=tuple(_by_tag(columns, rows, level)),
        yardsticks=tuple(baselines(known, people, level=level)),
        people=people,
        disagreements=tuple(_disagreements(store, run.id, known, at_most=disagreements)),
        disagreements_in_all=int((known.verdicts != known.labels).sum()),
        one_order=int((np.asarray(columns.both_orders)[rows.labelled] == 0).sum()),
        half_credit=_half_credit(known, level),
        counts=passes.counts(labels.winners),
        missing_passes=missing,
        skipped_rows=tally.skipped_rows,
        identical=by_rule,
        between=_between(store, against, rows, run.id, level) if against else None,
        level=level,
        notes=(*_notes(tally, overall, known, by_rule), *labels.notes),
    )


def _confusion(matrix: ConfusionMatrix, known: AuditRows) -> ConfusionMatrix:
    """With what the rows without a verdict are: inconsistent or invalid."""
    rows = {}
    for code, name in ((SAYS_A, "a"), (SAYS_B, "b"), (SAYS_TIE, "tie")):
        outcomes = known.outcomes[known.labels == code]
        kinds = {"inconsistent": INCONSISTENT, "invalid": INVALID}
        counts = {kind: int((outcomes == each).sum()) for kind, each in kinds.items()}
        rows[name] = getattr(matrix, name).model_copy(update=counts)
    return matrix.model_copy(update=rows)


def _half_credit(known: AuditRows, level: float) -> EstimatedValue:
    """Right pairs, and inconsistent ones as half: a coin's half, more or less."""
    over = difference_in_halves(known.half_credit - 1, known.prompts, level=level)
    ends = (None if each is None else 0.5 + each for each in (over.value, over.low, over.high))
    value, low, high = ends
    return EstimatedValue(value=value, low=low, high=high, reason=over.reason)


def _share(rows: AuditRows, part: NDArray[np.bool_], level: float) -> EstimatedShare:
    return share_of_rows(part, rows.prompts, level=level, unit="labelled pair")


def _by_tag(columns: OutcomeColumns, rows: AuditRows, level: float) -> Iterator[TagAudit]:
    sets = np.asarray(columns.tags)
    tags = sorted({tag for tags in columns.tag_sets for tag in tags})
    for tag in tags:
        having = [code for code, tags in enumerate(columns.tag_sets) if tag in tags]
        own = rows.only(np.isin(sets, having))
        known = own.only(own.labelled)
        if not known.numbers.size:
            continue
        tagged = agreement(known.verdicts, known.labels, prompts=known.prompts, level=level)
        yield TagAudit(
            tag=tag,
            n=tagged.n,
            accuracy=tagged.accuracy,
            agreement=tagged.agreement,
            consistency=measure_position_bias(
                own.first, own.second, own.prompts, level=level
            ).test.consistency,
        )


def _disagreements(
    store: Store, run_id: int, known: AuditRows, *, at_most: int
) -> Iterator[Disagreement]:
    places = np.flatnonzero(known.verdicts != known.labels)[:at_most]
    keys = store.items.keys(run_id, [int(known.numbers[place]) for place in places])
    for place in places:
        verdict = int(known.verdicts[place])
        yield Disagreement.model_validate(
            {
                "id": keys[int(known.numbers[place])],
                "label": WINNERS[int(known.labels[place])],
                "verdict": None if verdict == NO_WINNER else WINNERS[verdict],
                "outcome": _OUTCOMES[int(known.outcomes[place])],
            }
        )


def _self_preference(
    record: JudgeRecord, columns: OutcomeColumns, rows: AuditRows, level: float
) -> SelfPreference | None:
    """Where the judge's own model is among those that answered."""
    own = [code for code, name in enumerate(columns.models) if _same_model(record.name, name)]
    if not own:
        return None
    is_a = np.isin(np.asarray(columns.model_a), own)
    is_b = np.isin(np.asarray(columns.model_b), own)
    side = np.where(is_a & ~is_b, SAYS_A, np.where(is_b & ~is_a, SAYS_B, NO_WINNER))
    return self_preference(
        columns.models[own[0]],
        side,
        rows.verdicts,
        rows.labels,
        prompts=rows.prompts,
        level=level,
    )


def _same_model(judge: str, model: str) -> bool:
    """`openai:gpt-4o` is the model gpt-4o, whoever serves it; data may name a provider too."""

    def unplaced(name: str) -> str:
        return name.rpartition("/")[2].strip().lower()

    # A model's own name may have a colon (llama3:8b), so that only a judge's first one parts.
    asked = unplaced(judge.partition(":")[2] or judge)
    return bool(asked) and asked in (unplaced(model), unplaced(model.partition(":")[2]))


def _between(
    store: Store, against: str, rows: AuditRows, run_id: int, level: float
) -> JudgeAgreement:
    """On the pairs of equal content; people's labels have no part in it."""
    run = find_run(store, against)
    record = chosen_judge(store.runs.judges(run.id), run.name, None)
    other = AuditRows.of(store.columns.outcomes(run.id, record.id).asked())
    ours, theirs = store.items.shared(run_id, run.id)
    mine = np.searchsorted(rows.numbers, ours)
    yours = np.searchsorted(other.numbers, theirs)
    judged = (mine < rows.numbers.size) & (yours < other.numbers.size)
    mine, yours = mine[judged], yours[judged]
    judged = (rows.numbers[mine] == np.asarray(ours)[judged]) & (
        other.numbers[yours] == np.asarray(theirs)[judged]
    )
    mine, yours = mine[judged], yours[judged]
    if not mine.size:
        raise InputError(Message("trust.no_pair_of_these", name=run.name))
    between = agreement(
        rows.verdicts[mine], other.verdicts[yours], prompts=rows.prompts[mine], level=level
    )
    return JudgeAgreement(
        run=run.name,
        judge=record.name,
        locale=record.locale,
        pairs=int(mine.size),
        agreement=between.agreement,
        kappa=between.kappa,
    )


def _notes(tally: Tally, overall: Agreement, known: AuditRows, by_rule: int) -> Iterator[str]:
    if by_rule:
        yield Message("trust.ties_by_rule", n=by_rule)
    if tally.pending:
        yield Message("trust.run_not_finished", n=tally.pending)
    if tally.skipped_rows:
        yield Message("trust.rows_skipped", n=tally.skipped_rows)
    if overall.clustered:
        yield Message("trust.clustered")
    if known.one_sided:
        yield Message("trust.one_sided_labels", side=WINNERS[int(known.labels[0])])
