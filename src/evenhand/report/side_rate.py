"""One side's win rate, with the interval that its run allows: a plain one where the end was planned
before anybody looked, an always-valid one where it was not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.stats.outcomes import WIN_B, OutcomeCounts
from evenhand.stats.sequential import Decision
from evenhand.stats.sign_test import SignTest
from evenhand.stats.win_rate import (
    Circumstances,
    Doubt,
    Method,
    TestedMean,
    Ties,
    WinRate,
    WorstCase,
    win_rate,
)

Codes = NDArray[np.int8]
Keys = NDArray[np.int64]

Side = Literal["A", "B"]


class SideRate(Model):
    """One side's win rate. The counts keep their labels, whichever side it is.

    The fields are those of `WinRate`. The sign test is of a planned end alone. With a decision,
    the rate is of the prompts up to it and the counts are of all verdicts.
    """

    side: Side
    counts: OutcomeCounts
    n: int
    prompts: int | None
    rate: float | None
    rate_without_inconsistent: float | None = None
    row_rate: float | None = None
    low: float | None
    high: float | None
    level: float
    method: Method | None
    always_valid: bool  # the interval holds however often somebody looked, and whenever it ended
    clustered: bool
    decided: int = 0
    flips: int = 0
    one_order: int = 0
    missing: int = 0
    doubts: tuple[Doubt, ...] = ()
    ties: Ties
    sign_test: SignTest | None
    worst_case: WorstCase | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """`planned`: the run came to the end that it was begun for, and did not look on the way."""

    side: Side
    ties: Ties
    level: float
    planned: bool


def side_rate(
    outcomes: Codes,
    prompts: Keys,
    wanted: Wanted,
    *,
    decision: Decision | None = None,
    circumstances: Circumstances | None = None,
) -> SideRate:
    """`outcomes` are in the labels of the two sides; the rate is the wanted side's."""
    found = win_rate(
        exchange(outcomes, wanted.side == "B"),
        prompts=prompts,
        ties=wanted.ties,
        level=wanted.level,
        circumstances=circumstances,
        always_valid=not wanted.planned,
        tested=_tested(decision, wanted),
    )
    return _of_side(found, wanted, decision)


def exchange(outcomes: NDArray[Any], where: NDArray[np.bool_] | bool) -> Codes:
    """The outcomes with A and B exchanged in these rows."""
    codes = np.asarray(outcomes, dtype=np.int8)
    return np.where((codes <= WIN_B) & where, WIN_B - codes, codes).astype(np.int8)


def _tested(decision: Decision | None, wanted: Wanted) -> TestedMean | None:
    """A run until it is decided has one interval to believe: that of its test."""
    if decision is None or wanted.planned or decision.method is None:
        return None
    mean, low, high = decision.mean, decision.low, decision.high
    if mean is None or low is None or high is None:
        return None
    if wanted.side == "B":
        mean, low, high = 1 - mean, 1 - high, 1 - low
    return TestedMean(mean=mean, low=low, high=high, method=decision.method)


def _of_side(found: WinRate, wanted: Wanted, decision: Decision | None) -> SideRate:
    fields = {name: getattr(found, name) for name in WinRate.model_fields}
    counts, test = found.counts, found.sign_test
    if wanted.side == "B":
        counts = counts.model_copy(update={"wins_a": counts.wins_b, "wins_b": counts.wins_a})
        if test is not None:
            test = test.model_copy(update={"wins_a": test.wins_b, "wins_b": test.wins_a})
    if decision is not None and not wanted.planned and wanted.ties == "half":
        fields["prompts"] = decision.scored
    return SideRate(
        **{**fields, "counts": counts, "sign_test": test},
        side=wanted.side,
        always_valid=not wanted.planned and found.rate is not None,
    )
