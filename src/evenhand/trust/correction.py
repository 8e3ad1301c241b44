"""A run's win rate in people's eyes: the judge's, corrected for its errors by some labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import numpy as np

from evenhand.contract import Locale
from evenhand.contract.codes import TIE, WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.report.label_samples import Drawn, LabelSample, LeftOut, sample_labels
from evenhand.report.labelled import PeopleCounts, correct_matchup, people_counts
from evenhand.report.win_rates import (
    Matchup,
    Side,
    matchups,
)
from evenhand.stats.correction.corrected_rate import CorrectedRate
from evenhand.stats.outcomes import confidence_level
from evenhand.store import RunRecord, Store
from evenhand.trust.panels import predictions_of

_SCORES = np.array([1.0, 0.0, 0.5, 0.5, 0.5])


class Correction(CorrectedRate):
    """One two models: the rates are those of `model`, which is the wanted side."""

    model: str | None
    against: str | None
    people: PeopleCounts


class Corrections(Model):
    """`drawn` says how the labelled pairs came to be labelled, and `left_out` which labels have no
    part in it and why."""

    run: str
    store: str
    judge: str
    prompt_version: str | None
    locale: Locale | None
    side: Side
    level: float
    pairs: int
    labelled: int
    people: int
    drawn: Drawn
    left_out: tuple[LeftOut, ...]
    corrections: tuple[Correction, ...]
    notes: tuple[Sentence, ...]


def correct_run(
    store: Store,
    name: str,
    *,
    judge: str | None = None,
    jury: str | None = None,
    side: Side = "B",
    level: float = 0.95,
    labels_are_random: bool = False,
    seed: int = 0,
) -> Corrections:
    """`jury` is "plurality", "majority" or a saved one, in the judge's place; `seed` is that of the
    draw; `labels_are_random` the user's word for labels that do not say how they were drawn."""
    if side not in get_args(Side):
        raise InputError(Message("trust.side_unknown", side=side))
    confidence_level(level)
    by = predictions_of(store, name, judge=judge, jury=jury)
    run, columns = by.run, by.columns
    sample = sample_labels(store, run, columns, are_random=labels_are_random, seed=seed)
    counted = sample.decided & ~sample.escalated
    return Corrections(
        run=run.name,
        store=store.address,
        judge=by.judge,
        prompt_version=by.prompt_version,
        locale=by.locale,
        side=side,
        level=level,
        pairs=len(columns.number),
        labelled=int(np.unique(sample.rows[counted]).size),
        people=sample.people,
        drawn=sample.drawn,
        left_out=sample.left_out,
        corrections=tuple(
            _correction(matchup, sample, side=side, level=level)
            for matchup in matchups(columns, (), store.runs.survey(run.id))
            if matchup.rows.size
        ),
        notes=(*sample.notes, *_notes(run, by.pending)),
    )


def _correction(matchup: Matchup, sample: LabelSample, *, side: Side, level: float) -> Correction:
    names = matchup.models if side == "A" else matchup.models[::-1]
    corrected = correct_matchup(matchup, sample, side=side, level=level)
    # Rows of the sample are labels; a pair that several people saw counts once, by their mean.
    own, places = np.unique(sample.rows[sample.decided], return_inverse=True)
    leaning = np.bincount(places, weights=2 * sample.scores[sample.decided] - 1)
    here = np.isin(own, matchup.rows)
    turned = matchup.exchanged[np.searchsorted(matchup.rows, own[here])] ^ (side == "B")
    signs = np.sign(np.where(turned, -leaning[here], leaning[here])).astype(np.intp)
    people = people_counts(np.array([TIE, WIN_A, WIN_B], dtype=np.int8)[signs])
    return Correction.of_parts(corrected, model=names[0], against=names[1], people=people)


def _notes(run: RunRecord, pending: int) -> Iterator[str]:
    if pending:
        yield Message("trust.run_not_finished", n=pending)
    if run.plan.get("until_decided"):
        yield Message("trust.looked_on_the_way")
