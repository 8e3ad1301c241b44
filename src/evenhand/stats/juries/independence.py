"""How many independent judges a panel amounts to, and how right it is without labels if its judges
err independently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.stats.clusters import Labels, row_clusters
from evenhand.stats.columns import Floats
from evenhand.stats.estimates import EstimatedValue, figure_of_sums
from evenhand.stats.juries.accuracy import half_credit
from evenhand.stats.juries.votes import VOTE_A, VOTE_B, Winners, vote_table, whole_votes
from evenhand.stats.outcomes import code_array, confidence_level, same_length

FEWEST_JUDGES = 3
# Of the jury's estimate, on panels of recorded judges with labels (scripts/verify_juries.py).
PANELS_TRIED, MEAN_ERROR, TOO_HIGH = 62, 0.135, 60
# Prompts are left out in so many groups at most: a refit for each of 100,000 would take minutes.
_MOST_GROUPS = 200
_ROUNDS = 100
# By chance a judge may seem more than perfect. Cut at 1 before the interval is made, it would seem
# certain too.
_LARGEST_EDGE = 2.0
# A judge is never quite certain: a posterior of 1 would outweigh any number of others.
_NEAREST_TO_ONE = 0.99


def effective_votes(
    votes: Any,
    label_winners: Any,
    *,
    prompts: Labels | None = None,
    level: float = 0.95,
) -> EstimatedValue:
    """How many independent judges would scatter as little as the mean of these: k / (1 + (k-1) r).

    r is the mean correlation of the judges' half credit over the labelled pairs: Kish's design
    effect (1965) with judges as the sample. At most k. Its interval is that of 1 over it.
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
    """The mean of the whole matrix of correlations, its diagonal of ones among them."""
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


class LabelFreeAccuracy(Model):
    """What agreement alone says of accuracy, undecided as half, if judges err independently."""

    jury: EstimatedValue
    judges: tuple[EstimatedValue, ...]
    error: Sentence  # how far off it was where labels could tell
    reason: Sentence | None


def label_free_accuracy(
    votes: Any,
    winners: Winners,
    *,
    prompts: Labels | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> LabelFreeAccuracy:
    """From how often each two judges agree where both name a winner; `winners` are the jury's.

    If one response of each pair is better, and judges err independently and as often either way,
    two agree less disagree with a share of a_i a_j, where a_i is how much more often judge i is
    right than wrong. The a that fit all twos best (Parisi et al. 2014) tell each judge's accuracy,
    and by Bayes' rule the jury's. LLM judges do not err independently, so this is mostly too high.
    """
    confidence_level(level)
    codes = whole_votes(vote_table(votes))
    same_length(codes.shape[0], winners=winners, prompts=prompts)
    judges = codes.shape[1]
    if judges < FEWEST_JUDGES:
        reason = Message("stats.label_free_needs_three", judges=judges)
        missing = EstimatedValue.missing(reason)
        return _label_free(missing, (missing,) * judges, reason)
    cluster, count, _ = row_clusters(prompts, np.ones(len(codes), dtype=np.bool_))
    groups = min(count, _MOST_GROUPS)
    group = (np.random.default_rng(seed).permutation(count) % max(groups, 1))[cluster]
    # All of it is a function of how often each pattern of votes, and of the jury's verdict, occurs.
    rows = np.column_stack([codes, winners])
    patterns, pattern = np.unique(rows, axis=0, return_inverse=True)
    cells = group * len(patterns) + pattern.reshape(-1)
    totals = np.bincount(cells, minlength=groups * len(patterns))
    sums = totals.reshape(groups, -1).astype(np.float64)
    leaning = (patterns == VOTE_A).astype(np.float64) - (patterns == VOTE_B)
    own, jury = leaning[:, :-1], leaning[:, -1]

    def figure(of: Callable[[Floats, Floats], Floats]) -> EstimatedValue:
        def fitted(totals: Floats) -> Floats:
            return of(totals / totals.sum(axis=1, keepdims=True), _edges(totals, own))

        found = figure_of_sums(sums, fitted, sizes=sums.sum(axis=1), level=level)
        if found.low is None or found.high is None:
            return found
        ends = {name: min(max(0.0, getattr(found, name)), 1.0) for name in ("value", "low", "high")}
        return found.model_copy(update=ends)

    def of_jury(shares: Floats, edges: Floats) -> Floats:
        sure = np.clip(np.nan_to_num(edges), -_NEAREST_TO_ONE, _NEAREST_TO_ONE)
        # Of the log-odds that A is better, tanh of a half is how much likelier A is than B.
        edge: Floats = np.tanh((np.log1p(sure) - np.log1p(-sure)) @ own.T / 2)
        credit: Floats = 0.5 + (shares * edge * jury).sum(axis=1) / 2
        return credit

    def of_judge(place: int) -> Callable[[Floats, Floats], Floats]:
        decided = np.abs(own[:, place])
        return lambda shares, edges: 0.5 + (shares @ decided) * edges[:, place] / 2

    return _label_free(figure(of_jury), tuple(figure(of_judge(each)) for each in range(judges)))


def _label_free(
    jury: EstimatedValue, judges: tuple[EstimatedValue, ...], reason: Message | None = None
) -> LabelFreeAccuracy:
    error = Message(
        "stats.label_free_error",
        panels=PANELS_TRIED,
        points=round(100 * MEAN_ERROR, 1),
        high=TOO_HIGH,
    )
    return LabelFreeAccuracy(jury=jury, judges=judges, error=error, reason=reason)


def _edges(totals: Floats, own: Floats) -> Floats:
    """For each row of totals, how much more often each judge is right than wrong where it names a
    winner: least squares over the twos of judges, weighted by the pairs that they share."""
    voted = np.abs(own)
    shared = np.einsum("rp,pi,pj->rij", totals, voted, voted, optimize=True)
    product = np.einsum("rp,pi,pj->rij", totals, own, own, optimize=True)
    diagonal = np.arange(own.shape[1])
    shared[:, diagonal, diagonal] = product[:, diagonal, diagonal] = 0
    size = np.abs(product).sum(axis=(1, 2)) / np.maximum(shared.sum(axis=(1, 2)), 1)
    edges = np.repeat(np.sqrt(size)[:, None], own.shape[1], axis=1)
    for _ in range(_ROUNDS):
        for judge in diagonal:
            weight = (shared[:, judge] * edges**2).sum(axis=1)
            fit = (product[:, judge] * edges).sum(axis=1) / np.where(weight > 0, weight, np.inf)
            edges[:, judge] = np.clip(fit, -_LARGEST_EDGE, _LARGEST_EDGE)
    # Agreement cannot tell right from wrong; that most judges are better than a coin is assumed.
    edges *= np.where(edges.sum(axis=1, keepdims=True) < 0, -1, 1)
    edges[shared.sum(axis=2) == 0] = np.nan  # nobody to agree with
    return edges


def _sums(columns: Floats, cluster: NDArray[np.intp], count: int) -> Floats:
    return np.stack(
        [np.bincount(cluster, weights=column, minlength=count) for column in columns.T], axis=1
    )
