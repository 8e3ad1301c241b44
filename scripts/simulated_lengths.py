"""Judges that take length for merit, in four forms: does the envelope of the win rate at equal
length cover it, how many claims that length alone made are held back, and how many true ones?
Printed by `scripts/verify_conclusions.py --lengths`; the last tables are in docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evenhand.contract.codes import WIN_A, WIN_B
from evenhand.stats.rates.length_bias import length_effect
from evenhand.stats.rates.win_rate import win_rate

LEAST_COVERAGE, MOST_HELD = 0.93, 0.05
Form = Literal["none", "linear", "log-ratio", "sign", "step"]
FORMS: tuple[Form, ...] = get_args(Form)[1:]
SHIFTS = (0.0, 0.5, 1.0, 2.0)  # standard deviations by which A's answers are longer
_SPREAD = 0.5  # standard deviation of the log-ratio of lengths
_CHARACTERS = 180.0  # about that of the difference
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cell:
    form: Form
    pairs: int
    shift: float
    rate: float  # A's at equal length
    effect: float = 0.0  # in log-odds, of one standard deviation
    passed: float = 0.0  # of all runs: A is claimed to be better, whatever length explains
    held: float = 0.0  # of those: length may explain it
    covered: float = 0.0  # of runs with a rate at equal length

    def __str__(self) -> str:
        kind = f"{self.form:9} effect {self.effect:.1f}, {self.pairs:5} pairs, "
        where = f"longer by {self.shift:.1f} SD, {self.rate:.2f} at equal length"
        shares = f"passed {self.passed:6.1%}, held {self.held:6.1%}, covered {self.covered:6.1%}"
        return f"{kind}{where}: {shares}"


def draw(rng: np.random.Generator, cell: Cell) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Outcomes and lengths; a step of length counts beyond a standard deviation alone."""
    ratio = rng.normal(cell.shift * _SPREAD, _SPREAD, cell.pairs)
    typical = rng.normal(5.7, 0.4, cell.pairs)
    length_a: Floats = np.round(np.exp(typical + ratio / 2)).astype(np.float64)
    length_b: Floats = np.round(np.exp(typical - ratio / 2)).astype(np.float64)
    difference: Floats = length_a - length_b
    columns: dict[Form, Floats] = {
        "none": np.zeros(cell.pairs),
        "linear": difference / _CHARACTERS,
        "log-ratio": np.log(length_a / length_b) / _SPREAD,
        "sign": np.sign(difference),
        "step": np.sign(difference) * (np.abs(difference) > _CHARACTERS),
    }
    chance = expit(logit(cell.rate) + cell.effect * columns[cell.form])
    outcomes = np.where(rng.random(cell.pairs) < chance, WIN_A, WIN_B).astype(np.int64)
    return outcomes, length_a, length_b


def measure(rng: np.random.Generator, cell: Cell, replicates: int) -> Cell:
    passed = held = covered = known = 0
    for _ in range(replicates):
        outcomes, length_a, length_b = draw(rng, cell)
        (controlled,) = length_effect(outcomes, length_a=length_a, length_b=length_b).controlled
        if controlled.low is not None and controlled.high is not None:
            known += 1
            covered += controlled.low <= cell.rate <= controlled.high
        if (low := win_rate(outcomes).low) is not None and low > 0.5:
            passed += 1
            held += controlled.explains("above")
    shares = (passed / replicates, held / max(1, passed), covered / max(1, known))
    return Cell(cell.form, cell.pairs, cell.shift, cell.rate, cell.effect, *shares)


def cells(*, quick: bool) -> Iterator[Cell]:
    sizes = (300,) if quick else (100, 300, 1000)
    for pairs in sizes:
        for rate in (0.55, 0.62, 0.75):
            yield from (Cell("none", pairs, shift, rate) for shift in SHIFTS)
        for form in FORMS:
            for effect in (0.5, 1.0):
                for shift in SHIFTS:
                    yield Cell(form, pairs, shift, 0.5, effect)


def holds(rng: np.random.Generator, *, replicates: int, quick: bool) -> bool:
    """Whether no cell without an effect of length loses more passes than it may, and the envelope
    covers; both with three standard errors to spare, which few replicates need."""
    good = True
    for each in cells(quick=quick):
        found = measure(rng, each, replicates)
        print(f"  {found}", flush=True)
        if each.form == "none":
            passes = max(1.0, found.passed * replicates)
            good &= found.held <= MOST_HELD + 3 * (MOST_HELD * (1 - MOST_HELD) / passes) ** 0.5
        good &= found.covered >= LEAST_COVERAGE - 3 * (0.065 / replicates) ** 0.5
    return good
