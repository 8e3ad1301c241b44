"""Intervals of a mean of three outcomes (1, one half and 0): by the score test, and exact ones."""

from __future__ import annotations

import math

from scipy.special import bdtrc, betaincinv

# Enough halvings to come from 1 to the last bit of a double.
HALVINGS = 60


def score_interval(
    wins: float, ties: float, losses: float, *, critical: float
) -> tuple[float, float]:
    """The rates (wins + ties / 2) / n that a score test at the critical value does not refuse.

    Tango's interval (1998) for a paired difference, in other words: there the discordant pairs
    are our wins and losses. Without ties it is Wilson's (1927). Counts may be fractional, which
    is what a design effect makes of them. It never shrinks to a point, not at all wins and not
    at all ties. Swapping wins and losses mirrors it to the last bit.
    """
    high = _upper_difference(wins, ties, losses, critical)
    low = -_upper_difference(losses, ties, wins, critical)
    return rate_of_difference(low), rate_of_difference(high)


def score_lower(wins: float, ties: float, losses: float, *, critical: float) -> float:
    """The lower end alone; the upper one is 1 minus that with wins and losses exchanged."""
    return rate_of_difference(-_upper_difference(losses, ties, wins, critical))


def exact_lower(wins: int, ties: int, losses: int, *, level: float) -> float:
    """A lower end for few pairs, above the true rate in at most (1 - level) / 2 of all cases.

    Clopper and Pearson's (1934) limits of the wins and of the losses, put together by the
    variances that they imply (Zou and Donner 2008) with the correlation of two shares of one
    whole; without ties it is theirs. At one half the exact sign test has the last word. That it
    holds with ties is checked by enumeration, not proven (tests/stats/test_score_interval.py).
    """
    total, tail = wins + ties + losses, (1 - level) / 2
    won, lost = wins / total, losses / total
    least_won = float(betaincinv(wins, total - wins + 1, tail)) if wins else 0.0
    most_lost = float(betaincinv(losses + 1, total - losses, 1 - tail)) if losses < total else 1.0
    # Half a pair is added to each, so that all wins and no ties still correlate by -1.
    odds = (wins + 0.5) / (total - wins + 0.5) * (losses + 0.5) / (total - losses + 0.5)
    below, above = won - least_won, most_lost - lost
    spread = below * below + above * above + 2 * math.sqrt(odds) * below * above
    difference = max(-1.0, won - lost - math.sqrt(spread))
    if not wins or float(bdtrc(wins - 1, wins + losses, 0.5)) > tail:
        difference = min(difference, 0.0)
    return rate_of_difference(difference)


def rate_of_difference(difference: float) -> float:
    """(1 + d) / 2, rounded so that the rate of -d is 1 minus it, exactly."""
    whole = math.copysign((1.0 + abs(difference)) - 1.0, difference)
    return (1.0 + whole) / 2.0


def constrained_variance(difference: float, *, wins: float, ties: float, losses: float) -> float:
    """The variance of one score of +1, 0 or -1 whose mean is `difference`.

    The other parameter, the share of losses, is at its maximum of likelihood under that mean
    (Tango 1998, equation 6: the larger root of a quadratic).
    """
    total = wins + ties + losses
    linear = (2 * total - wins + losses) * difference - wins - losses
    constant = -losses * difference * (1 - difference)
    root = math.sqrt(max(0.0, linear * linear - 8 * total * constant))
    # The two forms are equal; each is exact where the other loses its digits.
    share_lost = (root - linear) / (4 * total) if linear <= 0 else -2 * constant / (root + linear)
    return max(0.0, 2 * share_lost + difference * (1 - difference))


def _upper_difference(wins: float, ties: float, losses: float, critical: float) -> float:
    """The largest difference (wins - losses) / n that is not refused, by bisection."""
    total = wins + ties + losses
    observed = wins - losses
    refused, kept = 1.0, observed / total
    for _ in range(HALVINGS):
        middle = (refused + kept) / 2
        distance = observed - total * middle
        variance = _variance(middle, wins, ties, losses)
        if distance * distance > critical * critical * total * variance:
            refused = middle
        else:
            kept = middle
    return (refused + kept) / 2


def _variance(difference: float, wins: float, ties: float, losses: float) -> float:
    # The quadratic is stated for differences that are not negative; the rest is its mirror.
    if difference < 0:
        return constrained_variance(-difference, wins=losses, ties=ties, losses=wins)
    return constrained_variance(difference, wins=wins, ties=ties, losses=losses)
