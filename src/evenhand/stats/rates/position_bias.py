"""Position bias: how often the two orders of a pair agree, and which position the others favour."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.messages import Sentence
from evenhand.stats.clusters import Labels, label_codes
from evenhand.stats.estimates import EstimatedShare, estimate_share
from evenhand.stats.intervals import sign_test_p
from evenhand.stats.outcomes import Codes, code_array, confidence_level, same_length
from evenhand.stats.rates.paired_difference import PairedDifference, paired_difference

# One order's choice, in the caller's labels; the first shows A first, the second B first. An order
# whose samples split evenly chose nothing, although it was read.
SPLIT, UNREAD, PASS_A, PASS_B, PASS_TIE = -2, -1, 0, 1, 2
# A lean beyond this share of the pairs, by its whole interval, raises the position alarm.
ALARM_ABOVE = 0.1
# What a pass gives A, in halves.
_HALVES = np.array([2, 0, 1], dtype=np.int8)


class PositionBias(Model):
    """How often both orders agree, and which position the others favour.

    An inconsistent pair leans first if A does better shown first than shown second: `flips_*`
    changed the winner, `half_flips_*` changed between a win and a tie. A `split` pair is
    inconsistent without a lean: an order's samples disagreed. The exact sign test compares
    `signs_first` with `signs_second`, by pair or prompt. `lean` is the share of pairs that lean
    first minus those that lean second; `alarm` names the position if it is beyond a tenth of the
    pairs by its whole interval.
    """

    pairs: int
    unread: int
    prompts: int | None
    consistency: EstimatedShare
    first_preference: EstimatedShare
    flips_first: int
    flips_second: int
    half_flips_first: int
    half_flips_second: int
    split: int
    p_value: float | None
    test_by: Literal["pair", "prompt"]
    signs_first: int
    signs_second: int
    favours: Literal["first", "second"] | None
    clustered: bool
    level: float
    reason: Sentence | None
    lean: PairedDifference
    alarm: Literal["first", "second"] | None


class Leans(NamedTuple):
    """The rows read in both orders, A's gain from being shown first, in halves of a pair, and
    whether either order split."""

    read: NDArray[np.bool_]
    gain: NDArray[np.int8]
    split: NDArray[np.bool_]


def lean_by_position(first: NDArray[Any], second: NDArray[Any]) -> Leans:
    read: NDArray[np.bool_] = (first != UNREAD) & (second != UNREAD)
    first, second = first[read], second[read]
    split: NDArray[np.bool_] = (first == SPLIT) | (second == SPLIT)
    gain = np.where(split, 0, _HALVES[first] - _HALVES[second]).astype(np.int8)
    return Leans(read, gain, split)


def position_bias(
    first_winner: Codes,
    second_winner: Codes,
    *,
    prompts: Labels | None = None,
    level: float = 0.95,
) -> PositionBias:
    """From the choices of each pair's two orders, clustered by prompt: 0 is A, 1 is B, 2 a tie, -1
    is unread, and -2 an order whose samples split evenly.

    The exact sign test is by prompt if prompts repeat; `favours` names a position only if its
    p-value is below 1 - level.
    """
    confidence_level(level)
    first = code_array(first_winner, name="first winners", low=SPLIT, high=PASS_TIE)
    second = code_array(second_winner, name="second winners", low=SPLIT, high=PASS_TIE)
    same_length(first.size, second_winner=second, prompts=prompts)
    read, lean, split = lean_by_position(first, second)
    clusters, count = np.zeros(lean.size, dtype=np.intp), 1
    independent, judged = True, None
    if prompts is not None:
        clusters, labels = label_codes(prompts)
        clusters, count = clusters[read], len(labels)
        rows = np.bincount(clusters, minlength=count)
        judged, independent = int((rows > 0).sum()), bool((rows <= 1).all())

    def each(chosen: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(clusters[chosen], minlength=count).astype(np.float64)

    consistent, to_first, to_second = each((lean == 0) & ~split), each(lean > 0), each(lean < 0)
    preference = estimate_share(
        to_first, to_second, independent=independent, level=level, unit="inconsistent pair"
    )
    leans: NDArray[Any] = lean
    if not independent:
        leans = np.bincount(clusters, weights=lean, minlength=count)
    signs_first, signs_second = int((leans > 0).sum()), int((leans < 0).sum())
    decided = signs_first + signs_second > 0
    p_value = sign_test_p(signs_first, signs_second) if decided else None
    favours: Literal["first", "second"] | None = None
    if preference.reason is None and p_value is not None and p_value < 1 - level:
        favours = "first" if signs_first > signs_second else "second"
    own = None if prompts is None else clusters
    by_pair = paired_difference(lean > 0, lean < 0, own, level=level)
    return PositionBias(
        pairs=int(lean.size),
        unread=int(first.size - lean.size),
        prompts=judged,
        consistency=estimate_share(
            consistent,
            to_first + to_second + each(split),
            independent=independent,
            level=level,
            unit="twice-read pair",
        ),
        first_preference=preference,
        flips_first=int((lean == 2).sum()),
        flips_second=int((lean == -2).sum()),
        half_flips_first=int((lean == 1).sum()),
        half_flips_second=int((lean == -1).sum()),
        split=int(split.sum()),
        p_value=p_value,
        test_by="pair" if independent else "prompt",
        signs_first=signs_first,
        signs_second=signs_second,
        favours=favours,
        clustered=not independent,
        level=level,
        reason=preference.reason,
        lean=by_pair,
        alarm=by_pair.beyond(ALARM_ABOVE),
    )
