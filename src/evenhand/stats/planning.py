"""How many pairs a difference needs, or what difference a number of pairs can show."""

from __future__ import annotations

from collections.abc import Callable

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.power import Chances, TruePair, fixed_chances, sequential_chances
from evenhand.stats.sequential import SequentialPlan

_MOST = 100_000_000  # prompts beyond which a difference is called too small to plan for
_FINEST = 1e-5  # the grain of a smallest difference


class Certainty(Model):
    """How sure: `alpha` of naming a side where none is better, `power` of naming the better."""

    alpha: float = 0.05
    power: float = 0.8


class Shape(Model):
    """What the pairs are like, and how each is judged.

    `tie_share` counts what scores half: ties and inconsistent pairs. `correlation` is that of
    two rows of one prompt.
    """

    tie_share: float = 0.0
    rows_per_prompt: int = 1
    correlation: float = 0.0
    orders: int = 2
    samples: int = 1
    judges: int = 1

    @property
    def design_effect(self) -> float:
        """By how much rows of one prompt are worth less than as many of their own (Kish, 1965)."""
        return 1 + (self.rows_per_prompt - 1) * self.correlation

    @property
    def calls_per_pair(self) -> int:
        return self.orders * self.samples * self.judges

    def pair(self, win_rate: float) -> TruePair:
        centred = (2 * win_rate - 1) ** 2
        rows = 1 - self.tie_share - centred
        spread = rows * self.design_effect / self.rows_per_prompt + centred
        return TruePair(win_rate, min(1.0, max(spread, abs(2 * win_rate - 1))))


class PairPlan(Model):
    """A size, what it can do, and what it takes; costs are filled in by `priced`."""

    win_rate: float
    prompts: int
    pairs: int
    calls: int
    power: float
    expected_prompts: float
    expected_pairs: float
    expected_calls: float
    early_stopping: bool
    design_effect: float
    certainty: Certainty
    shape: Shape
    cost: float | None = None
    expected_cost: float | None = None

    @property
    def difference(self) -> float:
        """From an even 0.5."""
        return abs(self.win_rate - 0.5)

    def priced(self, cost_per_call: float) -> PairPlan:
        return self.model_copy(
            update={
                "cost": self.calls * cost_per_call,
                "expected_cost": self.expected_calls * cost_per_call,
            }
        )


def plan_pairs(
    win_rate: float,
    *,
    certainty: Certainty | None = None,
    shape: Shape | None = None,
    early_stopping: bool = False,
) -> PairPlan:
    """The number of prompts at which a true win rate is found with the power that is asked for.

    Counts are whole, so power rises in small saw-teeth: it is met at this number and may be
    missed by a hair a few prompts above.
    """
    certainty, shape = certainty or Certainty(), shape or Shape()
    _check(certainty, shape)
    most = 1 - shape.tie_share / 2
    better = max(win_rate, 1 - win_rate)
    if not 0.5 < better <= most:
        raise InputError(
            f"a win rate of {win_rate} with {shape.tie_share:.0%} ties cannot be planned for; "
            f"give one other than 0.5, from {1 - most:.3g} to {most:.3g}"
        )
    pair = shape.pair(better)

    def chances(prompts: int) -> Chances:
        return _chances(prompts, pair, certainty, early_stopping=early_stopping)

    # The plain test is quick to compute and needs no more prompts than the one with looks.
    least = _least(lambda n: fixed_chances(n, pair, alpha=certainty.alpha).power, certainty, 1)
    if early_stopping:
        least = _least(lambda n: chances(n).power, certainty, least)
    return _plan(win_rate, least, chances(least), certainty, shape, early_stopping)


def detectable_difference(
    prompts: int,
    *,
    certainty: Certainty | None = None,
    shape: Shape | None = None,
    early_stopping: bool = False,
) -> PairPlan | None:
    """The smallest win rate above 0.5 that so many prompts show; None where they show none."""
    certainty, shape = certainty or Certainty(), shape or Shape()
    _check(certainty, shape)
    if prompts < 1:
        raise InputError(f"a plan for {prompts} prompts was asked for; give 1 or more")

    def chances(win_rate: float) -> Chances:
        pair = shape.pair(win_rate)
        return _chances(prompts, pair, certainty, early_stopping=early_stopping)

    low, high = 0.5, 1 - shape.tie_share / 2
    if chances(high).power < certainty.power:
        return None
    while high - low > _FINEST:
        middle = (low + high) / 2
        enough = chances(middle).power >= certainty.power
        low, high = (low, middle) if enough else (middle, high)
    return _plan(high, prompts, chances(high), certainty, shape, early_stopping)


def _chances(
    prompts: int, pair: TruePair, certainty: Certainty, *, early_stopping: bool
) -> Chances:
    if not early_stopping:
        return fixed_chances(prompts, pair, alpha=certainty.alpha)
    return sequential_chances(SequentialPlan(planned=prompts, alpha=certainty.alpha), pair)


def _least(power: Callable[[int], float], certainty: Certainty, start: int) -> int:
    low, high = start - 1, start
    step = max(1, start // 16)
    while power(high) < certainty.power:
        low, high, step = high, high + step, 2 * step
        if high > _MOST:
            raise InputError(
                f"more than {_MOST:,} prompts would be needed; plan for a larger difference"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= certainty.power else (middle, high)
    return high


def _plan(
    win_rate: float,
    prompts: int,
    chances: Chances,
    certainty: Certainty,
    shape: Shape,
    early_stopping: bool,
) -> PairPlan:
    rows, calls = shape.rows_per_prompt, shape.calls_per_pair
    return PairPlan(
        win_rate=win_rate,
        prompts=prompts,
        pairs=prompts * rows,
        calls=prompts * rows * calls,
        power=chances.power,
        expected_prompts=chances.prompts,
        expected_pairs=chances.prompts * rows,
        expected_calls=chances.prompts * rows * calls,
        early_stopping=early_stopping,
        design_effect=shape.design_effect,
        certainty=certainty,
        shape=shape,
    )


def _check(certainty: Certainty, shape: Shape) -> None:
    for name, value in (("alpha", certainty.alpha), ("power", certainty.power)):
        if not 0 < value < 1:
            raise InputError(f"{name} is {value}; give one between 0 and 1")
    for name, value in (("tie share", shape.tie_share), ("correlation", shape.correlation)):
        if not 0 <= value <= 1 or (name == "tie share" and value == 1):
            raise InputError(f"{name} is {value}; give one from 0 to below 1")
    for name in ("rows_per_prompt", "orders", "samples", "judges"):
        if getattr(shape, name) < 1:
            raise InputError(f"{name} is {getattr(shape, name)}; give 1 or more")
