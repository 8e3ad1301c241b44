"""The interval that belongs beside every share."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson_interval(
    successes: int, trials: int, *, level: float = 0.95
) -> tuple[float, float] | None:
    """Wilson's score interval (1927) for a binomial share; None where nothing was counted."""
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
