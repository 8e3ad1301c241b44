"""Where the next comparisons go: to the pairs whose result is most likely to settle an order.

Works on a stack of leagues, like the posterior it starts from.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.strength_posterior import (
    Floats,
    StrengthPosterior,
    gap_variance,
    inverse,
    laplacian,
    win_probability,
)

Counts = NDArray[np.int64]
# (gaps of the strengths, their variances) -> what a smaller variance of each gap is worth
Worth = Callable[[Floats, Floats], Floats]

# How far ahead a comparison is valued: when the variance of its gap will have fallen to this share.
HORIZON = 1.0 / 2.0
# The worth of gaps changes slowly beside their variances, so it is taken anew only so often.
_PICKS_BETWEEN_LOOKS = 8
# Equal scores are told apart by the seed; far above rounding, far below any real difference.
_TIE_BREAK = 1e-6
# Gaps of some fourteen deviations are alike: were all worth to vanish, the first pair would win.
_SURE_ENOUGH = -300.0


def settling_worth(gaps: Floats, variances: Floats) -> Floats:
    """How fast the chance of a wrong order falls with the variance of a gap, at the horizon.

    Until the variance v has fallen to r·v, the estimate moves by a normal step of variance
    (1 - r)·v. The chance of a wrong order, min(P, 1 - P), only falls where the estimate passes
    zero: by φ(0)·φ(gap / √((1 - r)·v)) / (v·√(r·(1 - r))) for each unit of variance (Tanaka's
    formula). What does not depend on the pair is left out.
    """
    exponent = -(gaps**2) / (2.0 * (1.0 - HORIZON) * variances)
    worth: Floats = np.exp(np.maximum(exponent, _SURE_ENOUGH)) / variances
    return worth


def await_results(posterior: StrengthPosterior, in_flight: Floats) -> Floats:
    """The covariance once what is in flight has come back, whatever it says."""
    if not in_flight.any():
        return posterior.covariance
    coming = laplacian(in_flight * information(posterior))
    return inverse(inverse(posterior.covariance) + coming)


def information(posterior: StrengthPosterior) -> Floats:
    """What one comparison of each two models tells of the gap of their strengths (Fisher)."""
    chance = win_probability(posterior.mean)
    told: Floats = chance * (1.0 - chance) / posterior.dispersion[:, None, None]
    return told


def choose_settling_pairs(
    posterior: StrengthPosterior,
    room: Counts,
    *,
    number: int,
    in_flight: Floats,
    tie_break: Floats,
    worth: Worth = settling_worth,
) -> Counts:
    """`number` pairs for each league as (leagues, number, 2), most valuable first.

    A pair's score is the sum over all gaps of their worth times what one comparison of the pair
    takes off their variance: a comparison also tells of every gap that it has a part in. Each
    pick changes the covariance as its result will, so that the next one goes elsewhere in time.
    `room`, symmetric, is how often each pair may still be asked; -1 stands where none may.
    """
    leagues, models = posterior.mean.shape
    league = np.arange(leagues)
    diagonal = np.arange(models)
    gaps = posterior.mean[:, :, None] - posterior.mean[:, None, :]
    told = information(posterior)
    covariance = await_results(posterior, in_flight).copy()
    left = np.where(np.triu(np.ones((models, models), dtype=bool), 1), room, 0)
    weight = np.where(left > 0, told * (1.0 + _TIE_BREAK * tie_break), 0.0)
    closed = np.where(left > 0, 0.0, -1.0)
    tiny = np.finfo(np.float64).tiny
    chosen = np.full((leagues, number, 2), -1, dtype=np.int64)
    value = covariance
    for pick in range(number):
        own = covariance[:, diagonal, diagonal]
        variances = own[:, :, None] + own[:, None, :] - 2.0 * covariance
        if pick % _PICKS_BETWEEN_LOOKS == 0:
            variances = np.maximum(gap_variance(covariance), tiny)
            value = covariance @ laplacian(worth(gaps, variances)) @ covariance
        own = value[:, diagonal, diagonal]
        scores = own[:, :, None] + own[:, None, :] - 2.0 * value
        scores *= weight
        scores /= 1.0 + told * variances
        scores += closed
        best = scores.reshape(leagues, -1).argmax(axis=1)
        first, second = np.divmod(best, models)
        open_still = left[league, first, second] > 0
        if not open_still.any():
            break
        chosen[open_still, pick, 0] = first[open_still]
        chosen[open_still, pick, 1] = second[open_still]
        left[league, first, second] -= open_still
        used_up = left[league, first, second] <= 0
        weight[league[used_up], first[used_up], second[used_up]] = 0.0
        closed[league[used_up], first[used_up], second[used_up]] = -1.0
        # Sherman and Morrison (1950), for the covariance and for the value made of it.
        direction = covariance[league, :, first] - covariance[league, :, second]
        lever = value[league, :, first] - value[league, :, second]
        one = told[league, first, second] * open_still
        shrink = one / (1.0 + one * variances[league, first, second])
        bend = 0.5 * shrink * (lever[league, first] - lever[league, second])
        scaled = shrink[:, None] * direction
        change = scaled[:, :, None] * (lever - bend[:, None] * direction)[:, None, :]
        value = value - change - change.transpose(0, 2, 1)
        covariance -= scaled[:, :, None] * direction[:, None, :]
    return chosen


def _connected_groups(linked: NDArray[np.bool_]) -> Counts:
    """The smallest index that each model hangs together with."""
    models = linked.shape[0]
    near = linked | np.eye(models, dtype=bool)
    groups = np.arange(models)
    while True:
        nearer: Counts = np.where(near, groups[None, :], models).min(axis=1)
        if np.array_equal(nearer, groups):
            return groups
        groups = nearer


def choose_linking_pairs(
    asked: Counts, room: Counts, *, number: int, tie_break: Floats
) -> list[tuple[int, int]]:
    """Pairs that join models never compared, directly or through others; those asked least first.

    For one league. Empty where everything hangs together, or nothing more can be joined.
    """
    models = asked.shape[0]
    groups = _connected_groups(asked > 0)
    load = asked.sum(axis=1).astype(np.float64)
    may = np.triu(room > 0, 1)
    links: list[tuple[int, int]] = []
    while len(links) < number:
        joining = may & (groups[:, None] != groups[None, :])
        if not joining.any():
            break
        strain = np.where(joining, load[:, None] + load[None, :] + tie_break, np.inf)
        first, second = (int(i) for i in divmod(int(strain.argmin()), models))
        links.append((first, second))
        load[[first, second]] += 1.0
        groups[groups == groups[second]] = groups[first]
    return links
