"""Bets against a mean: capital that can hardly grow unless the mean is another. No NumPy here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Bets:
    """The stakes that share the first coin, in equal parts, half of it on either side.

    A stake `c` in (0, 1) on A, against the claim that the mean of the scores is `m`, multiplies
    its capital by `1 - c + c·x/m` at a score `x`; on B it is the mirror image. The factor is
    never negative and has mean 1 under the claim, so the capital is a martingale that starts at
    1 and exceeds 1/α at any time whatever with probability at most α (Ville, 1939). These are
    the bets λ = c/m of Waudby-Smith and Ramdas (2024). Each factor is log-convex in `m`, and so
    is any mixture of products of them: the claims that are not refuted are always one interval.
    """

    stakes: tuple[float, ...]

    def log_capital(self, counts: Mapping[float, int], claim: float) -> float:
        """The logarithm of the capital after these scores, the order of which plays no part."""
        on_a = self._log_capitals([(score / claim, times) for score, times in counts.items()])
        on_b = self._log_capitals(
            [((1 - score) / (1 - claim), times) for score, times in counts.items()]
        )
        return log_mean(on_a, on_b)

    def _log_capitals(self, returns: list[tuple[float, int]]) -> list[float]:
        return [
            sum([times * math.log(1 - stake + stake * each) for each, times in returns])
            for stake in self.stakes
        ]


def log_mean(on_a: list[float], on_b: list[float]) -> float:
    """The logarithm of the mean of all capitals, given their logarithms.

    The two sides are summed apart and then added, so that exchanging them changes no bit.
    """
    most = max(max(on_a), max(on_b))
    total = sum([math.exp(one - most) for one in on_a]) + sum(
        [math.exp(one - most) for one in on_b]
    )
    return most + math.log(total / (len(on_a) + len(on_b)))


@lru_cache(maxsize=64)
def planned_bets(prompts: int) -> Bets:
    """Stakes for a test that ends after so many prompts.

    Evenly spaced in the logarithm from the smallest difference that could be decided before
    the end (a stake below √(12/n) has no time to pay) up to a win rate of 0.85 against 0.5.
    docs/stopping.md has the table against other choices.
    """
    return Bets(_geometric(min(math.sqrt(12 / max(prompts, 1)), 0.5), 0.7, 16))


def _geometric(low: float, high: float, count: int) -> tuple[float, ...]:
    ratio = (high / low) ** (1 / (count - 1))
    return tuple(low * ratio**step for step in range(count))


# For a display that knows no size: differences from a thousandth (a million pairs) to all.
BROAD_BETS = Bets(_geometric(0.003, 0.97, 20))
