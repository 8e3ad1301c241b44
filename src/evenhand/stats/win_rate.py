"""The win rate of A against B, never without its interval and never with the outcomes folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.clusters import (
    Floats,
    Labels,
    label_codes,
    normal_quantile,
    score_spread,
    student_quantile,
)
from evenhand.stats.outcomes import (
    INCONSISTENT,
    INVALID,
    OUTCOME_KINDS,
    TIE,
    WIN_A,
    WIN_B,
    Codes,
    OutcomeCounts,
    confidence_level,
    outcome_codes,
    same_length,
)
from evenhand.stats.score_interval import rate_of_difference, score_interval
from evenhand.stats.sign_test import SignTest, sign_test

Ties: TypeAlias = Literal["half", "excluded", "wins"]
Method: TypeAlias = Literal["score", "clustered score"]

# With fewer pairs no outcome is significant by the exact sign test (2 / 2^5 > 0.05), yet the
# score interval of five wins of five would lie above one half.
FEWEST_PAIRS = 6
# With fewer prompts the clustered interval says nothing: it covers 97 to 100 % by being wide.
FEWEST_PROMPTS = 5


class WorstCase(Model):
    """What the invalid pairs could have made of it: all lost by A, or all won by A.

    `rate_if_lost` and `rate_if_won` bound the rate of these pairs; `low` and `high` are the outer
    ends of the two intervals, so they hold the sampling uncertainty too.
    """

    rate_if_lost: float
    rate_if_won: float
    low: float
    high: float


class WinRate(Model):
    """A's win rate over `n` pairs, or the reason why there is none."""

    counts: OutcomeCounts
    n: int
    prompts: int | None
    rate: float | None
    low: float | None
    high: float | None
    method: Method | None
    clustered: bool
    sign_test: SignTest | None
    worst_case: WorstCase | None
    ties: Ties
    level: float
    reason: str | None


@dataclass(frozen=True, slots=True)
class RateInterval:
    rate: float
    low: float
    high: float
    method: Method


def win_rate(
    outcomes: Codes, *, prompts: Labels | None = None, ties: Ties = "half", level: float = 0.95
) -> WinRate:
    """A's win rate from one outcome code a row; rows of the same prompt count as one cluster."""
    codes = outcome_codes(outcomes)
    if prompts is None:
        totals = np.bincount(codes, minlength=OUTCOME_KINDS)[np.newaxis, :]
        return _win_rate(totals, independent=True, prompts=None, ties=ties, level=level)
    same_length(codes.size, prompts=prompts)
    clusters, labels = label_codes(prompts)
    cells = np.bincount(clusters * OUTCOME_KINDS + codes, minlength=len(labels) * OUTCOME_KINDS)
    table = cells.reshape(len(labels), OUTCOME_KINDS)
    judged = int((table[:, :INVALID].sum(axis=1) > 0).sum())
    # Prompts that come once each are independent rows. Invalid rows count here too, so that
    # their worst case is clustered as the rate itself is.
    independent = bool((table.sum(axis=1) <= 1).all())
    return _win_rate(table, independent=independent, prompts=judged, ties=ties, level=level)


def win_rate_of_counts(
    counts: OutcomeCounts, *, ties: Ties = "half", level: float = 0.95
) -> WinRate:
    """The same for independent rows that are counted already."""
    row = [counts.wins_a, counts.wins_b, counts.ties, counts.inconsistent, counts.invalid]
    if min(row) < 0:
        raise InputError(f"the counts are {row}; give none below 0")
    return _win_rate(np.array([row]), independent=True, prompts=None, ties=ties, level=level)


def by_group(
    outcomes: Codes,
    groups: Labels,
    *,
    prompts: Labels | None = None,
    ties: Ties = "half",
    level: float = 0.95,
) -> dict[Any, WinRate]:
    """One win rate for each label (a criterion, a tag, a judge).

    A row with several tags is given once for each of them.
    """
    codes = outcome_codes(outcomes)
    same_length(codes.size, groups=groups, prompts=prompts)
    members, labels = label_codes(groups, name="groups")
    clusters = None if prompts is None else label_codes(prompts)[0]
    order = np.argsort(members, kind="stable")
    ends = np.cumsum(np.bincount(members, minlength=len(labels)))
    rates: dict[Any, WinRate] = {}
    for label, rows in zip(labels, np.split(order, ends[:-1]), strict=True):
        own = None if clusters is None else clusters[rows]
        rates[label] = win_rate(codes[rows], prompts=own, ties=ties, level=level)
    return rates


def _win_rate(
    table: NDArray[np.integer[Any]],
    *,
    independent: bool,
    prompts: int | None,
    ties: Ties,
    level: float,
) -> WinRate:
    """From the counts of each prompt, or for independent rows from any counts that add up."""
    if ties not in ("half", "excluded", "wins"):
        raise InputError(f'ties is {ties!r}; give "half", "excluded" or "wins"')
    confidence_level(level)
    wins, halves, losses = _scores(table, ties)
    invalid = table[:, INVALID].astype(np.float64)
    unit = "decisive pair" if ties == "excluded" else "valid pair"
    estimate = rate_interval(wins, halves, losses, independent=independent, level=level, unit=unit)
    found = estimate if isinstance(estimate, RateInterval) else None
    worst = None
    if invalid.any():
        lost = rate_interval(wins, halves, losses + invalid, independent=independent, level=level)
        won = rate_interval(wins + invalid, halves, losses, independent=independent, level=level)
        if isinstance(lost, RateInterval) and isinstance(won, RateInterval):
            worst = WorstCase(
                rate_if_lost=lost.rate, rate_if_won=won.rate, low=lost.low, high=won.high
            )
    return WinRate(
        counts=OutcomeCounts.of_codes(table.sum(axis=0)),
        n=int(wins.sum() + halves.sum() + losses.sum()),
        prompts=prompts,
        rate=found.rate if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        method=found.method if found else None,
        clustered=not independent,
        sign_test=_sign_test(table, independent=independent),
        worst_case=worst,
        ties=ties,
        level=level,
        reason=estimate if isinstance(estimate, str) else None,
    )


def rate_interval(
    wins: Floats,
    halves: Floats,
    losses: Floats,
    *,
    independent: bool,
    level: float,
    unit: str = "pair",
) -> RateInterval | str:
    """Rate and interval from each prompt's counts; too little data is a sentence."""
    total_wins, total_halves, total_losses = (
        float(wins.sum()),
        float(halves.sum()),
        float(losses.sum()),
    )
    total = total_wins + total_halves + total_losses
    if total < FEWEST_PAIRS:
        return not_enough(int(total), unit, FEWEST_PAIRS)
    rate = rate_of_difference((total_wins - total_losses) / total)
    if independent:
        low, high = score_interval(
            total_wins, total_halves, total_losses, critical=normal_quantile(level)
        )
        return RateInterval(rate=rate, low=low, high=high, method="score")
    present = wins + halves + losses > 0
    prompts = int(present.sum())
    if prompts < FEWEST_PROMPTS:
        return not_enough(prompts, "prompt", FEWEST_PROMPTS)
    spread = score_spread(wins[present], halves[present], losses[present])
    # Counts are divided by the design effect, as Korn and Graubard (1998) do for a share.
    effect = spread.design_effect
    low, high = score_interval(
        total_wins / effect,
        total_halves / effect,
        total_losses / effect,
        critical=student_quantile(level, spread.degrees),
    )
    return RateInterval(rate=rate, low=low, high=high, method="clustered score")


def not_enough(have: int, what: str, fewest: int) -> str:
    return f"not enough data: {have} {what}{'' if have == 1 else 's'}; at least {fewest} are needed"


def _scores(table: NDArray[np.integer[Any]], ties: Ties) -> tuple[Floats, Floats, Floats]:
    """How many rows of each prompt score 1, one half and 0 for A."""
    counts = table.astype(np.float64)
    wins, losses = counts[:, WIN_A], counts[:, WIN_B]
    undecided = counts[:, TIE] + counts[:, INCONSISTENT]
    if ties == "half":
        return wins, undecided, losses
    if ties == "excluded":
        return wins, np.zeros_like(wins), losses
    return wins, np.zeros_like(wins), losses + undecided


def _sign_test(table: NDArray[np.integer[Any]], *, independent: bool) -> SignTest | None:
    wins, losses = table[:, WIN_A], table[:, WIN_B]
    if independent:
        return sign_test(int(wins.sum()), int(losses.sum()), by="pair")
    return sign_test(int((wins > losses).sum()), int((losses > wins).sum()), by="prompt")
