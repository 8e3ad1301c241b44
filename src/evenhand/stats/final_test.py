"""The fixed test at the planned end, at the level that the looks before it left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import bdtr, ndtr, ndtri, stdtr, stdtrit

from evenhand.stats.always_valid import always_valid_interval_of_counts
from evenhand.stats.betting import Bets
from evenhand.stats.score_interval import constrained_variance, score_interval
from evenhand.stats.sign_test import sign_test_p
from evenhand.stats.stopping_walk import LONGEST, planned_end

FinalMethod = Literal["score", "t", "betting"]


@dataclass(frozen=True, slots=True)
class Spending:
    """How alpha is spent: on bets along the way, and all in all."""

    alpha: float
    betting_alpha: float
    bets: Bets
    null_rate: float

    @property
    def rest(self) -> float:
        return self.alpha - self.betting_alpha


@dataclass(frozen=True, slots=True)
class FinalTest:
    """`p_value` is of the whole procedure, looks included: it decides at alpha."""

    p_value: float
    low: float
    high: float
    method: FinalMethod


def run_final_test(counts: Mapping[float, int], spending: Spending) -> FinalTest:
    """The test of scores that have not stopped the run on the way; at least two of them."""
    if set(counts) <= {0.0, 0.5, 1.0}:
        return _test_pairs(counts.get(1.0, 0), counts.get(0.5, 0), counts.get(0.0, 0), spending)
    return _test_prompt_means(counts, spending)


def _test_pairs(wins: int, halves: int, losses: int, spending: Spending) -> FinalTest:
    """Of wins and losses alone, ties are no evidence: against 0.5 they are coins, exactly."""
    decisive, lead = wins + losses, wins - losses
    if spending.null_rate != 0.5:
        claim = 2 * spending.null_rate - 1
        score = _score_deviations(wins, halves, losses, difference=claim)
        p_value = spending.betting_alpha + 2 * float(ndtr(-score))
        deviations = float(-ndtri(spending.rest / 2))
    elif decisive <= LONGEST:
        end = planned_end(spending.bets, spending.betting_alpha, decisive)
        p_value = end.p_value(lead)
        deviations = end.critical_z(spending.alpha)
    else:
        p_value = spending.betting_alpha + sign_test_p(wins, losses)
        deviations = _binomial_deviations(decisive, spending.rest)
    low, high = score_interval(wins, halves, losses, critical=deviations)
    return FinalTest(min(1.0, p_value), low, high, "score")


def _test_prompt_means(counts: Mapping[float, int], spending: Spending) -> FinalTest:
    """Student's t on the means of prompts.

    Where there were looks, a walk of as many coins as the scores have spread stands for them:
    bets gain by the sum and lose by the sum of squares, and the two agree in both.
    """
    scores = np.fromiter(counts, dtype=float, count=len(counts))
    times = np.fromiter(counts.values(), dtype=float, count=len(counts))
    number = float(times.sum())
    mean = float(times @ scores) / number
    squares = float(times @ (scores - mean) ** 2)
    if squares == 0:  # one score everywhere: no spread to measure a mean by
        interval = always_valid_interval_of_counts(
            counts, level=1 - spending.betting_alpha, bets=spending.bets
        )
        low, high = (interval.low, interval.high) if interval else (0.0, 1.0)
        capital = spending.bets.log_capital(counts, spending.null_rate)
        return FinalTest(math.exp(min(0.0, -capital)), low, high, "betting")
    error = math.sqrt(squares / (number - 1) / number)
    p_fixed = 2 * float(stdtr(number - 1, -abs(mean - spending.null_rate) / error))
    coins = round(4 * float(times @ (scores - 0.5) ** 2))
    if spending.null_rate == 0.5 and 1 <= coins <= LONGEST:
        end = planned_end(spending.bets, spending.betting_alpha, coins)
        deviations = -float(ndtri(max(p_fixed, 1e-300) / 2))
        p_value = end.p_value(deviations * math.sqrt(coins))
        level = 2 * float(ndtr(-end.critical_z(spending.alpha)))
    else:
        p_value, level = spending.betting_alpha + p_fixed, spending.rest
    width = -float(stdtrit(number - 1, level / 2)) * error
    return FinalTest(min(1.0, p_value), max(0.0, mean - width), min(1.0, mean + width), "t")


def _binomial_deviations(pairs: int, alpha: float) -> float:
    """As `FairEnd.critical_z`, for a binomial test without looks."""
    lead = math.floor(-float(ndtri(alpha / 2)) * math.sqrt(pairs))
    lead -= (lead + pairs) % 2
    while 2 * float(bdtr((pairs - lead) // 2, pairs, 0.5)) <= alpha:
        lead -= 2
    while 2 * float(bdtr((pairs - lead) // 2, pairs, 0.5)) > alpha:
        lead += 2
    return (lead - 1) / math.sqrt(pairs)


def _score_deviations(wins: int, halves: int, losses: int, *, difference: float) -> float:
    """Tango's score (1998) of the claim that A's share less B's is `difference`, unsigned."""
    if difference < 0:  # the variance is stated for differences that are not negative
        wins, losses, difference = losses, wins, -difference
    variance = constrained_variance(difference, wins=wins, ties=halves, losses=losses)
    number = wins + halves + losses
    distance = abs(wins - losses - number * difference)
    if variance == 0:
        return math.inf if distance else 0.0
    return distance / math.sqrt(number * variance)
