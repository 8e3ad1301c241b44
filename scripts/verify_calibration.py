"""Does learning pay, and what is the guarantee worth? By simulation, where the truth is known.

    python -m scripts.verify_calibration [--draws 1000] [--seed 0]

What a learned curve gains or costs against the share that is right; how often a threshold is
granted, how often falsely, and by how much; 100,000 verdicts in time. Prints tables and exits 1
where a limit is missed. Recorded judges are in scripts/verify_calibrated_runs.py. Run by `make
verify`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evenhand.stats.agreement.labels import agreement
from evenhand.stats.agreement.raters import agreement_among
from evenhand.stats.calibration.fit import cross_fitted, fit_calibration
from evenhand.stats.calibration.guarantee import guarantee_agreement
from evenhand.stats.calibration.reliability import calibration_error
from evenhand.stats.estimates import EstimatedShare

Floats = NDArray[np.float64]


def covers(share: EstimatedShare, truth: float) -> bool:
    return share.low is not None and share.high is not None and share.low <= truth <= share.high


def show_row(name: str, cells: Sequence[str]) -> None:
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


# The log-odds that a verdict is right, from three signals of unit spread.
TRUTHS: dict[str, Callable[[dict[str, Floats]], Floats]] = {
    "no signal matters": lambda signals: np.full_like(signals["a"], 1.2),
    "one weak signal": lambda signals: 1.2 + 0.4 * signals["a"],
    "a step": lambda signals: np.where(signals["a"] > 0.5, 3.0, 0.5),
    "strong signals": lambda signals: 1.2 + 1.2 * signals["a"] + 0.8 * signals["b"],
}


def simulated_gain(
    truth: Callable[[dict[str, Floats]], Floats], *, prompts: int, draws: int, seed: int
) -> tuple[float, float]:
    """The mean squared error of learned probabilities less the base rate's, below 0 is a gain;
    and the share of draws in which a curve was learned."""
    gains, curves = [], 0
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw, prompts])
        signals, fresh = (
            {name: rng.normal(size=size) for name in ("a", "b", "c")} for size in (prompts, 500)
        )
        learned = fit_calibration(rng.random(prompts) < expit(truth(signals)), signals)
        curves += learned.curve.kind != "constant"
        wanted = expit(truth(fresh))
        base = float(((learned.base_rate - wanted) ** 2).mean())
        gains.append(float(((learned.predict(fresh) - wanted) ** 2).mean()) - base)
    return float(np.mean(gains)), curves / draws


def report_simulated_gain(*, draws: int, seed: int) -> bool:
    print(
        f"\nmean squared error of the probabilities less the base rate's, thousandths (and how "
        f"often a curve was learned), {draws} draws\n\n| labelled prompts | {' | '.join(TRUTHS)} |"
        "\n|---|" + "---|" * len(TRUTHS)
    )
    held = True
    for prompts in (30, 50, 100, 200, 1000):
        found = [
            simulated_gain(truth, prompts=prompts, draws=draws, seed=seed)
            for truth in TRUTHS.values()
        ]
        show_row(f"{prompts}", [f"{1000 * gain:+.1f} ({share:.0%})" for gain, share in found])
        # What strong signals gain must outweigh by far what looking for any costs.
        held &= found[-1][0] < -10 * max(found[0][0], 0.0)
        held &= found[0][1] <= 0.1
    return held


@dataclass(slots=True)
class Granted:
    """Draws of labels, and of those with a threshold, what the pool that they came from says."""

    draws: int = 0
    granted: int = 0
    false: int = 0
    covered: int = 0
    coverage: float = 0.0
    missed_by: float = 0.0
    most_missed_by: float = 0.0

    def __iadd__(self, other: Granted) -> Granted:
        for field in ("draws", "granted", "false", "covered", "coverage", "missed_by"):
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.most_missed_by = max(self.most_missed_by, other.most_missed_by)
        return self

    def add(self, truth: float, target: float, *, covered: bool, coverage: float) -> None:
        self.granted += 1
        self.covered += covered
        self.coverage += coverage
        if truth < target - 1e-9:  # not by rounding alone
            self.false += 1
            self.missed_by += target - truth
            self.most_missed_by = max(self.most_missed_by, target - truth)

    def cells(self) -> list[str]:
        of_granted = self.false / max(1, self.granted)
        mean = self.missed_by / max(1, self.false)
        return [
            f"{self.draws}",
            f"{self.granted / max(1, self.draws):.1%}",
            f"{self.false / max(1, self.draws):.2%}",
            f"{of_granted:.1%}",
            f"{mean:.3f}, {self.most_missed_by:.3f}" if self.false else "",
            f"{self.covered / max(1, self.granted):.1%}" if self.granted else "",
            f"{self.coverage / max(1, self.granted):.0%}" if self.granted else "",
        ]


GRANTED_COLUMNS = (
    "| draws | granted | false, of all draws | false, of those granted | below it by (mean, "
    "most) | interval covers | verdicts kept |\n"
)


# How often a verdict with this confidence (uniform from 0 to 1) is right.
CURVES: dict[str, Callable[[Floats], Floats]] = {
    "steep": lambda u: 0.5 + 0.5 * u**0.3,
    "line from 0.7 to 0.99": lambda u: 0.7 + 0.29 * u,
    "0.90 everywhere": lambda u: np.full_like(u, 0.9),
    "0.89 everywhere": lambda u: np.full_like(u, 0.89),
    "0.87 everywhere": lambda u: np.full_like(u, 0.87),
    "0.85 everywhere": lambda u: np.full_like(u, 0.85),
    "a step": lambda u: np.where(u > 0.35, 0.97, 0.6),
    "not monotone": lambda u: np.where((u > 0.5) & (u < 0.8), 0.8, 0.97),
    "upside down": lambda u: 0.99 - 0.2 * u,
}


def true_agreement(curve: Callable[[Floats], Floats], threshold: float) -> float:
    grid = (np.arange(200_000) + 0.5) / 200_000
    return float(curve(grid)[grid >= threshold].mean())


def simulated_guarantee(
    curve: Callable[[Floats], Floats],
    *,
    prompts: int,
    draws: int,
    seed: int,
    target: float = 0.9,
    levels: int | None = None,
) -> Granted:
    """`levels` rounds confidences to so many values, as stated confidences are."""
    rng = np.random.default_rng(seed)
    found = Granted(draws=draws)
    for draw in range(draws):
        exact = rng.random(prompts)
        right = rng.random(prompts) < curve(exact)
        stated = exact if levels is None else np.floor(exact * levels) / levels
        kept = guarantee_agreement(stated, right, target=target, seed=draw)
        if kept.threshold is None or kept.agreement is None:
            continue
        truth = true_agreement(curve, kept.threshold)
        found.add(
            truth,
            target,
            covered=covers(kept.agreement, truth),
            coverage=1 - kept.threshold,
        )
    return found


def report_simulated_guarantee(*, draws: int, seed: int) -> bool:
    print(
        "\nthe guarantee, simulated: 0.9 at an error level of 0.05\n\n"
        f"| confidence to being right | prompts | levels {GRANTED_COLUMNS}|---|" + "---|" * 9
    )
    held = True
    for name, curve in CURVES.items():
        for prompts, levels in ((100, None), (300, None), (300, 10), (1000, None)):
            found = simulated_guarantee(
                curve, prompts=prompts, draws=draws, seed=seed, levels=levels
            )
            show_row(name, [f"{prompts}", f"{levels or 'any'}", *found.cells()])
            if found.false > draws * (0.05 + 2.5 * math.sqrt(0.05 * 0.95 / draws)):
                held = False
                print(f"  MISSED {name}, {prompts} prompts: {found.false} false")
    return held


def report_speed(rows: int, *, seed: int) -> bool:
    rng = np.random.default_rng(seed)
    prompts = rng.integers(0, rows // 3, rows)
    labels = rng.integers(0, 3, rows)
    signals = {name: rng.normal(size=rows) for name in ("confidence", "margin", "length")}
    signals["margin"][rng.random(rows) < 0.3] = np.nan
    signals["agreement"] = rng.integers(0, 2, rows).astype(np.float64)
    chance = expit(0.5 + signals["confidence"] + signals["agreement"])
    verdicts = np.where(rng.random(rows) < chance, labels, (labels + 1) % 3)
    right = verdicts == labels
    print(f"\n{rows:,} labelled verdicts, CPU seconds\n\n| what | s |\n|---|---|")
    spent = 0.0

    def timed(name: str, work: Callable[[], object]) -> object:
        nonlocal spent
        start = time.process_time()
        made = work()
        used = time.process_time() - start
        spent += used
        print(f"| {name} | {used:.2f} |", flush=True)
        return made

    timed("agreement", lambda: agreement(verdicts, labels, prompts=prompts))
    units, votes = np.repeat(np.arange(rows), 3), np.stack([verdicts, labels, labels], 1).ravel()
    timed("agreement among three", lambda: agreement_among(units, votes))
    timed("fit_calibration, auto", lambda: fit_calibration(right, signals, prompts=prompts))
    timed("cross_fitted, auto", lambda: cross_fitted(right, signals, prompts=prompts))
    timed("calibration_error", lambda: calibration_error(chance, right, prompts=prompts))
    timed("guarantee_agreement", lambda: guarantee_agreement(chance, right, prompts=prompts))
    return spent < 60


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--draws", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    print(f"seed {chosen.seed}, {chosen.draws} draws")
    held = [
        report_speed(100_000, seed=chosen.seed),
        report_simulated_gain(draws=chosen.draws // 5, seed=chosen.seed),
        report_simulated_guarantee(draws=chosen.draws, seed=chosen.seed),
    ]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
