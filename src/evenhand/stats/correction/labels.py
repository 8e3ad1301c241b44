"""People's labels as columns, and which pairs to label next, drawn with known chances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.columns import Floats, float_column, mask_column
from evenhand.stats.outcomes import code_array
from evenhand.stats.seeded_order import order_key


@dataclass(frozen=True, slots=True)
class HumanLabels:
    """The labelled pairs' rows in ascending order, A's mean score from -1 to 1, their chances."""

    rows: NDArray[np.intp]
    scores: Floats
    chances: Floats
    labels: int
    escalated: int
    undecided: int
    lost_pairs: int


def gather_labels(
    label_pairs: Any, label_scores: Any, *, pairs: int, chances: Any, escalated: Any, decided: Any
) -> HumanLabels:
    rows = code_array(label_pairs, name="label_pairs", low=0, high=pairs - 1).astype(np.intp)
    scores = float_column(label_scores, name="label_scores", low=0, high=1)
    if scores.size != rows.size:
        raise InputError.of("stats.label_lengths", scores=scores.size, pairs=rows.size)
    unsure = mask_column(escalated, rows.size, name="escalated", default=False)
    known = mask_column(decided, rows.size, name="label_decided", default=True)
    usable = known & ~unsure
    number = np.bincount(rows[usable], minlength=pairs)
    sums = np.bincount(rows[usable], weights=2.0 * scores[usable] - 1.0, minlength=pairs)
    kept = np.flatnonzero(number)
    ever = np.bincount(rows, minlength=pairs) > 0
    return HumanLabels(
        rows=kept,
        scores=sums[kept] / number[kept],
        chances=_label_chances(chances, kept, pairs),
        labels=int(usable.sum()),
        escalated=int(unsure.sum()),
        undecided=int((~known & ~unsure).sum()),
        lost_pairs=int(ever.sum()) - kept.size,
    )


def _label_chances(chances: Any, kept: NDArray[np.intp], pairs: int) -> Floats:
    if chances is None:
        # A simple random sample: each pair had the same chance.
        return np.full(kept.size, kept.size / pairs if pairs else 1.0)
    column = float_column(chances, name="chances")
    if column.size != pairs:
        raise InputError.of("stats.chances_length", size=column.size, pairs=pairs)
    own = column[kept]
    if own.size and not (own.min() > 0 and own.max() <= 1):
        place = int(np.argmax((own <= 0) | (own > 1)))
        raise InputError.of("stats.chance_outside", value=own[place], row=kept[place])
    return own


# Half of the draw is uniform: no pair weighs more than twice as much as in a uniform draw, so an
# error where the judge was sure cannot dominate the estimate.
_EVEN_SHARE = 0.5
_KEYS = 2.0**63
# Larger doubts are scaled before summing.
_LARGE = 1e100


@dataclass(frozen=True, slots=True)
class LabelDraw:
    """Every pair, in the order to label; `chances_after` has each one's chance of being drawn."""

    queue: NDArray[np.intp]
    _keys: Floats
    _sizes: Floats

    def chances_after(self, number: int) -> Floats:
        """The chances if only the first `number` pairs of the queue were labelled."""
        size = self.queue.size
        if not 0 <= number <= size:
            raise InputError.of("stats.more_than_queue", number=number, size=size)
        if number == size:
            return np.ones(number)
        # The key of the first pair not drawn, on which no drawn pair's key depends.
        chances: Floats = np.minimum(1.0, float(self._keys[self.queue[number]]) * self._sizes)
        return chances


def draw_labels(doubts: Any, *, ids: Sequence[str] | None = None, seed: int = 0) -> LabelDraw:
    """A queue in which doubtful pairs tend to come early.

    Priority sampling (Duffield, Lund and Thorup 2007): pair i has the key u_i / size_i, with u_i
    uniform by the seed, and the lowest keys are drawn. Given the lowest key not drawn, pair i was
    in with a chance of min(1, key * size_i), and estimates weighted by these chances are unbiased
    at any length of the queue. So people may stop and go on at any point of it.

    Sizes are a uniform share plus a share proportional to the doubt, the expected size of the error
    (`doubts_of_confidence`). They may depend on anything but the labels of these pairs. With `ids`,
    u_i depends on the pair's id instead of its row.
    """
    doubt = float_column(doubts, name="doubts", low=0)
    sizes = _sizes(doubt)
    keys = _uniform(doubt.size, ids, seed) / sizes
    return LabelDraw(np.argsort(keys, kind="stable"), keys, sizes)


def doubts_of_confidence(confidence: Any, *, read: Any = None) -> Floats:
    """The expected size of the error of a verdict that is right with this probability.

    Its square is the chance of an error, and the draw of least variance is proportional to the root
    of the mean square (Neyman 1934). A pair without a verdict has a coin's doubt.
    """
    chance = float_column(confidence, name="confidence")
    known = mask_column(read, chance.size, name="read", default=True)
    float_column(np.where(known, chance, 0.5), name="confidence", low=0, high=1)
    doubts: Floats = np.sqrt(1.0 - np.where(known, chance, 0.5))
    return doubts


def joint_chances(first: Any, second: Any) -> Floats:
    """A pair's chance of being in one of two draws with independent seeds (or sources)."""
    one, other = float_column(first, name="first"), float_column(second, name="second")
    if one.size != other.size:
        raise InputError.of("stats.draws_differ", size=one.size, size2=other.size)
    chances: Floats = 1.0 - (1.0 - one) * (1.0 - other)
    return chances


def _sizes(doubt: Floats) -> Floats:
    if doubt.size and float(doubt.max()) > _LARGE:
        doubt = doubt / doubt.max()
    total = float(doubt.sum())
    if total <= 0:
        return np.ones(doubt.size)
    # A mean of 1 keeps keys near their uniform numbers.
    sizes: Floats = _EVEN_SHARE + (1.0 - _EVEN_SHARE) * doubt * (doubt.size / total)
    return sizes


def _uniform(pairs: int, ids: Sequence[str] | None, seed: int) -> Floats:
    """Above 0, so that no pair is drawn for certain."""
    if ids is None:
        return 1.0 - np.random.default_rng(seed).random(pairs)
    if len(ids) != pairs:
        raise InputError.of("stats.ids_length", n=len(ids), pairs=pairs)
    if len(set(ids)) != pairs:
        raise InputError.of("stats.id_twice")
    # Named differently from the order in which people label a run: with the same seed the two draws
    # are independent, as `joint_chances` needs.
    keys = np.array([order_key(f"drawn\0{own}", seed=seed) for own in ids], dtype=np.float64)
    return (keys + 1.0) / (_KEYS + 1.0)
