"""One side's win rate, with the interval that its run allows: a plain one where the end was planned
before anybody looked, an always-valid one where it was not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.stats.always_valid import AlwaysValidInterval, always_valid_interval_of_scores
from evenhand.stats.outcomes import INVALID, WIN_A, WIN_B, OutcomeCounts
from evenhand.stats.sequential import Decision
from evenhand.stats.sign_test import SignTest
from evenhand.stats.win_rate import Ties, WinRate, WorstCase, win_rate

Codes = NDArray[np.int8]
Keys = NDArray[np.int64]

Side = Literal["A", "B"]
Method = Literal["score", "clustered score", "betting", "t"]

_HALF: dict[Ties, float | None] = {"half": 0.5, "excluded": None, "wins": 0.0}


class SideRate(Model):
    """One side's win rate. The counts keep their labels, whichever side it is.

    The sign test is of a planned end alone. With a decision, the rate is of the prompts up to it
    and the counts are of all verdicts.
    """

    side: Side
    counts: OutcomeCounts
    n: int
    prompts: int | None
    rate: float | None
    low: float | None
    high: float | None
    level: float
    method: Method | None
    always_valid: bool  # the interval holds however often somebody looked, and whenever it ended
    clustered: bool
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
    outcomes: Codes, prompts: Keys, wanted: Wanted, *, decision: Decision | None = None
) -> SideRate:
    """`outcomes` are in the labels of the two sides; the rate is the wanted side's."""
    own = exchange(outcomes, wanted.side == "B")
    rate = _told(win_rate(own, prompts=prompts, ties=wanted.ties, level=wanted.level), wanted)
    if wanted.planned:
        return rate
    # Both are for one look at an end that was planned.
    rate = rate.model_copy(update={"sign_test": None, "worst_case": None})
    if rate.rate is None:
        return rate
    if decision is not None and wanted.ties == "half":
        rate = _by_decision(rate, decision)
    else:
        rate = _always_valid(rate, own, prompts)
    return rate.model_copy(update={"worst_case": _worst_case(rate, own, prompts)})


def exchange(outcomes: NDArray[Any], where: NDArray[np.bool_] | bool) -> Codes:
    """The outcomes with A and B exchanged in these rows."""
    codes = np.asarray(outcomes, dtype=np.int8)
    return np.where((codes <= WIN_B) & where, WIN_B - codes, codes).astype(np.int8)


def _told(found: WinRate, wanted: Wanted) -> SideRate:
    counts, test = found.counts, found.sign_test
    if wanted.side == "B":
        counts = counts.model_copy(update={"wins_a": counts.wins_b, "wins_b": counts.wins_a})
        if test is not None:
            test = test.model_copy(update={"wins_a": test.wins_b, "wins_b": test.wins_a})
    return SideRate(
        side=wanted.side,
        counts=counts,
        n=found.n,
        prompts=found.prompts,
        rate=found.rate,
        low=found.low,
        high=found.high,
        level=found.level,
        method=found.method,
        always_valid=False,
        clustered=found.clustered,
        ties=found.ties,
        sign_test=test,
        worst_case=found.worst_case,
        reason=found.reason,
    )


def _by_decision(rate: SideRate, decision: Decision) -> SideRate:
    """A run until it is decided has one interval to believe: that of its test."""
    mean, low, high = decision.mean, decision.low, decision.high
    if rate.side == "B" and mean is not None and low is not None and high is not None:
        mean, low, high = 1 - mean, 1 - high, 1 - low
    return rate.model_copy(
        update={
            "rate": mean,
            "low": low,
            "high": high,
            "method": decision.method,
            "always_valid": True,
            "prompts": decision.scored,
            "reason": decision.reason,
        }
    )


def _always_valid(rate: SideRate, own: Codes, prompts: Keys) -> SideRate:
    """Whoever ended the run may have looked before: only an interval that allows it will do."""
    interval = _interval(own, prompts, rate)
    if interval is None:
        return rate
    return rate.model_copy(
        update={
            "rate": interval.mean,
            "low": interval.low,
            "high": interval.high,
            "method": interval.method,
            "always_valid": True,
        }
    )


def _worst_case(rate: SideRate, own: Codes, prompts: Keys) -> WorstCase | None:
    invalid = own == INVALID
    if rate.low is None or rate.high is None or not invalid.any():
        return None
    lost = _interval(np.where(invalid, WIN_B, own), prompts, rate)
    won = _interval(np.where(invalid, WIN_A, own), prompts, rate)
    if lost is None or won is None:
        return None
    return WorstCase(
        rate_if_lost=lost.mean,
        rate_if_won=won.mean,
        low=min(lost.low, rate.low),
        high=max(won.high, rate.high),
    )


def _interval(own: NDArray[Any], prompts: Keys, rate: SideRate) -> AlwaysValidInterval | None:
    scores = _prompt_scores(own, prompts, rate.ties)
    return always_valid_interval_of_scores(scores, level=rate.level)


def _prompt_scores(own: NDArray[Any], prompts: Keys, ties: Ties) -> NDArray[np.float64]:
    half = _HALF[ties]
    counted = own < (INVALID if half is not None else WIN_B + 1)
    scores = np.array([1.0, 0.0, half or 0.0, half or 0.0])[own[counted]]
    _, which = np.unique(prompts[counted], return_inverse=True)
    means: NDArray[np.float64] = np.bincount(which, weights=scores) / np.bincount(which)
    return means
