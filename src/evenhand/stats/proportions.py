"""A share of pairs with Wilson's interval. Separate from `estimates` because it loads no NumPy:
reports and the demo use it.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from evenhand.contract.model import Model


def wilson_interval(
    successes: int, trials: int, *, level: float = 0.95
) -> tuple[float, float] | None:
    """Wilson's score interval (1927) for a binomial share; None without counts."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    if trials == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = successes / trials
    denominator = 1 + z * z / trials
    centre = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    low, high = (centre - half) / denominator, (centre + half) / denominator
    return max(0.0, low), min(1.0, high)


class Share(Model):
    """`part` of `of` pairs, with the 95% interval of Wilson (1927)."""

    part: int
    of: int
    value: float
    low: float
    high: float

    @classmethod
    def of_counts(cls, part: int, of: int) -> Share | None:
        """None without counts: no data is not a share of zero."""
        interval = wilson_interval(part, of)
        if interval is None:
            return None
        low, high = interval
        return cls(part=part, of=of, value=part / of, low=low, high=high)
