"""The fixed test at the planned end, at the level that the looks left: the exact chances of a walk
that stops early, and the test made of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.always_valid import Bets, always_valid_interval_of_counts
from evenhand.stats.distributions import binomial_cdf, normal_cdf, t_cdf, t_quantile
from evenhand.stats.intervals import score_interval, sign_test_p

LONGEST = 20_000  # decisive pairs up to which a walk is computed: about a second


def stopping_leads(bets: Bets, *, alpha: float, longest: int) -> NDArray[np.int64]:
    """For 0 to `longest` decisive pairs, the least lead (wins minus losses) that stops the test.

    Ties move neither capital nor lead: against a mean of 0.5 a half multiplies every bet by 1.
    `longest + 2` if no lead is enough.
    """
    pairs = np.arange(longest + 1)
    stakes = np.array(bets.stakes)
    gain, loss = np.log1p(stakes), np.log1p(-stakes)

    def enough(leads: NDArray[np.int64]) -> NDArray[np.bool_]:
        won, lost = (pairs + leads)[:, None] / 2, (pairs - leads)[:, None] / 2
        both = np.concatenate([won * gain + lost * loss, lost * gain + won * loss], axis=1)
        capital = np.logaddexp.reduce(both, axis=1) - math.log(2 * len(stakes))
        return np.asarray(capital >= -math.log(alpha))

    # The capital rises with the lead, so bisection finds the least lead of all sizes at once; a
    # lead has the parity of its pairs and is parity + 2·step.
    parity = pairs % 2
    few, many = np.full_like(pairs, -1), (pairs - parity) // 2 + 1
    while (many - few > 1).any():
        middle = (few + many) // 2
        held = enough(np.clip(parity + 2 * middle, 0, pairs))
        many = np.where(held & (many - few > 1), middle, many)
        few = np.where(~held & (many - few > 1), middle, few)
    leads = parity + 2 * many
    return np.where(leads > pairs, longest + 2, leads)


@dataclass(frozen=True, slots=True)
class Walk:
    """The chances of stopping at each number of decisive pairs, and of the leads without stopping.

    `ends[m]` has the chance of each lead after `m` pairs without a stop, from `-m` to `m` in steps
    of 2 around the middle, cut to the possible leads.
    """

    stops_a: NDArray[np.float64]
    stops_b: NDArray[np.float64]
    ends: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]]


def walk(leads: NDArray[np.int64], chance: float, ends: range) -> Walk:
    """Forward, pair by pair; A wins a decisive pair with probability `chance`."""
    longest = len(leads) - 1
    stops_a, stops_b = np.zeros(longest + 1), np.zeros(longest + 1)
    kept: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
    here, lowest = np.ones(1), 0  # chances of the leads lowest, lowest + 2, …
    if 0 in ends:
        kept[0] = (np.zeros(1, dtype=np.int64), here)
    for pairs in range(1, longest + 1):
        there = np.zeros(len(here) + 1)
        there[1:] = chance * here
        there[:-1] += (1 - chance) * here
        lowest -= 1
        # Leads at or beyond ±limit stop.
        limit = int(leads[pairs])
        cut_b = max(0, (-limit - lowest) // 2 + 1)
        cut_a = max(0, (lowest + 2 * (len(there) - 1) - limit) // 2 + 1)
        if cut_a or cut_b:
            keep = len(there) - cut_a
            stops_b[pairs] = there[:cut_b].sum()
            stops_a[pairs] = there[keep:].sum()
            there, lowest = there[cut_b:keep], lowest + 2 * cut_b
        here = there
        if pairs in ends:
            kept[pairs] = (lowest + 2 * np.arange(len(here)), here)
    return Walk(stops_a, stops_b, kept)


@dataclass(frozen=True, slots=True)
class FairEnd:
    """The end of a fair walk of so many decisive pairs, which gives the final test's level.

    `used` is the chance that it stopped before, `tails[k]` the chance that it did not and ends with
    a lead of at least `k` either way; beyond the last one it is 0.
    """

    pairs: int
    used: float
    tails: NDArray[np.float64]

    def p_value(self, lead: float) -> float:
        """The chance of an early stop, or of an end at least this far out."""
        return min(1.0, self.used + self._tail(self._on_lattice(abs(lead))))

    def critical_lead(self, alpha: float) -> int:
        """The least lead that decides at the end; `pairs + 2` if none does."""
        for lead in range(self.pairs % 2, self.pairs + 1, 2):
            if self.used + self._tail(lead) <= alpha:
                return lead
        return self.pairs + 2

    def critical_z(self, alpha: float) -> float:
        """Half-way between the last undecided lead and the first decisive one, in standard
        deviations, so that its interval excludes 0.5 exactly when the test decides."""
        return (self.critical_lead(alpha) - 1) / math.sqrt(max(self.pairs, 1))

    def _tail(self, lead: int) -> float:
        return float(self.tails[lead]) if lead < len(self.tails) else 0.0

    def _on_lattice(self, lead: float) -> int:
        parity = self.pairs % 2
        return parity + 2 * math.floor((lead - parity + 1) / 2)


def fair_end(pairs: int, leads: NDArray[np.int64]) -> FairEnd:
    return fair_ends(leads[: pairs + 1], range(pairs, pairs + 1))[pairs]


def fair_ends(leads: NDArray[np.int64], ends: range) -> dict[int, FairEnd]:
    """The same for several lengths at once."""
    fair = walk(leads, 0.5, ends)
    used = np.cumsum(fair.stops_a + fair.stops_b)
    return {
        pairs: FairEnd(pairs, float(used[pairs]), _two_sided_tails(*fair.ends[pairs]))
        for pairs in ends
    }


@lru_cache(maxsize=512)
def planned_end(bets: Bets, alpha: float, pairs: int) -> FairEnd:
    """The end of a fair walk that stops when these bets reach 1/alpha."""
    return fair_end(pairs, stopping_leads(bets, alpha=alpha, longest=pairs))


def _two_sided_tails(leads: NDArray[np.int64], chances: NDArray[np.float64]) -> NDArray[np.float64]:
    at = np.zeros(int(np.abs(leads).max(initial=0)) + 1)
    np.add.at(at, np.abs(leads), chances)
    return np.cumsum(at[::-1])[::-1]


# The fixed test at the planned end, at the level that the looks left.

FinalMethod = Literal["score", "t", "betting"]


@dataclass(frozen=True, slots=True)
class AlphaSpending:
    """How alpha is spent: on bets along the way, and in all."""

    alpha: float
    betting_alpha: float
    bets: Bets

    @property
    def rest(self) -> float:
        return self.alpha - self.betting_alpha


@dataclass(frozen=True, slots=True)
class FinalTest:
    """`p_value` is of the whole procedure, including looks: it decides at alpha."""

    p_value: float
    low: float
    high: float
    method: FinalMethod


def run_final_test(counts: Mapping[float, int], spending: AlphaSpending) -> FinalTest:
    """For at least two scores that have not stopped the run on the way."""
    if set(counts) <= {0.0, 0.5, 1.0}:
        return _test_pairs(counts.get(1.0, 0), counts.get(0.5, 0), counts.get(0.0, 0), spending)
    return _test_prompt_means(counts, spending)


def _test_pairs(wins: int, halves: int, losses: int, spending: AlphaSpending) -> FinalTest:
    """Of wins and losses only: against 0.5 ties are exactly no evidence."""
    decisive, lead = wins + losses, wins - losses
    if decisive <= LONGEST:
        end = planned_end(spending.bets, spending.betting_alpha, decisive)
        p_value = end.p_value(lead)
        deviations = end.critical_z(spending.alpha)
    else:
        p_value = spending.betting_alpha + sign_test_p(wins, losses)
        deviations = _binomial_deviations(decisive, spending.rest)
    low, high = score_interval(wins, halves, losses, critical=deviations)
    return FinalTest(min(1.0, p_value), low, high, "score")


def _test_prompt_means(counts: Mapping[float, int], spending: AlphaSpending) -> FinalTest:
    """Student's t on the means of prompts.

    After looks, a walk of as many coins as the scores' spread stands for them: bets gain by the sum
    and lose by the sum of squares, and the two agree in both.
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
        capital = spending.bets.log_capital(counts, 0.5)
        return FinalTest(math.exp(min(0.0, -capital)), low, high, "betting")
    error = math.sqrt(squares / (number - 1) / number)
    p_fixed = 2 * t_cdf(number - 1, -abs(mean - 0.5) / error)
    coins = round(4 * float(times @ (scores - 0.5) ** 2))
    if 1 <= coins <= LONGEST:
        end = planned_end(spending.bets, spending.betting_alpha, coins)
        deviations = -NormalDist().inv_cdf(max(p_fixed, 1e-300) / 2)
        p_value = end.p_value(deviations * math.sqrt(coins))
        level = 2 * normal_cdf(-end.critical_z(spending.alpha))
    else:
        p_value, level = spending.betting_alpha + p_fixed, spending.rest
    width = -t_quantile(number - 1, level / 2) * error
    return FinalTest(min(1.0, p_value), max(0.0, mean - width), min(1.0, mean + width), "t")


def _binomial_deviations(pairs: int, alpha: float) -> float:
    """As `FairEnd.critical_z`, for a binomial test without looks."""
    lead = math.floor(-NormalDist().inv_cdf(alpha / 2) * math.sqrt(pairs))
    lead -= (lead + pairs) % 2
    while 2 * binomial_cdf((pairs - lead) // 2, pairs, 0.5) <= alpha:
        lead -= 2
    while 2 * binomial_cdf((pairs - lead) // 2, pairs, 0.5) > alpha:
        lead += 2
    return (lead - 1) / math.sqrt(pairs)
