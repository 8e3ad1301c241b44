"""Several judges as one: what they say together of each pair, how sure that is, who adds what."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.report.conclusions import GroupRate
from evenhand.report.matchups import matchups
from evenhand.report.side_rate import Side, Wanted, side_rate
from evenhand.stats.jury_accuracy import RuleAccuracy, jury_accuracy
from evenhand.stats.jury_votes import JuryVerdicts
from evenhand.stats.outcomes import INVALID, TIE, WIN_A, WIN_B, confidence_level
from evenhand.stats.win_rate import Ties
from evenhand.store import Store
from evenhand.store.survey import Survey
from evenhand.trust.biases import share_of
from evenhand.trust.juror_reports import jurors_agree, report_jurors
from evenhand.trust.jurors import NOT_JUDGED, Codes, Panel
from evenhand.trust.jury_report import JuryCounts, JuryRate, JuryReport
from evenhand.trust.jury_vote import HUNG, NO_QUORUM, Weights, let_vote
from evenhand.trust.saved_juries import SavedJury

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
    voted = let_vote(store, names, weights=weights, quorum=quorum, use=use, forced=forced)
    panel, saved, verdicts, outcomes = voted.panel, voted.saved, voted.verdicts, voted.outcomes
    votes = panel.votes
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
        if use.learned_on(panel.runs):
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
