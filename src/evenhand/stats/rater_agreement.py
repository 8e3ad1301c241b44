"""Agreement among several ratings of the same pair: samples of a judge, judges, or people."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.stats.clusters import Floats, Labels, label_codes
from evenhand.stats.estimated_share import EstimatedShare, estimate_share
from evenhand.stats.krippendorff import (
    RESAMPLES,
    Krippendorff,
    krippendorff_of_votes,
    rating_table,
)
from evenhand.stats.outcomes import Codes, code_array, same_length


class RaterAgreement(Model):
    """The share of agreeing pairs of ratings of the same unit, and alpha: the same less chance.

    `unanimous` is the share of units, of those with two ratings or more, on which all agree.
    """

    units: int
    agreement: EstimatedShare
    unanimous: EstimatedShare
    alpha: Krippendorff
    clustered: bool
    level: float


def agreement_among(
    ratings: NDArray[np.integer[Any]] | list[list[int]],
    *,
    prompts: Labels | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RaterAgreement:
    """From a table of codes (0 and up, -1 where missing): a row a unit, a column a rating."""
    table = rating_table(ratings)
    same_length(table.shape[0], prompts=prompts)
    units = np.repeat(np.arange(table.shape[0]), table.shape[1])
    own = None if prompts is None else np.repeat(label_codes(prompts)[0], table.shape[1])
    return agreement_among_votes(
        units, table.ravel(), prompts=own, level=level, resamples=resamples, seed=seed
    )


def agreement_among_votes(
    units: Labels,
    values: Codes,
    *,
    prompts: Labels | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RaterAgreement:
    """The same from one vote a row; a unit's prompt is that of its first vote."""
    alpha = krippendorff_of_votes(
        units, values, prompts=prompts, level=level, resamples=resamples, seed=seed
    )
    codes = code_array(values, name="values", low=-1, high=1000)
    unit, labels = label_codes(units, name="units")
    cluster = np.arange(len(labels), dtype=np.intp)
    if prompts is not None:
        cluster[unit[::-1]] = label_codes(prompts)[0][::-1]
    given = codes >= 0
    classes = int(codes.max(initial=0)) + 1
    cells = unit[given] * classes + codes[given].astype(np.intp)
    counts = np.bincount(cells, minlength=len(labels) * classes).reshape(-1, classes)
    sizes = counts.sum(axis=1)
    paired = sizes >= 2
    counts, sizes, cluster = counts[paired], sizes[paired], cluster[paired]
    agreeing = (counts * (counts - 1)).sum(axis=1) / 2
    pairs = sizes * (sizes - 1) / 2
    alone = np.unique(cluster).size == cluster.size

    def each(weights: Floats) -> Floats:
        groups = int(cluster.max(initial=-1)) + 1
        sums: Floats = np.bincount(cluster, weights=weights, minlength=groups).astype(np.float64)
        return sums

    unanimous = (counts.max(axis=1, initial=0) == sizes).astype(np.float64)
    # Several pairs of ratings of one unit are no more independent than rows of one prompt.
    return RaterAgreement(
        units=int(paired.sum()),
        agreement=estimate_share(
            each(agreeing),
            each(pairs - agreeing),
            independent=alone and bool((pairs <= 1).all()),
            level=level,
            unit="rating pair",
        ),
        unanimous=estimate_share(
            each(unanimous),
            each(1 - unanimous),
            independent=alone,
            level=level,
            unit="twice-rated unit",
        ),
        alpha=alpha,
        clustered=not alone,
        level=level,
    )
