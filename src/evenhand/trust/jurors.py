"""Several judges' verdicts on the same pairs side by side, from one run or from several."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Locale, Winner
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.report.abstentions import Promise
from evenhand.report.lookup import find_run
from evenhand.store import JudgeRecord, OutcomeColumns, RunItem, RunRecord, Store
from evenhand.store.columns import TIE
from evenhand.trust.fair_labels import fair_labels

Codes = NDArray[np.int8]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

NOT_JUDGED = -1
NO_WINNER = -1
_WINNER_CODES: dict[Winner | None, int] = {"A": 0, "B": 1, "TIE": 2, None: NO_WINNER}


class Juror(Model):
    """A judge as a jury knows it: the same model with another prompt is another judge."""

    judge: str
    prompt_version: str | None
    locale: Locale | None


@dataclass(frozen=True, slots=True)
class Panel:
    """A row for each pair of the first run that at least one judge has judged.

    `outcomes` has a column a judge, with the codes of `store.columns`, and -1 where the judge has
    not judged the pair; `abstained` says which wins and ties its calibration does not vouch for.
    `labels` are the data's own, and the majority of people's votes where the data have none; -1 is
    none.
    """

    run: RunRecord
    runs: tuple[str, ...]
    jurors: tuple[Juror, ...]
    titles: tuple[str, ...]
    items: tuple[RunItem, ...]
    prompts: Integers
    outcomes: Codes
    abstained: Mask
    labels: Codes
    by_people: int
    planned: bool  # every run is whole, and none ended by looking at its verdicts
    notes: tuple[str, ...]

    @property
    def votes(self) -> Codes:
        """0 A, 1 B, 2 TIE; -1 where the judge has no verdict that stands: it was inconsistent,
        could not be read, abstained, or was not asked."""
        given = (self.outcomes <= TIE) & ~self.abstained
        votes: Codes = np.where(given, self.outcomes, NO_WINNER).astype(np.int8)
        return votes

    def columns(self, outcomes: Codes) -> OutcomeColumns:
        """As a judge's own, for what reads those."""
        names = {each: None for item in self.items for each in (item.model_a, item.model_b)}
        models = tuple(name for name in names if name is not None)
        code: dict[str | None, int] = {name: place for place, name in enumerate(models)}
        code[None] = -1
        return OutcomeColumns(
            models=models,
            tag_sets=(),
            number=array("q", [item.number for item in self.items]),
            prompt_key=array("q", self.prompts.tobytes()),
            outcome=array("b", outcomes.astype(np.int8).tobytes()),
            model_a=array("i", [code[item.model_a] for item in self.items]),
            model_b=array("i", [code[item.model_b] for item in self.items]),
        )


@dataclass(frozen=True, slots=True)
class _Seat:
    """A judge's verdicts by the numbers of the first run's items, ascending."""

    record: JudgeRecord
    run: str
    numbers: Integers
    prompts: Integers
    outcomes: Codes
    abstained: Mask


def seat_jury(store: Store, names: Sequence[str]) -> Panel:
    """All judges of the named runs, on the pairs of the first."""
    runs = [find_run(store, name) for name in dict.fromkeys(names)]
    if not runs:
        raise InputError("no run is named; give one or more, as in evenhand jury RUN")
    seats: list[_Seat] = []
    notes: list[str] = []
    planned = True
    for run in runs:
        tally = store.tally(run.id)
        planned &= run.intake_done and tally.pending == 0 and not run.plan.get("until_decided")
        if tally.pending:
            verdicts = "1 verdict is" if tally.pending == 1 else f"{tally.pending:,} verdicts are"
            notes.append(f"run {run.name} is not finished: {verdicts} pending")
        for record in store.run_judges(run.id):
            if any(seat.record.id == record.id for seat in seats):
                notes.append(f"{record.name} of run {run.name} sits once: an earlier run has it")
                continue
            seats.append(_seat(store, runs[0], run, record))
    if not any(seat.numbers.size for seat in seats):
        raise InputError(f"no pair of run {runs[0].name!r} is judged yet; evenhand run judges them")
    numbers = np.unique(np.concatenate([seat.numbers for seat in seats]))
    prompts = np.zeros(numbers.size, dtype=np.int64)
    outcomes = np.full((numbers.size, len(seats)), NOT_JUDGED, dtype=np.int8)
    abstained = np.zeros(outcomes.shape, dtype=np.bool_)
    for place, seat in enumerate(seats):
        rows = np.searchsorted(numbers, seat.numbers)
        prompts[rows] = seat.prompts
        outcomes[rows, place] = seat.outcomes
        abstained[rows, place] = seat.abstained
    judged = set(numbers.tolist())
    items = tuple(item for item in store.run_items(runs[0].id) if item.number in judged)
    own = [winner_code(item.label) for item in items]
    labels = fair_labels(store, runs[0].id, numbers, of_data=own)
    return Panel(
        run=runs[0],
        runs=tuple(run.name for run in runs),
        jurors=tuple(juror_of(seat.record) for seat in seats),
        titles=_titles(seats),
        items=items,
        prompts=prompts,
        outcomes=outcomes,
        abstained=abstained,
        labels=labels.winners,
        by_people=int(labels.by_people.sum()),
        planned=planned,
        notes=tuple(notes),
    )


def winner_code(winner: Winner | None) -> int:
    return _WINNER_CODES[winner]


def juror_of(record: JudgeRecord) -> Juror:
    return Juror(judge=record.name, prompt_version=record.prompt_version, locale=record.locale)


def _seat(store: Store, first: RunRecord, run: RunRecord, record: JudgeRecord) -> _Seat:
    columns = store.outcome_columns(run.id, record.id)
    numbers = np.asarray(columns.number, dtype=np.int64)
    rows: NDArray[Any] = np.arange(numbers.size)
    shared = numbers
    if run.id != first.id:
        ours, theirs = store.shared_items(first.id, run.id)
        if not ours:
            raise InputError(
                f"runs {first.name!r} and {run.name!r} share no pair; judge the same data in both"
            )
        place = np.searchsorted(numbers, theirs)
        judged = place < numbers.size
        judged[judged] = numbers[place[judged]] == np.asarray(theirs)[judged]
        rows = place[judged]
        shared = np.asarray(ours, dtype=np.int64)[judged]
    outcomes = np.asarray(columns.outcome, dtype=np.int8)
    return _Seat(
        record=record,
        run=run.name,
        numbers=shared,
        prompts=np.asarray(columns.prompt_key, dtype=np.int64)[rows],
        outcomes=outcomes[rows],
        abstained=_abstained(store, run, record, numbers, outcomes)[rows],
    )


def _abstained(
    store: Store, run: RunRecord, record: JudgeRecord, numbers: Integers, outcomes: Codes
) -> Mask:
    """The wins and ties that a calibration with a promise does not keep."""
    promise = Promise.of(record, run)
    if promise is None:
        return np.zeros(numbers.size, dtype=np.bool_)
    verdicts = store.each_verdict(run.id, judge_id=record.id)
    kept = [row.item.number for row in verdicts if promise.keeps(row)]
    abstained: Mask = (outcomes <= TIE) & ~np.isin(numbers, kept)
    return abstained


def _titles(seats: Sequence[_Seat]) -> tuple[str, ...]:
    """By name; with its language, then its prompt and its run, where that is not enough."""
    told = [seat.record.name for seat in seats]
    details: tuple[list[Any], ...] = (
        [seat.record.locale for seat in seats],
        [seat.record.prompt_version for seat in seats],
        [seat.run for seat in seats],
        [str(place) for place in range(1, len(seats) + 1)],
    )
    for detail in details:
        known: dict[str, set[str | None]] = {}
        for title, more in zip(told, detail, strict=True):
            known.setdefault(title, set()).add(more)
        told = [
            f"{title} [{more}]" if len(known[title]) > 1 and more else title
            for title, more in zip(told, detail, strict=True)
        ]
    return tuple(told)
