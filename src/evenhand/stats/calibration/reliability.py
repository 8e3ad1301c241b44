"""How far probabilities are from outcomes: reliability bins, calibration error, Brier score and log
loss, and what a calibration changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Sentence
from evenhand.stats.calibration.curves import right_or_wrong
from evenhand.stats.clusters import Labels, row_clusters
from evenhand.stats.columns import Floats, float_column
from evenhand.stats.estimates import (
    EstimatedShare,
    EstimatedValue,
    estimate_share,
    figure_of_sums,
    mean_of_rows,
    too_few,
)
from evenhand.stats.outcomes import confidence_level, same_length

# A smaller bin is mostly noise.
ROWS_A_BIN = 15
# Resamples times rows drawn at once.
CHUNK = 4_000_000


class ReliabilityBin(Model):
    """Rows of similar probability: predicted and observed."""

    low: float
    high: float
    n: int
    mean_probability: float
    share_right: EstimatedShare


def equal_mass_bins(stated: Floats, *, bins: int) -> NDArray[np.intp]:
    """A bin for each row: equal shares of rows, never splitting equal probabilities."""
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
    bins = []
    for number in range(int(place.max()) + 1):
        rows = place == number
        own = np.unique(clusters[rows], return_inverse=True)[1]
        hits = sums_by(own, right[rows])
        bins.append(
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
    return tuple(bins)


def debiased_square(
    stated: Floats, right: Floats, place: NDArray[np.intp], *, clusters: NDArray[np.intp]
) -> float:
    """The squared calibration error (L2), which may fall below 0 by chance.

    The squared distance of a bin's mean is biased by that mean's variance, which is subtracted
    (Broecker 2012; Kumar, Liang and Ma 2019). The variance is between prompts, since a prompt's
    rows are not independent.
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
    # A single prompt has no variance estimate: nothing is subtracted, so the error is too large.
    variances = np.where(
        prompts > 1, spread * prompts / np.maximum(prompts - 1, 1) / (sizes * sizes), 0.0
    )
    return float((sizes / rows * (means * means - variances)).sum())


def debiased_and_plain_error(
    stated: Floats, right: Floats, place: NDArray[np.intp], *, clusters: NDArray[np.intp]
) -> tuple[float, float]:
    """Debiased L2 and the usual plain L1.

    A negative debiased square is noise around 0.
    """
    sizes = np.bincount(place)
    means = np.bincount(place, weights=right - stated) / sizes
    squared = debiased_square(stated, right, place, clusters=clusters)
    plain = float((sizes / right.size * np.abs(means)).sum())
    return math.sqrt(max(0.0, squared)), plain


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
    """How often correct probabilities would give squared bin errors as large as these.

    Independent rows are redrawn by their probabilities (consistency resampling, Broecker and Smith
    2007). If prompts repeat, each prompt's residuals keep or change their signs together (the wild
    bootstrap), which keeps their correlation.
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
        # Rounding must not separate equal values.
        at_least += int((statistic(sums) >= observed * (1 - 1e-9)).sum())
    return (1 + at_least) / (1 + resamples)


def sums_by(places: NDArray[np.intp], values: Floats, *, count: int = 0) -> Floats:
    return np.bincount(places, weights=values, minlength=count).astype(np.float64)


BINS = 10
RESAMPLES = 1000
FEWEST_RESAMPLES = 100
# A wrong verdict with probability 1 has infinite log loss: only there are probabilities kept this
# far from 0 and 1.
LOG_LOSS_FLOOR = 0.001


class CalibrationError(Model):
    """`error` is the debiased calibration error; `plain_error` the usual one, biased upwards.

    `p_value` is for "the probabilities are right": above 1 - level the error is not significantly
    different from zero. Brier skill is the share of the base rate's Brier score that the
    probabilities save.
    """

    n: int
    prompts: int
    error: float | None
    plain_error: float | None
    p_value: float | None
    distinguishable: bool | None
    bins: tuple[ReliabilityBin, ...]
    base_rate: float | None
    brier: EstimatedValue
    base_brier: float | None
    brier_skill: EstimatedValue
    log_loss: EstimatedValue
    base_log_loss: float | None
    log_loss_floor: float
    clustered: bool
    level: float
    resamples: int
    seed: int
    reason: Sentence | None


def calibration_error(
    probabilities: Sequence[float] | NDArray[Any],
    correct: Sequence[Any] | NDArray[Any],
    *,
    prompts: Labels | None = None,
    base_rate: float | None = None,
    bins: int = BINS,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> CalibrationError:
    """Of probabilities that were not learned on these rows.

    The base rate is these rows' own, the hardest constant to beat, unless one learned elsewhere is
    given.
    """
    confidence_level(level)
    if bins < 1:
        raise InputError.of("stats.at_least", value=bins, name="bins", least=1)
    if resamples < FEWEST_RESAMPLES:
        raise InputError.of(
            "stats.at_least", value=resamples, least=FEWEST_RESAMPLES, name="resamples"
        )
    right = right_or_wrong(correct)
    stated = float_column(probabilities, name="probabilities", low=0, high=1)
    same_length(right.size, probabilities=stated, prompts=prompts)
    clusters, count, independent = row_clusters(prompts, np.ones(right.size, dtype=np.bool_))
    sizes = np.bincount(clusters, minlength=count).astype(np.float64)
    reason = too_few(sizes)
    rate = base_rate if base_rate is not None else (float(right.mean()) if right.size else None)
    error = plain = p_value = None
    binned: tuple[ReliabilityBin, ...] = ()
    if reason is None:
        place = equal_mass_bins(stated, bins=bins)
        binned = reliability_bins(
            stated, right, place, clusters=clusters, independent=independent, level=level
        )
        error, plain = debiased_and_plain_error(stated, right, place, clusters=clusters)
        p_value = consistency_p_value(
            stated,
            right,
            place,
            clusters=clusters,
            independent=independent,
            resamples=resamples,
            seed=seed,
        )
    squares = (stated - right) ** 2
    base = np.full(right.size, rate if rate is not None else 0.5)
    return CalibrationError(
        n=right.size,
        prompts=count,
        error=error,
        plain_error=plain,
        p_value=p_value,
        distinguishable=None if p_value is None else p_value < 1 - level,
        bins=binned,
        base_rate=rate,
        brier=mean_of_rows(squares, clusters=clusters, count=count, level=level),
        base_brier=float(((base - right) ** 2).mean()) if right.size else None,
        brier_skill=_skill(squares, right, base_rate, clusters=clusters, count=count, level=level),
        log_loss=mean_of_rows(
            row_log_loss(stated, right), clusters=clusters, count=count, level=level
        ),
        base_log_loss=float(row_log_loss(base, right).mean()) if right.size else None,
        log_loss_floor=LOG_LOSS_FLOOR,
        clustered=not independent,
        level=level,
        resamples=resamples,
        seed=seed,
        reason=reason,
    )


def row_log_loss(stated: Floats, right: Floats) -> Floats:
    held = np.clip(stated, LOG_LOSS_FLOOR, 1 - LOG_LOSS_FLOOR)
    loss: Floats = -np.log(np.where(right > 0, held, 1 - held))
    return loss


def _skill(
    squares: Floats,
    right: Floats,
    base_rate: float | None,
    *,
    clusters: NDArray[np.intp],
    count: int,
    level: float,
) -> EstimatedValue:
    """1 - Brier / the base rate's Brier; the rows' own rate is re-estimated without each prompt."""
    sizes = np.bincount(clusters, minlength=count).astype(np.float64)
    columns = [squares, right] if base_rate is None else [squares, (base_rate - right) ** 2]
    sums = np.stack([sizes, *(sums_by(clusters, each, count=count) for each in columns)], axis=1)

    def skill(totals: Floats) -> Floats:
        loss, other = totals[:, 1] / totals[:, 0], totals[:, 2] / totals[:, 0]
        base = other * (1 - other) if base_rate is None else other
        saved: Floats = 1 - loss / np.where(base > 1e-12, base, np.nan)
        return saved

    return figure_of_sums(sums, skill, sizes=sizes, level=level)


class CalibrationChange(Model):
    """Both on the rows that had a confidence before; `without` others had none.

    Changes are after minus before: below 0 is better, and an interval above 0 is worse beyond
    noise. `after_all` is over every row.
    """

    before: CalibrationError | None
    after: CalibrationError | None
    after_all: CalibrationError
    without: int
    brier_change: EstimatedValue | None
    log_loss_change: EstimatedValue | None


def calibration_change(
    before: Sequence[float | None] | NDArray[Any],
    after: Sequence[float] | NDArray[Any],
    correct: Sequence[Any] | NDArray[Any],
    *,
    prompts: Labels | None = None,
    base_rate: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> CalibrationChange:
    """Of the confidence before (None or NaN if missing) and the probability after."""
    right = right_or_wrong(correct)
    later = float_column(after, name="after", low=0, high=1)
    earlier = float_column(before, name="before", low=0, high=1, missing=True)
    same_length(right.size, before=earlier, after=later, prompts=prompts)
    known = ~np.isnan(earlier)
    clusters, count, _ = row_clusters(prompts, known)
    everyone = row_clusters(prompts, np.ones(right.size, dtype=np.bool_))[0]

    def errors(stated: NDArray[np.float64], rows: NDArray[np.bool_]) -> CalibrationError:
        return calibration_error(
            stated[rows],
            right[rows],
            prompts=None if prompts is None else everyone[rows],
            base_rate=base_rate,
            level=level,
            seed=seed,
        )

    def change(one: NDArray[np.float64], other: NDArray[np.float64]) -> EstimatedValue:
        return mean_of_rows(one - other, clusters=clusters, count=count, level=level)

    some = bool(known.any())
    hits, old, new = right[known], earlier[known], later[known]
    return CalibrationChange(
        before=errors(earlier, known) if some else None,
        after=errors(later, known) if some else None,
        after_all=errors(later, np.ones(right.size, dtype=np.bool_)),
        without=int((~known).sum()),
        brier_change=change((new - hits) ** 2, (old - hits) ** 2) if some else None,
        log_loss_change=change(row_log_loss(new, hits), row_log_loss(old, hits)) if some else None,
    )
