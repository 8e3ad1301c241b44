"""The labelled verdicts of a run as columns: each verdict's signals (margin, agreement of the
orders, samples and criteria, length difference) and whether it was right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import JudgedBy
from evenhand.contract.codes import INCONSISTENT, INVALID, NO_WINNER, TIE, WIN_A, WIN_B
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.report.lookup import chosen_judge, find_run
from evenhand.report.votes import fair_labels
from evenhand.store import JudgeRecord, RunRecord, Store, WholeVerdict
from evenhand.store.explanation import signals_before_calibration
from evenhand.store.verdicts import VerdictPlace

Floats = NDArray[np.float64]
# Fewer than one in so many are looked up; more are read through sooner.
_LOOKED_UP_OF = 10
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class LabelledVerdicts:
    """A row for each win or tie whose pair has a label; NaN where a signal is missing.

    `before` is the confidence without a calibration. Inconsistent and invalid pairs have no
    verdict that could be right, and on identical responses the judge may not have been asked:
    they are only counted.
    """

    run: str
    data: tuple[str, ...]  # the names of the run's sources
    judged_at: date
    asked: JudgedBy
    right: Floats
    prompts: NDArray[np.int64]
    before: Floats
    signals: dict[str, Floats]
    by_data: int
    by_people: int
    by_doubt: int
    unlabelled: int
    inconsistent: int
    invalid: int
    unasked: int
    drawn_from: int | None = None  # how many there are, where only some were drawn


def labelled_verdicts(
    store: Store,
    name: str,
    *,
    judge: str | None = None,
    evenly: bool = False,
    most: int | None = None,
    seed: int = 0,
) -> LabelledVerdicts:
    """Labels are the data's own, and the majority's of people where the data have none.

    Votes on pairs that were chosen for what was known of them, or shown to people because the
    judge was unsure, are left out: they say nothing of other pairs. `evenly` leaves out those
    too that were drawn with unequal chances. Of more than `most`, prompts are drawn at random,
    each with all its rows, as many as fit.
    """
    run = find_run(store, name)
    record = chosen_judge(store.runs.judges(run.id), run.name, judge)
    columns = store.columns.outcomes(run.id, record.id)
    numbers = np.asarray(columns.number, dtype=np.int64)
    outcomes = np.asarray(columns.outcome, dtype=np.int8)
    fair = fair_labels(store, run.id, numbers, of_data=columns.label, evenly=evenly)
    labels, by_people = fair.winners, fair.by_people
    labelled = labels != NO_WINNER
    if not labelled.any():
        raise InputError(Message("trust.no_pair_labelled", name=run.name))
    decided = (outcomes == WIN_A) | (outcomes == WIN_B) | (outcomes == TIE)
    rows = labelled & decided
    if not rows.any():
        raise InputError(Message("trust.no_labelled_verdict", name=run.name))
    prompts = np.asarray(columns.prompt_key, dtype=np.int64)
    drawn_from = None
    if most is not None and rows.sum() > most:
        drawn_from = int(rows.sum())
        rows[rows] = _drawn(prompts[rows], most, seed)
    before, signals, asked = _signals(store, run, record, numbers[rows])
    unasked = int((~asked).sum())
    if not asked.any():
        raise InputError(Message("trust.labelled_pairs_identical", name=run.name))
    before, signals = before[asked], {name: column[asked] for name, column in signals.items()}
    rows[rows] = asked
    # The winner codes are the outcome codes of a win or a tie.
    right = (outcomes[rows] == labels[rows]).astype(np.float64)
    return LabelledVerdicts(
        run=run.name,
        data=run.sources,
        judged_at=run.updated_at.date(),
        asked=judged_by(record, run),
        right=right,
        prompts=prompts[rows],
        before=before,
        signals=signals,
        by_data=int((~by_people & rows).sum()),
        by_people=int((by_people & rows).sum()),
        by_doubt=int((fair.by_doubt & rows).sum()),
        unlabelled=int((~labelled).sum()),
        inconsistent=int((labelled & (outcomes == INCONSISTENT)).sum()),
        invalid=int((labelled & (outcomes == INVALID)).sum()),
        unasked=unasked,
        drawn_from=drawn_from,
    )


def _drawn(prompts: NDArray[np.int64], most: int, seed: int) -> NDArray[np.bool_]:
    """Rows of whole prompts in a random order, as many as fit; of one in any case."""
    distinct, which, counts = np.unique(prompts, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(distinct.size)
    fit = max(1, int(np.searchsorted(np.cumsum(counts[order]), most, side="right")))
    chosen = np.zeros(distinct.size, dtype=np.bool_)
    chosen[order[:fit]] = True
    return chosen[which]


def judged_by(judge: JudgeRecord, run: RunRecord) -> JudgedBy:
    deciding = run.planned_for(judge, "deciding")
    return JudgedBy(
        judge=judge.name,
        prompt_version=judge.prompt_version,
        locale=judge.locale,
        mode=judge.mode or "reasoned",
        reconcile=deciding.get("reconcile", "agreement"),
        samples=deciding.get("samples", 1),
    )


def _signals(
    store: Store, run: RunRecord, judge: JudgeRecord, numbers: NDArray[np.int64]
) -> tuple[Floats, dict[str, Floats], NDArray[np.bool_]]:
    """From the passes and not from the verdicts: those may have been calibrated already. The last
    says on which of them there is a decision of the judge."""
    asked = judged_by(judge, run)
    wanted = {int(number): row for row, number in enumerate(numbers)}
    before = np.full(numbers.size, np.nan)
    columns: dict[str, Floats] = {}
    decided = np.zeros(numbers.size, dtype=np.bool_)
    for whole in _whole(store, run.id, judge.id, numbers):
        row = wanted.get(whole.row.item.number)
        if row is None:
            continue
        signals = signals_before_calibration(whole, asked)
        if signals is None:
            continue  # identical responses, which nobody was asked about
        decided[row] = True
        confidence, values = signals
        if confidence is not None:
            before[row] = confidence
        for name, value in values.items():
            column = columns.setdefault(name, np.full(numbers.size, np.nan))
            if value is not None:
                column[row] = value
    return before, columns, decided


def _whole(
    store: Store, run_id: int, judge_id: int, numbers: NDArray[np.int64]
) -> Iterator[WholeVerdict]:
    """Looked up where they are few of the run's, or else all of them read through."""
    if numbers.size * _LOOKED_UP_OF > store.items.count(run_id):
        yield from store.verdicts.each_whole(run_id, judge_id=judge_id)
        return
    places = [VerdictPlace(int(number), judge_id) for number in numbers]
    for start in range(0, len(places), _AT_ONCE):
        yield from store.verdicts.whole_at(run_id, places[start : start + _AT_ONCE])
