"""How often a judge must be right on the pairs it decides for a claim to hold."""

from __future__ import annotations

import math

from evenhand.contract.model import Model


class BreakEven(Model):
    """Accuracies on decided pairs: `balanced` if the judge's errors favour neither side,
    `one_sided` if all favour the claim. None: no accuracy is enough."""

    balanced: float | None
    one_sided: float | None


def break_even(
    low: float, threshold: float, *, decided_share: float, coin: float = 0.5
) -> BreakEven:
    """For the claim that the rate is above the threshold, where `low` is the lower end of the half
    count and `decided_share` a prompt's mean share of decided pairs. The claim that it is below is
    the other side's. `coin` is the rate if a coin decided the same pairs.

    Balanced errors leave 2a - 1 of a difference from a coin's rate, so a claim at or above it needs
    a judge that beats a coin. If all errors favour the claim, they took (1 - a) of the decided
    pairs from the other side.
    """
    if low <= threshold:
        return BreakEven(balanced=None, one_sided=None)
    balanced = 0.5
    if threshold < coin:
        balanced = (1 + max(0.0, coin - low) / (coin - threshold)) / 2
    one_sided = None
    if decided_share > 0:
        one_sided = 1 - (low - threshold) / decided_share
        balanced = max(0.5, min(balanced, one_sided))  # errors of any kind need no more than that
    return BreakEven(balanced=balanced, one_sided=one_sided)


def rounded_up(accuracy: float) -> float:
    """To whole percents, since rounding down would understate what is needed."""
    return max(0.0, math.ceil(round(100 * accuracy, 9)) / 100)
