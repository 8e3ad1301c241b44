"""Which suggested criteria agree with people: chosen on one half of the labelled prompts, and their
agreement measured on the other, which nobody has looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Criterion, Locale
from evenhand.contract.codes import SAYS_A, SAYS_B, WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.report.lookup import chosen_judge, find_item, find_run
from evenhand.runs.criteria import HALVES, CriteriaData, Half
from evenhand.stats.estimates import EstimatedValue
from evenhand.stats.rates.paired_difference import (
    PairedDifference,
    difference_in_halves,
    paired_difference,
)
from evenhand.store import OutcomeColumns, Store

# An agreement that is ruled out above this is no better than a coin's, for any use.
_LITTLE = 0.6

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class CriterionAgreement(Model):
    """On labelled pairs that people did not call a tie: how often the criterion's winner is theirs,
    a criterion without a winner counting as half; the same of the longer answer, and by how much
    the criterion leads."""

    pairs: int
    prompts: int
    agreement: EstimatedValue
    longer: float | None
    lead: PairedDifference
    pairs_to_settle: int | None  # about how many would settle whether it is better than a coin


class SuggestedCriterion(Model):
    """`undecided` where the labels are too few to say; `suggested` where there are none."""

    name: str
    description: str | None
    status: Literal["suggested", "kept", "dropped", "undecided"] = "suggested"
    reason: Sentence | None = None
    choosing: CriterionAgreement | None = None
    unseen: CriterionAgreement | None = None  # of a kept one alone

    @property
    def criterion(self) -> Criterion:
        return Criterion(name=self.name, description=self.description)


class CriteriaSuggestion(Model):
    """`prompts` of `prompts_in_all` were shown to the judge; `labels` of `labelled` pairs were
    judged by all criteria, in `run`."""

    judge: str
    locale: Locale
    prompts: int
    prompts_in_all: int
    labelled: int
    labels: int
    run: str | None
    seed: int
    level: float
    criteria: tuple[SuggestedCriterion, ...]
    notes: tuple[Sentence, ...] = ()

    @property
    def usable(self) -> tuple[Criterion, ...]:
        """Those that were kept; all of them where there was nothing to choose by."""
        wanted = "suggested" if self.run is None else "kept"
        return tuple(each.criterion for each in self.criteria if each.status == wanted)


def suggestion(
    data: CriteriaData,
    criteria: Sequence[Criterion],
    *,
    judge: str,
    locale: Locale,
    seed: int,
    level: float,
    store: Store | None = None,
    run: str | None = None,
) -> CriteriaSuggestion:
    """What came of it; with the store and the run, chosen by the labels."""
    suggested = tuple(
        SuggestedCriterion(name=each.name, description=each.description) for each in criteria
    )
    notes: list[str] = list(data.notes)
    if store is not None and run is not None:
        suggested = tuple(choose_criteria(store, run, criteria, level=level))
        pending = store.verdicts.tally(find_run(store, run).id).pending
        if pending:
            notes.append(Message("trust.run_not_finished", n=pending))
        notes += _notes(suggested)
    return CriteriaSuggestion(
        judge=judge,
        locale=locale,
        prompts=len(data.prompts),
        prompts_in_all=data.prompts_in_all,
        labelled=data.labelled,
        labels=len(data.rows),
        run=run,
        seed=seed,
        level=level,
        criteria=suggested,
        notes=tuple(notes),
    )


def stored_criteria(store: Store, run: str) -> tuple[Criterion, ...] | None:
    """Those that an earlier command had suggested and began to try."""
    found = store.runs.find(run)
    if found is None or not store.items.count(found.id):
        return None
    return find_item(store, found, "1").pair.criteria


def choose_criteria(
    store: Store, name: str, criteria: Sequence[Criterion], *, level: float
) -> Iterator[SuggestedCriterion]:
    """By the run's labels: kept where the choosing half shows better agreement than a coin's and no
    less than the longer answer's."""
    run = find_run(store, name)
    judge = chosen_judge(store.runs.judges(run.id), run.name, None)
    rows = _Rows(store.columns.outcomes(run.id, judge.id).asked())
    by_name = {each.criterion: each for each in store.columns.criteria(run.id, judge.id)}
    for criterion in criteria:
        codes = np.full(rows.numbers.size, -1, dtype=np.int8)
        own = by_name.get(criterion.name)
        if own is not None:
            asked = np.isin(own.number, rows.numbers)
            places = np.searchsorted(rows.numbers, np.asarray(own.number)[asked])
            codes[places] = np.asarray(own.outcome)[asked]
        scores = rows.scores(codes == WIN_A, codes == WIN_B)
        choosing = rows.agreement(scores, "choosing", level=level)
        status, reason = _ruling(choosing)
        yield SuggestedCriterion(
            name=criterion.name,
            description=criterion.description,
            status=status,
            reason=reason,
            choosing=choosing,
            unseen=rows.agreement(scores, "unseen", level=level) if status == "kept" else None,
        )


class _Rows:
    """The labelled pairs of a run that people did not call a tie."""

    def __init__(self, columns: OutcomeColumns) -> None:
        self.numbers = np.asarray(columns.number, dtype=np.int64)
        self._labels = np.asarray(columns.label)
        self._prompts = np.asarray(columns.prompt_key)
        decided = (self._labels == SAYS_A) | (self._labels == SAYS_B)
        sets = np.asarray(columns.tags)
        self._halves: dict[Half, Mask] = {
            half: decided
            & np.isin(sets, [code for code, tags in enumerate(columns.tag_sets) if half in tags])
            for half in HALVES
        }
        first, second = (np.asarray(each) for each in (columns.length_a, columns.length_b))
        self._longer = self.scores(first > second, second > first)

    def scores(self, a: Mask, b: Mask) -> Floats:
        """1 for the label's winner, 0 for the other response, ½ for neither."""
        says_a = self._labels == SAYS_A
        return np.where(a | b, np.where(says_a, a, b), 0.5).astype(np.float64)

    def agreement(self, scores: Floats, half: Half, *, level: float) -> CriterionAgreement:
        rows = self._halves[half]
        own, longer, prompts = scores[rows], self._longer[rows], self._prompts[rows]
        net = paired_difference(own == 1, own == 0, prompts, level=level)
        low, value, high = (
            None if each is None else (1 + each) / 2 for each in (net.low, net.value, net.high)
        )
        return CriterionAgreement(
            pairs=int(rows.sum()),
            prompts=int(np.unique(prompts).size),
            agreement=EstimatedValue(value=value, low=low, high=high, reason=net.reason),
            longer=float(longer.mean()) if longer.size else None,
            lead=difference_in_halves(
                np.rint(2 * (own - longer)).astype(np.int64), prompts, level=level
            ),
            pairs_to_settle=net.pairs_to_settle(2 * _LITTLE - 1),
        )


def _ruling(
    found: CriterionAgreement,
) -> tuple[Literal["kept", "dropped", "undecided"], Message | None]:
    own = found.agreement
    if own.value is None or own.low is None or own.high is None:
        return "undecided", Message("trust.criterion_few_labels", reason=own.reason or "")
    figures = {"share": own.value, "low": own.low, "high": own.high, "n": found.pairs}
    if own.low <= 0.5:
        if own.high < _LITTLE:
            return "dropped", Message("trust.criterion_coin", **figures)
        needed = found.pairs_to_settle
        if needed is None:
            return "undecided", Message("trust.criterion_undecided", **figures)
        # One half of the labels chooses.
        return "undecided", Message("trust.criterion_undecided_until", needed=2 * needed, **figures)
    if (found.lead.value or 0.0) <= 0:
        longer = {"share": own.value, "longer": found.longer or 0.0, "n": found.pairs}
        return "dropped", Message("trust.criterion_longer", **longer)
    return "kept", None


def _notes(criteria: Sequence[SuggestedCriterion]) -> Iterator[Message]:
    statuses = {each.status for each in criteria}
    if "kept" not in statuses:
        code = "undecided" if "undecided" in statuses else "dropped"
        yield Message(f"trust.criteria_all_{code}")
    unsure = [
        each.name
        for each in criteria
        if each.unseen is not None and (each.unseen.agreement.low or 0.0) <= 0.5
    ]
    if unsure:
        yield Message("trust.criteria_unconfirmed", names=unsure)
