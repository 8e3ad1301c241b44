"""The difference of two shares of the same pairs, with its interval, and how many more labels would
settle its sign.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import TIE, WIN_A, WIN_B
from evenhand.stats.clusters import Labels
from evenhand.stats.estimates import EstimatedValue
from evenhand.stats.rates.win_rate import Circumstances, win_rate
from evenhand.stats.sign_flip import SignFlipTest

# If the interval is as wide as its distance from a limit, half of all samples settle it; twice as
# many labels settle it in four of five: ((1.96 + 0.84) / 1.96)^2.
_FOUR_OF_FIVE = 2.04


class PairedDifference(EstimatedValue):
    """How much more often one thing happens than its counterpart, as a difference of two shares of
    the same pairs, from -1 to 1. A claim that it is not 0 needs the sign-flip test beside the
    interval, as a win rate's does."""

    pairs: int
    sign_flip: SignFlipTest | None = None

    @property
    def may_be_chance(self) -> bool:
        return self.sign_flip is not None and self.sign_flip.may_be_chance

    def beyond(self, limit: float) -> Literal["first", "second"] | None:
        """Which of the two happens more often by more than the limit, by the whole interval."""
        if self.low is None or self.high is None or (limit == 0 and self.may_be_chance):
            return None
        if self.low > limit:
            return "first"
        return "second" if self.high < -limit else None

    def may_exceed(self, limit: float) -> bool:
        """Whether the interval reaches the limit, either way."""
        if self.low is None or self.high is None:
            return False
        return max(-self.low, self.high) >= limit

    @property
    def towards(self) -> Literal["first", "second"]:
        return "second" if (self.value or 0.0) < 0 else "first"

    def percents(self, towards: Literal["first", "second"] = "first") -> dict[str, float]:
        """Value and interval in percent, as the excess of one over the other."""
        ends = [100 * (each or 0.0) for each in (self.value, self.low, self.high)]
        if towards == "second":
            ends = [-ends[0], -ends[2], -ends[1]]
        return dict(zip(("value", "low", "high"), ends, strict=True))

    def pairs_to_settle(self, useful: float) -> int | None:
        """About how many pairs would show, in four of five samples, that the difference is above 0
        or below a useful one, if its estimate is right. Rounded up to two digits."""
        if self.value is None or self.low is None or self.high is None:
            return None
        # Enough pairs to make the interval narrower than from 0 to the useful difference always
        # settle it.
        narrower = [math.inf] if useful <= 0 else [((self.high - self.low) / useful) ** 2]
        for reach, distance in (
            (self.value - self.low, self.value),
            (self.high - self.value, useful - self.value),
        ):
            if distance > 0:
                narrower.append(_FOUR_OF_FIVE * (reach / distance) ** 2)
        needed = min(narrower) * self.pairs
        if not math.isfinite(needed):
            return None
        unit: int = 10 ** max(0, math.floor(math.log10(max(needed, 1))) - 1)
        return max(self.pairs + 1, math.ceil(needed / unit) * unit)


def paired_difference(
    more: NDArray[np.bool_], less: NDArray[np.bool_], prompts: Labels | None, *, level: float
) -> PairedDifference:
    """Tango's score interval (1998) of a difference of paired shares, clustered by prompt: the win
    rate's, stretched from 0..1 to -1..1."""
    codes = np.where(more & ~less, WIN_A, np.where(less & ~more, WIN_B, TIE)).astype(np.int8)
    # No judge's ties here: rows that are neither more nor less are known to be so.
    known = Circumstances(discriminates=True)
    rate = win_rate(codes, prompts=prompts, level=level, circumstances=known)

    def stretched(rate: float | None) -> float | None:
        return None if rate is None else 2 * rate - 1

    return PairedDifference(
        pairs=int(codes.size),
        value=stretched(rate.rate),
        low=stretched(rate.low),
        high=stretched(rate.high),
        reason=rate.reason,
        sign_flip=rate.sign_flip,
    )


def difference_in_halves(
    gain: NDArray[np.integer[Any]], prompts: NDArray[Any], *, level: float
) -> PairedDifference:
    """The mean gain of the pairs, in halves of a pair from -2 to 2."""
    if not (gain % 2).any():
        return paired_difference(gain > 0, gain < 0, prompts, level=level)
    if (np.abs(gain) <= 1).all():
        whole = paired_difference(gain > 0, gain < 0, prompts, level=level)
        halved = {
            name: None if figure is None else figure / 2
            for name in ("value", "low", "high")
            for figure in [getattr(whole, name)]
        }
        return whole.model_copy(update=halved)
    # Each pair is two rows of one cluster, each gaining or losing one half.
    two = [(gain > most, gain < -most) for most in (0, 1)]
    more, less = (np.concatenate(rows) for rows in zip(*two, strict=True))
    difference = paired_difference(more, less, np.tile(prompts, 2), level=level)
    return difference.model_copy(update={"pairs": int(gain.size)})
