"""What the judge said against what the labels say, and the figures of such a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.stats.clusters import Floats

# One winner a row, in the caller's labels.
NO_VERDICT, SAYS_A, SAYS_B, SAYS_TIE = -1, 0, 1, 2
CLASSES = ("A", "B", "TIE")
KINDS = len(CLASSES)
# A table is flat: a row for each label, and in it a column for each verdict and one for none.
COLUMNS = KINDS + 1
CELLS = KINDS * COLUMNS


class ConfusionRow(Model):
    """The verdicts on the pairs of one label."""

    label: str
    says_a: int
    says_b: int
    says_tie: int
    none: int


class ConfusionMatrix(Model):
    a: ConfusionRow
    b: ConfusionRow
    tie: ConfusionRow

    @classmethod
    def of_cells(cls, cells: Floats) -> ConfusionMatrix:
        rows = []
        for label, counts in zip(CLASSES, cells.reshape(KINDS, COLUMNS).tolist(), strict=True):
            a, b, tie, none = (round(count) for count in counts)
            rows.append(ConfusionRow(label=label, says_a=a, says_b=b, says_tie=tie, none=none))
        return cls(a=rows[0], b=rows[1], tie=rows[2])


def confusion_cells(
    verdicts: NDArray[np.integer[Any]],
    labels: NDArray[np.integer[Any]],
    *,
    clusters: NDArray[np.intp],
    count: int,
) -> Floats:
    """One flat table for each cluster; every row must have a label."""
    column = np.where(verdicts < 0, KINDS, verdicts).astype(np.intp)
    cell = labels.astype(np.intp) * COLUMNS + column
    counted = np.bincount(clusters * CELLS + cell, minlength=count * CELLS)
    return counted.reshape(count, CELLS).astype(np.float64)


def read_cells(cells: Floats, *, ties: bool) -> Floats:
    """Square tables of the rows with a verdict; without ties, of those where neither is one."""
    kept = KINDS if ties else KINDS - 1
    return cells.reshape(-1, KINDS, COLUMNS)[:, :kept, :kept]


def kappa_parts(cells: Floats, *, ties: bool) -> tuple[Floats, Floats]:
    """Observed and expected disagreement (Cohen 1960); NaN where there is nothing to compare."""
    square = read_cells(cells, ties=ties)
    total = square.sum(axis=(1, 2))
    agreed = np.trace(square, axis1=1, axis2=2)
    by_chance = (square.sum(axis=1) * square.sum(axis=2)).sum(axis=1)
    counted = np.where(total > 0, total, np.nan)
    return 1 - agreed / counted, 1 - by_chance / (counted * counted)


def kappa_of_cells(cells: Floats, *, ties: bool) -> Floats:
    """1 - observed / expected disagreement; NaN where both only ever say the same one thing."""
    observed, expected = kappa_parts(cells, ties=ties)
    # Sums of whole numbers over their square: below this the expectation is 0 but for rounding.
    possible = np.where(expected > 1e-12, expected, np.nan)
    kappa: Floats = 1 - observed / possible
    return kappa


def macro_f1_of_cells(cells: Floats) -> Floats:
    """The mean F1 of the classes that a label or a verdict has; no verdict is a miss.

    F1 of a class is twice its hits over all labels and verdicts of that class.
    """
    table = cells.reshape(-1, KINDS, COLUMNS)
    hits = np.diagonal(table[:, :, :KINDS], axis1=1, axis2=2)
    named = table.sum(axis=2) + table[:, :, :KINDS].sum(axis=1)
    scores = np.divide(2 * hits, named, out=np.zeros_like(named), where=named > 0)
    present = (named > 0).sum(axis=1)
    mean: Floats = scores.sum(axis=1) / np.where(present > 0, present, np.nan)
    return mean
