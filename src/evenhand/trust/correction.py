"""A run's win rate in people's eyes: the judge's, corrected for its errors by some labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Locale
from evenhand.contract.codes import INVALID
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.report.claims import PeopleCounts, settled
from evenhand.report.conclusions import Conclusion, conclude
from evenhand.report.gate import GateReport, judge_gate
from evenhand.report.win_rates import (
    ConclusionLimits,
    Matchup,
    Side,
    exchange,
    matchups,
)
from evenhand.stats.correction.corrected_rate import CorrectedRate, corrected_win_rate
from evenhand.stats.outcomes import confidence_level
from evenhand.stats.rates.win_rate import Ties
from evenhand.store import RunRecord, Store
from evenhand.trust.label_samples import Drawn, LabelSample, LeftOut, sample_labels
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
            for matchup in matchups(columns, (), store.survey(run.id))
            if matchup.rows.size
        ),
        notes=(*sample.notes, *_notes(run, by.pending)),
    )


def gate_corrected(
    store: Store,
    name: str,
    *,
    min_win_rate: float = 0.5,
    alpha: float = 0.05,
    side: Side = "B",
    ties: Ties = "half",
    limits: ConclusionLimits | None = None,
    labels_are_random: bool = False,
) -> GateReport:
    """The gate on the corrected rates: they hold for people's preference whatever the judge's
    errors are, position among them."""
    if ties != "half":
        raise InputError(Message("trust.corrected_ties_are_half", ties=ties))
    level = round(1 - alpha, 12)
    allowed = limits or ConclusionLimits()
    conclusions = conclude(store, name, side=side, level=level, parts=False, limits=allowed)
    if len(conclusions.judges) > 1:
        raise InputError(Message("trust.corrected_gate_one_judge", run=conclusions.run))
    corrections = correct_run(
        store, name, side=side, level=level, labels_are_random=labels_are_random
    )
    by_models = {(each.model, each.against): each for each in corrections.corrections}
    replaced = tuple(
        _with_correction(each, by_models.get((each.model, each.against)), allowed)
        for each in conclusions.conclusions
    )
    return judge_gate(
        conclusions.model_copy(update={"conclusions": replaced}),
        min_win_rate=min_win_rate,
        limits=allowed,
    )


def _with_correction(
    conclusion: Conclusion, correction: Correction | None, limits: ConclusionLimits
) -> Conclusion:
    if correction is None:
        estimate, labels = None, 0
    else:
        estimate, labels = correction.corrected, correction.labels
    reason = "no labels of people" if correction is None else correction.reason
    claimed = conclusion.claimed.model_copy(
        update={
            "estimator": "corrected",
            "rate": estimate and estimate.rate,
            "low": estimate and estimate.low,
            "high": estimate and estimate.high,
            "reason": (estimate.reason if estimate else None) or reason,
            "people": correction and correction.people,
        }
    )
    # What the judge left open is no matter of people's preference.
    rate = conclusion.win_rate.model_copy(update={"doubts": (), "worst_case": None})
    corrected = conclusion.model_copy(update={"win_rate": rate, "claimed": claimed})
    return settled(corrected, limits, trust=[Message("trust.labels", labels=labels)])


def _correction(matchup: Matchup, sample: LabelSample, *, side: Side, level: float) -> Correction:
    outcomes = exchange(matchup.outcomes, side == "B")
    places = np.full(int(max(matchup.rows.max(), sample.rows.max(initial=0))) + 1, -1)
    places[matchup.rows] = np.arange(matchup.rows.size)
    own = places[sample.rows]
    here = own >= 0
    turned = matchup.exchanged[own[here]] ^ (side == "B")
    scores = sample.scores[here]
    corrected = corrected_win_rate(
        _SCORES[outcomes],
        own[here],
        label_scores=np.where(turned, 1.0 - scores, scores),
        prompts=matchup.prompts,
        judge_read=outcomes != INVALID,
        chances=None if sample.chances is None else sample.chances[matchup.rows],
        escalated=sample.escalated[here],
        label_decided=sample.decided[here],
        level=level,
    )
    names = matchup.models if side == "A" else matchup.models[::-1]
    fields = {field: getattr(corrected, field) for field in CorrectedRate.model_fields}
    decided = here & sample.decided
    turned = matchup.exchanged[places[sample.rows[decided]]] ^ (side == "B")
    scores = np.where(turned, 1.0 - sample.scores[decided], sample.scores[decided])
    return Correction(
        **fields,
        model=names[0],
        against=names[1],
        people=_people(sample.rows[decided], scores),
    )


def _people(rows: NDArray[Any], scores: NDArray[np.float64]) -> PeopleCounts:
    """A pair that several people saw counts once, by their mean."""
    _, pair = np.unique(rows, return_inverse=True)
    leaning = np.bincount(pair, weights=2 * scores - 1)
    won, lost = int((leaning > 0).sum()), int((leaning < 0).sum())
    return PeopleCounts(won=won, lost=lost, tied=leaning.size - won - lost)


def _notes(run: RunRecord, pending: int) -> Iterator[str]:
    if pending:
        yield Message("trust.run_not_finished", n=pending)
    if run.plan.get("until_decided"):
        yield Message("trust.looked_on_the_way")
