"""The sign-flip test: could prompts that favour neither side lean this far to one?

If both sides are equal, each prompt's difference is as likely as its negative; the p-value is the
share of all sign patterns whose sum is at least as far from 0 (Fisher 1935). With one pair a prompt
it is the exact sign test.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.stats.columns import Floats
from evenhand.stats.distributions import normal_cdf
from evenhand.stats.intervals import sign_test_p

# Points of the lattice for sums. Finer means are rounded to it; from this many prompts on the sum
# is normal.
_LATTICE = 1 << 20
_LARGEST_DENOMINATOR = 1_000
_NORMAL_FROM = 1_000
# The rounding error of a chance of 0.
_ROUNDING = 1e-12
_NOTHING = -46.0  # the logarithm of 1e-20
# Fewer decisive prompts claim nothing: five unanimous ones have 6% (2/2⁵).
FEWEST_DECISIVE = 6


class SignFlipTest(Model):
    """Two-sided; `decisive` prompts have a mean other than one half. Compared to `alpha`."""

    p_value: float
    decisive: int
    alpha: float = 0.05

    @property
    def may_be_chance(self) -> bool:
        """Too few prompts decided, or a fair coin may have decided them like this."""
        return self.decisive < FEWEST_DECISIVE or self.p_value > self.alpha


def sign_flip_test(differences: Floats, times: Floats | None = None) -> SignFlipTest:
    """From prompts' contributions (mean score times two, less one; weighted, if they are), and
    their multiplicities. Negation gives exactly the same p-value."""
    seen = np.ones(differences.size) if times is None else times
    there = (np.abs(differences) > _ROUNDING) & (seen > 0)
    values, counts = differences[there], np.rint(seen[there]).astype(np.int64)
    decisive = int(counts.sum())
    if not decisive:
        return SignFlipTest(p_value=1.0, decisive=0)
    rounded = np.abs(values).round(12).astype(np.float64)
    sizes, places = np.unique(rounded, return_inverse=True)
    if sizes.size == 1:
        wins = int(counts[values > 0].sum())
        return SignFlipTest(p_value=sign_test_p(wins, decisive - wins), decisive=decisive)
    many = np.bincount(places, weights=counts).astype(np.int64)
    net = np.bincount(places, weights=np.sign(values) * counts).astype(np.int64)
    steps = _steps(sizes, many)
    if steps is None:
        deviations = abs(float(sizes @ net)) / math.sqrt(float(sizes**2 @ many))
        p_value = max(_ROUNDING, 2 * normal_cdf(-deviations))
    else:
        p_value = _two_sided(steps, many, abs(int(steps @ net)))
    return SignFlipTest(p_value=p_value, decisive=decisive)


def _steps(sizes: Floats, many: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Each size in whole lattice steps; None if too coarse."""
    most = _LATTICE / (2 * float(sizes @ many))
    unit = 1
    for size in sizes.tolist():
        exact = Fraction(size).limit_denominator(_LARGEST_DENOMINATOR)
        unit = math.lcm(unit, exact.denominator)
        if abs(float(exact) - size) > 1e-9 or unit > most:
            if int(many.sum()) >= _NORMAL_FROM:
                return None
            return np.maximum(1, np.rint(sizes * most)).astype(np.int64)
    return np.rint(sizes * unit).astype(np.int64)


def _two_sided(steps: NDArray[np.int64], many: NDArray[np.int64], reached: int) -> float:
    """The chance of a sum of randomly signed steps as far from 0: the sum's characteristic
    function, a product of cosines, over all frequencies, weighted by Dirichlet's kernel of the sums
    nearer to 0. Where the cosines of the commonest steps vanish, the others do not matter."""
    points = 2 * int(steps @ many) + 1
    commonest = int(many.argmax())
    widest = math.acos(math.exp(_NOTHING / int(many[commonest]))) * points / math.pi
    numbers = np.arange(1, points // 2 + 1)
    turned = 2 * int(steps[commonest]) * numbers % points  # of half a turn each
    numbers = numbers[np.minimum(turned, points - turned) <= widest]
    frequencies = numbers * (2 * np.pi / points)
    product = np.ones(frequencies.size)
    for place in np.argsort(-many, kind="stable").tolist():
        product *= np.cos(frequencies * int(steps[place])) ** int(many[place])
        left = np.abs(product) > math.exp(_NOTHING)
        frequencies, product = frequencies[left], product[left]
    nearer = max(0, 2 * reached - 1)  # sums, of which each is possible or has no chance
    kernel = np.sin(frequencies * (nearer / 2)) / np.sin(frequencies / 2)
    inner = (nearer + 2 * float(product @ kernel)) / points
    return min(1.0, max(_ROUNDING, 1.0 - inner))
