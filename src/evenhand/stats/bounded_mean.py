"""The score interval of a mean of bounded values, as Wilson's is for wins and losses."""

from __future__ import annotations

import math

import numpy as np

from evenhand.stats.clusters import Floats

# Enough halvings to come from 1 to the last digits that a report could show.
HALVINGS = 50
# More distinct values than this are gathered into bins that keep their means.
MOST_ATOMS = 1_000
# Squares below this are the rounding of values that are all alike: they tell of no variance.
ROUNDING = 1e-24


def mean_interval(
    values: Floats, weights: Floats, *, ends: tuple[float, float], size: float, critical: float
) -> tuple[float, float]:
    """The means that a score test of `size` independent values does not refuse.

    Under each mean the distribution is at its maximum of likelihood over the values seen and the
    two ends of their range (Owen 1988 without the ends), and its variance is the test's. With the
    ends for values it is Wilson's interval (1927), with the middle too it is Tango's (1998). It
    never shrinks to a point: what was not seen in a few values may yet be there. Negated values
    mirror it to the last bit.
    """
    atoms, shares = _atoms(values, weights)
    # Summed in both orders, so that negated values have the negated mean to the last bit.
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

    Likeliest shares under a mean are proportional to shares / (1 - tilt * offset / end) with a
    tilt below 1. At a tilt of 1 the rest of the mass sits on the end, if no value does.
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
    kept, refused = 0.0, 1.0
    mean = 0.0
    for _ in range(HALVINGS):
        middle = (kept + refused) / 2.0
        tilted = shares / (1.0 - middle * scaled)
        tilted /= tilted.sum()
        mean = float(tilted @ scaled)
        variance = float(tilted @ (scaled * scaled)) - mean * mean
        if size * mean * mean > squared * variance:
            refused = middle
        else:
            kept = middle
    return end * min(1.0, mean)


def _atoms(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Distinct values in ascending order, with their shares of the weight."""
    distinct, places = np.unique(values, return_inverse=True)
    if distinct.size > MOST_ATOMS:
        span = max(abs(float(distinct[0])), abs(float(distinct[-1])))
        # Rounding to multiples of a width is symmetric about 0, so bins mirror as values do.
        bins = np.rint(distinct * (MOST_ATOMS / (2.0 * span)))
        places = np.unique(bins, return_inverse=True)[1][places]
    shares = np.bincount(places, weights=weights)
    if distinct.size > MOST_ATOMS:
        distinct = np.bincount(places, weights=weights * values) / shares
    return distinct, shares / weights.sum()
