"""What people's labels say beside a judge's verdicts: the corrected win rate where the labelled
pairs were drawn by a known chance, and otherwise the two compared on the labelled pairs."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INVALID, NO_WINNER, TIE, WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.report.label_samples import Drawn, LabelSample, sample_labels
from evenhand.report.votes import fair_labels
from evenhand.report.win_rates import Matchup, Side, exchange
from evenhand.stats.clusters import not_enough
from evenhand.stats.correction.corrected_rate import (
    CorrectedRate,
    RateEstimate,
    corrected_win_rate,
)
from evenhand.stats.rates.paired_difference import PairedDifference, difference_in_halves
from evenhand.stats.rates.win_rate import Circumstances, win_rate
from evenhand.store import OutcomeColumns, RunRecord, Store

# Fewer labelled prompts correct nothing: their interval says little, and an accident much.
FEWEST_CORRECTING = 50

_SCORES = np.array([1.0, 0.0, 0.5, 0.5, 0.5])
# Of a verdict and of a label, for A.
_HALVES = np.array([2, 0, 1, 1, 1], dtype=np.int8)


class PeopleCounts(Model):
    """Of the labelled pairs, how many the side won, lost and tied in people's eyes."""

    won: int
    lost: int
    tied: int


class LabelledRate(Model):
    """One side's win rate by people and by the judge, on the pairs that people labelled.

    `drawn` is how the pairs came to be labelled, or None where nobody knows. `corrected` is the
    win rate over all pairs by the labels, where the draw and their number allow one, and else
    `reason` says why not. `counts` are of the data's labels, and else by most votes.
    `difference` is the judge's rate less people's.
    """

    drawn: Drawn | None
    pairs: int
    prompts: int
    labels: int
    counts: PeopleCounts
    people: RateEstimate
    judge: float | None
    difference: PairedDifference
    corrected: RateEstimate | None
    reason: Sentence | None

    def contradicts(self, claim: Literal["above", "below"], threshold: float) -> bool:
        """Whether judge and people differ beyond chance, in the claim's favour, and people's own
        rate is not on the claim's side of the threshold."""
        rate, favours = self.people.rate, self.difference.beyond(0.0)
        if rate is None or favours is None:
            return False
        if claim == "above":
            return favours == "first" and rate <= threshold
        return favours == "second" and rate >= threshold


class RunLabels:
    """One label a row of a judge's columns, read once for all matchups. Without a sample they
    correct nothing, for the `reason`."""

    def __init__(
        self,
        winners: NDArray[np.int8],
        *,
        sample: LabelSample | None = None,
        reason: str | None = None,
    ) -> None:
        self._winners = winners
        self._sample = sample
        self._reason = reason

    @classmethod
    def of_run(
        cls, store: Store, run: RunRecord, columns: OutcomeColumns, *, are_random: bool
    ) -> RunLabels:
        numbers = np.asarray(columns.number, dtype=np.int64)
        winners = fair_labels(store, run.id, numbers, of_data=columns.label).winners
        if not (winners != NO_WINNER).any():
            return cls(winners)
        try:
            sample = sample_labels(store, run, columns, are_random=are_random)
        except InputError as error:  # no label is of a pair that was drawn by a known chance
            return cls(winners, reason=error.args[0])
        return cls(winners, sample=sample)

    def of(self, matchup: Matchup, *, side: Side, level: float) -> LabelledRate | None:
        """None where no pair of the two models has a label."""
        labels = self._winners[matchup.rows]
        turned = matchup.exchanged ^ (side == "B")
        named = (labels == WIN_A) | (labels == WIN_B)
        labels = np.where(named & turned, WIN_B - labels, labels).astype(np.int8)
        known = labels != NO_WINNER
        if not known.any():
            return None
        outcomes = exchange(matchup.outcomes, side == "B")
        return self._measured(matchup, labels, known, outcomes, side=side, level=level)

    def _measured(
        self,
        matchup: Matchup,
        labels: NDArray[np.int8],
        known: NDArray[np.bool_],
        outcomes: NDArray[np.int8],
        *,
        side: Side,
        level: float,
    ) -> LabelledRate:
        prompts, said = matchup.prompts[known], labels[known]
        people = win_rate(
            said, prompts=prompts, level=level, circumstances=Circumstances(discriminates=True)
        )
        both = known & (outcomes != INVALID)
        gain = _HALVES[outcomes[both]] - _HALVES[labels[both]]
        number = int(np.unique(prompts).size)
        corrected, reason, labels_used = None, self._reason, int(known.sum())
        if self._sample is not None:
            own = correct_matchup(matchup, self._sample, side=side, level=level)
            labels_used = own.labels
            drawn_prompts = own.people_only.prompts
            reason = own.reason
            if reason is None and drawn_prompts < FEWEST_CORRECTING:
                reason = not_enough(drawn_prompts, "labelled prompt", FEWEST_CORRECTING)
            corrected = None if reason is not None else own.corrected
        return LabelledRate(
            drawn=None if self._sample is None else self._sample.drawn,
            pairs=int(known.sum()),
            prompts=number,
            labels=labels_used,
            counts=people_counts(said),
            people=RateEstimate(
                n=int(known.sum()),
                prompts=number,
                rate=people.rate,
                low=people.low,
                high=people.high,
                reason=people.reason,
            ),
            judge=win_rate(outcomes[both], prompts=matchup.prompts[both], level=level).rate,
            difference=difference_in_halves(gain, matchup.prompts[both], level=level),
            corrected=corrected,
            reason=reason,
        )


def people_counts(labels: NDArray[np.int8]) -> PeopleCounts:
    won, lost, tied = (int((labels == each).sum()) for each in (WIN_A, WIN_B, TIE))
    return PeopleCounts(won=won, lost=lost, tied=tied)


def correct_matchup(
    matchup: Matchup, sample: LabelSample, *, side: Side, level: float
) -> CorrectedRate:
    """The win rate of the wanted side, as labels correct the judge's."""
    outcomes = exchange(matchup.outcomes, side == "B")
    places = np.full(int(max(matchup.rows.max(), sample.rows.max(initial=0))) + 1, -1)
    places[matchup.rows] = np.arange(matchup.rows.size)
    own = places[sample.rows]
    here = own >= 0
    turned = matchup.exchanged[own[here]] ^ (side == "B")
    scores = sample.scores[here]
    return corrected_win_rate(
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


def with_absent(estimate: RateEstimate, *, pairs: int, absent: int) -> RateEstimate:
    """An interval that also holds for pairs which never came to a verdict, all lost or all won."""
    low, high = estimate.low, estimate.high
    if not absent or low is None or high is None:
        return estimate
    share = pairs / (pairs + absent)
    return estimate.model_copy(update={"low": low * share, "high": 1 - (1 - high) * share})


def missing_labels(labelled: LabelledRate | None) -> str:
    """Why there is no corrected rate."""
    if labelled is None:
        return Message("labelled.none")
    return labelled.reason or Message("labelled.not_used")
