"""What a verdict gives to tell how sure it is: named columns of numbers, any of them missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.clusters import Floats

# None and NaN are both "this verdict has no such signal".
Signals: TypeAlias = Mapping[str, Sequence[float | None] | NDArray[Any]]


def signal_columns(signals: Signals, *, rows: int | None = None) -> dict[str, Floats]:
    """The columns as floats, NaN where missing; all of one length."""
    columns: dict[str, Floats] = {}
    for name, given in signals.items():
        try:
            column = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"signal {name!r} has values that are not numbers; give numbers, or None"
            ) from None
        if column.ndim != 1:
            raise InputError(f"signal {name!r} has {column.ndim} dimensions; give one value a row")
        rows = column.size if rows is None else rows
        if column.size != rows:
            raise InputError(
                f"signal {name!r} has length {column.size} and the others {rows}; give one a row"
            )
        if np.isinf(column).any():
            row = int(np.argmax(np.isinf(column)))
            raise InputError(
                f"signal {name!r} is {column[row]} in row {row}; give a finite number, or None"
            )
        columns[name] = column
    return columns


def right_or_wrong(correct: Sequence[Any] | NDArray[Any]) -> Floats:
    """1.0 where the verdict was right, 0.0 where it was wrong."""
    try:
        right = np.asarray(correct, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "correct has values that are not true or false; give 0 or 1 a row"
        ) from None
    if right.ndim != 1:
        raise InputError(f"correct has {right.ndim} dimensions; give 0 or 1 a row")
    strange = (right != 0) & (right != 1)
    if strange.any():
        row = int(np.argmax(strange))
        raise InputError(
            f"correct is {right[row]} in row {row}; give 0 or 1, and labelled rows only"
        )
    return right
