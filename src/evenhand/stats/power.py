"""How often a test would find a difference that is there, and after how many prompts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrik, gammaln, ndtr, ndtri, xlog1py, xlogy

from evenhand.stats.betting import planned_bets
from evenhand.stats.score_interval import constrained_variance
from evenhand.stats.sequential import SequentialPlan
from evenhand.stats.stopping_walk import LONGEST, fair_ends, stopping_leads, walk
from evenhand.stats.win_rate import CAUTION

_WALKED = 3_000  # decisive pairs up to which a plan is walked through; longer ones are scaled
_FAR = 9.0  # standard deviations beyond which a number of decisive pairs is left out


@dataclass(frozen=True, slots=True)
class TruePair:
    """What a prompt is like: A's win rate, and the spread E[(2·score - 1)²] of its score.

    For single pairs the spread is the share that is decisive. Means of several rows spread less;
    a tie share of `1 - spread` stands for them, which has the same mean and variance.
    """

    win_rate: float
    spread: float

    @property
    def decisive_rate(self) -> float:
        """A's share of the decisive pairs."""
        return min(1.0, 0.5 + (self.win_rate - 0.5) / self.spread)


@dataclass(frozen=True, slots=True)
class OutcomeShares:
    """Of all pairs: won and lost by the side that is gated, ties, and pairs whose orders differ."""

    wins: float
    losses: float
    ties: float
    inconsistent: float

    @property
    def flip_share(self) -> float:
        """Of the pairs that are no ties; every inconsistent pair is taken for a full flip."""
        return self.inconsistent / (1 - self.ties)


@dataclass(frozen=True, slots=True)
class Chances:
    """`power` is the chance to name the better side; `prompts` the mean number it takes."""

    power: float
    prompts: float


def fixed_chances(prompts: int, pair: TruePair, *, alpha: float) -> Chances:
    """Of the exact two-sided sign test on the decisive pairs at a fixed size."""
    numbers, weights = _decisive_numbers(prompts, pair.spread)
    losses = np.floor(np.nan_to_num(bdtrik(alpha / 2, numbers, 0.5), nan=-1.0))
    losses += bdtr(losses + 1, numbers, 0.5) <= alpha / 2  # the inverse is off by rounding
    losses -= (losses >= 0) & (bdtr(np.maximum(losses, 0), numbers, 0.5) > alpha / 2)
    found = np.where(losses >= 0, bdtr(np.maximum(losses, 0), numbers, 1 - pair.decisive_rate), 0)
    return Chances(float(weights @ found), float(prompts))


def half_count_threshold(threshold: float, flip_share: float) -> float:
    """What the lower bound of the half count must exceed for a gate at `threshold` to pass.

    Inconsistent pairs that count as half pull every rate to 0.5, so below 0.5 the gate asks for
    more. From a flip share of one half on, nothing below 0.5 passes.
    """
    if threshold >= 0.5:
        return threshold
    return 0.5 - (0.5 - threshold) * math.sqrt(max(0.0, 1 - 2 * flip_share))


def gate_power(pairs: float, shares: OutcomeShares, *, threshold: float, alpha: float) -> float:
    """The chance that a gate at `threshold` passes, by the normal approximation of its score test.

    Below 0.5 the threshold moves with the flip share that is observed; the delta method takes
    its variance and its curvature into account. The bound that leaves inconsistent pairs out is
    never the stricter one. A number of pairs may be fractional, as a design effect makes it.
    """
    lead = shares.wins - shares.losses
    variance = max(0.0, shares.wins + shares.losses - lead * lead)
    even = _score_power(pairs, shares, lead=lead, variance=variance, null=0.0, alpha=alpha)
    flips = shares.flip_share
    if threshold == 0.5 or (threshold < 0.5 and flips >= 0.5):
        return even
    if threshold > 0.5:
        null = 2 * threshold - 1
        return _score_power(pairs, shares, lead=lead, variance=variance, null=null, alpha=alpha)
    # The gate takes the share of flips at the upper end of an interval of its own.
    flips += CAUTION * math.sqrt(flips * (1 - flips) / ((1 - shares.ties) * pairs))
    if flips >= 0.5:
        return even
    null = 2 * half_count_threshold(threshold, flips) - 1
    slope = (1 - 2 * threshold) / math.sqrt(1 - 2 * flips)
    flip_variance = flips * (1 - flips) / (1 - shares.ties)
    variance += slope * (slope * flip_variance + 2 * lead * flips / (1 - shares.ties))
    lead -= slope * flip_variance / (2 * (1 - 2 * flips) * pairs)
    below = _score_power(pairs, shares, lead=lead, variance=variance, null=null, alpha=alpha)
    return max(below, even)  # a bound above 0.5 passes whatever the flip share


def _score_power(
    pairs: float, shares: OutcomeShares, *, lead: float, variance: float, null: float, alpha: float
) -> float:
    """Of refusing `null`, on the scale of wins less losses, where `lead` is true."""
    ahead, behind = shares.wins, shares.losses
    if null < 0:  # the constrained variance is stated for the other sign
        ahead, behind = behind, ahead
    halves = max(0.0, 1 - ahead - behind)
    under_null = constrained_variance(abs(null), wins=ahead, ties=halves, losses=behind)
    margin = math.sqrt(pairs) * (lead - null) + ndtri(alpha / 2) * math.sqrt(under_null)
    if variance <= 0:
        return float(margin > 0)
    return float(ndtr(margin / math.sqrt(variance)))


def sequential_chances(plan: SequentialPlan, pair: TruePair) -> Chances:
    """Of the test that stops early, with a look after every prompt; exact for single pairs.

    Beyond some thousand prompts, a smaller plan stands for it in which the difference is as many
    standard errors.
    """
    if plan.planned * pair.spread > _WALKED:
        return _scaled_chances(plan, pair)
    numbers, weights = _decisive_numbers(plan.planned, pair.spread)
    ends = range(int(numbers[0]), int(numbers[-1]) + 1)
    leads = stopping_leads(planned_bets(plan.planned), alpha=plan.betting_alpha, longest=ends[-1])
    fair = fair_ends(leads, ends)
    real = walk(leads, pair.decisive_rate, ends)
    # Ties fall independently of who wins, so they only delay the walk.
    places = np.arange(ends[-1] + 1)
    reached = np.concatenate([np.cumsum(weights[::-1])[::-1], np.zeros(1)])
    in_time = reached[np.clip(places - ends[0], 0, len(weights))]
    power = float(real.stops_a @ in_time)
    for number, weight in zip(ends, weights, strict=True):
        last, chances = real.ends[number]
        critical = fair[number].critical_lead(plan.alpha)
        power += float(weight * chances[last >= critical].sum())
    saved = (real.stops_a + real.stops_b) @ _prompts_left(places, plan.planned, pair.spread)
    return Chances(min(1.0, power), plan.planned - float(saved))


def _scaled_chances(plan: SequentialPlan, pair: TruePair) -> Chances:
    factor = plan.planned * pair.spread / _WALKED
    smaller = plan.model_copy(update={"planned": int(plan.planned / factor)})
    rate = min(0.5 + (pair.win_rate - 0.5) * math.sqrt(factor), 0.5 + pair.spread / 2)
    alike = sequential_chances(smaller, TruePair(rate, pair.spread))
    if plan.planned * pair.spread <= LONGEST:
        return Chances(alike.power, alike.prompts * factor)
    # The final test of a very long run has only what the looks can not have spent.
    rest = fixed_chances(plan.planned, pair, alpha=plan.alpha - plan.betting_alpha)
    return Chances(rest.power, alike.prompts * factor)


def _decisive_numbers(prompts: int, spread: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How many prompts may turn out decisive, and the chance of each number."""
    if spread >= 1:
        return np.array([prompts]), np.ones(1)
    middle, reach = prompts * spread, _FAR * math.sqrt(prompts * spread * (1 - spread)) + 1
    low, high = max(0, math.floor(middle - reach)), min(prompts, math.ceil(middle + reach))
    numbers = np.arange(low, high + 1)
    logs = gammaln(prompts + 1) - gammaln(numbers + 1) - gammaln(prompts - numbers + 1)
    logs += xlogy(numbers, spread) + xlog1py(prompts - numbers, -spread)
    chances = np.exp(logs)
    return numbers, np.asarray(chances / chances.sum())


def _prompts_left(places: NDArray[np.int64], prompts: int, spread: float) -> NDArray[np.float64]:
    """The mean number of prompts that are left when the k-th decisive one has come.

    The place of that one is nearly normal with mean k/spread (negative binomial).
    """
    left = prompts - places / spread
    deviation = np.sqrt(places * max(0.0, 1 - spread)) / spread
    if spread >= 1:
        return np.maximum(left, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(deviation > 0, left / deviation, np.sign(left) * np.inf)
        density = np.exp(-(far**2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(left * ndtr(far) + deviation * density)
