"""What changed between two judgements of the same pairs: the flow of outcomes, and the difference
of win rates with an interval that allows for undecided pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.messages import Sentence
from evenhand.stats.clusters import (
    FEWEST_PAIRS,
    FEWEST_PROMPTS,
    Labels,
    label_codes,
    not_enough,
)
from evenhand.stats.columns import Floats
from evenhand.stats.intervals import SignTest, sign_test
from evenhand.stats.outcomes import Codes, confidence_level, outcome_codes, same_length
from evenhand.stats.rates.win_rate import (
    CAUTION,
    FEWEST_DECIDED,
    MANY_MISSING,
    Circumstances,
    Doubt,
    lower_end,
    most_disagreement,
)
from evenhand.stats.sign_flip import SignFlipTest, sign_flip_test

FlowOutcome = Literal["A", "tie", "inconsistent", "B", "invalid"]
FLOW_CODES: dict[FlowOutcome, int] = {
    "A": WIN_A,
    "tie": TIE,
    "inconsistent": INCONSISTENT,
    "B": WIN_B,
    "invalid": INVALID,
}
# What an outcome gives B, from -1 to 1; an invalid one gives nothing.
_FOR_B = np.array([-1.0, 1.0, 0.0, 0.0, 0.0])


class FlowRow(Model):
    """The second run's outcomes of the pairs with this `outcome` in the first."""

    outcome: FlowOutcome
    a: int
    tie: int
    inconsistent: int
    b: int
    invalid: int


class OutcomeChange(Model):
    """How B fares in the second judgement compared to the first, on the same `pairs`.

    `towards_b` are pairs whose second outcome is better for B, including from A to a tie. Changes
    between a tie and an inconsistent pair, or to or from an invalid one, count for neither.
    `difference` is over the `valid` pairs, the mean over prompts, in shares of a pair; `low` and
    `high` allow for whatever either judge left undecided, and `doubts` says what moved them. The
    exact sign test compares `towards_b` with `towards_a` (McNemar's test, 1947, without ties), by
    prompt if prompts repeat. A claim also needs the sign-flip test of the prompts' mean changes,
    with missing pairs against it.
    """

    pairs: int
    prompts: int | None
    valid: int
    changed: int
    towards_a: int
    towards_b: int
    flow: tuple[FlowRow, ...]
    rate_first: float | None
    rate_second: float | None
    difference: float | None
    low: float | None
    high: float | None
    doubts: tuple[Doubt, ...] = ()
    sign_test: SignTest | None
    sign_flip: SignFlipTest | None = None
    clustered: bool
    level: float
    reason: Sentence | None

    @property
    def excludes_zero(self) -> bool:
        low, high = self.low, self.high
        return low is not None and high is not None and not low <= 0 <= high

    @property
    def may_be_chance(self) -> bool:
        return self.sign_flip is not None and self.sign_flip.may_be_chance

    @property
    def claim(self) -> Literal["more", "less"] | None:
        """Whether B is shown to be preferred more or less often than before."""
        if not self.excludes_zero or self.may_be_chance:
            return None
        return "more" if (self.difference or 0.0) > 0 else "less"


def outcome_change(
    first: Codes,
    second: Codes,
    *,
    prompts: Labels | None = None,
    level: float = 0.95,
    circumstances: tuple[Circumstances, Circumstances] | None = None,
    always_valid: bool = False,
) -> OutcomeChange:
    """From one outcome code a pair in each run. Rows of a prompt count as their mean.

    `circumstances` are those of each run's rows: pairs `pending` in either, and invalid ones beyond
    `max_invalid`, count against every claim.
    """
    confidence_level(level)
    codes = outcome_codes(first), outcome_codes(second)
    size = codes[0].size
    same_length(size, second=codes[1], prompts=prompts)
    known = circumstances or (Circumstances(), Circumstances())
    clusters = np.arange(size) if prompts is None else label_codes(prompts)[0]
    independent = prompts is None or bool((np.bincount(clusters) <= 1).all())
    valid = (codes[0] != INVALID) & (codes[1] != INVALID)
    moved = np.sign(_FOR_B[codes[1]] - _FOR_B[codes[0]]) * valid
    count, there = int(valid.sum()), _present(clusters[valid])
    reason = None
    if count < FEWEST_PAIRS:
        reason = not_enough(count, "valid pair", FEWEST_PAIRS)
    elif not independent and there < FEWEST_PROMPTS:
        reason = not_enough(there, "prompt", FEWEST_PROMPTS)
    rates: list[float | None] = [None, None]
    difference = low = high = sign_flip = None
    doubts: tuple[Doubt, ...] = ()
    if reason is None:
        sides = [
            _Judged(each, own, clusters, level) for each, own in zip(codes, known, strict=True)
        ]
        means = [_mean(_FOR_B[each][valid], clusters[valid]) for each in codes]
        rates = [(1 + each) / 2 for each in means]
        difference = (means[1] - means[0]) / 2
        ends = _Ends(
            *(sides[0], sides[1], clusters, valid),
            single=independent,
            level=level,
            always_valid=always_valid,
        )
        low, high = min(ends.end(1), difference), max(-ends.end(-1), difference)
        doubts = tuple(ends.doubts | sides[0].doubts | sides[1].doubts)
        sign_flip = ends.sign_flip(-1.0 if difference < 0 else 1.0)
    return OutcomeChange(
        pairs=size,
        prompts=None if prompts is None else _present(clusters),
        valid=count,
        changed=int((codes[0] != codes[1]).sum()),
        towards_a=int((moved < 0).sum()),
        towards_b=int((moved > 0).sum()),
        flow=tuple(_flow(*codes)),
        rate_first=rates[0],
        rate_second=rates[1],
        difference=difference,
        low=low,
        high=high,
        doubts=doubts,
        sign_test=_sign_test(moved, clusters, independent=independent),
        sign_flip=sign_flip,
        clustered=not independent,
        level=level,
        reason=reason,
    )


def _flow(first: NDArray[np.int8], second: NDArray[np.int8]) -> Iterator[FlowRow]:
    counts = np.bincount(first * 5 + second.astype(np.intp), minlength=25).reshape(5, 5)
    for outcome, code in FLOW_CODES.items():
        to = {name.lower(): int(counts[code, end]) for name, end in FLOW_CODES.items()}
        yield FlowRow(outcome=outcome, **to)


def _present(clusters: NDArray[Any]) -> int:
    return int(np.unique(clusters).size)


def _prompt_means(values: Floats, clusters: NDArray[Any]) -> Floats:
    sizes = np.bincount(clusters)
    there = sizes > 0
    means: Floats = np.bincount(clusters, weights=values)[there] / sizes[there]
    return means


def _mean(values: Floats, clusters: NDArray[Any]) -> float:
    return float(_prompt_means(values, clusters).mean())


def _sign_test(moved: Floats, clusters: NDArray[Any], *, independent: bool) -> SignTest | None:
    signs = moved
    if not independent:
        signs = np.bincount(clusters, weights=moved).astype(np.float64)
    to_a, to_b = int((signs < 0).sum()), int((signs > 0).sum())
    return sign_test(to_a, to_b, by="pair" if independent else "prompt")


class _Judged:
    """One run's pairs, and the ways to count its judge's preference.

    An undecided pair counts half, which is right if position decided; or noise hid a preference
    that the half count understates by up to 1 - 2I, where I is the share of pairs whose orders
    disagree: coins (as in `win_rate.stretch`). Which is unknown, and may differ between the runs.
    """

    def __init__(
        self, codes: NDArray[np.int8], known: Circumstances, clusters: NDArray[Any], level: float
    ) -> None:
        self.codes = codes
        self.known = known
        self.doubts: dict[Doubt, None] = {}
        flips = codes == INCONSISTENT
        self._averaged = np.zeros(codes.size, dtype=np.bool_)
        if known.flipped is not None:
            self._averaged = known.flipped & (codes <= TIE)
            flips = flips | self._averaged
        drawn = np.zeros(codes.size, dtype=np.bool_) if known.drawn is None else known.drawn
        decided = (codes <= WIN_B) & ~flips & ~drawn
        self._hidden = self._disagreement(flips & ~drawn, decided, clusters, drawn, level)
        if self._hidden >= 0.5:
            self.doubts["drawn_order" if drawn.any() else "position"] = None
        self._unknown = np.zeros(codes.size, dtype=np.bool_)
        if known.one_order is not None and known.one_order.any():
            self._unknown |= known.one_order & (codes != INVALID)
            self.doubts["one_order"] = None
        # Ties of a judge without shown discrimination may be indifference.
        if not known.discriminates and decided.sum() < FEWEST_DECIDED and (codes == TIE).any():
            self._unknown |= codes == TIE
            self.doubts["ties"] = None

    @staticmethod
    def _disagreement(
        flips: NDArray[np.bool_],
        decided: NDArray[np.bool_],
        clusters: NDArray[Any],
        drawn: NDArray[np.bool_],
        level: float,
    ) -> float:
        """As in `win_rate`: a prompt's rows count as one."""
        size = _present(clusters[flips | decided])
        share = float(flips.sum() / (flips | decided).sum()) if size else 0.0
        if drawn.any():
            return most_disagreement(share * size, size, level=level)
        return share + CAUTION * math.sqrt(share * (1 - share) / size) if share else 0.0

    def ways(self, worst: float) -> Iterator[tuple[Floats, float]]:
        """Scores for B from -1 to 1, and their factors; uninformative rows are at their `worst`."""
        if self._hidden >= 0.5:
            yield np.full(self.codes.size, worst), 1.0
            return
        scores = np.where(self._unknown, worst, _FOR_B[self.codes])
        yield scores, 1.0
        if self._averaged.any():
            # An average of contradictory choices may be all position bias.
            scores = np.where(self._averaged & ~self._unknown, 0.0, scores)
            yield scores, 1.0
        if self._hidden:
            yield scores, 1 / (1 - 2 * self._hidden)


class _Ends:
    """The ends of the difference; the upper one is the lower one with B's scores negated."""

    def __init__(
        self,
        first: _Judged,
        second: _Judged,
        clusters: NDArray[Any],
        valid: NDArray[np.bool_],
        *,
        single: bool,
        level: float,
        always_valid: bool,
    ) -> None:
        self._single = single
        self._sides = first, second
        self._clusters = clusters
        self._valid = valid
        self._level = level
        self._always_valid = always_valid
        self.doubts: dict[Doubt, None] = {}
        self._pending = max(each.known.pending for each in self._sides)
        missing = int((~valid).sum())
        against = any(each.known.missing == "against" for each in self._sides)
        if self._pending:
            self.doubts["pending"] = None
        if missing > MANY_MISSING * valid.size and against:
            self.doubts["missing"] = None
        self._lost = bool(self._pending) or against

    def end(self, sign: float) -> float:
        first, second = self._sides
        return max(
            -1.0,
            min(
                self._lower(sign * before, sign * after, times_before, times_after)
                for before, times_before in first.ways(sign)
                for after, times_after in second.ways(-sign)
            ),
        )

    def _lower(
        self, before: Floats, after: Floats, times_before: float, times_after: float
    ) -> float:
        widest = (times_before + times_after) / 2
        change = (after * times_after - before * times_before) / 2
        values, times = self._differences(change / widest)
        # Of independent pairs without half steps the interval is Tango's (1998).
        whole = self._single and bool(np.isin(values, (-1.0, 0.0, 1.0)).all())
        rate = lower_end(
            values, times, single=whole, level=self._level, always_valid=self._always_valid
        )
        return widest * (2 * rate - 1)

    def _differences(self, change: Floats) -> tuple[Floats, Floats]:
        """By prompt, with missing pairs against the claim, and how often each counts."""
        kept = np.where(self._valid, change, -1.0 if self._lost else 0.0)
        values = _prompt_means(kept, self._clusters)
        times = np.ones(values.size)
        if self._pending:
            values, times = np.append(values, -1.0), np.append(times, float(self._pending))
        return values, times

    def sign_flip(self, sign: float) -> SignFlipTest:
        """For the claim on this side, with undecided pairs as half."""
        first, second = self._sides
        before, after = next(first.ways(sign))[0], next(second.ways(-sign))[0]
        test = sign_flip_test(*self._differences(sign * (after - before) / 2))
        return test.model_copy(update={"alpha": round(1 - self._level, 12)})
