"""The covariance of the scores from the data's own scatter, by prompt or by row.

The sandwich of Huber (1967) with clusters (Liang and Zeger 1986) and the usual correction for
few of them (CR1: clusters / (clusters - 1) times (rows - 1) / (rows - parameters)).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evenhand.stats.bradley_terry import Fit, Matrix, davidson_chances
from evenhand.stats.tally import Entries, Tally

# Prompts times models that fit in one dense block: 64 MB.
_BLOCK_CELLS = 1 << 23


def sandwich(fit: Fit, tally: Tally) -> Matrix:
    """The covariance of the strengths; only differences of them mean anything."""
    size = len(fit.strength)
    entries = tally.entries
    meat = _row_meat(fit, tally) if entries is None else _cluster_meat(fit, entries)
    inverse = inverse_information(fit)
    clusters = tally.rows if entries is None else entries.clusters
    parameters = len(fit.bread) - 1
    factor = clusters / max(1, clusters - 1)
    factor *= (tally.rows - 1) / max(1, tally.rows - parameters)
    return np.asarray(factor * (inverse @ meat @ inverse)[:size, :size])


def inverse_information(fit: Fit) -> Matrix:
    """The covariance if the model were the truth and every battle independent."""
    size = len(fit.strength)
    bread = fit.bread.copy()
    if not fit.prior_bread.any():
        bread[:size, :size] += bread[:size, :size].trace() / size**2
    return np.asarray(np.linalg.inv(bread))


def _row_meat(fit: Fit, tally: Tally) -> Matrix:
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


def _laplacian(pairs: Matrix) -> Matrix:
    laplacian = -pairs
    np.fill_diagonal(laplacian, 0.0)
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    return laplacian


def _cluster_meat(fit: Fit, entries: Entries) -> Matrix:
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
    """The rows of so many clusters at a time, each block with its first cluster."""
    if entries.clusters <= span:
        yield 0, slice(None)
        return
    block = entries.cluster // span
    # Numbers of two bytes are sorted by counting, in a tenth of the time.
    order = np.argsort(
        block.astype(np.uint16 if block.max() < 1 << 16 else np.int64), kind="stable"
    )
    edges = np.cumsum(np.bincount(block))
    for number, (low, high) in enumerate(pairwise([0, *edges.tolist()])):
        yield number * span, order[low:high]
