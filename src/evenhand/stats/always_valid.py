"""Intervals and p-values that hold however often one looks, by betting. Loads no NumPy: a run's
live display uses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from evenhand.contract.model import Model
from evenhand.errors import InputError


@dataclass(frozen=True, slots=True)
class Bets:
    """Stakes that share the initial capital equally, half on each side.

    A stake `c` in (0, 1) on A, against the claim that the mean score is `m`, multiplies its capital
    by `1 - c + c·x/m` at a score `x`; on B it is the mirror image. The factor is never negative and
    has mean 1 under the claim, so the capital is a martingale that starts at 1 and ever exceeds 1/α
    with probability at most α (Ville, 1939). These are the bets λ = c/m of Waudby-Smith and Ramdas
    (2024). Each factor is log-convex in `m`, and so is any mixture of products of them: the claims
    not refuted always form one interval.
    """

    stakes: tuple[float, ...]

    def log_capital(self, counts: Mapping[float, int], claim: float) -> float:
        """The log of the capital after these scores, in any order."""
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
    """The log of the mean capital, given the logs.

    The two sides are summed separately, so that exchanging them changes no bit.
    """
    most = max(max(on_a), max(on_b))
    total = sum([math.exp(one - most) for one in on_a]) + sum(
        [math.exp(one - most) for one in on_b]
    )
    return most + math.log(total / (len(on_a) + len(on_b)))


@lru_cache(maxsize=64)
def planned_bets(prompts: int) -> Bets:
    """Stakes for a test that ends after so many prompts.

    Log-spaced from the smallest difference that could be decided before the end (a stake below
    √(12/n) has no time to pay) up to a win rate of 0.85 against 0.5. `scripts/verify_sequential.py`
    compares other choices.
    """
    return Bets(_geometric(min(math.sqrt(12 / max(prompts, 1)), 0.5), 0.7, 16))


def _geometric(low: float, high: float, count: int) -> tuple[float, ...]:
    ratio = (high / low) ** (1 / (count - 1))
    return tuple(low * ratio**step for step in range(count))


# For a display of unknown size: differences from a thousandth (a million pairs) up.
BROAD_BETS = Bets(_geometric(0.003, 0.97, 20))


# Confidence sequences.

_GRAIN = 2.0**40  # bounds are multiples of 2^-40, for which 1 - bound is exact: the mirror is too
_FEW = 64  # distinct scores up to which plain Python is as fast as importing NumPy


class AlwaysValidInterval(Model):
    """A's mean score, and the means that no bettor could refute."""

    mean: float
    low: float
    high: float
    scores: int
    level: float
    method: Literal["betting"] = "betting"


def always_valid_interval(
    wins: int, halves: int, losses: int, *, level: float = 0.95
) -> AlwaysValidInterval | None:
    """The interval from the counts of A's wins, ties and B's wins.

    With probability `level` it holds the true mean throughout a run. None without counts.
    """
    for name, count in (("wins", wins), ("halves", halves), ("losses", losses)):
        if count < 0:
            raise InputError.of("stats.at_least", name=name, value=count, least=0)
    counts = {1.0: wins, 0.5: halves, 0.0: losses}
    return always_valid_interval_of_counts(counts, level=level)


def always_valid_interval_of_counts(
    counts: Mapping[float, int], *, level: float = 0.95, bets: Bets = BROAD_BETS
) -> AlwaysValidInterval | None:
    """The same from how often each score was seen."""
    for score in counts:
        if not 0 <= score <= 1:
            raise InputError.of("stats.score_outside", score=score)
    if not 0 < level < 1:
        raise InputError.of("stats.level_outside", level=level)
    # Sorted, so that the order of arrival changes no bit.
    kept = {score: counts[score] for score in sorted(counts) if counts[score]}
    mirrored = {1 - score: count for score, count in reversed(kept.items())}
    number = sum(kept.values())
    if number == 0:
        return None
    enough = -math.log1p(-level)
    return AlwaysValidInterval(
        mean=math.fsum(score * times for score, times in kept.items()) / number,
        low=_lower_bound(kept, enough, bets),
        high=1 - _lower_bound(mirrored, enough, bets),
        scores=number,
        level=level,
    )


def _lower_bound(counts: dict[float, int], enough: float, bets: Bets) -> float:
    """The smallest mean against which the capital stayed below exp(enough)."""
    total = math.fsum(score * times for score, times in counts.items())
    if total == 0:
        return 0.0
    mean = total / sum(counts.values())
    log_capital = _claim_tester(counts, bets)
    inside = min(mean, 1 - 1 / _GRAIN)
    outside = inside / 2
    while log_capital(outside) < enough:
        inside, outside = outside, outside / 2
    bound = _crossing(lambda claim: log_capital(claim) - enough, outside, inside)
    return math.floor(bound * _GRAIN) / _GRAIN


def _crossing(excess: Callable[[float], float], outside: float, inside: float) -> float:
    """The zero of a convex function, approached from the safe side.

    Regula falsi, Illinois rule (Dowell and Jarratt 1971): the weight of an end that stays twice is
    halved.
    """
    weight_out, weight_in = excess(outside), excess(inside)
    moved = ""
    while inside - outside > 1 / _GRAIN and weight_in < 0:
        tried = (outside * weight_in - inside * weight_out) / (weight_in - weight_out)
        if not outside < tried < inside:
            tried = (outside + inside) / 2
        value = excess(tried)
        if value >= 0:
            outside, weight_out = tried, value
            weight_in = weight_in / 2 if moved == "out" else weight_in
            moved = "out"
        else:
            inside, weight_in = tried, value
            weight_out = weight_out / 2 if moved == "in" else weight_out
            moved = "in"
    return outside


def _claim_tester(counts: dict[float, int], bets: Bets) -> Callable[[float], float]:
    if len(counts) <= _FEW:
        return lambda claim: bets.log_capital(counts, claim)
    import numpy as np

    scores = np.fromiter(counts, dtype=float, count=len(counts))
    times = np.fromiter(counts.values(), dtype=float, count=len(counts))

    def log_capital(claim: float) -> float:
        on_a, on_b = scores / claim, (1 - scores) / (1 - claim)
        return log_mean(
            [float(times @ np.log(1 - stake + stake * on_a)) for stake in bets.stakes],
            [float(times @ np.log(1 - stake + stake * on_b)) for stake in bets.stakes],
        )

    return log_capital
