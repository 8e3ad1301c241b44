"""Reliability: probabilities in bins against what happened, and whether they can be told apart."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.stats.clusters import Floats
from evenhand.stats.estimated_share import EstimatedShare, estimate_share

# A bin of fewer rows tells little beyond noise.
ROWS_A_BIN = 15
# Resamples times rows drawn at once.
CHUNK = 4_000_000


class ReliabilityBin(Model):
    """Rows of like probability: what was said, and what happened."""

    low: float
    high: float
    n: int
    mean_probability: float
    share_right: EstimatedShare


def equal_mass_bins(stated: Floats, *, bins: int) -> NDArray[np.intp]:
    """A bin for each row: equal shares of rows, equal probabilities never parted."""
    wanted = max(1, min(bins, stated.size // ROWS_A_BIN))
    _, place, counts = np.unique(stated, return_inverse=True, return_counts=True)
    # A value goes where the middle of its rows lies.
    middle = np.cumsum(counts) - counts / 2
    of_value = np.minimum((middle * wanted / stated.size).astype(np.intp), wanted - 1)
    present = np.unique(of_value, return_inverse=True)[1]
    return present[place].astype(np.intp, copy=False)


def reliability_bins(
    stated: Floats,
    right: Floats,
    place: NDArray[np.intp],
    *,
    clusters: NDArray[np.intp],
    independent: bool,
    level: float,
) -> tuple[ReliabilityBin, ...]:
    found = []
    for number in range(int(place.max()) + 1):
        rows = place == number
        own = np.unique(clusters[rows], return_inverse=True)[1]
        hits = sums_by(own, right[rows])
        found.append(
            ReliabilityBin(
                low=float(stated[rows].min()),
                high=float(stated[rows].max()),
                n=int(rows.sum()),
                mean_probability=float(stated[rows].mean()),
                share_right=estimate_share(
                    hits,
                    sums_by(own, 1 - right[rows]),
                    independent=independent,
                    level=level,
                    unit="verdict",
                ),
            )
        )
    return tuple(found)


def debiased_and_plain_error(
    stated: Floats, right: Floats, place: NDArray[np.intp], *, clusters: NDArray[np.intp]
) -> tuple[float, float]:
    """Debiased and plain: the first of squares (L2), the second of distances (L1), as is usual.

    The squared distance of a bin's mean overstates by that mean's variance, which is taken off
    (Broecker 2012; Kumar, Liang and Ma 2019). The variance is that between prompts, so that rows
    of a prompt do not count as independent. A sum below 0 is noise around 0.
    """
    residuals = right - stated
    bins, rows = int(place.max()) + 1, float(right.size)
    sizes = np.bincount(place, minlength=bins)
    means = np.bincount(place, weights=residuals, minlength=bins) / sizes
    cell, where = np.unique(clusters * bins + place, return_inverse=True)
    apart = np.bincount(where, weights=residuals - means[place])
    of_bin = cell % bins
    prompts = np.bincount(of_bin, minlength=bins)
    spread = np.bincount(of_bin, weights=apart * apart, minlength=bins)
    # One prompt alone cannot tell its variance: nothing is taken off, so the error is too large.
    variances = np.where(
        prompts > 1, spread * prompts / np.maximum(prompts - 1, 1) / (sizes * sizes), 0.0
    )
    squared = float((sizes / rows * (means * means - variances)).sum())
    return math.sqrt(max(0.0, squared)), float((sizes / rows * np.abs(means)).sum())


def consistency_p_value(
    stated: Floats,
    right: Floats,
    place: NDArray[np.intp],
    *,
    clusters: NDArray[np.intp],
    independent: bool,
    resamples: int,
    seed: int,
) -> float:
    """How often right probabilities would give squared bin errors as large as these.

    Independent rows are drawn anew by their own probabilities (consistency resampling, Broecker
    and Smith 2007). Where prompts repeat, each prompt's residuals keep or change their signs
    together (the wild bootstrap), which keeps how rows of a prompt hang together.
    """
    bins = int(place.max()) + 1
    sizes = np.bincount(place, minlength=bins)
    rng = np.random.default_rng(seed)

    def statistic(sums: Floats) -> Floats:
        return np.asarray((sums * sums / sizes).sum(axis=-1), dtype=np.float64)

    observed = float(statistic(sums_by(place, right - stated)))
    at_least = 0
    if independent:
        order = np.argsort(place, kind="stable")
        chances = stated[order].astype(np.float32)
        starts = np.cumsum(sizes) - sizes
        expected = np.bincount(place, weights=stated, minlength=bins)
        units = stated.size
    else:
        units = int(clusters.max()) + 1
        table = np.bincount(
            clusters * bins + place, weights=right - stated, minlength=units * bins
        ).reshape(units, bins)
    step = max(1, CHUNK // units)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        if independent:
            drawn = rng.random((size, units), dtype=np.float32) < chances
            counted: Floats = np.add.reduceat(drawn, starts, axis=1, dtype=np.float64)
            sums = counted - expected
        else:
            signs = rng.integers(0, 2, size=(size, units), dtype=np.int8)
            sums = np.asarray((2.0 * signs - 1.0) @ table, dtype=np.float64)
        # The smallest rounding must not part what is equal.
        at_least += int((statistic(sums) >= observed * (1 - 1e-9)).sum())
    return (1 + at_least) / (1 + resamples)


def sums_by(places: NDArray[np.intp], values: Floats, *, count: int = 0) -> Floats:
    return np.bincount(places, weights=values, minlength=count).astype(np.float64)
