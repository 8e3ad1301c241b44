"""The signals of verdicts as columns, and curves from them to the probability of being right; a
curve survives JSON unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.columns import Floats, float_column
from evenhand.stats.distributions import expit
from evenhand.stats.logistic_regression import fit_ridge, ridge_log_evidence

# None and NaN both mean that a verdict lacks the signal.
Signals: TypeAlias = Mapping[str, Sequence[float | None] | NDArray[Any]]


def signal_columns(signals: Signals, *, rows: int | None = None) -> dict[str, Floats]:
    """The columns as floats, NaN if missing; all of one length."""
    columns: dict[str, Floats] = {}
    for name, given in signals.items():
        column = float_column(given, name=f"signal {name!r}", missing=True)
        rows = column.size if rows is None else rows
        if column.size != rows:
            raise InputError.of("stats.signal_length", name=name, size=column.size, rows=rows)
        columns[name] = column
    return columns


def right_or_wrong(correct: Sequence[Any] | NDArray[Any]) -> Floats:
    """1.0 for a right verdict, 0.0 for a wrong one."""
    right = float_column(correct, name="correct", low=0, high=1)
    between = (right != 0) & (right != 1)
    if between.any():
        row = int(np.argmax(between))
        raise InputError.of("stats.correct_outside", row=row, value=right[row])
    return right


Columns: TypeAlias = Mapping[str, Floats]

LARGE = 1e100
# A curve may bend at the ends of the signal's lower and upper thirds.
BENDS_AT = (1 / 3, 2 / 3)


# A curve may come from a file that was edited by hand or truncated.
Probability: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Scale: TypeAlias = Annotated[float, Field(gt=0)]


class _CurveModel(Model):
    model_config = ConfigDict(allow_inf_nan=False)


class Constant(_CurveModel):
    kind: Literal["constant"] = "constant"
    probability: Probability

    def predict(self, columns: Columns, *, rows: int) -> Floats:
        del columns
        return np.full(rows, self.probability)


class Bend(_CurveModel):
    """From `at` on, `slope` is added to the signal's own."""

    at: float
    slope: float


class LogisticSignal(_CurveModel):
    """One signal's part: slopes in standard units, and what its absence adds to the log-odds.

    Values beyond `low` and `high`, the range learned on, count as its ends. `missing` is None if
    the signal was never missing then.
    """

    signal: str
    centre: float
    scale: Scale
    low: float
    high: float
    slope: float
    bends: tuple[Bend, ...] = ()
    missing: float | None

    def terms(self, column: Floats) -> list[Floats]:
        """The factors of the slope and of the bends' slopes: 0 if missing."""
        absent = np.isnan(column)
        known = np.clip(np.where(absent, self.centre, column), self.low, self.high)
        beyond = [np.maximum(known - bend.at, 0.0) for bend in self.bends]
        return [np.where(absent, 0.0, term / self.scale) for term in (known - self.centre, *beyond)]


class Logistic(_CurveModel):
    """Log-odds linear or bent in one or more signals; `otherwise` is for verdicts that lack a
    signal which was never missing before."""

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
            slopes = (part.slope, *(bend.slope for bend in part.bends))
            for slope, term in zip(slopes, part.terms(column), strict=True):
                odds += slope * term
            absent = np.isnan(column)
            if part.missing is None:
                strange |= absent
            else:
                odds += np.where(absent, part.missing, 0.0)
        return np.where(strange, self.otherwise, expit(odds))


Curve: TypeAlias = Annotated[Constant | Logistic, Field(discriminator="kind")]


def smoothed_share(right: Floats) -> float:
    """Laplace's rule, with one more right and one more wrong: never 0 or 1."""
    return float((right.sum() + 1) / (right.size + 2))


def fit_constant(right: Floats) -> Constant:
    return Constant(probability=smoothed_share(right))


def constant_log_evidence(right: Floats, *, weight: float) -> float:
    nothing = np.empty((right.size, 0))
    fitted = fit_ridge(nothing, right, penalty=1.0)
    return ridge_log_evidence(nothing, right, fitted, penalty=1.0, weight=weight)


def fit_logistic_signals(
    columns: Columns,
    right: Floats,
    *,
    penalties: Sequence[float],
    bent: bool = False,
    weight: float = 1.0,
) -> list[tuple[Logistic, float]]:
    """A curve for each penalty, and its log evidence.

    A penalty is the inverse variance of the slopes' normal prior around 0. `weight` is how much of
    an independent row each row is: below 1 if a prompt's rows are correlated.
    """
    parts = [_described(name, column, bent=bent) for name, column in columns.items()]
    terms: list[Floats] = []
    for part in parts:
        column = columns[part.signal]
        terms += part.terms(column)
        if part.missing is not None:
            terms.append(np.isnan(column).astype(np.float64))
    design = np.stack(terms, axis=1)
    fits = []
    fitted: Floats | None = None
    for penalty in penalties:
        fitted = fit_ridge(design, right, penalty=penalty / weight, start=fitted)
        slopes = iter(fitted[1:].tolist())
        curve = Logistic(
            intercept=float(fitted[0]),
            signals=tuple(_with_slopes(part, slopes) for part in parts),
            penalty=penalty,
            otherwise=smoothed_share(right),
        )
        evidence = ridge_log_evidence(design, right, fitted, penalty=penalty, weight=weight)
        fits.append((curve, evidence))
    return fits


def _described(name: str, column: Floats, *, bent: bool) -> LogisticSignal:
    absent = np.isnan(column)
    known = column[~absent]
    centre, scale = _standard(known)
    low, high = float(known.min()), float(known.max())
    bends = np.unique(np.quantile(known, BENDS_AT)) if bent else np.empty(0)
    return LogisticSignal(
        signal=name,
        centre=centre,
        scale=scale,
        low=low,
        high=high,
        slope=0.0,
        bends=tuple(Bend(at=at, slope=0.0) for at in bends.tolist() if low < at < high),
        missing=0.0 if absent.any() else None,
    )


def _with_slopes(part: LogisticSignal, slopes: Iterator[float]) -> LogisticSignal:
    """With the next slopes, in the order of `terms`, then of missing signals."""
    return part.model_copy(
        update={
            "slope": next(slopes),
            "bends": tuple(Bend(at=bend.at, slope=next(slopes)) for bend in part.bends),
            "missing": None if part.missing is None else next(slopes),
        }
    )


def varies(column: Floats) -> bool:
    """Whether a signal is present at all with two values."""
    known = column[~np.isnan(column)]
    return known.size > 1 and bool(known.min() < known.max())


def _standard(known: Floats) -> tuple[float, float]:
    largest = float(np.abs(known).max(initial=0.0))
    # The squares and sums of larger values would overflow.
    unit = largest if largest > LARGE else 1.0
    scale = float((known / unit).std()) * unit if known.size else 0.0
    centre = float((known / unit).mean()) * unit if known.size else 0.0
    return centre, scale if scale > 0 and math.isfinite(scale) else 1.0
