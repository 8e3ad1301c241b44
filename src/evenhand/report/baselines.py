"""What an audit compares a judge with: the longer answer, a coin, a constant answer, and people
among themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import (
    INCONSISTENT,
    NO_WINNER,
    SAYS_A,
    SAYS_B,
    SAYS_TIE,
    TIE,
    WIN_A,
    WIN_B,
)
from evenhand.contract.model import Model
from evenhand.report.votes import Codes, ItemVotes
from evenhand.stats.agreement.labels import Agreement, agreement
from evenhand.stats.agreement.raters import Krippendorff, agreement_among
from evenhand.stats.estimates import EstimatedShare, EstimatedValue, estimate_share, share_of_rows
from evenhand.stats.rates.paired_difference import (
    PairedDifference,
    difference_in_halves,
    paired_difference,
)
from evenhand.store import OutcomeColumns


@dataclass(frozen=True, slots=True)
class AuditRows:
    numbers: NDArray[np.int64]
    prompts: NDArray[np.int64]
    outcomes: NDArray[np.int8]
    verdicts: NDArray[np.int8]  # a winner; none where the pair is inconsistent or invalid
    labels: NDArray[np.int8]
    first: NDArray[np.int8]
    second: NDArray[np.int8]
    both_orders: NDArray[np.bool_]  # or one at random: no label can stand at one place in all
    length_a: NDArray[np.int32]
    length_b: NDArray[np.int32]

    @classmethod
    def of(cls, columns: OutcomeColumns, labels: NDArray[np.int8] | None = None) -> AuditRows:
        """With the data's own labels, unless others are given."""
        outcomes = np.asarray(columns.outcome, dtype=np.int8)
        verdict_of = np.full(5, NO_WINNER, dtype=np.int8)
        verdict_of[[WIN_A, WIN_B, TIE]] = SAYS_A, SAYS_B, SAYS_TIE
        return cls(
            numbers=np.asarray(columns.number, dtype=np.int64),
            prompts=np.asarray(columns.prompt_key),
            outcomes=outcomes,
            verdicts=verdict_of[outcomes],
            labels=np.asarray(columns.label, dtype=np.int8) if labels is None else labels,
            first=np.asarray(columns.first_winner, dtype=np.int8),
            second=np.asarray(columns.second_winner, dtype=np.int8),
            both_orders=either_place(columns),
            length_a=np.asarray(columns.length_a),
            length_b=np.asarray(columns.length_b),
        )

    @property
    def labelled(self) -> NDArray[np.bool_]:
        known: NDArray[np.bool_] = self.labels != NO_WINNER
        return known

    @property
    def half_credit(self) -> NDArray[np.int8]:
        """What the judge gets on each pair, in halves: two where it is right, and where its orders
        contradict each other what a coin gets, which is one, or none where the label is a tie."""
        coin = (self.labels != SAYS_TIE).astype(np.int8)
        points: NDArray[np.int8] = 2 * (self.verdicts == self.labels).astype(np.int8)
        points[self.outcomes == INCONSISTENT] = coin[self.outcomes == INCONSISTENT]
        return points

    @property
    def one_sided(self) -> bool:
        """Whether both orders were shown, and every label names the same response: as where one
        column holds the chosen one."""
        side, shown = self.labels[self.labelled], self.both_orders[self.labelled]
        alike = bool(side.size) and side[0] in (SAYS_A, SAYS_B) and bool((side == side[0]).all())
        return alike and bool(shown.all())

    def only(self, chosen: NDArray[Any]) -> AuditRows:
        return AuditRows(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def either_place(columns: OutcomeColumns) -> NDArray[np.bool_]:
    """Whether either response may be shown first: in both orders, or in one drawn at random."""
    both, drawn = (np.asarray(each) for each in (columns.both_orders, columns.drawn_order))
    return (both | drawn).astype(np.bool_) if drawn.size else both.astype(np.bool_)


# What a judge's figures are held against: the longer answer, a coin, an answer that is always the
# same, and people themselves.

LONGER, COIN, CONSTANT = "baseline:longer", "baseline:random", "baseline:constant"
PEOPLE = "people"


class Baseline(Model):
    """What something that reads nothing gets on the same pairs, or people among themselves.

    `lead` is how much oftener the judge is right than this, on the same pairs. Beside the coin an
    inconsistent pair counts as half right (half credit), as every pair does for the coin; beside
    the others, which decide every pair, as not right. `useful_lead` is a third of what the
    baseline gets wrong: two pairs of three where a coin has one of two.
    """

    name: str
    accuracy: EstimatedShare
    kappa: EstimatedValue | None
    lead: PairedDifference | None
    useful_lead: float | None = None


class PeopleBaseline(Model):
    """Two people who voted on the same pair: how often they say the same, and alpha, the same less
    chance. `judge_agreement` is how often the judge says what one of these people says; a pair
    without a verdict is one on which it does not."""

    people: int
    pairs: int
    votes: int
    agreement: EstimatedShare
    alpha: Krippendorff
    judge_agreement: EstimatedShare


Standing = Literal["better", "no better", "worse", "open"]


def standing(baseline: Baseline) -> Standing:
    """By the judge's lead: above zero it is better, below zero worse, below a useful lead no
    better; an interval that holds both says nothing yet."""
    lead, useful = baseline.lead, baseline.useful_lead
    if lead is None or lead.low is None or lead.high is None or useful is None:
        return "open"
    ahead = lead.beyond(0.0)
    if ahead is not None:
        return "better" if ahead == "first" else "worse"
    # Nothing can be better than what is always right.
    return "no better" if lead.high < useful or useful <= 0 else "open"


def baselines(
    known: AuditRows, people: PeopleBaseline | None, *, level: float
) -> Iterator[Baseline]:
    """For rows that have labels."""
    yield _longer(known, level)
    coin, constant = _coin(known, level), _constant(known, level)
    yield coin
    # A coin is harder to beat, unless labels are mostly ties, or one order was shown and most name
    # the same response.
    if (constant.accuracy.value or 0.0) > (coin.accuracy.value or 0.0):
        yield constant
    if people is not None:
        alpha = people.alpha
        yield Baseline(
            name=PEOPLE,
            accuracy=people.agreement,
            kappa=EstimatedValue(
                value=alpha.alpha, low=alpha.low, high=alpha.high, reason=alpha.reason
            ),
            lead=None,  # people agree with each other; the judge is held against labels
        )


def _longer(known: AuditRows, level: float) -> Baseline:
    a_longer, b_longer = known.length_a > known.length_b, known.length_b > known.length_a
    longer = np.where(a_longer, SAYS_A, np.where(b_longer, SAYS_B, SAYS_TIE)).astype(np.int8)
    accuracy = agreement_of_both_sides(known, longer, level=level)
    right, theirs = known.verdicts == known.labels, longer == known.labels
    lead = paired_difference(right, theirs, known.prompts, level=level)
    return _compared(LONGER, accuracy.accuracy, lead, theirs, kappa=accuracy.kappa)


def _compared(
    name: str,
    accuracy: EstimatedShare,
    lead: PairedDifference,
    points: NDArray[Any],
    *,
    kappa: EstimatedValue | None = None,
) -> Baseline:
    """`points` are what the baseline gets on each pair."""
    wrong = 1 - float(points.mean()) if points.size else 0.0
    return Baseline(name=name, accuracy=accuracy, kappa=kappa, lead=lead, useful_lead=wrong / 3)


def _coin(known: AuditRows, level: float) -> Baseline:
    """What a coin gets on average, and not what one coin happened to get: half of the pairs whose
    label is no tie. The interval is that of as many throws."""
    points = (known.labels != SAYS_TIE).astype(np.int8)
    thrown = estimate_share(
        points / 2, 1 - points / 2, independent=True, level=level, unit="labelled pair"
    )
    lead = difference_in_halves(known.half_credit - points, known.prompts, level=level)
    return _compared(COIN, thrown, lead, points / 2)


def _constant(known: AuditRows, level: float) -> Baseline:
    """What the best judge gets that says the same of every question. Where both orders are shown
    that is TIE, since whoever always takes one place contradicts itself; where one is, whichever
    place, or a tie, the labels name oftenest."""
    rights = [
        (known.labels == winner) & (~known.both_orders | (winner == SAYS_TIE))
        for winner in (SAYS_A, SAYS_B, SAYS_TIE)
    ]
    theirs = max(rights, key=lambda right: int(right.sum()))
    share = share_of_rows(theirs, known.prompts, level=level, unit="labelled pair")
    right = known.verdicts == known.labels
    lead = paired_difference(right, theirs, known.prompts, level=level)
    return _compared(CONSTANT, share, lead, theirs)


def agreement_of_both_sides(known: AuditRows, verdicts: Codes, *, level: float) -> Agreement:
    """Agreement with the labels; where they all name one response, with each pair counted also
    with its responses exchanged, verdict and label with them.

    A pair that is judged in both orders says the mirror image of what the exchanged pair says, so
    that this is what shuffled data would give; and of labels that are all the same kappa is 0,
    whatever the judge says. A pair and its mirror image are one cluster.
    """
    labels, prompts = known.labels, known.prompts
    if known.one_sided:
        mirrored = np.array([SAYS_B, SAYS_A, SAYS_TIE, NO_WINNER], dtype=np.int8)  # -1 is the last
        verdicts = np.concatenate([verdicts, mirrored[verdicts]])
        labels, prompts = np.concatenate([labels, mirrored[labels]]), np.tile(prompts, 2)
    return agreement(verdicts, labels, prompts=prompts, level=level)


def people_baseline(votes: ItemVotes, rows: AuditRows, *, level: float) -> PeopleBaseline | None:
    """Over the pairs on which two people or more gave a verdict; None where there is none."""
    votes = _once_a_pair(votes.only(votes.decided))
    voters = np.bincount(votes.row, minlength=rows.numbers.size)
    shared = votes.only(voters[votes.row] >= 2)
    if not shared.row.size:
        return None
    among = agreement_among(shared.pair, shared.verdict, prompts=shared.prompt, level=level)
    same = rows.verdicts[shared.row] == shared.verdict
    return PeopleBaseline(
        people=int(np.unique(shared.who).size),
        pairs=among.units,
        votes=int(shared.row.size),
        agreement=among.agreement,
        alpha=among.alpha,
        judge_agreement=share_of_rows(same, shared.prompt, level=level, unit="vote"),
    )


def _once_a_pair(votes: ItemVotes) -> ItemVotes:
    """Rows that repeat a pair's texts have its votes over again."""
    seen = np.stack([votes.pair, votes.who.astype(np.int64)])
    first: NDArray[np.intp] = np.unique(seen, axis=1, return_index=True)[1]
    kept = np.zeros(votes.row.size, dtype=np.bool_)
    kept[first] = True
    return votes.only(kept)


# A run over a labelled benchmark, whose A and B are no models: what it is about is the judge.

# Of the judged pairs, how many the data has to label.
BENCHMARK_SHARE = 0.5


class JudgeAccuracy(Model):
    """How often the judge is right on the labelled pairs, and what reads nothing gets on them."""

    accuracy: EstimatedShare
    baselines: tuple[Baseline, ...]


def benchmark_accuracy(columns: OutcomeColumns, *, level: float) -> JudgeAccuracy | None:
    """None where the data does not label at least half of the judged pairs."""
    rows = AuditRows.of(columns)
    known = rows.only(rows.labelled)
    if not known.numbers.size or known.numbers.size < BENCHMARK_SHARE * rows.numbers.size:
        return None
    right = known.verdicts == known.labels
    return JudgeAccuracy(
        accuracy=share_of_rows(right, known.prompts, level=level, unit="labelled pair"),
        baselines=tuple(baselines(known, None, level=level)),
    )
