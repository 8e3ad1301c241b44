"""The labelled verdicts of a run as columns: each verdict's signals (margin, agreement of the
orders, samples and criteria, length difference) and whether it was right. Every signal is of the
verdict's winner, so that it stays the same when A and B are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Order, Outcome, Pair, Unread
from evenhand.contract.codes import INCONSISTENT, INVALID, NO_WINNER, TIE, WIN_A, WIN_B
from evenhand.errors import InputError
from evenhand.judging.ballots import Ballot, Reading
from evenhand.judging.config import JudgedBy
from evenhand.judging.reconciliation import Decision, Unreconciled, decide
from evenhand.messages import Message
from evenhand.report.lookup import find_run
from evenhand.report.retelling import deciding_of
from evenhand.store import JudgeRecord, RunRecord, Store, WholeVerdict
from evenhand.store.rows import passes_behind
from evenhand.store.verdicts import VerdictPlace
from evenhand.trust.votes import fair_labels

# What a verdict shows of how sure it is: the signals that a calibration learns from.
#
# Every signal is of the verdict's winner and not of A or B, so that it is the same to the last bit
# when the two responses exchange their names.

SIGNALS = (
    "stated",
    "margin",
    "scores",
    "strength",
    "orders",
    "samples",
    "criteria",
    "length",
)
SignalValues: TypeAlias = dict[str, float | None]
# A probability of 0 has no logarithm; what is below this is no news.
_LEAST_PROBABILITY = 1e-6


def signals_of(pair: Pair, readings: Sequence[Reading], decision: Decision) -> SignalValues | None:
    """None for an inconsistent verdict, whose confidence is fixed by rule."""
    if decision.outcome not in (Outcome.WIN, Outcome.TIE):
        return None
    return {
        "stated": decision.confidence if decision.confidence_source == "stated" else None,
        "margin": _margin(readings, decision),
        "scores": _towards_winner(readings, decision, _score_difference),
        "strength": _towards_winner(readings, decision, _signed_strength),
        "orders": _orders_agree(pair, decision),
        "samples": _sample_agreement(readings, decision),
        "criteria": _criteria_margin(pair, decision),
        "length": _length_difference(pair, decision),
    }


def _margin(readings: Sequence[Reading], decision: Decision) -> float | None:
    """The logarithm of the winner's mean probability over that of the next."""
    by_order: dict[Order, list[tuple[float, float, float]]] = {}
    for reading in readings:
        if isinstance(reading, Unread):
            continue
        shares = reading.probabilities
        if shares is None:
            return None
        by_order.setdefault(reading.order, []).append((shares.a, shares.b, shares.tie))
    if not by_order:
        return None
    # Within an order, then over the two: their sum is the same whichever comes first.
    means = [
        [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        for rows in by_order.values()
    ]
    a, b, tie = (sum(column) / len(means) for column in zip(*means, strict=True))
    own, others = {"A": (a, (b, tie)), "B": (b, (a, tie)), "TIE": (tie, (a, b))}[decision.winner]
    return math.log(max(own, _LEAST_PROBABILITY)) - math.log(max(*others, _LEAST_PROBABILITY))


def _towards_winner(
    readings: Sequence[Reading],
    decision: Decision,
    towards_a: Callable[[Ballot], float | None],
) -> float | None:
    """How far the passes lean to the winner on the judge's own scale, on average; for a tie, how
    far they are from one, below 0. None unless every ballot says it."""
    by_order: dict[Order, list[float]] = {}
    for reading in readings:
        if isinstance(reading, Unread):
            continue
        leaning = towards_a(reading)
        if leaning is None:
            return None
        by_order.setdefault(reading.order, []).append(leaning)
    if not by_order:
        return None
    means = [sum(leanings) / len(leanings) for leanings in by_order.values()]
    mean = sum(means) / len(means)
    # From 0, so that a mean of 0 has no sign either.
    return {"A": mean, "B": 0.0 - mean, "TIE": 0.0 - abs(mean)}[decision.winner]


def _score_difference(ballot: Ballot) -> float | None:
    return None if ballot.scores is None else ballot.scores.a - ballot.scores.b


def _signed_strength(ballot: Ballot) -> float | None:
    if ballot.strength is None:
        return None
    return {"A": 1.0, "B": -1.0, "TIE": 0.0}[ballot.winner] * ballot.strength


def _orders_agree(pair: Pair, decision: Decision) -> float | None:
    """Always 1 where agreement decides; averaged probabilities decide over orders that differ."""
    if not pair.swap_positions:
        return None
    first = decision.first_pass_winner
    return float(first is not None and first == decision.second_pass_winner)


def _sample_agreement(readings: Sequence[Reading], decision: Decision) -> float | None:
    """The share of all samples that name the winner, those that could not be read included."""
    if all(reading.sample == 1 for reading in readings):
        return None
    naming: dict[Order, list[bool]] = {}
    for reading in readings:
        named = isinstance(reading, Ballot) and reading.winner == decision.winner
        naming.setdefault(reading.order, []).append(named)
    shares = [sum(named) / len(named) for named in naming.values()]
    return sum(shares) / len(shares)


def _criteria_margin(pair: Pair, decision: Decision) -> float | None:
    """The weight of the criteria that the winner won, less those it lost, as a share of all that
    were judged; for a tie, how far the criteria are from one, below 0."""
    won = {"A": 0.0, "B": 0.0, "TIE": 0.0}
    for criterion, asked in zip(decision.criteria, pair.criteria, strict=False):
        if criterion.winner is not None:
            won[criterion.winner] += 1.0 if asked.weight is None else asked.weight
    total = won["A"] + won["B"] + won["TIE"]
    if total <= 0:
        return None
    if decision.winner == "TIE":
        return -abs(won["A"] - won["B"]) / total
    other = "B" if decision.winner == "A" else "A"
    return (won[decision.winner] - won[other]) / total


def _length_difference(pair: Pair, decision: Decision) -> float | None:
    """How much longer the winner is: the logarithm of the ratio. A tie has no winner."""
    lengths = {"A": len(pair.response_a), "B": len(pair.response_b)}
    if decision.winner == "TIE":
        return None
    loser = "B" if decision.winner == "A" else "A"
    return math.log1p(lengths[decision.winner]) - math.log1p(lengths[loser])


# The labelled verdicts of a run as columns: their signals, and whether they were right.

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
    record = chosen_judge(store.run_judges(run.id), run.name, judge)
    columns = store.outcome_columns(run.id, record.id)
    numbers = np.asarray(columns.number, dtype=np.int64)
    outcomes = np.asarray(columns.outcome, dtype=np.int8)
    found = fair_labels(store, run.id, numbers, of_data=columns.label, evenly=evenly)
    labels, by_people = found.winners, found.by_people
    labelled = labels != NO_WINNER
    if not labelled.any():
        raise InputError(Message("trust.judged_pair_run_label", name=run.name))
    decided = (outcomes == WIN_A) | (outcomes == WIN_B) | (outcomes == TIE)
    rows = labelled & decided
    if not rows.any():
        raise InputError(Message("trust.labelled_pair_run_verdict", name=run.name))
    prompts = np.asarray(columns.prompt_key, dtype=np.int64)
    drawn_from = None
    if most is not None and rows.sum() > most:
        drawn_from = int(rows.sum())
        rows[rows] = _drawn(prompts[rows], most, seed)
    before, signals, asked = _signals(store, run, record, numbers[rows])
    unasked = int((~asked).sum())
    if not asked.any():
        raise InputError(Message("trust.judge_asked_about_labelled", name=run.name))
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
        by_doubt=int((found.by_doubt & rows).sum()),
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


def chosen_judge(judges: Sequence[JudgeRecord], run: str, wanted: str | None) -> JudgeRecord:
    named = [each for each in judges if wanted in (None, each.name)]
    if len(named) == 1:
        return named[0]
    names = ", ".join(each.name for each in judges)
    if not named:
        raise InputError(
            Message("trust.run_judge_wanted_names", run=run, wanted=wanted, names=names)
        )
    raise InputError(Message("trust.run_several_judges_name", run=run, names=names))


def judged_by(judge: JudgeRecord, run: RunRecord) -> JudgedBy:
    deciding = deciding_of(judge, run)
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
    columns = {name: np.full(numbers.size, np.nan) for name in SIGNALS}
    decided = np.zeros(numbers.size, dtype=np.bool_)
    for whole in _whole(store, run.id, judge.id, numbers):
        row = wanted.get(whole.row.item.number)
        if row is None:
            continue
        behind = passes_behind(
            whole.passes, swap_positions=whole.pair.swap_positions, samples=asked.samples
        )
        readings = [made.reading for made in behind]
        # Without the order that texts are taken by: a decision has none.
        found = decide(whole.pair, readings, how=asked.reconcile)
        values = (
            None if isinstance(found, Unreconciled) else signals_of(whole.pair, readings, found)
        )
        if isinstance(found, Unreconciled) or values is None:
            continue  # identical responses, which nobody was asked about
        decided[row] = True
        if found.confidence is not None:
            before[row] = found.confidence
        for name, value in values.items():
            if value is not None:
                columns[name][row] = value
    return before, columns, decided


def _whole(
    store: Store, run_id: int, judge_id: int, numbers: NDArray[np.int64]
) -> Iterator[WholeVerdict]:
    """Looked up where they are few of the run's, or else all of them read through."""
    if numbers.size * _LOOKED_UP_OF > store.count_items(run_id):
        yield from store.each_whole_verdict(run_id, judge_id=judge_id)
        return
    places = [VerdictPlace(int(number), judge_id) for number in numbers]
    for start in range(0, len(places), _AT_ONCE):
        yield from store.whole_verdicts_at(run_id, places[start : start + _AT_ONCE])
