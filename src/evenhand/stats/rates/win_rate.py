"""The win rate of A against B: the mean over prompts, with one interval that allows for what the
judge did not decide (docs/statistics.md has its rule, and simulations).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import (
    INCONSISTENT,
    INVALID,
    OUTCOMES,
    TIE,
    WIN_A,
    WIN_B,
    OutcomeCounts,
)
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Sentence
from evenhand.stats.always_valid import always_valid_interval_of_counts
from evenhand.stats.clusters import (
    FEWEST_PAIRS,
    FEWEST_PROMPTS,
    Labels,
    label_codes,
    normal_quantile,
    not_enough,
)
from evenhand.stats.columns import Floats
from evenhand.stats.distributions import beta_quantile
from evenhand.stats.intervals import (
    SignTest,
    exact_lower,
    mean_interval,
    rate_of_difference,
    score_lower,
    sign_test,
)
from evenhand.stats.outcomes import (
    Codes,
    confidence_level,
    outcome_codes,
    same_length,
)
from evenhand.stats.sign_flip import SignFlipTest, sign_flip_test

Ties: TypeAlias = Literal["half", "excluded", "wins"]
Method: TypeAlias = Literal["exact", "score", "clustered score", "betting", "t"]
Missing: TypeAlias = Literal["against", "half"]
Doubt: TypeAlias = Literal["one_order", "position", "drawn_order", "ties", "missing", "pending"]

# Below this the score interval of single pairs errs by up to 4% on a side; the exact one does not.
EXACT_BELOW = 50
# With this many winners named, a judge's ties are not indifference.
FEWEST_DECIDED = 20
# Beyond this share of pairs without a verdict, the sentence mentions them in any case.
MANY_MISSING = 0.01
# The share of inconsistent pairs is taken at the upper end of its one-sided 75% interval: at the
# estimate itself, a near-coin judge passes up to 12% of gates that it should not.
CAUTION = 0.6744897501960817

# Averages of disagreeing orders, and pairs of one fixed order.
_FLIPPED_A, _FLIPPED_B, _FLIPPED_TIE, _ONE_ORDER = range(len(OUTCOMES), len(OUTCOMES) + 4)
# Pairs of one randomly drawn order; inconsistent if their samples split.
_DRAWN_A, _DRAWN_B, _DRAWN_TIE, _DRAWN_SPLIT = range(_ONE_ORDER + 1, _ONE_ORDER + 5)
_KINDS = _DRAWN_SPLIT + 1
_FLIPS = [INCONSISTENT, _FLIPPED_A, _FLIPPED_B, _FLIPPED_TIE]
_DECIDED = [WIN_A, WIN_B]
_TWICE = [WIN_A, WIN_B, TIE, *_FLIPS]  # judged in both orders
_NAMED = ([WIN_A, _DRAWN_A], [WIN_B, _DRAWN_B])
_LEFT_OUT = float("nan")


_AT_HALF = 1e-9  # a rate of one half, whatever rounding leaves of it


class WorstCase(Model):
    """If A lost, or won, all pairs without a verdict.

    `rate_if_lost` and `rate_if_won` bound the rate of these pairs; `low` and `high` are the outer
    ends of the two intervals, including the sampling uncertainty.
    """

    rate_if_lost: float
    rate_if_won: float
    low: float
    high: float


class WinRate(Model):
    """A's win rate over `n` pairs, or the reason why there is none.

    `low` and `high` allow for inconsistent pairs as half and left out, and for what their share may
    hide. `doubts` says why an end is further out than chance alone would put it, the gravest first.
    """

    counts: OutcomeCounts
    n: int
    prompts: int | None
    rate: float | None
    rate_without_inconsistent: float | None = None
    row_rate: float | None = None  # weighs rows, where prompts have unequal numbers of them
    low: float | None
    high: float | None
    half_low: float | None = None  # the ends with inconsistent pairs as half, before they move out
    half_high: float | None = None
    decided_share: float = 0.0  # of a prompt's pairs that count those with a winner, on average
    method: Method | None
    clustered: bool
    decided: int = 0  # pairs in which both orders named the same winner
    flips: int = 0  # pairs in which they did not agree, also where they were averaged
    one_order: int = 0
    drawn_order: int = 0  # pairs judged in one order that was drawn at random
    missing: int = 0
    doubts: tuple[Doubt, ...] = ()
    sign_test: SignTest | None
    sign_flip: SignFlipTest | None = None  # of the prompts' means, with what is missing against it
    worst_case: WorstCase | None
    ties: Ties
    level: float
    reason: Sentence | None

    @property
    def excludes_half(self) -> bool:
        low, high = self.low, self.high
        return low is not None and high is not None and not low <= 0.5 <= high

    @property
    def may_be_chance(self) -> bool:
        """Which a narrow interval of many ties does not show."""
        return self.sign_flip is not None and self.sign_flip.may_be_chance

    @property
    def mostly_flips(self) -> bool:
        """The orders contradict each other at least as often as they name one winner."""
        enough = not self.drawn_order or self.flips + self.decided >= FEWEST_DECIDED
        return enough and self.flips >= self.decided and self.flips > 0

    @property
    def shows_difference(self) -> bool:
        if self.ties == "wins" and (self.low or 0.0) <= 0.5:
            return False  # few outright wins are no loss
        return self.excludes_half and not self.may_be_chance and not self.mostly_flips


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of the rows besides their outcomes.

    `flipped`: the two orders disagreed, whatever was made of it. `one_order`: judged in one fixed
    order, which shows nothing. `drawn`: judged in one randomly drawn order, so that position is
    noise, whose size the other rows show. `absent` pairs have no verdict (skipped, without a
    partner), and `pending` ones have none yet, in a non-random order. Missing pairs count against
    every claim, or as half on request. `discriminates`: the judge was shown elsewhere to
    discriminate.
    """

    flipped: NDArray[np.bool_] | None = None
    one_order: NDArray[np.bool_] | None = None
    drawn: NDArray[np.bool_] | None = None
    absent: int = 0
    pending: int = 0
    missing: Missing = "against"
    discriminates: bool = False


@dataclass(frozen=True, slots=True)
class TestedMean:
    """A sequential test's mean score and interval."""

    mean: float
    low: float
    high: float
    method: Method


def win_rate(
    outcomes: Codes,
    *,
    prompts: Labels | None = None,
    ties: Ties = "half",
    level: float = 0.95,
    circumstances: Circumstances | None = None,
    always_valid: bool = False,
    tested: TestedMean | None = None,
) -> WinRate:
    """From one outcome code a row; rows of the same prompt count as their mean.

    `always_valid`: the interval holds however often somebody looked. `tested` replaces the interval
    with ties and inconsistent pairs as half.
    """
    if ties not in ("half", "excluded", "wins"):
        raise InputError.of(
            "stats.choice_unknown", value=ties, name="ties", taken=["half", "excluded", "wins"]
        )
    confidence_level(level)
    known = circumstances or Circumstances()
    codes = outcome_codes(outcomes)
    rows_known = {name: getattr(known, name) for name in ("flipped", "one_order", "drawn")}
    same_length(codes.size, prompts=prompts, **rows_known)
    kinds = _kinds(codes, known.flipped, known.drawn)
    plain = table = _Table.of(kinds, prompts)
    if known.one_order is not None and known.one_order.any():
        kinds[known.one_order & (codes <= INCONSISTENT)] = _ONE_ORDER
        table = _Table.of(kinds, prompts)
    flip = {"half": 0.5, "excluded": None, "wins": 0.0}[ties]
    own = _Counting(ties).scores(flip=flip)
    counted = plain.rows(own)
    reason = _too_few(plain, own, counted, ties)
    # A sequential test counts averaged flips as half; the estimate is the same as for any run.
    takes_test = tested is not None and ties == "half" and not plain.averaged
    rate = tested.mean if tested and takes_test else plain.mean(own)
    ends = None
    if reason is None:
        ends = _Ends(table, known, ties, level, always_valid, tested if ties == "half" else None)
    low, high = (ends.low, ends.high) if ends else (None, None)
    if low is not None and high is not None and rate is not None:
        low, high = min(low, rate), max(high, rate)
    return WinRate(
        counts=OutcomeCounts.of_codes(np.bincount(codes, minlength=len(OUTCOMES))),
        n=counted,
        prompts=None if prompts is None else plain.prompts(_Counting("half").scores(flip=0.5)),
        rate=rate if ends else None,
        rate_without_inconsistent=None
        if ends is None or plain.drawn  # nobody knows which of these are inconsistent
        else plain.mean(_Counting(ties).scores(flip=None)),
        row_rate=plain.row_mean(own) if ends else None,
        low=low,
        high=high,
        half_low=ends.half_low if ends else None,
        half_high=ends.half_high if ends else None,
        decided_share=ends.decided_share() if ends else 0.0,
        method=ends.method if ends else None,
        clustered=not table.independent,
        decided=table.decided,
        flips=table.flips,
        one_order=int(table.totals[_ONE_ORDER]),
        drawn_order=table.drawn,
        missing=int(table.totals[INVALID]) + known.absent + known.pending,
        doubts=ends.doubts if ends else (),
        sign_test=None if always_valid or table is not plain else _sign_test(plain),
        sign_flip=ends.sign_flip(rate) if ends and rate is not None else None,
        worst_case=_worst_case(plain, known, own, level=level, always_valid=always_valid),
        ties=ties,
        level=level,
        reason=reason,
    )


def stretch(low: float, disagreement: float) -> float:
    """The lower end for the true preference, given the half count's `low`.

    A judge that flips a coin on a share c of the pairs leaves 1 - c of a preference in the half
    count, and its orders disagree in I = c/2 of the pairs that they decide: 1 - c is 1 - 2I. Other
    faults leave more: passes that each err by chance sqrt(1 - 2I), position 1 - I.
    """
    if low >= 0.5:
        return low
    if disagreement >= 0.5:
        return 0.0
    return rate_of_difference(-min(1.0, (1 - 2 * low) / (1 - 2 * disagreement)))


def stretch_estimated(
    difference: float, upper: float, *, disagreement: float, most_disagreement: float
) -> float:
    """The same if the disagreement was estimated on other pairs than the half count.

    `difference` is 1 - 2·rate of the half count and `upper` its limit; the disagreement has an
    upper limit too. The limit of their ratio, difference / (1 - 2I), follows from the limits of the
    two parts (Donner and Zou, 2012).
    """
    if most_disagreement >= 0.5:
        return 0.0
    left, least_left = 1 - 2 * disagreement, 1 - 2 * most_disagreement
    within = least_left * (2 * left - least_left)
    spread = ((left - least_left) * difference) ** 2 + within * (upper - difference) ** 2
    return rate_of_difference(-min(1.0, (left * difference + math.sqrt(spread)) / within))


def most_disagreement(flips: float, pairs: float, *, level: float) -> float:
    """The upper limit of the share of pairs whose orders disagree (Clopper and Pearson, 1934)."""
    if flips >= pairs:
        return 1.0
    return beta_quantile(flips + 1, pairs - flips, 0.5 + level / 2)


def _kinds(
    codes: NDArray[np.int8],
    flipped: NDArray[np.bool_] | None,
    drawn: NDArray[np.bool_] | None,
) -> NDArray[np.intp]:
    kinds = codes.astype(np.intp)
    if flipped is not None:
        # INCONSISTENT and INVALID stay, whatever their passes say.
        kinds[flipped & (codes <= TIE)] += _FLIPPED_A
    if drawn is not None:
        kinds[drawn & (codes <= INCONSISTENT)] += _DRAWN_A
    return kinds


@dataclass(frozen=True, slots=True)
class _Table:
    """Each prompt's number of rows of each kind; for independent rows only the totals."""

    cells: Floats
    totals: Floats
    independent: bool

    @classmethod
    def of(cls, kinds: NDArray[np.intp], prompts: Labels | None) -> _Table:
        if prompts is None:
            totals = np.bincount(kinds, minlength=_KINDS).astype(np.float64)
            return cls(totals[np.newaxis, :], totals, independent=True)
        clusters, labels = label_codes(prompts)
        cells = np.bincount(clusters * _KINDS + kinds, minlength=len(labels) * _KINDS)
        table = cells.reshape(len(labels), _KINDS).astype(np.float64)
        # Prompts with one row each are independent rows. Rows without a verdict count too, so that
        # their worst case is clustered like the rate.
        alone = bool((table.sum(axis=1) <= 1).all())
        return cls(table, table.sum(axis=0), independent=alone)

    @property
    def decided(self) -> int:
        return int(self.totals[WIN_A] + self.totals[WIN_B])

    @property
    def flips(self) -> int:
        return int(self.totals[_FLIPS].sum())

    @property
    def drawn(self) -> int:
        return int(self.totals[_DRAWN_A:].sum())

    @property
    def ties(self) -> int:
        return int(self.totals[TIE] + self.totals[_DRAWN_TIE])

    @property
    def averaged(self) -> bool:
        """Whether a win or tie is an average of disagreeing orders."""
        return bool(self.totals[_FLIPPED_A : _FLIPPED_TIE + 1].any())

    def with_any(self, kinds: list[int]) -> int:
        """Prompts, or rows if prompts do not repeat, with these kinds."""
        if self.independent:
            return int(self.totals[kinds].sum())
        return int((self.cells[:, kinds].sum(axis=1) > 0).sum())

    def rows(self, scores: Floats) -> int:
        return int(self.totals[~np.isnan(scores)].sum())

    def prompts(self, scores: Floats) -> int:
        return int((self.cells[:, ~np.isnan(scores)].sum(axis=1) > 0).sum())

    def differences(self, scores: Floats) -> tuple[Floats, Floats]:
        """Each prompt's mean of 2·score - 1, and its multiplicity: signed, so that mirrored rows
        sum to exactly the mirrored mean."""
        kept = ~np.isnan(scores)
        signed = 2 * scores[kept] - 1
        if self.independent:
            return signed, self.totals[kept]
        counts = self.cells[:, kept]
        rows = counts.sum(axis=1)
        there = rows > 0
        means = (counts[there] @ signed) / rows[there]
        return means, np.ones(means.size)

    def mean(self, scores: Floats) -> float | None:
        values, times = self.differences(scores)
        total = float(times.sum())
        return rate_of_difference(float(values @ times) / total) if total else None

    def row_mean(self, scores: Floats) -> float | None:
        kept = ~np.isnan(scores)
        rows = float(self.totals[kept].sum())
        return (
            rate_of_difference(float((2 * scores[kept] - 1) @ self.totals[kept]) / rows)
            if rows
            else None
        )


@dataclass(frozen=True, slots=True)
class _Counting:
    """The score of each kind of row for A, or for B if `mirrored`; NaN: left out."""

    ties: Ties
    mirrored: bool = False

    def scores(
        self,
        *,
        flip: float | None,
        unknown: float | None = None,
        tie: float | None = None,
        as_averaged: bool = True,
    ) -> Floats:
        """`flip` is for pairs whose orders disagree: averages keep their result if `as_averaged`,
        unless they are left out or only wins count. `unknown` is for rows without a verdict, and
        those of one order, if these show nothing."""
        if tie is None:
            tie = {"half": 0.5, "excluded": _LEFT_OUT, "wins": float(self.mirrored)}[self.ties]
        won, lost = (0.0, 1.0) if self.mirrored else (1.0, 0.0)
        inconsistent = _LEFT_OUT if flip is None else flip
        averaged = [won, lost, tie]
        if flip is None or self.ties == "wins" or not as_averaged:
            averaged = [inconsistent] * 3
        nothing = _LEFT_OUT if unknown is None else unknown
        one_order = 0.5 if unknown is None else unknown
        drawn = [won, lost, tie, inconsistent]
        return np.array([won, lost, tie, inconsistent, nothing, *averaged, one_order, *drawn])


class _Ends:
    """Both ends of the interval. The upper one is the lower one of the mirrored rows."""

    def __init__(
        self,
        table: _Table,
        known: Circumstances,
        ties: Ties,
        level: float,
        always_valid: bool,
        tested: TestedMean | None,
    ) -> None:
        self._table = table
        self._known = known
        self._ties = ties
        self._level = level
        self._always_valid = always_valid
        self._worst = 0.0 if ties == "wins" else 0.5  # of a pair whose orders differ
        self._doubts: dict[Doubt, None] = {}
        below, above = (tested.low, 1 - tested.high) if tested else (None, None)
        self.low, self.half_low = self._lower(_Counting(ties), below)
        down, half = self._lower(_Counting(ties, mirrored=True), above)
        self.high, self.half_high = 1 - down, 1 - half
        self.method: Method = tested.method if tested else self._method()
        self.doubts = tuple(self._doubts)

    def sign_flip(self, rate: float) -> SignFlipTest:
        """With rows counted as for the end on the claim's side. At one half neither side has a
        claim, and the weaker test serves both."""
        ways = (False, True) if abs(rate - 0.5) < _AT_HALF else (rate < 0.5,)
        tests = [self._sign_flip(mirrored=mirrored) for mirrored in ways]
        return max(tests, key=lambda test: (test.p_value, test.decisive))

    def _sign_flip(self, *, mirrored: bool) -> SignFlipTest:
        fill, counting = self._fill(), _Counting(self._ties, mirrored=mirrored)
        scores = counting.scores(flip=self._worst, unknown=fill, as_averaged=False)
        test = sign_flip_test(*self._differences(scores, fill))
        return test.model_copy(update={"alpha": round(1 - self._level, 12)})

    def decided_share(self) -> float:
        if self._ties == "excluded":
            return 1.0
        wins = np.zeros(_KINDS)
        wins[[*_NAMED[0], *_NAMED[1]]] = 1.0
        values, times = self._differences((wins + 1) / 2, 0.5)
        return float(values @ times) / float(times.sum()) if times.sum() else 0.0

    def _lower(self, counting: _Counting, tested: float | None) -> tuple[float, float]:
        """The end, and that of the half count."""
        fill = self._fill()
        worst = self._worst
        counted = counting.scores(flip=worst, unknown=fill)
        low = self._end(counted, fill)
        if fill == 0.0 and not self._doubts and low <= 0.5:
            # Few as they are, they may be why the interval includes one half.
            as_half = counting.scores(flip=worst, unknown=0.5)
            if self._end(as_half, 0.5) > 0.5:
                self._doubts["missing"] = None
        if tested is not None:
            low = tested if fill is None else min(low, tested)
        if self._ties == "wins" and not self._table.drawn:
            return low, low
        if self._table.averaged and self._ties != "wins":
            # An average of contradictory choices may be all position bias.
            halved = counting.scores(flip=0.5, unknown=fill, as_averaged=False)
            low = min(low, self._end(halved, fill))
        if low >= 0.5:
            # A claim above one half needs no more: a judge without discrimination stays at one
            # half, and without inconsistent pairs the end would be higher.
            return low, low
        if self._table.drawn:
            end = min(low, self._drawn_end(low, self._mean(counted, fill)))
        else:
            end = self._both_orders_end(low, counting.scores(flip=None, unknown=fill), fill)
        if self._ties == "half" and self._table.ties and not self._discriminates():
            few = self._table.drawn and self._table.with_any(_TWICE) < 2 * FEWEST_DECIDED
            if few or self._table.ties >= self._table.decided:  # fewer count, and are not the point
                self._doubts["drawn_order" if few else "ties"] = None
            end = min(end, self._end(counting.scores(flip=0.5, unknown=fill, tie=0.0), fill))
        return end, low

    def _both_orders_end(self, low: float, left_out: Floats, fill: float | None) -> float:
        end = low
        if self._table.flips and self._table.rows(left_out):
            end = min(low, self._end(left_out, fill))
        disagreement = self._disagreement()
        if disagreement >= 0.5:
            self._doubts["position"] = None
        return min(end, stretch(low, disagreement))

    def _drawn_end(self, low: float, mean: float) -> float:
        """In a drawn order, position decides as unseen noise; only pairs judged in both orders show
        how much."""
        flips, size = self._table.flips, self._disagreeing_among()
        share = flips / (self._table.decided + flips) if size else 0.0
        if self._always_valid:
            disagreeing = round(share * size)
            counts = Counter({1.0: disagreeing, 0.0: size - disagreeing})
            interval = always_valid_interval_of_counts(counts, level=self._level)
            most = interval.high if interval and size else 1.0
        else:
            most = most_disagreement(share * size, size, level=self._level)
        if most >= 0.5:
            known = share >= 0.5 and size >= FEWEST_DECIDED
            self._doubts["position" if known else "drawn_order"] = None
        if self._always_valid:
            return stretch(low, most)
        return stretch_estimated(
            1 - 2 * mean, 1 - 2 * low, disagreement=share, most_disagreement=most
        )

    def _fill(self) -> float | None:
        """The score of rows without a verdict, and of pairs that never became rows."""
        known, totals = self._known, self._table.totals
        rows = float(totals.sum()) + known.absent + known.pending
        doubts: list[Doubt] = []
        if totals[_ONE_ORDER]:
            doubts.append("one_order")
        if known.pending:
            doubts.append("pending")
        missing = float(totals[INVALID]) + known.absent
        if missing > MANY_MISSING * rows and known.missing == "against":
            doubts.append("missing")
        self._doubts.update(dict.fromkeys(doubts))
        if doubts or (missing and known.missing == "against"):
            return 0.0
        return 0.5 if missing else None

    def _disagreement(self) -> float:
        """The share of pairs whose orders disagree, of those in which one named a winner."""
        flips = self._table.flips
        named = self._table.decided + flips
        if not flips:
            return 0.0
        share = flips / named
        return share + CAUTION * math.sqrt(share * (1 - share) / self._disagreeing_among())

    def _disagreeing_among(self) -> int:
        """Pairs in which an order named a winner; a prompt's rows count as one."""
        return self._table.with_any([*_DECIDED, *_FLIPS])

    def _discriminates(self) -> bool:
        return self._known.discriminates or self._table.with_any(_DECIDED) >= FEWEST_DECIDED

    def _method(self) -> Method:
        if self._always_valid:
            return "betting"
        if not self._table.independent:
            return "clustered score"
        return "exact" if self._table.totals.sum() < EXACT_BELOW else "score"

    def _differences(self, scores: Floats, fill: float | None) -> tuple[Floats, Floats]:
        values, times = self._table.differences(scores)
        added = self._known.absent + self._known.pending
        if fill is not None and added:
            values, times = np.append(values, 2 * fill - 1), np.append(times, float(added))
        return values, times

    def _mean(self, scores: Floats, fill: float | None) -> float:
        values, times = self._differences(scores, fill)
        return rate_of_difference(float(values @ times) / float(times.sum()))

    def _end(self, scores: Floats, fill: float | None) -> float:
        values, times = self._differences(scores, fill)
        return lower_end(
            values,
            times,
            single=self._table.independent,
            level=self._level,
            always_valid=self._always_valid,
        )


def lower_end(
    values: Floats, times: Floats, *, single: bool, level: float, always_valid: bool
) -> float:
    """Of the mean rate, from signed differences and their multiplicities."""
    if always_valid:
        counts: Counter[float] = Counter()
        for value, count in zip(values.tolist(), times.tolist(), strict=True):
            counts[rate_of_difference(value)] += round(count)
        interval = always_valid_interval_of_counts(counts, level=level)
        return interval.low if interval else 0.0
    number = float(times.sum())
    if single:
        wins, halves, losses = (float(times[values == each].sum()) for each in (1, 0, -1))
        if number < EXACT_BELOW:
            return exact_lower(int(wins), int(halves), int(losses), level=level)
        return score_lower(wins, halves, losses, critical=normal_quantile(level))
    if number < 2:
        return 0.0
    if number < EXACT_BELOW and bool(np.isin(values, (-1.0, 0.0, 1.0)).all()):
        # Prompts with unanimous rows are single pairs: copies add nothing.
        wins, halves, losses = (int(times[values == each].sum()) for each in (1, 0, -1))
        return exact_lower(wins, halves, losses, level=level)
    # One degree of freedom for the mean: with Student's t as well, ten prompts would be covered in
    # 99%.
    critical = normal_quantile(level)
    low, _ = mean_interval(values, times, ends=(-1.0, 1.0), size=number - 1, critical=critical)
    return rate_of_difference(max(-1.0, low))


def _too_few(table: _Table, scores: Floats, counted: int, ties: Ties) -> str | None:
    if counted < FEWEST_PAIRS:
        unit = "decisive pair" if ties == "excluded" else "valid pair"
        return not_enough(counted, unit, FEWEST_PAIRS)
    prompts = table.prompts(scores)
    if not table.independent and prompts < FEWEST_PROMPTS:
        return not_enough(prompts, "prompt", FEWEST_PROMPTS)
    return None


def _worst_case(
    table: _Table, known: Circumstances, own: Floats, *, level: float, always_valid: bool
) -> WorstCase | None:
    added = known.absent + known.pending
    if not table.totals[INVALID] and not added:
        return None
    bounds: list[tuple[float, float]] = []
    for fill, sign in ((0.0, 1), (1.0, -1)):
        scores = own.copy()
        scores[INVALID] = fill
        values, times = table.differences(scores)
        if added:
            values, times = np.append(values, 2 * fill - 1), np.append(times, float(added))
        mean = rate_of_difference(float(values @ times) / float(times.sum()))
        end = lower_end(
            sign * values, times, single=table.independent, level=level, always_valid=always_valid
        )
        bounds.append((mean, end))
    (lost, low), (won, below) = bounds
    return WorstCase(rate_if_lost=lost, rate_if_won=won, low=low, high=1 - below)


def _sign_test(table: _Table) -> SignTest | None:
    wins, losses = (table.cells[:, each].sum(axis=1) for each in _NAMED)
    if table.independent:
        return sign_test(int(wins.sum()), int(losses.sum()), by="pair")
    return sign_test(int((wins > losses).sum()), int((losses > wins).sum()), by="prompt")
