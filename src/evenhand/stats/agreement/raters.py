"""Agreement among several ratings of a pair (samples, judges or people): Krippendorff's alpha and
the share of agreeing pairs of ratings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.stats.clusters import FEWEST_PROMPTS, Labels, label_codes, not_enough
from evenhand.stats.columns import Floats
from evenhand.stats.estimates import EstimatedShare, estimate_share, share_like_interval
from evenhand.stats.outcomes import Codes, code_array, confidence_level, same_length

MISSING = -1
MOST_CLASSES = 1000
RESAMPLES = 1000
FEWEST_RESAMPLES = 100
# Resamples with a single value have no alpha; if more than this share have none, the rest would
# represent only the easy ones.
MOST_UNDEFINED = 0.05
# Resamples times distinct units, drawn at once.
CHUNK = 10_000_000


class Krippendorff(Model):
    """Alpha over the `units` with two or more values; `single` others have one or none.

    The interval's variance is from a bootstrap over units, or over prompts if given.
    """

    alpha: float | None
    low: float | None
    high: float | None
    units: int
    single: int
    values: int
    prompts: int | None
    level: float
    resamples: int
    seed: int
    reason: Sentence | None


def krippendorff(
    units: Labels,
    values: Codes,
    *,
    prompts: Labels | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Krippendorff:
    """From one vote a row (from 0, -1 if missing); a unit's prompt is that of its first vote."""
    return _alpha(*_counted(units, values, prompts), level=level, resamples=resamples, seed=seed)


def _counted(
    units: Labels, values: Codes, prompts: Labels | None
) -> tuple[NDArray[np.int64], NDArray[np.intp] | None]:
    """Each unit's count of each class, and its prompt."""
    codes = code_array(values, name="values", low=MISSING, high=MOST_CLASSES)
    same_length(codes.size, units=units, prompts=prompts)
    unit, labels = label_codes(units, name="units")
    own = None
    if prompts is not None:
        own = np.zeros(len(labels), dtype=np.intp)
        own[unit[::-1]] = label_codes(prompts)[0][::-1]
    given = codes != MISSING
    classes = int(codes.max(initial=0)) + 1
    cells = unit[given] * classes + codes[given].astype(np.intp)
    counts = np.bincount(cells, minlength=len(labels) * classes)
    return counts.reshape(len(labels), classes), own


def _alpha(
    counts: NDArray[np.int64],
    prompts: NDArray[np.intp] | None,
    *,
    level: float,
    resamples: int,
    seed: int,
) -> Krippendorff:
    confidence_level(level)
    if resamples < FEWEST_RESAMPLES:
        raise InputError.of(
            "stats.at_least", value=resamples, least=FEWEST_RESAMPLES, name="resamples"
        )
    sizes = counts.sum(axis=1)
    paired = sizes >= 2
    counts, sizes = counts[paired], sizes[paired]
    # A unit's agreeing pairs of values over its raters less one: the diagonal of Krippendorff's
    # coincidence matrix (2011).
    agreeing = (counts * (counts - 1)).sum(axis=1) / np.maximum(sizes - 1, 1)
    sums = np.column_stack([agreeing, counts]).astype(np.float64)
    units = np.ones(sizes.size)
    if prompts is not None:
        own = np.unique(prompts[paired], return_inverse=True)[1]
        groups = int(own.max(initial=-1)) + 1
        units = np.bincount(own, minlength=groups).astype(np.float64)
        sums = np.stack(
            [np.bincount(own, weights=column, minlength=groups) for column in sums.T], axis=1
        )
    alpha = float(_alpha_of_sums(sums.sum(axis=0)[np.newaxis, :])[0]) if sums.size else np.nan
    low, high, reason = _interval(
        sums, alpha, sizes=units, level=level, resamples=resamples, seed=seed
    )
    return Krippendorff(
        alpha=None if np.isnan(alpha) else alpha,
        low=low,
        high=high,
        units=int(paired.sum()),
        single=int((~paired).sum()),
        values=int(sizes.sum()),
        prompts=None if prompts is None else sums.shape[0],
        level=level,
        resamples=resamples,
        seed=seed,
        reason=reason,
    )


def _parts(sums: Floats) -> tuple[Floats, Floats]:
    """Observed and expected disagreement, as shares of pairs of values."""
    agreeing, classes = sums[:, 0], sums[:, 1:]
    total = classes.sum(axis=1)
    return (
        1 - agreeing / total,
        1 - (classes * (classes - 1)).sum(axis=1) / (total * (total - 1)),
    )


def _alpha_of_sums(sums: Floats) -> Floats:
    """1 - observed / expected disagreement (Krippendorff 2011); NaN if all values are the same."""
    observed, expected = _parts(sums)
    # Quotients of integers: below this the expectation is 0 up to rounding.
    alpha: Floats = 1 - observed / np.where(expected > 1e-12, expected, np.nan)
    return alpha


def _interval(
    sums: Floats, alpha: float, *, sizes: Floats, level: float, resamples: int, seed: int
) -> tuple[float | None, float | None, str | None]:
    """The score interval of the observed disagreement, over what is expected by chance.

    The bootstrap's own percentiles cover too little with few units or rare disagreement (83% of
    a nominal 95% in the worst case tried), so it gives the variance and not the shape.
    """
    if sizes.size < FEWEST_PROMPTS:
        return None, None, not_enough(sizes.size, "twice-rated unit", FEWEST_PROMPTS)
    if np.isnan(alpha):
        return None, None, Message("stats.alpha_undefined")
    drawn = _resampled(sums, resamples=resamples, seed=seed)
    defined = drawn[~np.isnan(drawn)]
    if defined.size < (1 - MOST_UNDEFINED) * resamples:
        return None, None, Message("stats.values_alike")
    observed, expected = (float(part[0]) for part in _parts(sums.sum(axis=0)[np.newaxis, :]))
    groups = sizes.size
    low, high = share_like_interval(
        observed,
        float(defined.var()) * groups / (groups - 1) * expected * expected,
        sizes=sizes,
        degrees=float(groups - 1),
        level=level,
    )
    return (
        max(-1.0, min(alpha, 1 - high / expected)),
        min(1.0, max(alpha, 1 - low / expected)),
        None,
    )


def _resampled(sums: Floats, *, resamples: int, seed: int) -> Floats:
    """Alpha of each resample. Units with equal counts are drawn together, as one multinomial."""
    distinct, multiplicity = np.unique(sums, axis=0, return_counts=True)
    groups = sums.shape[0]
    rng = np.random.default_rng(seed)
    step = max(1, CHUNK // distinct.shape[0])
    parts = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        weights = rng.multinomial(groups, multiplicity / groups, size=size)
        parts.append(_alpha_of_sums(weights @ distinct))
    return np.concatenate(parts)


class RaterAgreement(Model):
    """The share of agreeing pairs of ratings of the same unit, and alpha.

    `unanimous` is the share of units with two or more ratings on which all agree.
    """

    units: int
    agreement: EstimatedShare
    unanimous: EstimatedShare
    alpha: Krippendorff
    clustered: bool
    level: float


def agreement_among(
    units: Labels,
    values: Codes,
    *,
    prompts: Labels | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> RaterAgreement:
    """From one vote a row (from 0, -1 if missing); a unit's prompt is that of its first vote."""
    counts, own = _counted(units, values, prompts)
    alpha = _alpha(counts, own, level=level, resamples=RESAMPLES, seed=seed)
    cluster = np.arange(len(counts), dtype=np.intp) if own is None else own
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
    # Pairs of ratings of one unit are no more independent than rows of one prompt.
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
