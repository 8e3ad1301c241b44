"""How far probabilities are from what happens: calibration error, Brier score, log loss, bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.agreement import row_clusters
from evenhand.stats.clusters import Floats, Labels
from evenhand.stats.estimated_value import (
    EstimatedValue,
    figure_of_sums,
    mean_of_rows,
    too_few,
)
from evenhand.stats.outcomes import confidence_level, same_length
from evenhand.stats.reliability import (
    ReliabilityBin,
    consistency_p_value,
    debiased_and_plain_error,
    equal_mass_bins,
    reliability_bins,
    sums_by,
)
from evenhand.stats.signals import right_or_wrong

BINS = 10
RESAMPLES = 1000
FEWEST_RESAMPLES = 100
# A wrong verdict with probability 1 has no finite log loss: there, and only there, probabilities
# are held this far from 0 and 1.
LOG_LOSS_FLOOR = 0.001


class CalibrationError(Model):
    """`error` is the debiased calibration error; `plain_error` the usual one, biased upwards.

    `p_value` is for "the probabilities are right": above 1 - level the error cannot be told from
    zero. Brier skill is the share of the base rate's Brier score that the probabilities save.
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
    reason: str | None


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

    The base rate is that of these rows unless one learned elsewhere is given; the rows' own is
    the hardest constant to beat.
    """
    confidence_level(level)
    if bins < 1:
        raise InputError(f"bins is {bins}; give at least 1")
    if resamples < FEWEST_RESAMPLES:
        raise InputError(f"resamples is {resamples}; give at least {FEWEST_RESAMPLES}")
    right = right_or_wrong(correct)
    stated = probability_column(probabilities)
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


def probability_column(probabilities: Sequence[float] | NDArray[Any]) -> Floats:
    try:
        column = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("probabilities are not all numbers; give one from 0 to 1 a row") from None
    if column.ndim != 1:
        raise InputError(f"probabilities has {column.ndim} dimensions; give one a row")
    strange = ~((column >= 0) & (column <= 1))
    if strange.any():
        row = int(np.argmax(strange))
        raise InputError(
            f"the probability in row {row} is {column[row]}; give a number from 0 to 1"
        )
    return column


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
    """1 - Brier / the base rate's Brier; the rows' own rate is estimated anew without a prompt."""
    sizes = np.bincount(clusters, minlength=count).astype(np.float64)
    columns = [squares, right] if base_rate is None else [squares, (base_rate - right) ** 2]
    sums = np.stack([sizes, *(sums_by(clusters, each, count=count) for each in columns)], axis=1)

    def skill(totals: Floats) -> Floats:
        loss, other = totals[:, 1] / totals[:, 0], totals[:, 2] / totals[:, 0]
        base = other * (1 - other) if base_rate is None else other
        found: Floats = 1 - loss / np.where(base > 1e-12, base, np.nan)
        return found

    return figure_of_sums(sums, skill, sizes=sizes, level=level)
