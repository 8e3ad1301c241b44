"""Rows that share a prompt are not independent: what they are worth together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.stats.columns import Floats, is_missing
from evenhand.stats.distributions import t_quantile

Labels: TypeAlias = Sequence[Any] | NDArray[Any]

# With fewer pairs no outcome is significant by the exact sign test (2 / 2^5 > 0.05).
FEWEST_PAIRS = 6
# With fewer prompts the clustered interval says nothing: it covers 97 to 100% by being wide.
FEWEST_PROMPTS = 5

# Rows of a prompt that agree less than chance may shrink the variance only down to this: a few
# prompts with equal scores would otherwise read as certainty.
SMALLEST_DESIGN_EFFECT = 0.25
# The fourth moment of a normal variable with variance 1.
NORMAL_KURTOSIS = 3.0


def label_codes(labels: Labels, *, name: str = "prompts") -> tuple[NDArray[np.intp], list[Any]]:
    """Each row's label as a number from 0, and the labels in the order of those numbers.

    Integer arrays are numbered in ascending order, all else by first appearance.
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
        return _integer_codes(labels)
    column = _plain(labels)
    try:
        index = dict.fromkeys(column)
    except TypeError:
        raise InputError.of("stats.labels_are_lists", name=name) from None
    for label in index:
        if is_missing(label):
            row = next(row for row, own in enumerate(column) if own is label)
            raise InputError.of("stats.row_without_label", name=name, row=row)
    index = {label: code for code, label in enumerate(index)}
    codes = np.fromiter(map(index.__getitem__, column), dtype=np.intp, count=len(column))
    return codes, list(index)


def _plain(labels: Any) -> list[Any]:
    """NumPy and pandas have `tolist`, Arrow `to_pylist`."""
    for method in ("to_pylist", "tolist"):
        if hasattr(labels, method):
            column: list[Any] = getattr(labels, method)()
            return column
    return list(labels)


def _integer_codes(labels: NDArray[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    if labels.size and int(labels.min()) >= 0 and int(labels.max()) < 4 * labels.size:
        # Codes already, or nearly: counting is ten times as fast as sorting.
        present = np.bincount(labels) > 0
        rank = np.cumsum(present) - 1
        return rank[labels].astype(np.intp, copy=False), np.flatnonzero(present).tolist()
    distinct, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.intp, copy=False), distinct.tolist()


def row_clusters(
    prompts: Labels | None, kept: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], int, bool]:
    """The cluster of each kept row, their number, and whether each has a single row."""
    rows = int(kept.sum())
    if prompts is None:
        return np.arange(rows, dtype=np.intp), rows, True
    clusters = label_codes(prompts)[0][kept]
    present, codes = np.unique(clusters, return_inverse=True)
    return codes.astype(np.intp, copy=False), present.size, present.size == rows


def not_enough(have: int, what: str, fewest: int) -> Message:
    unit = what.replace(",", "").replace(" ", "_").replace("-", "_")
    return Message("stats.too_few", have=Message(f"count.{unit}", n=have), fewest=fewest)


@dataclass(frozen=True, slots=True)
class Spread:
    """How prompts scatter: the variance relative to independent rows, and its degrees."""

    design_effect: float
    degrees: float


def score_spread(wins: Floats, ties: Floats, losses: Floats) -> Spread:
    """The design effect of prompts on the mean score, from each prompt's counts.

    The variance is the jackknife's over prompts (CR3; MacKinnon, Nielsen and Webb 2023), which
    tolerates prompts of unequal size.
    """
    sizes = wins + ties + losses
    prompts, total = sizes.size, float(sizes.sum())
    difference = float(wins.sum() - losses.sum()) / total
    decisive = float(wins.sum() + losses.sum()) / total
    residuals = (wins - losses) - difference * sizes
    independent = (decisive - difference * difference) / (total - 1)
    degrees = float(prompts - 1)
    if independent <= 0:
        # All rows alike: the scatter of prompts is unknown, so a prompt counts as one row.
        return Spread(design_effect=float((sizes * sizes).sum()) / total, degrees=degrees)
    squares = residuals * residuals
    clustered = (prompts - 1) / prompts * float((squares / (total - sizes) ** 2).sum())
    return Spread(
        design_effect=max(SMALLEST_DESIGN_EFFECT, clustered / independent),
        degrees=satterthwaite_degrees(residuals, most=degrees),
    )


def satterthwaite_degrees(deviations: Floats, *, most: float) -> float:
    """Satterthwaite's degrees of freedom (1946) of a sum of squared deviations, one a prompt.

    At most `most`, and fewer if a few prompts carry the variance: the variance of a variance grows
    with the kurtosis, so the degrees are 3 (sum e^2)^2 / sum e^4 - 1.
    """
    squares = deviations * deviations
    quartic = float((squares * squares).sum())
    if quartic <= 0:  # every prompt has the same mean
        return most
    concentrated = NORMAL_KURTOSIS * float(squares.sum()) ** 2 / quartic - 1
    return min(most, max(2.0, concentrated))


def normal_quantile(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def student_quantile(level: float, degrees: float) -> float:
    if not math.isfinite(degrees):
        return normal_quantile(level)
    return t_quantile(degrees, 0.5 + level / 2)
