"""A share of pairs, never without its interval."""

from __future__ import annotations

from evenhand.contract.model import Model
from evenhand.stats.proportion import wilson_interval


class Share(Model):
    """`part` of `of` pairs, with the 95 % interval of Wilson (1927)."""

    part: int
    of: int
    value: float
    low: float
    high: float

    @classmethod
    def of_counts(cls, part: int, of: int) -> Share | None:
        """None where nothing was counted: no data is not a share of zero."""
        interval = wilson_interval(part, of)
        if interval is None:
            return None
        low, high = interval
        return cls(part=part, of=of, value=part / of, low=low, high=high)
