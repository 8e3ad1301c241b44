"""A share of pairs with its interval, clustered by prompt where prompts repeat, or a reason."""

from __future__ import annotations

import numpy as np

from evenhand.contract.model import Model
from evenhand.stats.clusters import Floats
from evenhand.stats.win_rate import RateInterval, rate_interval


class EstimatedShare(Model):
    """`part` of `of` pairs, with its interval or the reason why there is none."""

    part: int
    of: int
    value: float | None
    low: float | None
    high: float | None
    reason: str | None


def estimate_share(
    part: Floats, rest: Floats, *, independent: bool, level: float, unit: str
) -> EstimatedShare:
    """From each prompt's counts of the part and of the rest."""
    found = rate_interval(
        part, np.zeros_like(part), rest, independent=independent, level=level, unit=unit
    )
    known = found if isinstance(found, RateInterval) else None
    return EstimatedShare(
        part=int(part.sum()),
        of=int(part.sum() + rest.sum()),
        value=known.rate if known else None,
        low=known.low if known else None,
        high=known.high if known else None,
        reason=found if isinstance(found, str) else None,
    )
