"""Several judges as one: what they say together of each pair, how sure that is, who adds what."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.errors import InputError
from evenhand.report.conclusions import GroupRate
from evenhand.report.matchups import matchups
from evenhand.report.side_rate import Side, Wanted, side_rate
from evenhand.stats.jury import learn_jury, majority_jury
from evenhand.stats.jury_accuracy import RuleAccuracy, jury_accuracy
from evenhand.stats.jury_votes import JuryVerdicts
from evenhand.stats.outcomes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B, confidence_level
from evenhand.stats.win_rate import Ties
from evenhand.store import Store
from evenhand.store.survey import Survey
from evenhand.trust.biases import share_of
from evenhand.trust.juror_reports import jurors_agree, report_jurors
from evenhand.trust.jurors import NOT_JUDGED, Codes, Panel, seat_jury
from evenhand.trust.jury_report import JuryCounts, JuryRate, JuryReport
from evenhand.trust.saved_juries import SavedJury, seats_of

Weights = Literal["majority", "learned"]

# A jury's own outcomes on the codes of a judge's: in a rate a hung jury counts as a pair on which
# one judge contradicts itself does, and one that lacks votes as a pair without a verdict.
HUNG, NO_QUORUM = INCONSISTENT, INVALID
_PENDING = INVALID + 1


@dataclass(frozen=True, slots=True)
class Sitting:
    """A jury over its pairs: each pair's votes and verdict, and the report of all."""

    panel: Panel
    saved: SavedJury
    verdicts: JuryVerdicts
    outcomes: Codes  # WIN_A, WIN_B, TIE, HUNG or NO_QUORUM
    report: JuryReport


def hold_jury(
    store: Store,
    names: Sequence[str],
    *,
    weights: Weights = "majority",
    quorum: int | None = None,
    use: SavedJury | None = None,
    forced: bool = False,
    side: Side = "B",
    ties: Ties = "half",
    level: float = 0.95,
) -> Sitting:
    """All judges of the named runs on the pairs of the first; or a saved jury, and its judges only.

    The quorum is how many votes a verdict takes. Unless told, a majority takes half of the seats,
    and a learned jury one vote: its probabilities tell how much the votes say.
    """
    confidence_level(level)
    panel = seat_jury(store, names)
    if use is None:
        saved = _new_jury(panel, weights, quorum)
    else:
        panel = _seated(panel, use, seats_of(use, panel.jurors, forced=forced))
        saved = use if quorum is None else use.model_copy(update={"quorum": quorum})
    _check_quorum(saved.quorum, len(saved.jurors))
    votes = panel.votes
    verdicts = saved.jury.predict(votes)
    outcomes = _outcomes(verdicts, saved.quorum)
    checked = jury_accuracy(
        votes,
        panel.labels,
        judges=panel.titles,
        prompts=panel.prompts,
        quorum=saved.quorum,
        level=level,
    )
    rules, notes = checked.rules, list(panel.notes)
    if use is not None:
        rules = (_own_accuracy(panel, outcomes, level), *rules)
        if set(use.runs) & set(panel.runs) and use.jury.weights is not None:
            notes.append("the jury was learned on labels of this run, so its own accuracy flatters")
    wanted = Wanted(side, ties, level, planned=panel.planned)
    between = tuple(jurors_agree(panel, votes, level))
    return Sitting(
        panel=panel,
        saved=saved,
        verdicts=verdicts,
        outcomes=outcomes,
        report=JuryReport(
            run=panel.run.name,
            runs=panel.runs,
            store=store.address,
            weights=saved.jury.method,
            quorum=saved.quorum,
            pairs=outcomes.size,
            counts=_counts(verdicts, outcomes),
            dissent=_dissent(verdicts, outcomes),
            side=side,
            ties=ties,
            level=level,
            rates=tuple(_rates(panel, outcomes, store.survey(panel.run.id), wanted)),
            labels=checked.labels,
            accuracy=rules if checked.labels else (),
            accuracy_reason=checked.reason,
            judges=tuple(report_jurors(panel, saved, outcomes, checked, between, level)),
            between=between,
            notes=tuple(notes),
        ),
    )


def _new_jury(panel: Panel, weights: Weights, quorum: int | None) -> SavedJury:
    if weights == "majority":
        jury = majority_jury(panel.titles)
    else:
        jury = learn_jury(panel.votes, panel.labels, judges=panel.titles, prompts=panel.prompts)
        if jury.reason is not None:
            raise InputError(
                f"the weights cannot be learned: {jury.reason}; label more pairs, or take "
                "--weights majority, which needs none"
            )
    usual = (len(panel.jurors) + 1) // 2 if weights == "majority" else 1
    return SavedJury(
        runs=panel.runs,
        jurors=panel.jurors,
        quorum=usual if quorum is None else quorum,
        jury=jury,
    )


def _check_quorum(quorum: int, seats: int) -> None:
    if not 1 <= quorum <= seats:
        raise InputError(f"the quorum is {quorum} of {seats} judges; give 1 to {seats}")


def _seated(panel: Panel, saved: SavedJury, seats: Sequence[int | None]) -> Panel:
    """The panel with a column for each seat of the jury, in its order."""
    outcomes = np.full((panel.outcomes.shape[0], len(seats)), NOT_JUDGED, dtype=np.int8)
    abstained = np.zeros(outcomes.shape, dtype=np.bool_)
    jurors, titles = list(saved.jurors), [seat.judge for seat in saved.jurors]
    notes = list(panel.notes)
    for place, taken in enumerate(seats):
        if taken is None:
            notes.append(f"nobody sits for {titles[place]}: the seat has no votes")
            continue
        if jurors[place] != panel.jurors[taken]:
            notes.append(f"{panel.titles[taken]} sits for {saved.jury.judges[place]}, by force")
        outcomes[:, place] = panel.outcomes[:, taken]
        abstained[:, place] = panel.abstained[:, taken]
        jurors[place], titles[place] = panel.jurors[taken], panel.titles[taken]
    left = [title for place, title in enumerate(panel.titles) if place not in seats]
    if left:
        notes.append(f"not on the jury, and without a vote: {', '.join(left)}")
    return replace(
        panel,
        jurors=tuple(jurors),
        titles=tuple(titles),
        outcomes=outcomes,
        abstained=abstained,
        notes=tuple(notes),
    )


def _outcomes(verdicts: JuryVerdicts, quorum: int) -> Codes:
    # Winners' codes are those of the outcomes: 0 A, 1 B, 2 tie.
    found = np.where(verdicts.hung, HUNG, verdicts.winners)
    outcomes: Codes = np.where(verdicts.voters < quorum, NO_QUORUM, found).astype(np.int8)
    return outcomes


def _counts(verdicts: JuryVerdicts, outcomes: Codes) -> JuryCounts:
    number = np.bincount(outcomes, minlength=5).tolist()
    together = (verdicts.votes == verdicts.votes[:, :1]).all(axis=1) & (verdicts.voters > 0)
    return JuryCounts(
        wins_a=number[WIN_A],
        wins_b=number[WIN_B],
        ties=number[TIE],
        hung=number[HUNG],
        no_quorum=number[NO_QUORUM],
        unanimous=int(together.sum()),
    )


def _dissent(verdicts: JuryVerdicts, outcomes: Codes) -> float | None:
    decided = outcomes <= TIE
    return float(verdicts.dissent[decided].mean()) if decided.any() else None


def _rates(panel: Panel, outcomes: Codes, survey: Survey, wanted: Wanted) -> Iterator[JuryRate]:
    columns = panel.columns(outcomes)
    # Beyond the codes of outcomes: exchanging A and B leaves it alone.
    judged = np.where(panel.outcomes == NOT_JUDGED, _PENDING, panel.outcomes)
    own = [
        list(matchups(replace(columns, outcome=array("b", each.tobytes())), (), survey))
        for each in judged.T
    ]
    for place, matchup in enumerate(matchups(columns, (), survey)):
        names = matchup.models if wanted.side == "A" else matchup.models[::-1]
        judges = []
        for title, theirs in zip(panel.titles, own, strict=True):
            codes = theirs[place].outcomes
            there = codes != _PENDING
            rate = side_rate(codes[there], matchup.prompts[there], wanted)
            judges.append(GroupRate(name=title, rate=rate))
        yield JuryRate(
            model=names[0],
            against=names[1],
            pairs=matchup.rows.size,
            jury=side_rate(matchup.outcomes, matchup.prompts, wanted),
            judges=tuple(judges),
        )


def _own_accuracy(panel: Panel, outcomes: Codes, level: float) -> RuleAccuracy:
    known = panel.labels >= 0
    right = outcomes[known] == panel.labels[known]
    share = share_of(right, panel.prompts[known], level=level, unit="labelled pair")
    return RuleAccuracy(rule="this jury", accuracy=share, log_loss=None)
