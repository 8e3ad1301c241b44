"""Columns of outcomes and other codes, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INVALID, WIN_A
from evenhand.errors import InputError

Codes: TypeAlias = Sequence[int] | bytes | NDArray[np.integer[Any]]


def outcome_codes(outcomes: Codes) -> NDArray[np.int8]:
    """The outcomes as an array; an invalid code is an error that names its row."""
    codes = code_array(outcomes, name="outcomes", low=WIN_A, high=INVALID)
    return codes.astype(np.int8, copy=False)


def code_array(values: Codes, *, name: str, low: int, high: int) -> NDArray[np.integer[Any]]:
    array = np.frombuffer(values, dtype=np.int8) if isinstance(values, bytes) else _array(values)
    if array.ndim != 1:
        raise InputError.of("stats.codes_not_one_column", name=name, ndim=array.ndim)
    if array.size == 0:
        return np.zeros(0, dtype=np.int8)
    if array.dtype.kind not in "iu":
        raise InputError.of(
            "stats.codes_no_integers", name=name, dtype=array.dtype, low=low, high=high
        )
    if int(array.min()) < low or int(array.max()) > high:
        row = int(np.argmax((array < low) | (array > high)))
        raise InputError.of(
            "stats.code_outside", name=name, row=row, low=low, high=high, value=array[row]
        )
    return array


def same_length(rows: int, **columns: Any) -> None:
    for name, column in columns.items():
        if column is not None and len(column) != rows:
            raise InputError.of("stats.length_differs", name=name, n=len(column), rows=rows)


def confidence_level(level: float) -> float:
    # A level that rounds to 1 halfway to its quantile counts as 1.
    if not (level > 0 and 0.5 + level / 2 < 1):
        raise InputError.of("stats.level_outside", level=level)
    return level


def _array(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError.of("stats.codes_no_column") from None
