"""A judge against people: how often it is right, what it leans to, and whether to believe it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Locale, Winner
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.report.lookup import find_run
from evenhand.stats.agreement import Agreement, agreement
from evenhand.stats.confusion import ConfusionMatrix
from evenhand.stats.estimated_share import EstimatedShare
from evenhand.stats.estimated_value import EstimatedValue
from evenhand.store import JudgeRecord, OutcomeColumns, Store
from evenhand.store.columns import INCONSISTENT, INVALID
from evenhand.trust.audit_labels import LabelSources, audit_labels
from evenhand.trust.audit_rows import AuditRows
from evenhand.trust.biases import (
    NONE,
    SAYS_A,
    SAYS_B,
    LengthBias,
    PlaceBias,
    SelfPreference,
    length_bias,
    place_bias,
    self_preference,
    share_of,
)
from evenhand.trust.labelled_verdicts import chosen_judge
from evenhand.trust.rules import RuleFigures
from evenhand.trust.yardsticks import (
    PeopleYardstick,
    Yardstick,
    agreement_of_both_sides,
    people_yardstick,
    yardsticks,
)

_WINNERS: tuple[Winner, ...] = ("A", "B", "TIE")
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


class Audit(Model):
    """`n` pairs have a label, of the data or of people's majority. An inconsistent pair has no
    verdict to agree with: it is not right, and in agreement and kappa it is left out, as is an
    invalid one."""

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
    place: PlaceBias
    length: LengthBias
    self_preference: SelfPreference | None
    retest: EstimatedShare | None
    by_tag: tuple[TagAudit, ...]
    yardsticks: tuple[Yardstick, ...]
    people: PeopleYardstick | None
    disagreements: tuple[Disagreement, ...]
    disagreements_in_all: int
    # Labelled pairs that were shown in one order alone, in which a judge of places looks right.
    one_order: int = 0
    between: Between | None = None
    rule: RuleFigures | None = None
    level: float
    notes: tuple[str, ...] = ()


class Between(Model):
    """How far this judge agrees with another, or with itself in another language."""

    run: str
    judge: str
    locale: Locale | None
    pairs: int
    agreement: EstimatedShare
    kappa: EstimatedValue


def audit_run(
    store: Store,
    name: str,
    *,
    judge: str | None = None,
    level: float = 0.95,
    disagreements: int = 20,
    against: str | None = None,
    rule: RuleFigures | None = None,
) -> Audit:
    """The audit of a run whose pairs have labels, or votes; `judge` where it has several."""
    run = find_run(store, name)
    record = chosen_judge(store.run_judges(run.id), run.name, judge)
    columns = store.outcome_columns(run.id, record.id)
    labels = audit_labels(store, run, columns)
    rows = AuditRows.of(columns, labels.winners)
    known = rows.only(rows.labelled)
    found = agreement(known.verdicts, known.labels, prompts=known.prompts, level=level)
    balanced = agreement_of_both_sides(known, known.verdicts, level=level)
    people = people_yardstick(labels.votes, rows, level=level)
    place = place_bias(rows.first, rows.second, rows.prompts, level=level)
    pending = store.tally(run.id, record.id).pending
    return Audit(
        run=run.name,
        store=store.address,
        judge=record.name,
        prompt_version=record.prompt_version,
        locale=record.locale,
        n=found.n,
        unlabelled=int((~rows.labelled).sum()),
        labels=labels.sources,
        accuracy=found.accuracy,
        agreement=found.agreement,
        agreement_without_ties=found.agreement_without_ties,
        kappa=balanced.kappa,
        kappa_without_ties=balanced.kappa_without_ties,
        macro_f1=balanced.macro_f1,
        confusion=found.confusion,
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
        retest=_retest(store, run.id, record.id, level),
        by_tag=tuple(_by_tag(columns, rows, level)),
        yardsticks=tuple(yardsticks(known, people, level=level)),
        people=people,
        disagreements=tuple(_disagreements(store, run.id, known, at_most=disagreements)),
        disagreements_in_all=int((known.verdicts != known.labels).sum()),
        one_order=int((~known.both_orders).sum()),
        between=_between(store, against, rows, run.id, level) if against else None,
        rule=rule,
        level=level,
        notes=(*_notes(pending, found, known), *labels.notes),
    )


def _share(rows: AuditRows, part: NDArray[np.bool_], level: float) -> EstimatedShare:
    return share_of(part, rows.prompts, level=level, unit="labelled pair")


def _by_tag(columns: OutcomeColumns, rows: AuditRows, level: float) -> Iterator[TagAudit]:
    sets = np.asarray(columns.tags)
    tags = sorted({tag for tags in columns.tag_sets for tag in tags})
    for tag in tags:
        having = [code for code, tags in enumerate(columns.tag_sets) if tag in tags]
        own = rows.only(np.isin(sets, having))
        known = own.only(own.labelled)
        if not known.numbers.size:
            continue
        found = agreement(known.verdicts, known.labels, prompts=known.prompts, level=level)
        yield TagAudit(
            tag=tag,
            n=found.n,
            accuracy=found.accuracy,
            agreement=found.agreement,
            consistency=place_bias(
                own.first, own.second, own.prompts, level=level
            ).test.consistency,
        )


def _disagreements(
    store: Store, run_id: int, known: AuditRows, *, at_most: int
) -> Iterator[Disagreement]:
    places = np.flatnonzero(known.verdicts != known.labels)[:at_most]
    keys = store.item_keys(run_id, [int(known.numbers[place]) for place in places])
    for place in places:
        said = int(known.verdicts[place])
        yield Disagreement.model_validate(
            {
                "id": keys[int(known.numbers[place])],
                "label": _WINNERS[int(known.labels[place])],
                "verdict": None if said == NONE else _WINNERS[said],
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
    side = np.where(is_a & ~is_b, SAYS_A, np.where(is_b & ~is_a, SAYS_B, NONE))
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


def _retest(store: Store, run_id: int, judge_id: int, level: float) -> EstimatedShare | None:
    """Two samples of the same question: how often they say the same."""
    passes = store.pass_columns(run_id, judge_id)
    sample = np.asarray(passes.sample)
    if not sample.size or sample.max() < 2:
        return None
    order = np.lexsort((sample, np.asarray(passes.order), np.asarray(passes.number)))
    number, shown = np.asarray(passes.number)[order], np.asarray(passes.order)[order]
    said, prompts = np.asarray(passes.winner)[order], np.asarray(passes.prompt_key)[order]
    # Neighbouring samples: the first with the second, the second with the third.
    follows = (number[1:] == number[:-1]) & (shown[1:] == shown[:-1])
    follows &= (said[1:] != NONE) & (said[:-1] != NONE)
    same = (said[1:] == said[:-1])[follows]
    return share_of(same, prompts[1:][follows], level=level, unit="repeated question")


def _between(store: Store, against: str, rows: AuditRows, run_id: int, level: float) -> Between:
    """On the pairs of equal content; people's labels have no part in it."""
    run = find_run(store, against)
    record = chosen_judge(store.run_judges(run.id), run.name, None)
    other = AuditRows.of(store.outcome_columns(run.id, record.id))
    ours, theirs = store.shared_items(run_id, run.id)
    mine = np.searchsorted(rows.numbers, ours)
    yours = np.searchsorted(other.numbers, theirs)
    judged = (mine < rows.numbers.size) & (yours < other.numbers.size)
    mine, yours = mine[judged], yours[judged]
    judged = (rows.numbers[mine] == np.asarray(ours)[judged]) & (
        other.numbers[yours] == np.asarray(theirs)[judged]
    )
    mine, yours = mine[judged], yours[judged]
    if not mine.size:
        raise InputError(
            f"run {run.name!r} has no judged pair with the texts of these; judge the same data"
        )
    found = agreement(
        rows.verdicts[mine], other.verdicts[yours], prompts=rows.prompts[mine], level=level
    )
    return Between(
        run=run.name,
        judge=record.name,
        locale=record.locale,
        pairs=int(mine.size),
        agreement=found.agreement,
        kappa=found.kappa,
    )


def _notes(pending: int, found: Agreement, known: AuditRows) -> Iterator[str]:
    if pending:
        pairs = "1 pair is" if pending == 1 else f"{pending:,} pairs are"
        yield f"the run is not finished: {pairs} not judged yet and in no figure"
    if found.clustered:
        yield "prompts repeat: intervals are clustered by prompt"
    if known.one_sided:
        yield (
            f"every label names {_WINNERS[int(known.labels[0])]}: kappa and macro F1 count each "
            "pair as it is and with its responses exchanged, so that chance is even; the other "
            "figures are the same either way"
        )
