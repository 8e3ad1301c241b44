"""Two judges with one preference, of which one flips coins, errs by chance or follows the position
in more pairs than the other, or has a taste of its own in a few: how often does `diff` claim that
the preference changed? And the power of a true change. Used by
`scripts.verify_conclusions --changes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INCONSISTENT, WIN_A, WIN_B
from evenhand.stats.rates.outcome_change import outcome_change

MOST_T1 = 0.05
Fault = Literal["coins", "errors", "position", "taste"]
Outcomes = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Change:
    """B's true rate by both judges, unless the second's is another one; the share of pairs that
    the fault decides, in each."""

    fault: Fault
    pairs: int
    rate: float
    shares: tuple[float, float]
    second: float | None = None

    def __str__(self) -> str:
        rates = f"{self.rate:.2f}" + ("" if self.second is None else f" → {self.second:.2f}")
        shares = " → ".join(f"{share:.0%}" for share in self.shares)
        return f"{self.fault:9} {self.pairs:5} pairs, B at {rates}, by it {shares}"


def judged(
    rng: np.random.Generator, truth: NDArray[np.bool_], fault: Fault, share: float
) -> Outcomes:
    """Whether B is better, as the judge's two orders have it."""
    size = truth.size
    if fault == "position":
        orders = [np.ones(size, bool), np.zeros(size, bool)]
        hit = rng.random(size) < share
        passes = [np.where(hit, order, truth) for order in orders]
    elif fault == "taste":  # a side at random, and the same in both orders
        hit = rng.random(size) < share
        passes = [np.where(hit, rng.random(size) < 0.5, truth)] * 2
    elif fault == "coins":
        hit = rng.random(size) < share
        passes = [np.where(hit, rng.random(size) < 0.5, truth) for _ in range(2)]
    else:  # so often that as many pairs flip as with coins
        wrong = (1 - math.sqrt(1 - share)) / 2
        passes = [truth ^ (rng.random(size) < wrong) for _ in range(2)]
    agreed = np.where(passes[0], WIN_B, WIN_A)
    return np.where(passes[0] == passes[1], agreed, INCONSISTENT).astype(np.int8)


def claimed(rng: np.random.Generator, case: Change) -> int:
    """1 that B is preferred more often, -1 less often, 0 neither."""
    drawn = rng.random(case.pairs)
    truths = drawn < case.rate, drawn < (case.rate if case.second is None else case.second)
    codes = [
        judged(rng, truth, case.fault, share)
        for truth, share in zip(truths, case.shares, strict=True)
    ]
    return {"more": 1, "less": -1, None: 0}[outcome_change(*codes).claim]


def same_preferences(*, quick: bool) -> Iterator[Change]:
    faults: tuple[Fault, ...] = ("coins", "errors", "position")
    for fault in faults:
        for pairs in (300, 1000):
            for rate in (0.25, 0.35) if quick else (0.25, 0.35, 0.45):
                for shares in ((0.0, 0.2), (0.0, 0.4), (0.0, 0.6), (0.3, 0.3)):
                    yield Change(fault, pairs, rate, shares)
    for pairs in (100, 300, 1000):
        for share in (0.02, 0.05, 0.1):
            yield Change("taste", pairs, 0.5, (0.0, share))


def true_changes() -> Iterator[Change]:
    for pairs in (300, 1000):
        for shares in ((0.0, 0.0), (0.1, 0.1), (0.2, 0.2), (0.3, 0.3)):
            yield Change("position", pairs, 0.45, shares, second=0.55)
            yield Change("coins", pairs, 0.45, shares, second=0.55)


def holds(rng: np.random.Generator, *, replicates: int, quick: bool) -> bool:
    """Prints both kinds of claims; False where one is wrong in more than 5%."""
    worst = 0.0
    for case in same_preferences(quick=quick):
        found = np.array([claimed(rng, case) for _ in range(replicates)])
        more, less = float((found == 1).mean()), float((found == -1).mean())
        print(f"  {case!s:60}: more {more:6.2%}, less {less:6.2%}", flush=True)
        worst = max(worst, more, less)
    print("\npower")
    for case in true_changes():
        found = np.array([claimed(rng, case) for _ in range(replicates)])
        print(f"  {case!s:60}: {float((found == 1).mean()):6.1%}", flush=True)
    print(f"\nworst {worst:.2%}")
    return worst <= MOST_T1
