"""Intervals of a rate or of a mean of bounded scores (score, exact), and the exact sign test with
Holm's adjustment.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Literal

import numpy as np

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.columns import Floats
from evenhand.stats.distributions import beta_quantile, binomial_cdf, binomial_tail

# Enough halvings from 1 to the last bit of a double.
HALVINGS = 60


def score_interval(
    wins: float, ties: float, losses: float, *, critical: float
) -> tuple[float, float]:
    """The rates (wins + ties / 2) / n that a score test at the critical value does not reject.

    Tango's interval (1998) for a paired difference, whose discordant pairs are our wins and losses;
    without ties it is Wilson's (1927). Counts may be fractional, after division by a design effect.
    Never a single point, not even for all wins or all ties. Swapping wins and losses mirrors it to
    the last bit.
    """
    high = _upper_difference(wins, ties, losses, critical)
    low = -_upper_difference(losses, ties, wins, critical)
    return rate_of_difference(low), rate_of_difference(high)


def score_lower(wins: float, ties: float, losses: float, *, critical: float) -> float:
    """The lower end; the upper one is 1 minus that with wins and losses exchanged."""
    return rate_of_difference(-_upper_difference(losses, ties, wins, critical))


def exact_lower(wins: int, ties: int, losses: int, *, level: float) -> float:
    """A lower end for few pairs, above the true rate in at most (1 - level) / 2 of all cases.

    Clopper and Pearson's (1934) limits of wins and losses, combined by the variances that they
    imply (Zou and Donner 2008) with the correlation of two shares of one whole; without ties it is
    theirs. At one half the exact sign test decides. That it holds with ties is checked by
    enumeration, not proven (tests/stats/test_score_interval.py).
    """
    total, tail = wins + ties + losses, (1 - level) / 2
    won, lost = wins / total, losses / total
    least_won = beta_quantile(wins, total - wins + 1, tail) if wins else 0.0
    most_lost = beta_quantile(losses + 1, total - losses, 1 - tail) if losses < total else 1.0
    # Half a pair is added to each, so that all wins and no ties still correlate by -1.
    odds = (wins + 0.5) / (total - wins + 0.5) * (losses + 0.5) / (total - losses + 0.5)
    below, above = won - least_won, most_lost - lost
    spread = below * below + above * above + 2 * math.sqrt(odds) * below * above
    difference = max(-1.0, won - lost - math.sqrt(spread))
    if not wins or binomial_tail(wins - 1, wins + losses, 0.5) > tail:
        difference = min(difference, 0.0)
    return rate_of_difference(difference)


def rate_of_difference(difference: float) -> float:
    """(1 + d) / 2, rounded so that the rate of -d is 1 minus it, exactly."""
    whole = math.copysign((1.0 + abs(difference)) - 1.0, difference)
    return (1.0 + whole) / 2.0


def constrained_variance(difference: float, *, wins: float, ties: float, losses: float) -> float:
    """The variance of one score of +1, 0 or -1 whose mean is `difference`.

    The share of losses is the maximum likelihood estimate under that mean (Tango 1998, equation 6:
    the larger root of a quadratic).
    """
    total = wins + ties + losses
    linear = (2 * total - wins + losses) * difference - wins - losses
    constant = -losses * difference * (1 - difference)
    root = math.sqrt(max(0.0, linear * linear - 8 * total * constant))
    # Equal forms; each is exact where the other cancels.
    share_lost = (root - linear) / (4 * total) if linear <= 0 else -2 * constant / (root + linear)
    return max(0.0, 2 * share_lost + difference * (1 - difference))


def _upper_difference(wins: float, ties: float, losses: float, critical: float) -> float:
    """The largest difference (wins - losses) / n that is not rejected, by bisection."""
    total = wins + ties + losses
    observed = wins - losses
    rejected, accepted = 1.0, observed / total
    for _ in range(HALVINGS):
        middle = (rejected + accepted) / 2
        distance = observed - total * middle
        variance = _variance(middle, wins, ties, losses)
        if distance * distance > critical * critical * total * variance:
            rejected = middle
        else:
            accepted = middle
    return (rejected + accepted) / 2


def _variance(difference: float, wins: float, ties: float, losses: float) -> float:
    # The quadratic is for non-negative differences; the rest is its mirror.
    if difference < 0:
        return constrained_variance(-difference, wins=losses, ties=ties, losses=wins)
    return constrained_variance(difference, wins=wins, ties=ties, losses=losses)


# The score interval of a mean of bounded values.

# Enough halvings from 1 to the last digit that a report could show.
MEAN_HALVINGS = 50
# More distinct values than this are binned, keeping their means.
MOST_ATOMS = 1_000
# Smaller squares are rounding errors of identical values, not variance.
ROUNDING = 1e-24


def mean_interval(
    values: Floats, weights: Floats, *, ends: tuple[float, float], size: float, critical: float
) -> tuple[float, float]:
    """The means that a score test of `size` independent values does not reject.

    Under each mean the distribution is the maximum likelihood over the observed values and the two
    ends of their range (Owen 1988 without the ends), and its variance is the test's. With only the
    ends as values it is Wilson's interval (1927), with the middle too Tango's (1998). Never a
    single point: rare values may not have been observed. Negated values mirror it to the last bit.
    """
    atoms, shares = _atoms(values, weights)
    # Summed in both directions, so that negated values have exactly the negated mean.
    reverse = np.ascontiguousarray(shares[::-1])
    mean = (float(atoms @ shares) + float(np.ascontiguousarray(atoms[::-1]) @ reverse)) / 2.0
    low_end, high_end = min(ends[0], float(atoms[0])), max(ends[1], float(atoms[-1]))
    high = _distance(atoms - mean, shares, end=high_end - mean, size=size, critical=critical)
    turned = np.ascontiguousarray((mean - atoms)[::-1])
    low = _distance(turned, reverse, end=mean - low_end, size=size, critical=critical)
    return mean - low, mean + high


def _distance(
    offsets: Floats, shares: Floats, *, end: float, size: float, critical: float
) -> float:
    """How far above the mean of the ascending offsets, which is 0, a mean may lie.

    The likeliest shares under a mean are proportional to shares / (1 - tilt * offset / end) with a
    tilt below 1. At a tilt of 1 the rest of the mass sits on the end, unless a value does.
    """
    if end <= 0:
        return 0.0
    squared = critical * critical
    scaled = offsets / end
    if scaled[-1] < 1.0:
        tilted = shares / (1.0 - scaled)
        tilted /= tilted.sum()
        mean, second = float(tilted @ scaled), float(tilted @ (scaled * scaled))
        if size * mean * mean <= squared * (second - mean * mean) + ROUNDING:
            # From here the second moment is linear in the mean, up to 1 at the end.
            slope = (1.0 - second) / (1.0 - mean)
            level = second - slope * mean
            lead = size + squared
            root = math.sqrt(squared * slope * squared * slope + 4.0 * lead * squared * level)
            return end * min(1.0, (squared * slope + root) / (2.0 * lead))
    accepted, rejected = 0.0, 1.0
    mean = 0.0
    for _ in range(MEAN_HALVINGS):
        middle = (accepted + rejected) / 2.0
        tilted = shares / (1.0 - middle * scaled)
        tilted /= tilted.sum()
        mean = float(tilted @ scaled)
        variance = float(tilted @ (scaled * scaled)) - mean * mean
        if size * mean * mean > squared * variance:
            rejected = middle
        else:
            accepted = middle
    return end * min(1.0, mean)


def _atoms(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Distinct values in ascending order, with their shares of the weight."""
    distinct, places = np.unique(values, return_inverse=True)
    if distinct.size > MOST_ATOMS:
        span = max(abs(float(distinct[0])), abs(float(distinct[-1])))
        # Rounding to multiples is symmetric about 0, so bins mirror as values do.
        bins = np.rint(distinct * (MOST_ATOMS / (2.0 * span)))
        places = np.unique(bins, return_inverse=True)[1][places]
    shares = np.bincount(places, weights=weights)
    if distinct.size > MOST_ATOMS:
        distinct = np.bincount(places, weights=weights * values) / shares
    return distinct, shares / weights.sum()


# The exact sign test: could a fair coin have decided like this?


class SignTest(Model):
    """Two-sided, on those that decided; a prompt decides by the sign of its summed score."""

    p_value: float
    wins_a: int
    wins_b: int
    by: Literal["pair", "prompt"]


def sign_test_p(wins: int, losses: int) -> float:
    """Twice the smaller tail of a fair coin, at most 1 (exact binomial).

    Never 0: too small a p-value becomes the smallest double.
    """
    if wins < 0 or losses < 0:
        raise InputError.of("stats.sign_test_counts", wins=wins, losses=losses)
    tail = binomial_cdf(min(wins, losses), wins + losses, 0.5)
    return max(sys.float_info.min, min(1.0, 2 * tail))


def holm_adjusted(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """P-values of a family (tags, criteria) after Holm's step-down adjustment (1979): the smallest
    level at which each is significant while the chance of any false finding in the family stays
    below the level, under any dependence. None stays None and is not counted."""
    for p_value in p_values:
        if p_value is not None and not 0 <= p_value <= 1:
            raise InputError.of("stats.p_value_outside", p_value=p_value)
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (p_value, place) in enumerate(known):
        least = max(least, min(1.0, (len(known) - rank) * p_value))
        adjusted[place] = least
    return tuple(adjusted)


def sign_test(wins_a: int, wins_b: int, *, by: Literal["pair", "prompt"]) -> SignTest | None:
    """None if nobody decided."""
    if wins_a + wins_b == 0:
        return None
    return SignTest(p_value=sign_test_p(wins_a, wins_b), wins_a=wins_a, wins_b=wins_b, by=by)
