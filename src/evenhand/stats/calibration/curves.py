"""The signals of verdicts as columns, and curves fitted from them to the probability of being
right: frozen, and the same after a trip through JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.stats.columns import Floats, float_column
from evenhand.stats.logistic_regression import fit_ridge

# None and NaN are both "this verdict has no such signal".
Signals: TypeAlias = Mapping[str, Sequence[float | None] | NDArray[Any]]


def signal_columns(signals: Signals, *, rows: int | None = None) -> dict[str, Floats]:
    """The columns as floats, NaN where missing; all of one length."""
    columns: dict[str, Floats] = {}
    for name, given in signals.items():
        column = float_column(given, name=f"signal {name!r}", missing=True)
        rows = column.size if rows is None else rows
        if column.size != rows:
            raise InputError(Message("stats.signal_length", name=name, size=column.size, rows=rows))
        columns[name] = column
    return columns


def right_or_wrong(correct: Sequence[Any] | NDArray[Any]) -> Floats:
    """1.0 where the verdict was right, 0.0 where it was wrong."""
    right = float_column(correct, name="correct", low=0, high=1)
    between = (right != 0) & (right != 1)
    if between.any():
        row = int(np.argmax(between))
        raise InputError(Message("stats.correct_outside", row=row, value=right[row]))
    return right


Columns: TypeAlias = Mapping[str, Floats]

# Every share is drawn towards the base rate as if this many more rows had been seen there, so
# that no probability is 0 or 1.
SMOOTHING = 1.0
LARGE = 1e100


# A curve may come from a file, which somebody has written by hand or half copied.
Probability: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Scale: TypeAlias = Annotated[float, Field(gt=0)]


class _CurveModel(Model):
    model_config = ConfigDict(allow_inf_nan=False)


class Constant(_CurveModel):
    """One probability for every verdict."""

    kind: Literal["constant"] = "constant"
    probability: Probability

    def predict(self, columns: Columns, *, rows: int) -> Floats:
        del columns
        return np.full(rows, self.probability)


class Isotonic(_CurveModel):
    """A line that never falls (or never rises) through `knots`; beyond the ends it is level.

    `missing` is for verdicts without the signal.
    """

    kind: Literal["isotonic"] = "isotonic"
    signal: str
    increasing: bool
    knots: tuple[float, ...]
    probabilities: tuple[Probability, ...]
    missing: Probability
    smoothing: float

    @model_validator(mode="after")
    def _is_a_line(self) -> Isotonic:
        ascending = all(one < other for one, other in pairwise(self.knots))
        if not self.knots or len(self.knots) != len(self.probabilities) or not ascending:
            raise ValueError("knots do not ascend, or have not one probability each")
        return self

    def predict(self, columns: Columns, *, rows: int) -> Floats:
        del rows
        column = columns[self.signal]
        predicted = np.interp(column, self.knots, self.probabilities)
        return np.where(np.isnan(column), self.missing, predicted)


class Platt(_CurveModel):
    """The logistic curve of one signal (Platt 1999); `missing` is for verdicts without it.

    Values beyond `low` and `high`, the range it was learned on, count as its ends.
    """

    kind: Literal["platt"] = "platt"
    signal: str
    centre: float
    scale: Scale
    low: float
    high: float
    intercept: float
    slope: float
    missing: Probability

    def predict(self, columns: Columns, *, rows: int) -> Floats:
        del rows
        column = columns[self.signal]
        known = np.clip(np.where(np.isnan(column), self.centre, column), self.low, self.high)
        predicted = expit(self.intercept + self.slope * (known - self.centre) / self.scale)
        return np.where(np.isnan(column), self.missing, predicted)


class LogisticSignal(_CurveModel):
    """One signal's part: its slope in standard units, and what its absence adds to the log-odds.

    `missing` is None where the signal was never missing when this was learned.
    """

    signal: str
    centre: float
    scale: Scale
    low: float
    high: float
    slope: float
    missing: float | None


class Logistic(_CurveModel):
    """Several signals; `otherwise` is for verdicts that lack one that was always there before."""

    kind: Literal["logistic"] = "logistic"
    intercept: float
    signals: tuple[LogisticSignal, ...]
    penalty: float
    otherwise: Probability

    def predict(self, columns: Columns, *, rows: int) -> Floats:
        odds = np.full(rows, self.intercept)
        strange = np.zeros(rows, dtype=np.bool_)
        for part in self.signals:
            column = columns[part.signal]
            absent = np.isnan(column)
            known = np.clip(np.where(absent, part.centre, column), part.low, part.high)
            odds += part.slope * (known - part.centre) / part.scale
            if part.missing is None:
                strange |= absent
            else:
                odds += np.where(absent, part.missing, 0.0)
        return np.where(strange, self.otherwise, expit(odds))


Curve: TypeAlias = Annotated[Constant | Isotonic | Platt | Logistic, Field(discriminator="kind")]


def smoothed_share(right: Floats, towards: float = 0.5, *, rows: float = 2 * SMOOTHING) -> float:
    """The share that is right with some more rows at `towards` (two at one half: Laplace's)."""
    return float((right.sum() + rows * towards) / (right.size + rows))


def fit_constant(right: Floats) -> Constant:
    return Constant(probability=smoothed_share(right))


def fit_isotonic(signal: str, column: Floats, right: Floats) -> Isotonic:
    """Pool adjacent violators (Ayer et al. 1955), equal values of the signal taken together.

    Blocks are smoothed towards the base rate and pooled again, since smoothing a small block
    more than its neighbour may undo their order.
    """
    base = smoothed_share(right)
    absent = np.isnan(column)
    values, place = np.unique(column[~absent], return_inverse=True)
    weights = np.bincount(place, minlength=values.size).astype(np.float64)
    shares = np.bincount(place, weights=right[~absent], minlength=values.size) / weights
    rising = _pooled(shares, weights, base, increasing=True)
    falling = _pooled(shares, weights, base, increasing=False)
    increasing = _loss(rising, shares, weights) <= _loss(falling, shares, weights)
    fitted = rising if increasing else falling
    # Only the two ends of each level part are needed.
    kept = np.ones(values.size, dtype=np.bool_)
    kept[1:-1] = (fitted[1:-1] != fitted[:-2]) | (fitted[1:-1] != fitted[2:])
    return Isotonic(
        signal=signal,
        increasing=increasing,
        knots=tuple(values[kept].tolist()),
        probabilities=tuple(fitted[kept].tolist()),
        missing=_missing_share(right[absent], base),
        smoothing=SMOOTHING,
    )


def _pooled(shares: Floats, weights: Floats, base: float, *, increasing: bool) -> Floats:
    first = isotonic_regression(shares, weights=weights, increasing=increasing)
    edges = np.asarray(first.blocks)
    sizes = np.add.reduceat(weights, edges[:-1])
    levels = first.x[edges[:-1]]
    smoothed = (levels * sizes + SMOOTHING * base) / (sizes + SMOOTHING)
    again = isotonic_regression(smoothed, weights=sizes, increasing=increasing)
    return np.repeat(again.x, np.diff(edges))


def _loss(fitted: Floats, shares: Floats, weights: Floats) -> float:
    return -float((weights * (shares * np.log(fitted) + (1 - shares) * np.log1p(-fitted))).sum())


def fit_platt(signal: str, column: Floats, right: Floats) -> Platt:
    base = smoothed_share(right)
    absent = np.isnan(column)
    known, hits = column[~absent], right[~absent]
    centre, scale = _standard(known)
    rights = float(hits.sum())
    # Platt's targets (1999): not 1 and 0, so that a signal that parts right from wrong without
    # an exception does not give certainty.
    targets = np.where(hits > 0, (rights + 1) / (rights + 2), 1 / (hits.size - rights + 2))
    fitted = fit_ridge(((known - centre) / scale)[:, np.newaxis], targets, penalty=1e-6)
    return Platt(
        signal=signal,
        centre=centre,
        scale=scale,
        low=float(known.min()),
        high=float(known.max()),
        intercept=float(fitted[0]),
        slope=float(fitted[1]),
        missing=_missing_share(right[absent], base),
    )


def fit_logistic_signals(
    columns: Columns, right: Floats, *, penalty: float, start: Floats | None = None
) -> tuple[Logistic, Floats]:
    """The curve and its raw coefficients, which may start the next fit."""
    base = smoothed_share(right)
    design: list[Floats] = []
    described: list[LogisticSignal] = []
    for name, column in columns.items():
        absent = np.isnan(column)
        known = column[~absent]
        centre, scale = _standard(known)
        design.append(np.where(absent, 0.0, (column - centre) / scale))
        if absent.any():
            design.append(absent.astype(np.float64))
        described.append(
            LogisticSignal(
                signal=name,
                centre=centre,
                scale=scale,
                low=float(known.min()),
                high=float(known.max()),
                slope=0.0,
                missing=0.0 if absent.any() else None,
            )
        )
    fitted = fit_ridge(np.stack(design, axis=1), right, penalty=penalty, start=start)
    slopes = iter(fitted[1:].tolist())
    signals = tuple(
        part.model_copy(
            update={
                "slope": next(slopes),
                "missing": None if part.missing is None else next(slopes),
            }
        )
        for part in described
    )
    curve = Logistic(intercept=float(fitted[0]), signals=signals, penalty=penalty, otherwise=base)
    return curve, fitted


def varies(column: Floats) -> bool:
    """Whether a signal is there at all and has two values."""
    known = column[~np.isnan(column)]
    return known.size > 1 and bool(known.min() < known.max())


def _standard(known: Floats) -> tuple[float, float]:
    largest = float(np.abs(known).max(initial=0.0))
    # Squares and sums of what is larger would be no numbers any more.
    unit = largest if largest > LARGE else 1.0
    scale = float((known / unit).std()) * unit if known.size else 0.0
    centre = float((known / unit).mean()) * unit if known.size else 0.0
    return centre, scale if scale > 0 and math.isfinite(scale) else 1.0


def _missing_share(right: Floats, base: float) -> float:
    return smoothed_share(right, base, rows=2 * SMOOTHING)


# How much of a curve stands: drawn towards the base rate as far as unseen prompts say.

# Tenths: the loss is flat around its least, so that finer steps tell nothing.
STEPS = 10


def curve_weight(curve: Floats, base: Floats, right: Floats) -> float:
    """The weight of a curve beside the base rate, from 0 to 1, with the least log loss.

    Both are probabilities of rows that they were not learned on; they are mixed in log-odds, and
    the weight is stacking's (Breiman 1996). Of equal losses the smaller weight.
    """
    own, other = logit(curve), logit(base)
    losses = [
        float(np.logaddexp(0, np.where(right > 0, -1, 1) * _mixed(own, other, step / STEPS)).mean())
        for step in range(STEPS + 1)
    ]
    return int(np.argmin(losses)) / STEPS


def tempered(curve: Curve, weight: float, *, towards: float) -> Curve:
    """The curve with its log-odds drawn to those of `towards`: of the same kind, and as steep as
    `weight` lets it be. At weight 0 nothing is left of it."""
    if weight >= 1 or isinstance(curve, Constant):
        return curve
    if weight <= 0:
        return Constant(probability=towards)
    base = float(logit(towards))

    def drawn(probability: float) -> float:
        return float(expit(_mixed(logit(probability), base, weight)))

    if isinstance(curve, Isotonic):
        levels = tuple(drawn(each) for each in curve.probabilities)
        return curve.model_copy(update={"probabilities": levels, "missing": drawn(curve.missing)})
    intercept = weight * curve.intercept + (1 - weight) * base
    if isinstance(curve, Platt):
        return curve.model_copy(
            update={
                "intercept": intercept,
                "slope": weight * curve.slope,
                "missing": drawn(curve.missing),
            }
        )
    return _tempered_logistic(curve, weight, intercept=intercept)


def _tempered_logistic(curve: Logistic, weight: float, *, intercept: float) -> Logistic:
    signals = tuple(
        part.model_copy(
            update={
                "slope": weight * part.slope,
                "missing": None if part.missing is None else weight * part.missing,
            }
        )
        for part in curve.signals
    )
    return curve.model_copy(update={"intercept": intercept, "signals": signals})


def _mixed(own: Floats | float, other: Floats | float, weight: float) -> Floats | float:
    return weight * own + (1 - weight) * other
