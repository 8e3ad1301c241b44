"""Before and after: what a calibration changed on the same rows, and whether beyond noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.agreement import row_clusters
from evenhand.stats.calibration_error import (
    BINS,
    RESAMPLES,
    CalibrationError,
    calibration_error,
    probability_column,
    row_log_loss,
)
from evenhand.stats.clusters import Labels
from evenhand.stats.estimated_value import EstimatedValue, mean_of_rows
from evenhand.stats.outcomes import same_length
from evenhand.stats.signals import right_or_wrong


class CalibrationChange(Model):
    """Both judged on the rows that had a confidence before; `without` others had none.

    Changes are after less before: below 0 is better, and an interval above 0 is worse beyond
    noise. `after_all` is of every row.
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
    bins: int = BINS,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> CalibrationChange:
    """Of the confidence before (None or NaN where there was none) and the probability after."""
    right = right_or_wrong(correct)
    later = probability_column(after)
    try:
        earlier = np.asarray(before, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "before are not all numbers; give one from 0 to 1 a row, or None"
        ) from None
    same_length(right.size, before=earlier, after=later, prompts=prompts)
    known = ~np.isnan(earlier)
    probability_column(earlier[known])
    clusters, count, _ = row_clusters(prompts, known)
    everyone = row_clusters(prompts, np.ones(right.size, dtype=np.bool_))[0]

    def errors(stated: NDArray[np.float64], rows: NDArray[np.bool_]) -> CalibrationError:
        return calibration_error(
            stated[rows],
            right[rows],
            prompts=None if prompts is None else everyone[rows],
            base_rate=base_rate,
            bins=bins,
            level=level,
            resamples=resamples,
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
