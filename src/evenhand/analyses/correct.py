"""A run's win rate in people's eyes: the judge's, corrected for its errors by some labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import CorrectOptions, Side
from evenhand.blocks import Block, Finding, NoteLines, Rate, Rates
from evenhand.blocks import Sentence as Line
from evenhand.contract import Locale
from evenhand.contract.codes import TIE, WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.quantities import counted
from evenhand.report.label_samples import Drawn, LabelSample, LeftOut, sample_labels
from evenhand.report.labelled import PeopleCounts, correct_matchup, people_counts
from evenhand.report.win_rates import Matchup, matchups
from evenhand.stats.correction.corrected_rate import CorrectedRate, RateEstimate
from evenhand.stats.outcomes import confidence_level
from evenhand.store import RunRecord
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
    judge: Sentence
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


Result = Corrections


def compute(subject: AnalysisSubject, options: CorrectOptions) -> Corrections:
    store, run, side, level = subject.store, subject.run, options.side, options.level
    confidence_level(level)
    by = predictions_of(store, run, judge=options.judge, jury=options.jury)
    columns = by.columns
    vouched = options.labels_are is not None
    sample = sample_labels(store, run, columns, are_random=vouched, seed=options.seed)
    own = sample.decided & ~sample.escalated
    return Corrections(
        run=run.name,
        store=store.address,
        judge=by.judge,
        prompt_version=by.prompt_version,
        locale=by.locale,
        side=side,
        level=level,
        pairs=len(columns.number),
        labelled=int(np.unique(sample.rows[own]).size),
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


def blocks(result: Corrections) -> Iterator[Block]:
    yield Line(Message("correction.run", run=result.run, judge=result.judge), strong=True)
    values = {"n": result.labelled, "pairs": counted(result.pairs, "pair")}
    drawn = Message(f"correction.drawn_{result.drawn.replace(' ', '_')}")
    if result.people:
        people = counted(result.people, "person")
        yield Line(Message("correction.labelled_by", people=people, drawn=drawn, **values))
    else:
        yield Line(Message("correction.labelled", drawn=drawn, **values))
    for left in result.left_out:
        labels, pairs = counted(left.labels, "label"), counted(left.pairs, "pair")
        text = Message("correction.left", labels=labels, pairs=pairs, reason=left.reason)
        yield Finding(Message("correction.left_out"), text)
    for each in result.corrections:
        yield from _shown(each, result.side)
    if result.notes:
        yield NoteLines(result.notes)


def _shown(own: Correction, side: Side) -> Iterator[Block]:
    model, against = own.model or side, own.against or ("B" if side == "A" else "A")
    yield Rates(
        titles=(Message("gate.versus", model=model, against=against),),
        value=Message("figure.win_rate"),
        counted=(Message("figure.pairs"),),
        rows=(
            _rate("corrected", own.corrected),
            _rate("uncorrected", own.uncorrected),
            _rate("people_only", own.people_only),
        ),
    )
    if own.judge_weight is not None and own.gain is not None:
        values = {"level": own.level, "weight": own.judge_weight, "gain": own.gain}
        yield Line(Message("correction.weight", **values))
    if own.judge_unread:
        yield Line(Message("correction.unread", pairs=counted(own.judge_unread, "pair")))


def _rate(name: str, part: RateEstimate) -> Rate:
    return Rate(
        names=(Message(f"correction.{name}"),),
        rate=part.rate,
        low=part.low,
        high=part.high,
        text=part.reason or "",
        tone="plain",
        counts=(part.n,),
    )
