"""How many independent judges a panel amounts to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.messages import Message
from evenhand.stats.clusters import Labels, row_clusters
from evenhand.stats.columns import Floats
from evenhand.stats.estimates import EstimatedValue, figure_of_sums
from evenhand.stats.juries.accuracy import half_credit
from evenhand.stats.juries.votes import vote_table, whole_votes
from evenhand.stats.outcomes import code_array, confidence_level, same_length


def effective_votes(
    votes: Any,
    label_winners: Any,
    *,
    prompts: Labels | None = None,
    level: float = 0.95,
) -> EstimatedValue:
    """How many independent judges would scatter as little as the mean of these: k / (1 + (k-1) r).

    r is the mean correlation of the judges' half credit over the labelled pairs: Kish's design
    effect (1965) with judges as the sample. At most k. Its interval is that of the inverse.
    """
    confidence_level(level)
    codes = whole_votes(vote_table(votes))
    labels = code_array(label_winners, name="label_winners", low=-1, high=2)
    same_length(codes.shape[0], label_winners=labels, prompts=prompts)
    known = labels >= 0
    if not known.any():
        return EstimatedValue.missing(Message("stats.effective_votes_need_labels"))
    judges = codes.shape[1]
    cluster, count, _ = row_clusters(prompts, known)
    credit = half_credit(codes[known], labels[known, None])
    if judges > 1 and (np.ptp(credit, axis=0) == 0).any():
        return EstimatedValue.missing(Message("stats.errors_do_not_vary"))
    columns = [np.ones(len(credit)), *credit.T]
    columns += [credit[:, one] * credit[:, other] for one, other in _twos(judges)]
    sums = _sums(np.stack(columns, axis=1), cluster, count)
    shared = figure_of_sums(
        sums, lambda totals: _mean_correlation(totals, judges), sizes=sums[:, 0], level=level
    )
    if shared.value is None or shared.low is None or shared.high is None:
        return shared

    def judges_of(share: float) -> float:
        return float(1 / min(max(share, 1 / judges), 1.0))

    return EstimatedValue(
        value=judges_of(shared.value),
        low=judges_of(shared.high),
        high=judges_of(shared.low),
        reason=None,
    )


def _twos(judges: int) -> list[tuple[int, int]]:
    return [(one, other) for one in range(judges) for other in range(one, judges)]


def _mean_correlation(totals: Floats, judges: int) -> Floats:
    """Over the whole correlation matrix, including its diagonal."""
    means = totals[:, 1 : judges + 1] / totals[:, :1]
    products = totals[:, judges + 1 :] / totals[:, :1]
    twos = _twos(judges)
    covariance = {
        two: products[:, place] - means[:, two[0]] * means[:, two[1]]
        for place, two in enumerate(twos)
    }
    total = np.zeros(len(totals))
    for one, other in twos:
        if one == other:
            total += 1
            continue
        scale = np.sqrt(covariance[one, one] * covariance[other, other])
        total += 2 * covariance[one, other] / np.where(scale > 0, scale, np.nan)
    return total / judges**2


def _sums(columns: Floats, cluster: NDArray[np.intp], count: int) -> Floats:
    return np.stack(
        [np.bincount(cluster, weights=column, minlength=count) for column in columns.T], axis=1
    )
