"""People's labels as columns: checked, those that cannot count left out, one score a pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.clusters import Floats


@dataclass(frozen=True, slots=True)
class HumanLabels:
    """The labelled pairs' rows in ascending order, A's mean score from -1 to 1, their chances."""

    rows: NDArray[np.intp]
    scores: Floats
    chances: Floats
    labels: int
    escalated: int
    undecided: int
    lost_pairs: int


def gather_labels(
    label_pairs: Any, label_scores: Any, *, pairs: int, chances: Any, escalated: Any, decided: Any
) -> HumanLabels:
    rows = row_column(label_pairs, pairs, name="label_pairs")
    scores = score_column(label_scores, name="label_scores")
    if scores.size != rows.size:
        raise InputError(
            f"label_scores has length {scores.size} and label_pairs {rows.size}; give one a label"
        )
    unsure = mask_column(escalated, rows.size, name="escalated", default=False)
    known = mask_column(decided, rows.size, name="label_decided", default=True)
    usable = known & ~unsure
    number = np.bincount(rows[usable], minlength=pairs)
    sums = np.bincount(rows[usable], weights=2.0 * scores[usable] - 1.0, minlength=pairs)
    kept = np.flatnonzero(number)
    ever = np.bincount(rows, minlength=pairs) > 0
    return HumanLabels(
        rows=kept,
        scores=sums[kept] / number[kept],
        chances=_chances(chances, kept, pairs),
        labels=int(usable.sum()),
        escalated=int(unsure.sum()),
        undecided=int((~known & ~unsure).sum()),
        lost_pairs=int(ever.sum()) - kept.size,
    )


def _chances(chances: Any, kept: NDArray[np.intp], pairs: int) -> Floats:
    if chances is None:
        # A simple random sample: each pair had the same chance.
        return np.full(kept.size, kept.size / pairs if pairs else 1.0)
    column = float_column(chances, name="chances")
    if column.size != pairs:
        raise InputError(f"chances has length {column.size} and there are {pairs} pairs; give all")
    own = column[kept]
    if own.size and not (own.min() > 0 and own.max() <= 1):
        place = int(np.argmax((own <= 0) | (own > 1)))
        raise InputError(
            f"chances has {own[place]} in row {kept[place]}, which is labelled; give its chance of"
            " being drawn, above 0 and at most 1"
        )
    return own


def row_column(values: Any, pairs: int, *, name: str) -> NDArray[np.intp]:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{name} is no column of whole numbers; give each label its pair's row")
    if int(array.min()) < 0 or int(array.max()) >= pairs:
        row = int(np.argmax((array < 0) | (array >= pairs)))
        raise InputError(f"{name} has {array[row]} in row {row}; give rows from 0 to {pairs - 1}")
    return array.astype(np.intp, copy=False)


def score_column(values: Any, *, name: str) -> Floats:
    """A's scores from 0 to 1."""
    column = float_column(values, name=name)
    wrong = (column < 0) | (column > 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"{name} has {column[row]} in row {row}; give scores of A from 0 to 1")
    return column


def float_column(values: Any, *, name: str) -> Floats:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is no column of numbers; give one number a row") from None
    if column.ndim != 1:
        raise InputError(f"{name} has {column.ndim} dimensions; give one number a row")
    unknown = ~np.isfinite(column)
    if unknown.any():
        row = int(np.argmax(unknown))
        raise InputError(f"{name} has {column[row]} in row {row}; give a number, or leave it out")
    return column


def mask_column(values: Any, rows: int, *, name: str, default: bool) -> NDArray[np.bool_]:
    if values is None:
        return np.full(rows, default)
    mask = np.asarray(values)
    if mask.ndim != 1 or mask.size != rows:
        raise InputError(f"{name} has shape {mask.shape} and not ({rows},); give one a row")
    if mask.size == 0:
        return np.zeros(0, dtype=np.bool_)
    if mask.dtype != np.bool_:
        raise InputError(f"{name} are {mask.dtype} and not true or false; give one a row")
    return mask
