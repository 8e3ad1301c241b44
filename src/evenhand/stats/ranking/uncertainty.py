"""The uncertainty of scores and ranks: standard errors clustered by prompt or a Poisson bootstrap,
limits of scores, rank ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, ndtr, ndtri, stdtrit

from evenhand.stats.columns import Floats
from evenhand.stats.ranking.bradley_terry import (
    Fit,
    davidson_chances,
    fit_bradley_terry,
    fit_davidson,
)
from evenhand.stats.ranking.result import RankingOptions
from evenhand.stats.ranking.tally import BattleTally, Connectivity, Entries, examine, ties_settled

# The covariance of the scores from the data's scatter, by prompt or row: the sandwich of Huber
# (1967) with clusters (Liang and Zeger 1986) and the usual correction for few of them (CR1:
# clusters / (clusters - 1) times (rows - 1) / (rows - parameters)).

# Prompts times models in one dense block: 64 MB.
_BLOCK_CELLS = 1 << 23


def sandwich(fit: Fit, tally: BattleTally) -> Floats:
    """The covariance of the strengths; only their differences are meaningful."""
    size = len(fit.strength)
    entries = tally.entries
    meat = _row_meat(fit, tally) if entries is None else _cluster_meat(fit, entries)
    inverse = inverse_information(fit)
    clusters = tally.rows if entries is None else entries.clusters
    parameters = len(fit.bread) - 1
    factor = clusters / max(1, clusters - 1)
    factor *= (tally.rows - 1) / max(1, tally.rows - parameters)
    return np.asarray(factor * (inverse @ meat @ inverse)[:size, :size])


def inverse_information(fit: Fit) -> Floats:
    """The covariance if the model were true and battles independent."""
    size = len(fit.strength)
    bread = fit.bread.copy()
    if not fit.prior_bread.any():
        bread[:size, :size] += bread[:size, :size].trace() / size**2
    return np.asarray(np.linalg.inv(bread))


def _row_meat(fit: Fit, tally: BattleTally) -> Floats:
    size = len(fit.strength)
    difference = fit.strength[:, None] - fit.strength
    if fit.log_ties is None:
        chance = expit(difference)
        scatter = tally.squares_won2 - 2 * chance * tally.squares_won
        scatter += chance * chance * tally.squares
        return _laplacian(scatter)
    win, tie = davidson_chances(difference, fit.log_ties)
    expected = win + tie / 2
    wins = tally.squares_won - tally.squares_tied / 2
    ties = tally.squares_tied
    meat = np.empty((size + 1, size + 1))
    scatter = wins * (1 - expected) ** 2 + wins.T * expected**2 + ties * (0.5 - expected) ** 2
    meat[:size, :size] = _laplacian(scatter)
    across = -wins * (1 - expected) * tie + wins.T * expected * tie
    across += ties * (0.5 - expected) * (1 - tie)
    meat[:size, size] = meat[size, :size] = across.sum(axis=1)
    meat[size, size] = ((wins + wins.T) * tie**2 + ties * (1 - tie) ** 2).sum() / 2
    return meat


def _laplacian(pairs: Floats) -> Floats:
    laplacian = -pairs
    np.fill_diagonal(laplacian, 0.0)
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    return laplacian


def _cluster_meat(fit: Fit, entries: Entries) -> Floats:
    size = len(fit.strength)
    difference = fit.strength[:, None] - fit.strength
    pair = entries.model_a * size + entries.model_b
    extra = None
    if fit.log_ties is None:
        expected = expit(difference)
    else:
        win, tie = davidson_chances(difference, fit.log_ties)
        expected = win + tie / 2
        extra = entries.weight * ((entries.score == 0.5) - tie.ravel()[pair])
    residual = entries.weight * (entries.score - expected.ravel()[pair])
    width = size + (extra is not None)
    meat = np.zeros((width, width))
    span = max(1, _BLOCK_CELLS // width)
    for start, rows in _blocks(entries, span):
        count = min(span, entries.clusters - start)
        place = (entries.cluster[rows] - start) * width
        cells = count * width
        sums = np.bincount(place + entries.model_a[rows], residual[rows], cells)
        sums -= np.bincount(place + entries.model_b[rows], residual[rows], cells)
        if extra is not None:
            sums += np.bincount(place + size, extra[rows], cells)
        scores = sums.reshape(count, width)
        meat += scores.T @ scores
    return meat


def _blocks(entries: Entries, span: int) -> Iterator[tuple[int, NDArray[np.intp] | slice]]:
    """The rows of this many clusters at a time, with each block's first cluster."""
    if entries.clusters <= span:
        yield 0, slice(None)
        return
    block = entries.cluster // span
    # Two-byte integers are sorted by counting, in a tenth of the time.
    order = np.argsort(
        block.astype(np.uint16 if block.max() < 1 << 16 else np.int64), kind="stable"
    )
    edges = np.cumsum(np.bincount(block))
    for number, (low, high) in enumerate(pairwise([0, *edges.tolist()])):
        yield number * span, order[low:high]


# The Poisson bootstrap: every prompt, or row, is drawn a Poisson number of times. Replicates are
# fitted together: a few Newton steps with the information of the whole data, and a separate fit for
# replicates that do not converge.

_SHARED_STEPS = 8
# Of the smallest standard error: a smaller step is invisible in any interval.
_STEP_TOLERANCE = 1e-3
_BATCH_CELLS = 1 << 17  # few enough to stay in the processor's cache
# From here on a Poisson number is drawn as a normal one with the same first three moments.
_MANY = 24.0
_STEEP = 300.0  # log-odds beyond which a replicate is left to a fit of its own


@dataclass(frozen=True, slots=True)
class Replicates:
    strengths: Floats  # one row a replicate, not centred
    refitted: int  # how many needed a fit of their own


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The pairs of models that met, with a design matrix that sums pairs into models."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    design: csr_array  # models by pairs: 1 for the first, -1 for the second
    size: int

    @classmethod
    def of(cls, tally: BattleTally) -> _Pairs:
        size = len(tally.models)
        first, second = np.nonzero(np.triu(tally.played, 1))
        place = np.arange(len(first))
        ones = np.ones(len(first))
        design = csr_array(
            (np.concatenate([ones, -ones]), (np.concatenate([first, second]), np.tile(place, 2))),
            shape=(size, len(first)),
        )
        return cls(first, second, design, size)


@dataclass(frozen=True, slots=True)
class _Batch:
    """The first model's score, the battles, and the ties: pairs by replicates."""

    won: Floats
    played: Floats
    tied: Floats | None


def bootstrap(
    fit: Fit, tally: BattleTally, *, prior: float, replicates: int, rng: np.random.Generator
) -> Replicates:
    pairs = _Pairs.of(tally)
    ties = fit.log_ties is not None
    inverse = inverse_information(fit)
    batches = (
        _drawn_cells(tally, pairs, replicates, rng, ties=ties)
        if tally.entries is None
        else _drawn_clusters(tally.entries, pairs, replicates, rng, ties=ties)
    )
    strengths, refitted = [], 0
    for batch in batches:
        fitted, settled = _fit_together(fit, pairs, batch, inverse, prior=prior)
        for place in np.flatnonzero(~settled):
            fitted[:, place] = _fit_alone(fit, pairs, batch, int(place), prior=prior).strength
            refitted += 1
        strengths.append(fitted.T)
    return Replicates(np.concatenate(strengths), refitted)


def _fit_together(
    fit: Fit, pairs: _Pairs, batch: _Batch, inverse: Floats, *, prior: float
) -> tuple[Floats, NDArray[np.bool_]]:
    size, count = pairs.size, batch.won.shape[1]
    strength = np.repeat(fit.strength[:, None], count, axis=1)
    log_ties = None if fit.log_ties is None else np.full(count, fit.log_ties)
    last = np.full(count, np.inf)
    tolerance = _STEP_TOLERANCE * float(np.sqrt(inverse.diagonal()[:size].min()))
    for _ in range(_SHARED_STEPS):
        odds = np.exp(np.clip(strength - strength.mean(axis=0), -_STEEP, _STEEP))
        first, second = odds.take(pairs.first, axis=0), odds.take(pairs.second, axis=0)
        if log_ties is None or batch.tied is None:
            second += first
            first /= second
            first *= batch.played
            gradient = pairs.design @ np.subtract(batch.won, first, out=first)
        else:
            tie = np.exp(np.clip(log_ties, -_STEEP, _STEEP)) * np.sqrt(first * second)
            total = first + second + tie
            win, tie = first / total, tie / total
            gradient = np.empty((size + 1, count))
            gradient[:size] = pairs.design @ (batch.won - batch.played * (win + tie / 2))
            gradient[size] = (batch.tied - batch.played * tie).sum(axis=0)
        if prior:
            gradient[:size] += prior * (0.5 - expit(strength))
        step = inverse @ gradient
        strength += step[:size]
        if log_ties is not None:
            log_ties = log_ties + step[size]
        last = np.abs(step).max(axis=0)
        if (last < tolerance).all():
            break
    return strength, last < tolerance


def _fit_alone(fit: Fit, pairs: _Pairs, batch: _Batch, place: int, *, prior: float) -> Fit:
    """With the prior if a replicate is disconnected."""
    won = np.zeros((pairs.size, pairs.size))
    won[pairs.first, pairs.second] = batch.won[:, place]
    lost = batch.played[:, place] - batch.won[:, place]
    # A residue of subtracting equal sums is not a battle.
    won[pairs.second, pairs.first] = np.where(lost > 1e-9 * batch.played[:, place], lost, 0.0)
    tied = np.zeros_like(won)
    if batch.tied is not None:
        tied[pairs.first, pairs.second] = tied[pairs.second, pairs.first] = batch.tied[:, place]
    if not tied.any():
        return fit_bradley_terry(won, prior=prior or (0.0 if examine(won).strong else 1.0))
    wins = won - tied / 2
    wins = np.where(wins > 1e-9 * (won + won.T), wins, 0.0)
    if not wins.any():
        return Fit(np.zeros(pairs.size), fit.bread, fit.prior_bread, 0, True, fit.log_ties)
    connected = examine(won).strong and ties_settled(wins, tied)
    return fit_davidson(won, tied, prior=prior or (0.0 if connected else 1.0))


def _drawn_cells(
    tally: BattleTally, pairs: _Pairs, replicates: int, rng: np.random.Generator, *, ties: bool
) -> Iterator[_Batch]:
    """Rows drawn one by one make Poisson numbers of each outcome of a pair."""
    lost = tally.won.T - tally.tied / 2
    wins = tally.won - tally.tied / 2
    rates = [m[pairs.first, pairs.second] for m in (wins, lost, tally.tied)]
    span = max(1, _BATCH_CELLS // max(1, len(pairs.first)))
    for start in range(0, replicates, span):
        count = min(span, replicates - start)
        won, against, tied = (_poisson(rate, count, rng) for rate in rates)
        played = won + against
        played += tied
        won += tied * np.float32(0.5)
        yield _Batch(
            won.astype(np.float64),
            played.astype(np.float64),
            tied.astype(np.float64) if ties else None,
        )


def _poisson(rates: Floats, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Poisson numbers, one row a rate; large rates by Cornish and Fisher's expansion (1938)."""
    drawn = _normal(len(rates) * count, rng).reshape(len(rates), count)
    root = np.sqrt(rates).astype(np.float32)[:, None]
    curved = drawn * np.float32(1 / 6)
    curved += root
    curved *= drawn
    curved += (rates - 1 / 6).astype(np.float32)[:, None]
    few = np.flatnonzero(rates < _MANY)
    if few.size:
        curved[few] = rng.poisson(rates[few, None], (few.size, count))
    np.maximum(curved, 0, out=curved)
    return curved


def _normal(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Box and Muller's method (1958): a third of the time of NumPy's for whole arrays."""
    half = (count + 1) // 2
    radius = 1 - rng.random(half, dtype=np.float32)
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)
    angle = rng.random(half, dtype=np.float32)
    angle *= np.float32(2 * np.pi)
    drawn = np.empty(2 * half, np.float32)
    np.multiply(np.cos(angle), radius, out=drawn[:half])
    np.multiply(np.sin(angle), radius, out=drawn[half:])
    return drawn[:count]


def _drawn_clusters(
    entries: Entries, pairs: _Pairs, replicates: int, rng: np.random.Generator, *, ties: bool
) -> Iterator[_Batch]:
    place = np.zeros((pairs.size, pairs.size), np.intp)
    place[pairs.first, pairs.second] = place[pairs.second, pairs.first] = np.arange(
        len(pairs.first)
    )
    pair = place[entries.model_a, entries.model_b]
    score = np.where(entries.model_a < entries.model_b, entries.score, 1 - entries.score)
    shape = (len(pairs.first), entries.clusters)

    def summed(values: Floats) -> csr_array:
        return csr_array((values, (pair, entries.cluster)), shape=shape)

    won, lost = summed(entries.weight * score), summed(entries.weight * (1 - score))
    tied = summed(entries.weight * (entries.score == 0.5)) if ties else None
    span = max(1, _BATCH_CELLS // max(1, entries.clusters, len(pairs.first)))
    for start in range(0, replicates, span):
        count = min(span, replicates - start)
        times = rng.poisson(1.0, (entries.clusters, count)).astype(np.float64)
        first = won @ times
        yield _Batch(first, first + lost @ times, None if tied is None else tied @ times)


# Significant differences and rank ranges. Two models differ significantly if the interval of their
# difference excludes 0. The intervals of all pairs hold jointly: their critical value is that of
# Tukey's range of as many normal values (1953; Kramer 1956 for unequal variances), carried over to
# Student's t. The true rank lies between 1 + the number of models significantly better, and the
# number of models - those significantly worse (Klein, Wright and Wieczorek 2020): jointly, too.

_NORMAL = 1_000_000  # degrees of freedom from which Student's t is taken for normal


@dataclass(frozen=True, slots=True)
class Ranks:
    better: NDArray[np.bool_]  # [i, j]: i is significantly better than j
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    errors: Floats  # the standard errors of the differences
    critical: float  # how many of them a difference must have


def quantile(level: float, freedom: float, *, models: int = 2) -> float:
    """The number of standard errors within which all differences of `models` jointly stay.

    Each difference's variance is estimated with these degrees of freedom: Student's t replaces the
    normal distribution, with the tail that Tukey's range leaves.
    """
    tail = (1 - level) / 2 if models <= 2 else float(ndtr(-_normal_range(level, models) / 2**0.5))
    return float(-stdtrit(freedom, tail) if freedom < _NORMAL else -ndtri(tail))


@lru_cache(maxsize=256)
def _normal_range(level: float, count: int) -> float:
    """The quantile of the range of independent standard normal values (Tukey's q for known
    variances), by bisection; the trapezoidal rule is exact to rounding for such integrands."""
    highest = np.linspace(-9.0, 9.0, 721)
    below = ndtr(highest)
    density = np.exp(-(highest**2) / 2)
    density *= count * (highest[1] - highest[0]) / math.sqrt(2 * math.pi)
    low, high = 0.0, 60.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        within = density @ (below - ndtr(highest - middle)) ** (count - 1)
        low, high = (middle, high) if within < level else (low, middle)
    return (low + high) / 2


def rank_intervals(
    strength: Floats,
    variances: Floats,
    *,
    comparable: NDArray[np.bool_] | None,
    level: float,
    freedom: float,
) -> Ranks:
    """`variances[i, j]` is the variance of the difference of i and j."""
    size = len(strength)
    # A model comparable only with itself is in no difference.
    compared = size if comparable is None else int((comparable.sum(axis=0) > 1).sum())
    critical = quantile(level, freedom, models=compared)
    errors = np.sqrt(np.maximum(variances, 0.0))
    difference = strength[:, None] - strength
    # A variance of 0 is not certainty: the battles never differ, such as only ties.
    better = (difference > critical * errors) & (errors > negligible(strength))
    if comparable is not None:
        better &= comparable
    low = 1 + better.sum(axis=0)
    high = size - better.sum(axis=1)
    return Ranks(better, low, high, errors, critical)


def negligible(strength: Floats) -> float:
    """Below this a standard error is rounding: a variance of 0 comes out of sixteen digits as about
    1e-16, and one of 1e-12 takes a million million battles."""
    return 1e-6 * max(1.0, math.sqrt(float(np.abs(strength).max(initial=0.0))))


def difference_variances(covariance: Floats) -> Floats:
    own = covariance.diagonal()
    return np.asarray(own[:, None] + own - 2 * covariance)


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Limits of each log-odds, NaN if there are none, and the rank ranges."""

    low: Floats
    high: Floats
    ranks: Ranks
    refitted: int | None = None


def measure_uncertainty(
    fit: Fit,
    tally: BattleTally,
    links: Connectivity,
    asked: RankingOptions,
    prior: float,
    clusters: int,
) -> Uncertainty:
    refitted = drawn = None
    main = links.main
    freedom = clusters - 1.0
    if asked.intervals == "bootstrap":
        rng = np.random.default_rng(asked.seed)
        made = bootstrap(fit, tally, prior=prior, replicates=asked.replicates, rng=rng)
        drawn = made.strengths - made.strengths[:, main].mean(axis=1)[:, None]
        refitted = made.refitted
        covariance = np.cov(drawn, rowvar=False)
        # Few replicates make the variance as uncertain as few clusters; the two add up.
        freedom = 1 / (1 / freedom + 1 / (asked.replicates - 1))
    else:
        covariance = sandwich(fit, tally)
    size = len(fit.strength)
    anchoring = np.eye(size) - np.where(main, 1 / main.sum(), 0.0)
    covariance = anchoring @ covariance @ anchoring.T
    variances = difference_variances(covariance)
    own = covariance.diagonal().copy()
    if prior:
        # An undefeated model's battles hardly scatter: use the model's own variance if larger.
        expected = anchoring @ inverse_information(fit)[:size, :size] @ anchoring.T
        own = np.maximum(own, expected.diagonal())
        variances = np.maximum(variances, difference_variances(expected))
    strength = fit.strength - fit.strength[main].mean()
    error = np.sqrt(np.maximum(own, 0.0))
    reach = quantile(asked.level, freedom) * error
    low, high = strength - reach, strength + reach
    if drawn is not None and not prior:
        tail = (1 - asked.level) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    none = error <= negligible(strength)
    if not links.strong:
        beyond = ~(main | links.above | links.below) | (main & (main.sum() == 1))
        low[beyond | links.below | links.winless] = np.nan
        high[beyond | links.above | links.undefeated] = np.nan
    low[none] = high[none] = np.nan
    ranks = rank_intervals(
        strength, variances, comparable=links.comparable, level=asked.level, freedom=freedom
    )
    return Uncertainty(low, high, ranks, refitted)
