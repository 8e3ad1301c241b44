"""Judges that tempt a gate into claims: coin pairs, hardly a winner, losses that go missing, guard
rails; and the power that each rule costs. Used by `scripts.verify_conclusions --claims`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.stats.rates.win_rate import CAUTION, Circumstances, WinRate, win_rate

MOST_T1 = 0.05
Outcomes = NDArray[np.int8]
_CODES = np.array([WIN_B, TIE, WIN_A], dtype=np.int8)


@dataclass(frozen=True, slots=True)
class Claim:
    """A judge whose fault is `fault` in a share of the pairs, at the true rate."""

    fault: str
    pairs: int
    rate: float
    ties: float = 0.0
    share: float = 0.0
    held: bool = True  # by a rule that needs no labels

    def __str__(self) -> str:
        size = f"{self.pairs:6} pairs, ties {self.ties:4.0%}"
        return f"{self.fault:20} {size}, by it {self.share:4.0%}, at {self.rate:.2f}"


def claims(*, quick: bool) -> Iterator[Claim]:
    for pairs in (300, 1000):
        for share in (0.2, 0.4, 0.6, 0.8):
            for rate in (0.35, 0.45, 0.5):
                yield Claim("coin pairs", pairs, rate, share=share)
    for pairs in (60, 100, 300, 1000):
        for ties in (0.9, 0.95, 0.98):
            yield Claim("hardly a winner", pairs, 0.5, ties=ties)
            yield Claim("hardly a winner", pairs, 0.5, ties=ties, share=0.5)
    for pairs in (300, 1000) if quick else (300, 1000, 10_000):
        for rate in (0.5, 0.55):
            yield Claim("missing losses", pairs, rate, share=0.01)
            yield Claim("missing losses", pairs, rate, share=0.02)
    for pairs in (300, 1000):
        for share in (0.1, 0.3, 0.5):
            yield Claim("losses hidden twice", pairs, 0.5, share=share, held=False)
            yield Claim("losses called ties", pairs, 0.5, share=share, held=False)


def simulate(rng: np.random.Generator, claim: Claim) -> WinRate:
    drawn = rng.random(claim.pairs)
    win = claim.rate - claim.ties / 2
    truth = np.where(drawn < win, 1, np.where(drawn < win + claim.ties, 0, -1))
    outcomes: Outcomes = _CODES[truth + 1]
    absent = 0
    by_fault = rng.random(claim.pairs) < claim.share
    if claim.fault == "coin pairs":
        first, second = (
            np.where(by_fault, rng.choice([-1, 1], claim.pairs), truth) for _ in range(2)
        )
        outcomes = np.where(first == second, _CODES[first + 1], INCONSISTENT).astype(np.int8)
    elif claim.fault == "position":
        outcomes = np.where(by_fault, INCONSISTENT, outcomes).astype(np.int8)
    elif claim.fault == "hardly a winner":  # and of the winners some flip
        outcomes = np.where(by_fault & (truth != 0), INCONSISTENT, outcomes).astype(np.int8)
    elif claim.fault == "missing losses":  # half of them invalid, half never pairs
        losses = np.flatnonzero(truth == -1)
        gone = losses[: round(2 * claim.share * claim.pairs)]
        outcomes[gone[::2]] = INVALID
        absent = gone[1::2].size
        outcomes = np.delete(outcomes, gone[1::2])
    elif claim.fault == "losses hidden twice":
        hidden = by_fault & ((truth == -1) | (rng.random(claim.pairs) < 0.5))
        outcomes = np.where(hidden, INCONSISTENT, outcomes).astype(np.int8)
    elif claim.fault == "losses called ties":
        outcomes = np.where(by_fault & (truth == -1), TIE, outcomes).astype(np.int8)
    known = Circumstances(flipped=outcomes == INCONSISTENT, absent=absent)
    return win_rate(outcomes, circumstances=known)


def rules(found: WinRate, threshold: float) -> tuple[bool, bool]:
    """Whether a gate passes, and whether it fails: by the interval and what holds it back."""
    if found.low is None or found.high is None or found.mostly_flips:
        return False, False
    if threshold == 0.5 and not found.shows_difference:
        return False, False
    return found.low > threshold, found.high < threshold


def guard_rails(rng: np.random.Generator, replicates: int) -> float:
    """Three requirements, one of which is exactly on its limit: how often all pass."""
    passed = 0
    for _ in range(replicates):
        ruled = [
            rules(simulate(rng, Claim("none", 300, rate)), threshold)[0]
            for rate, threshold in ((0.65, 0.5), (0.6, 0.45), (0.4, 0.4))
        ]
        passed += all(ruled)
    return passed / replicates


def power(rng: np.random.Generator, replicates: int) -> Iterator[tuple[str, float, float]]:
    """Of a pass without a rule and with it."""

    def share(claim: Claim, threshold: float, *, whole: bool) -> float:
        found = [simulate(rng, claim) for _ in range(replicates)]
        if whole:
            return float(np.mean([rules(each, threshold)[0] for each in found]))
        return float(np.mean([each.low is not None and each.low > threshold for each in found]))

    for pairs, ties in ((100, 0.0), (100, 0.8), (300, 0.8)):
        claim = Claim("none", pairs, 0.5 + 0.3 * (1 - ties) / 2, ties=ties)
        name = f"sign-flip test: {pairs} pairs, {ties:.0%} ties, true {claim.rate:.2f}"
        yield name, share(claim, 0.5, whole=False), share(claim, 0.5, whole=True)
    for flips in (0.2, 0.4, 0.6, 0.8):
        claim = Claim("coin pairs", 300, 0.65, share=flips)
        name = f"flips: 300 pairs, coins on {flips:.0%}, true 0.65"
        yield name, share(claim, 0.5, whole=False), share(claim, 0.5, whole=True)
    for flips in (0.1, 0.15, 0.3):
        claim = Claim("position", 1000, 0.5, share=flips)
        found = [simulate(rng, claim) for _ in range(replicates)]
        before = np.mean([_stretched_by_root(each) > 0.45 for each in found])
        name = f"stretch: 1,000 pairs, I = {flips:.0%}, true 0.50, limit 0.45"
        yield name, float(before), float(np.mean([rules(each, 0.45)[0] for each in found]))
    for missing in (0.01, 0.02, 0.05):
        claim = Claim("missing at random", 1000, 0.55, share=missing)
        both = [_missing_at_random(rng, claim) for _ in range(replicates)]
        without = np.mean([half.low is not None and half.low > 0.5 for half, _ in both])
        against = np.mean([rules(lost, 0.5)[0] for _, lost in both])
        yield f"missing: 1,000 pairs, {missing:.0%}, true 0.55", float(without), float(against)


def _stretched_by_root(found: WinRate) -> float:
    """The lower end as it was: divided by the root of 1 - 2I."""
    low, named = found.half_low or 0.0, found.flips + found.decided
    share = found.flips / named
    share += CAUTION * math.sqrt(share * (1 - share) / named)
    return low if low >= 0.5 else 0.5 - (0.5 - low) / math.sqrt(1 - 2 * share)


def _missing_at_random(rng: np.random.Generator, claim: Claim) -> tuple[WinRate, WinRate]:
    outcomes: Outcomes = np.where(rng.random(claim.pairs) < claim.rate, WIN_A, WIN_B).astype(
        np.int8
    )
    outcomes[rng.random(claim.pairs) < claim.share] = INVALID
    return win_rate(outcomes, circumstances=Circumstances(missing="half")), win_rate(outcomes)


def holds(rng: np.random.Generator, *, replicates: int, quick: bool) -> bool:
    """Prints T1 of a pass and of a fail; False where a cell is above 5%."""
    worst = 0.0
    for claim in claims(quick=quick):
        times = min(replicates, 200) if claim.pairs > 1000 else replicates
        ruled = np.array([rules(simulate(rng, claim), claim.rate) for _ in range(times)])
        passed, failed = ruled.mean(axis=0)
        note = "" if claim.held else "  (no rule without labels holds this)"
        print(f"  {claim!s:75}: {passed:6.2%} {failed:6.2%}{note}", flush=True)
        worst = max(worst, passed, failed) if claim.held else worst
    rails = guard_rails(rng, replicates)
    print(f"  three guard rails, one on its limit: all pass in {rails:.2%}")
    print("\npower of a pass without and with the rule")
    for name, before, after in power(rng, replicates):
        print(f"  {name}: {before:.1%} {after:.1%}", flush=True)
    print(f"\nworst T1 {max(worst, rails):.2%}")
    return max(worst, rails) <= MOST_T1
