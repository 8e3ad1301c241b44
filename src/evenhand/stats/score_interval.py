"""The score interval of a mean of three outcomes: 1, one half and 0."""

from __future__ import annotations

import math

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
