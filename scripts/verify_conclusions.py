"""Does a conclusion hold for the true preference, whatever the judge did not decide?

python -m scripts.verify_conclusions [--replicates 2000] [--seed 0] [--quick] [--random-orders]
    [--lengths] [--claims] [--looks] [--labels] [--changes]

Judges of several kinds give their verdicts on pairs whose true preference is known; the win
rate's interval is made from them by `evenhand.stats.rates.win_rate`. Printed are T1, the share
of gates that pass at the true rate (nominal 2.5%), that of gates that fail there, the coverage
of the interval, and the power at other rates. Exits 1 where T1 is above 5%, or where coverage
is below 93% with 30% of the pairs decided by position. `--random-orders` leaves out the pairs
that are all judged in both orders; `--lengths` is of judges that take length for merit, `--claims`
of coin pairs, few winners, missing losses and guard rails, `--looks` of growing files, several
matchups and topics, `--labels` of people's labels beside the verdicts, `--changes` of `diff`, each
of nothing else and with no cell above 5%. Adaptive leagues are in `scripts.verify_adaptive`.
Run by `make verify`; the last tables are in docs/statistics.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scripts import (
    simulated_changes,
    simulated_claims,
    simulated_labels,
    simulated_lengths,
    simulated_looks,
)

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.stats.rates.win_rate import Circumstances, win_rate

MOST_T1 = 0.05
LEAST_COVERAGE = 0.93
Passes = NDArray[np.int64]  # 1 A wins, 0 a tie, -1 B wins
Judge = Callable[[np.random.Generator, Passes, float], tuple[Passes, Passes]]


def positional(rng: np.random.Generator, truth: Passes, share: float) -> tuple[Passes, Passes]:
    """In so many pairs whatever is shown first wins."""
    by_place = rng.random(truth.size) < share
    return np.where(by_place, 1, truth), np.where(by_place, -1, truth)


def half_positional(rng: np.random.Generator, truth: Passes, share: float) -> tuple[Passes, Passes]:
    """In so many pairs the first wins in one order, and the other order is a tie."""
    by_place, which = rng.random(truth.size) < share, rng.random(truth.size) < 0.5
    first = np.where(by_place, np.where(which, 1, 0), truth)
    return first, np.where(by_place, np.where(which, 0, -1), truth)


def _twice(
    rng: np.random.Generator, truth: Passes, noise: Callable[[], Passes], chance: float
) -> tuple[Passes, Passes]:
    first, second = (np.where(rng.random(truth.size) < chance, noise(), truth) for _ in range(2))
    return first, second


def _error(share: float) -> float:
    """The chance of an error in each pass at which so many pairs flip."""
    return (1 - math.sqrt(1 - 2 * min(share, 0.5))) / 2


def noisy(rng: np.random.Generator, truth: Passes, share: float) -> tuple[Passes, Passes]:
    """Each pass says the contrary by chance."""
    return _twice(rng, truth, lambda: -truth, _error(share))


def shrugging(rng: np.random.Generator, truth: Passes, share: float) -> tuple[Passes, Passes]:
    """Each pass says tie by chance."""
    return _twice(rng, truth, lambda: np.zeros_like(truth), _error(share))


def guessing(rng: np.random.Generator, truth: Passes, share: float) -> tuple[Passes, Passes]:
    """Each pass says anything by chance."""
    drawn = lambda: rng.integers(-1, 2, truth.size)  # noqa: E731 - one line beside its siblings
    return _twice(rng, truth, drawn, 1 - math.sqrt(1 - min(share, 0.99)))


JUDGES: dict[str, Judge] = {
    "positional": positional,
    "half positional": half_positional,
    "noisy": noisy,
    "shrugging": shrugging,
    "guessing": guessing,
}


@dataclass(frozen=True, slots=True)
class Setting:
    judge: str
    pairs: int
    ties: float
    share: float
    rows_per_prompt: int = 1
    missing: float = 0.0
    both_orders: float = 1.0  # the share; the others are asked in one order, drawn at random

    def __str__(self) -> str:
        more = f", {self.rows_per_prompt} a prompt" * (self.rows_per_prompt > 1)
        more += f", {self.missing:.0%} missing" * (self.missing > 0)
        more += f", {self.both_orders:.0%} in both orders" * (self.both_orders < 1)
        size = f"{self.pairs:5} pairs, ties {self.ties:.0%}"
        return f"{self.judge:15} {size}, by it {self.share:.0%}{more}"


def interval(rng: np.random.Generator, setting: Setting, rate: float) -> tuple[float, float]:
    truth, prompts = _truth(rng, setting, rate)
    first, second = JUDGES[setting.judge](rng, truth, setting.share)
    outcomes = np.full(truth.size, INCONSISTENT, dtype=np.int8)
    for said, code in ((1, WIN_A), (0, TIE), (-1, WIN_B)):
        outcomes[(first == said) & (second == said)] = code
    drawn = rng.random(truth.size) >= setting.both_orders
    alone = np.where(rng.random(truth.size) < 0.5, first, second)
    codes = np.array([WIN_B, TIE, WIN_A], dtype=np.int8)
    outcomes = np.where(drawn, codes[alone + 1], outcomes)
    if setting.missing:
        # What goes missing is what A would have lost: the worst that can be.
        gone = (truth == -1) & (rng.random(truth.size) < 2 * setting.missing)
        outcomes[gone] = INVALID
    known = Circumstances(flipped=(first != second) & ~drawn, drawn=drawn)
    found = win_rate(outcomes, prompts=prompts, circumstances=known)
    return (0.0, 1.0) if found.low is None or found.high is None else (found.low, found.high)


def _truth(
    rng: np.random.Generator, setting: Setting, rate: float
) -> tuple[Passes, NDArray[np.int64] | None]:
    win, tie = rate - setting.ties / 2, setting.ties
    if setting.rows_per_prompt == 1:
        drawn = rng.random(setting.pairs)
        return np.where(drawn < win, 1, np.where(drawn < win + tie, 0, -1)), None
    prompts = setting.pairs // setting.rows_per_prompt
    shares = rng.dirichlet(np.maximum([win, tie, 1 - win - tie], 1e-9) * 1.5, size=prompts)
    rows = rng.random((prompts, setting.rows_per_prompt))
    edges = np.cumsum(shares, axis=1)
    truth = np.where(rows < edges[:, :1], 1, np.where(rows < edges[:, 1:2], 0, -1))
    return truth.ravel(), np.repeat(np.arange(prompts), setting.rows_per_prompt)


@dataclass(frozen=True, slots=True)
class Cell:
    setting: Setting
    rate: float
    passed: float
    failed: float
    covered: float


def cell(rng: np.random.Generator, setting: Setting, rate: float, replicates: int) -> Cell:
    ends = np.array([interval(rng, setting, rate) for _ in range(replicates)])
    low, high = ends[:, 0], ends[:, 1]
    return Cell(
        setting,
        rate,
        passed=float((low > rate).mean()),
        failed=float((high < rate).mean()),
        covered=float(((low <= rate) & (rate <= high)).mean()),
    )


def settings(*, quick: bool) -> Iterator[Setting]:
    sizes = (60, 300) if quick else (60, 300, 1000)
    for judge in JUDGES:
        for pairs in sizes:
            for ties in (0.0, 0.3, 0.6):
                for share in (0.15, 0.3, 0.45) if quick else (0.0, 0.15, 0.3, 0.45, 0.7, 0.9):
                    if judge in ("noisy", "shrugging") and share > 0.45:
                        continue
                    yield Setting(judge, pairs, ties, share)
    for judge in ("positional", "noisy"):
        for pairs in (40, 80, 160, 600):
            yield Setting(judge, pairs, 0.3, 0.3, rows_per_prompt=4)
        yield Setting(judge, 600, 0.3, 0.3, missing=0.05)


def random_orders(*, quick: bool) -> Iterator[Setting]:
    """One order a pair, drawn at random, and both for a share of the pairs."""
    for judge in JUDGES:
        for pairs in (60, 300) if quick else (60, 300, 1000):
            for ties in (0.0, 0.3):
                for share in (0.15, 0.45) if quick else (0.0, 0.15, 0.3, 0.45, 0.9):
                    if judge in ("noisy", "shrugging") and share > 0.45:
                        continue
                    for both in (0.1, 0.3):
                        yield Setting(judge, pairs, ties, share, both_orders=both)
    for pairs in (80, 600):
        yield Setting("positional", pairs, 0.3, 0.3, rows_per_prompt=4, both_orders=0.3)


def power(rng: np.random.Generator, replicates: int) -> Iterator[tuple[str, float]]:
    for pairs in (100, 300, 1000):
        for truth, threshold in ((0.5, 0.45), (0.55, 0.5)):
            for share in (0.1, 0.2):
                for ties in (0.1, 0.3):
                    setting = Setting("positional", pairs, ties, share)
                    lows = [interval(rng, setting, truth)[0] for _ in range(replicates)]
                    name = (
                        f"{pairs:5} pairs, truth {truth:.2f}, threshold {threshold:.2f}, "
                        f"{share:.0%} by position, {ties:.0%} ties"
                    )
                    yield name, float(np.mean(np.array(lows) > threshold))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--replicates", type=int, default=2000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--random-orders", action="store_true")
    options.add_argument("--lengths", action="store_true")
    options.add_argument("--claims", action="store_true")
    options.add_argument("--looks", action="store_true")
    options.add_argument("--labels", action="store_true")
    options.add_argument("--changes", action="store_true")
    chosen = options.parse_args()
    rng = np.random.default_rng(chosen.seed)
    print(f"{chosen.replicates} replicates a cell, seed {chosen.seed}\n")
    sizes = {"replicates": chosen.replicates, "quick": chosen.quick}
    if chosen.lengths:
        return 0 if simulated_lengths.holds(rng, **sizes) else 1
    if chosen.labels:
        print("claims of runs in which people labelled all, a draw, or some of the pairs")
        return 0 if simulated_labels.holds(rng, **sizes) else 1
    if chosen.changes:
        print("claims that a preference changed, of judges with one preference")
        return 0 if simulated_changes.holds(rng, **sizes) else 1
    if chosen.looks:
        print("runs with a wrong pass, a wrong fail, either: growing files, matchups, topics")
        return 0 if simulated_looks.holds(rng, **sizes) else 1
    print("T1 of a pass and of a fail: coins, few winners, missing losses, guard rails")
    claims_hold = simulated_claims.holds(rng, **sizes)
    if chosen.claims:
        return 0 if claims_hold else 1
    rng = np.random.default_rng(chosen.seed)  # the same judges, whatever was drawn for the claims
    print("T1 of a pass and of a fail, and coverage, at the true rate")
    cells = []
    drawn = random_orders(quick=chosen.quick)
    for setting in drawn if chosen.random_orders else chain(settings(quick=chosen.quick), drawn):
        for rate in (0.35, 0.45, 0.5):
            if rate < setting.ties / 2:
                continue
            found = cell(rng, setting, rate, chosen.replicates)
            cells.append(found)
            print(
                f"  {setting!s:75} at {rate:.2f}: {found.passed:6.2%} {found.failed:6.2%} "
                f"{found.covered:6.1%}",
                flush=True,
            )
    print("\npower of a pass")
    for name, share in power(rng, chosen.replicates):
        print(f"  {name}: {share:.1%}", flush=True)
    noise = 2.5 * math.sqrt(0.025 * 0.975 / chosen.replicates)
    worst = max(cells, key=lambda each: max(each.passed, each.failed))
    placed = [c for c in cells if c.setting.judge == "positional" and c.setting.share == 0.3]
    least = min(placed, key=lambda each: each.covered)
    print(f"\nworst T1 {max(worst.passed, worst.failed):.2%}: {worst.setting} at {worst.rate}")
    print(f"least coverage, 30% by position: {least.covered:.1%}: {least.setting} at {least.rate}")
    held = max(worst.passed, worst.failed) <= MOST_T1 + noise * chosen.quick
    return 0 if claims_hold and held and least.covered >= LEAST_COVERAGE else 1


if __name__ == "__main__":
    sys.exit(main())
