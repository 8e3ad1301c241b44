"""Agreement of a judge with labels, or with another judge: confusion matrix, accuracy, Cohen's
kappa, macro F1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import NO_WINNER, SAYS_TIE, WINNERS
from evenhand.contract.model import Model
from evenhand.messages import Message
from evenhand.stats.clusters import Labels, row_clusters
from evenhand.stats.columns import Floats
from evenhand.stats.estimates import (
    EstimatedShare,
    EstimatedValue,
    estimate_share,
    jackknife,
    share_like_interval,
    too_few,
)
from evenhand.stats.outcomes import Codes, code_array, confidence_level, same_length

KINDS = len(WINNERS)
# A table is flat: a row per label, with a column per verdict and one for none.
COLUMNS = KINDS + 1
CELLS = KINDS * COLUMNS


class ConfusionRow(Model):
    """The verdicts on the pairs of one label. `none` counts inconsistent and invalid together; each
    is None if outcomes are unknown."""

    label: str
    says_a: int
    says_b: int
    says_tie: int
    none: int
    inconsistent: int | None = None
    invalid: int | None = None


class ConfusionMatrix(Model):
    a: ConfusionRow
    b: ConfusionRow
    tie: ConfusionRow

    @classmethod
    def of_cells(cls, cells: Floats) -> ConfusionMatrix:
        rows = []
        for label, counts in zip(WINNERS, cells.reshape(KINDS, COLUMNS).tolist(), strict=True):
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
    """One flat table per cluster; every row must have a label."""
    column = np.where(verdicts < 0, KINDS, verdicts).astype(np.intp)
    cell = labels.astype(np.intp) * COLUMNS + column
    counted = np.bincount(clusters * CELLS + cell, minlength=count * CELLS)
    return counted.reshape(count, CELLS).astype(np.float64)


def read_cells(cells: Floats, *, ties: bool) -> Floats:
    """Square tables of the rows with a verdict; without ties, of those without a TIE on either
    side."""
    kept = KINDS if ties else KINDS - 1
    return cells.reshape(-1, KINDS, COLUMNS)[:, :kept, :kept]


def kappa_parts(cells: Floats, *, ties: bool) -> tuple[Floats, Floats]:
    """Observed and expected disagreement (Cohen 1960); NaN without data."""
    square = read_cells(cells, ties=ties)
    total = square.sum(axis=(1, 2))
    agreed = np.trace(square, axis1=1, axis2=2)
    by_chance = (square.sum(axis=1) * square.sum(axis=2)).sum(axis=1)
    counted = np.where(total > 0, total, np.nan)
    return 1 - agreed / counted, 1 - by_chance / (counted * counted)


def kappa_of_cells(cells: Floats, *, ties: bool) -> Floats:
    """1 - observed / expected disagreement; NaN if both always give the same single answer."""
    observed, expected = kappa_parts(cells, ties=ties)
    # Quotients of integers: below this the expectation is 0 up to rounding.
    possible = np.where(expected > 1e-12, expected, np.nan)
    kappa: Floats = 1 - observed / possible
    return kappa


def macro_f1_of_cells(cells: Floats) -> Floats:
    """The mean F1 of the classes that occur; no verdict is a miss.

    A class's F1 is twice its hits over all its labels and verdicts.
    """
    table = cells.reshape(-1, KINDS, COLUMNS)
    hits = np.diagonal(table[:, :, :KINDS], axis1=1, axis2=2)
    named = table.sum(axis=2) + table[:, :, :KINDS].sum(axis=1)
    scores = np.divide(2 * hits, named, out=np.zeros_like(named), where=named > 0)
    present = (named > 0).sum(axis=1)
    mean: Floats = scores.sum(axis=1) / np.where(present > 0, present, np.nan)
    return mean


class Agreement(Model):
    """`n` rows have a label, and `read` of them a verdict.

    Accuracy and macro F1 are over all labelled rows, where no verdict is wrong. Agreement and kappa
    are over the rows with a verdict, and symmetric in judge and labels. Without ties: over the rows
    where neither says TIE.
    """

    n: int
    read: int
    unlabelled: int
    prompts: int | None
    accuracy: EstimatedShare
    agreement: EstimatedShare
    agreement_without_ties: EstimatedShare
    kappa: EstimatedValue
    kappa_without_ties: EstimatedValue
    macro_f1: EstimatedValue
    unread: EstimatedShare
    confusion: ConfusionMatrix
    clustered: bool
    level: float


def agreement(
    verdicts: Codes, labels: Codes, *, prompts: Labels | None = None, level: float = 0.95
) -> Agreement:
    """From a winner and a label a row (0 is A, 1 is B, 2 a tie, -1 none); prompts are clusters.

    Rows without a label are counted and left out. A second judge's winners may serve as labels.
    """
    confidence_level(level)
    given = code_array(verdicts, name="verdicts", low=NO_WINNER, high=SAYS_TIE)
    truth = code_array(labels, name="labels", low=NO_WINNER, high=SAYS_TIE)
    same_length(given.size, labels=truth, prompts=prompts)
    known = truth != NO_WINNER
    clusters, count, independent = row_clusters(prompts, known)
    cells = confusion_cells(given[known], truth[known], clusters=clusters, count=count)
    square = read_cells(cells, ties=True)
    decided = read_cells(cells, ties=False)
    rows, read = cells.sum(axis=1), square.sum(axis=(1, 2))
    right = np.trace(square, axis1=1, axis2=2)
    right_decided = np.trace(decided, axis1=1, axis2=2)

    def share(part: Floats, of: Floats, unit: str) -> EstimatedShare:
        return estimate_share(part, of - part, independent=independent, level=level, unit=unit)

    return Agreement(
        n=int(rows.sum()),
        read=int(read.sum()),
        unlabelled=int(given.size - rows.sum()),
        prompts=None if prompts is None else count,
        accuracy=share(right, rows, "labelled pair"),
        agreement=share(right, read, "read and labelled pair"),
        agreement_without_ties=share(right_decided, decided.sum(axis=(1, 2)), "decided pair"),
        kappa=_kappa(cells, ties=True, level=level),
        kappa_without_ties=_kappa(cells, ties=False, level=level),
        macro_f1=_macro_f1(cells, level=level),
        unread=share(rows - read, rows, "labelled pair"),
        confusion=ConfusionMatrix.of_cells(cells.sum(axis=0)),
        clustered=not independent,
        level=level,
    )


def _kappa(cells: Floats, *, ties: bool, level: float) -> EstimatedValue:
    """Kappa with the interval of its share of disagreement.

    Kappa is 1 - observed / expected disagreement. The jackknife gives kappa's variance, both parts
    included; the score interval of a share with that variance is then scaled by the expected part.
    """
    sizes = read_cells(cells, ties=ties).sum(axis=(1, 2))
    used = cells[sizes > 0]
    reason = too_few(sizes)
    if reason is not None:
        return EstimatedValue.missing(reason)
    total = used.sum(axis=0)[np.newaxis, :]
    value = float(kappa_of_cells(total, ties=ties)[0])
    if np.isnan(value):
        return EstimatedValue.missing(Message("stats.kappa_undefined"))
    estimate = jackknife(used, lambda sums: kappa_of_cells(sums, ties=ties))
    if estimate is None:
        return EstimatedValue(
            value=value,
            low=None,
            high=None,
            reason=Message("stats.one_prompt_differs"),
        )
    observed, expected = (float(part[0]) for part in kappa_parts(total, ties=ties))
    low, high = share_like_interval(
        observed,
        estimate.variance * expected * expected,
        sizes=sizes[sizes > 0],
        degrees=estimate.degrees,
        level=level,
    )
    return EstimatedValue(
        value=value,
        low=max(-1.0, min(value, 1 - high / expected)),
        high=min(1.0, max(value, 1 - low / expected)),
        reason=None,
    )


def _macro_f1(cells: Floats, *, level: float) -> EstimatedValue:
    sizes = cells.sum(axis=1)
    reason = too_few(sizes)
    if reason is not None:
        return EstimatedValue.missing(reason)
    estimate = jackknife(cells, macro_f1_of_cells)
    if estimate is None:
        return EstimatedValue.missing(Message("stats.f1_undefined"))
    value = estimate.value
    low, high = share_like_interval(
        value, estimate.variance, sizes=sizes, degrees=estimate.degrees, level=level
    )
    return EstimatedValue(value=value, low=min(low, value), high=max(high, value), reason=None)
