"""The Poisson bootstrap: every prompt, or every row, is drawn as often as a Poisson number says.

Replicates are fitted together, all pairs of models at once: a few steps of Newton's method with
the information of the whole data, and a fit of its own for a replicate that these do not bring
to its optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from evenhand.stats.bradley_terry import Fit, Matrix, fit_bradley_terry
from evenhand.stats.connectivity import examine, ties_settled
from evenhand.stats.davidson import fit_davidson
from evenhand.stats.sandwich import inverse_information
from evenhand.stats.tally import Entries, Tally

_SHARED_STEPS = 8
# Of the smallest standard error: what such a step leaves undone no interval can show.
_STEP_TOLERANCE = 1e-3
_BATCH_CELLS = 1 << 17  # few enough to stay in the processor's cache
# From here a Poisson number is drawn as a normal one with the same first three moments.
_MANY = 24.0
_STEEP = 300.0  # log-odds beyond which a replicate is left to a fit of its own


@dataclass(frozen=True, slots=True)
class Replicates:
    strengths: Matrix  # one row a replicate, not centred
    refitted: int  # how many needed a fit of their own
    with_prior: int  # how many of these lost their connection and took the prior


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The pairs of models that met, with a design that adds up pairs into models."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    design: csr_array  # models by pairs: 1 for the first, -1 for the second
    size: int

    @classmethod
    def of(cls, tally: Tally) -> _Pairs:
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
    """What the first of each pair scored, the battles, and the ties: pairs by replicates."""

    won: Matrix
    played: Matrix
    tied: Matrix | None


def bootstrap(
    fit: Fit, tally: Tally, *, prior: float, replicates: int, rng: np.random.Generator
) -> Replicates:
    pairs = _Pairs.of(tally)
    ties = fit.log_ties is not None
    inverse = inverse_information(fit)
    batches = (
        _drawn_cells(tally, pairs, replicates, rng, ties=ties)
        if tally.entries is None
        else _drawn_clusters(tally.entries, pairs, replicates, rng, ties=ties)
    )
    strengths, refitted, with_prior = [], 0, 0
    for batch in batches:
        fitted, settled = _fit_together(fit, pairs, batch, inverse, prior=prior)
        for place in np.flatnonzero(~settled):
            alone, used = _fit_alone(fit, pairs, batch, int(place), prior=prior)
            fitted[:, place] = alone.strength
            refitted += 1
            with_prior += used
        strengths.append(fitted.T)
    return Replicates(np.concatenate(strengths), refitted, with_prior)


def _fit_together(
    fit: Fit, pairs: _Pairs, batch: _Batch, inverse: Matrix, *, prior: float
) -> tuple[Matrix, NDArray[np.bool_]]:
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


def _fit_alone(
    fit: Fit, pairs: _Pairs, batch: _Batch, place: int, *, prior: float
) -> tuple[Fit, bool]:
    won = np.zeros((pairs.size, pairs.size))
    won[pairs.first, pairs.second] = batch.won[:, place]
    lost = batch.played[:, place] - batch.won[:, place]
    # What is left of a subtraction of equal sums is no battle.
    won[pairs.second, pairs.first] = np.where(lost > 1e-9 * batch.played[:, place], lost, 0.0)
    if batch.tied is None:
        used = prior or (0.0 if examine(won).strong else 1.0)
        return fit_bradley_terry(won, prior=used), used != prior
    tied = np.zeros_like(won)
    tied[pairs.first, pairs.second] = tied[pairs.second, pairs.first] = batch.tied[:, place]
    if not tied.any():
        used = prior or (0.0 if examine(won).strong else 1.0)
        return fit_bradley_terry(won, prior=used), used != prior
    wins = won - tied / 2
    wins = np.where(wins > 1e-9 * (won + won.T), wins, 0.0)
    if not wins.any():
        return Fit(np.zeros(pairs.size), fit.bread, fit.prior_bread, 0, True, fit.log_ties), False
    connected = examine(won).strong and ties_settled(wins, tied)
    used = prior or (0.0 if connected else 1.0)
    return fit_davidson(won, tied, prior=used), used != prior


def _drawn_cells(
    tally: Tally, pairs: _Pairs, replicates: int, rng: np.random.Generator, *, ties: bool
) -> Iterator[_Batch]:
    """Rows that count once, drawn one by one, make Poisson numbers of each outcome of a pair."""
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


def _poisson(rates: Matrix, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Poisson numbers, one row a rate; many-fold ones by Cornish and Fisher's expansion (1938)."""
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
    """Box and Muller's method (1958): a third of the time of NumPy's own, for whole arrays."""
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

    def summed(values: Matrix) -> csr_array:
        return csr_array((values, (pair, entries.cluster)), shape=shape)

    won, lost = summed(entries.weight * score), summed(entries.weight * (1 - score))
    tied = summed(entries.weight * (entries.score == 0.5)) if ties else None
    span = max(1, _BATCH_CELLS // max(1, entries.clusters, len(pairs.first)))
    for start in range(0, replicates, span):
        count = min(span, replicates - start)
        times = rng.poisson(1.0, (entries.clusters, count)).astype(np.float64)
        first = won @ times
        yield _Batch(first, first + lost @ times, None if tied is None else tied @ times)
