"""Whose verdicts a win rate is corrected from: one judge's, or a jury's."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace

import numpy as np

from evenhand.contract import Locale
from evenhand.errors import InputError
from evenhand.report.lookup import find_run
from evenhand.stats.outcomes import TIE
from evenhand.store import OutcomeColumns, RunRecord, Store
from evenhand.trust.labelled_verdicts import chosen_judge
from evenhand.trust.panels import JuryPoll, open_jury, poll_jury, winner_code

MAJORITY = "majority"


@dataclass(frozen=True, slots=True)
class Predictions:
    """One verdict a pair, as columns of a judge; `label` in them is the data's own."""

    run: RunRecord
    judge: str
    prompt_version: str | None
    locale: Locale | None
    columns: OutcomeColumns
    pending: int


def predictions_of(
    store: Store, name: str, *, judge: str | None = None, jury: str | None = None
) -> Predictions:
    """`jury` is "majority", or the name or file of a saved one; else the run's judge."""
    run = find_run(store, name)
    if jury is not None:
        if judge is not None:
            raise InputError(f"both --judge {judge} and --jury {jury} are given; give one")
        return _of_jury(store, run, jury)
    record = chosen_judge(store.run_judges(run.id), run.name, judge)
    columns = store.outcome_columns(run.id, record.id)
    if not columns.number:
        raise InputError(f"no pair of run {run.name!r} is judged yet; evenhand run judges them")
    return Predictions(
        run=run,
        judge=record.name,
        prompt_version=record.prompt_version,
        locale=record.locale,
        columns=columns,
        pending=store.tally(run.id, record.id).pending,
    )


def _of_jury(store: Store, run: RunRecord, jury: str) -> Predictions:
    use = None if jury == MAJORITY else open_jury(jury)
    if use is not None and use.learned_on([run.name]):
        raise InputError(
            f"jury {jury!r} was learned on labels of run {run.name!r}, which would hide its errors "
            "from the same labels; give --jury majority, or a jury learned on another run"
        )
    voted = poll_jury(store, [run.name], use=use)
    seats = len(voted.saved.jurors)
    return Predictions(
        run=run,
        judge=f"a jury of {seats}, by {'weights' if use and use.jury.weights else 'majority'}",
        prompt_version=None,
        locale=None,
        columns=_columns(voted),
        pending=store.tally(run.id).pending,
    )


def _columns(voted: JuryPoll) -> OutcomeColumns:
    """How sure a jury is: its probability where labels have taught it one, else the share of the
    votes that the largest group has."""
    verdicts, panel = voted.verdicts, voted.panel
    sure = 1.0 - verdicts.dissent if verdicts.probability is None else verdicts.probability
    told = (verdicts.voters > 0) & (voted.outcomes <= TIE)
    confidence = np.where(told, sure, np.nan)
    return replace(
        panel.columns(voted.outcomes),
        confidence=array("d", confidence.tolist()),
        label=array("b", [winner_code(item.label) for item in panel.items]),
    )
