"""Power and sample size: how often a test finds a difference, how many pairs a difference needs,
and what a number of pairs can show.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrik, gammaln, ndtr, ndtri, xlog1py, xlogy

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.stats.always_valid import planned_bets
from evenhand.stats.intervals import constrained_variance
from evenhand.stats.rates.win_rate import CAUTION, FEWEST_DECIDED, most_disagreement
from evenhand.stats.stopping.final_test import LONGEST, fair_ends, stopping_leads, walk
from evenhand.stats.stopping.sequential import SequentialPlan

_WALKED = 3_000  # decisive pairs up to which a plan is walked through; longer ones are scaled
_FAR = 9.0  # standard deviations beyond which a number of decisive pairs is left out


@dataclass(frozen=True, slots=True)
class TruePair:
    """A prompt's distribution: A's win rate, and the spread E[(2·score - 1)²] of its score.

    For single pairs the spread is the decisive share. Means of several rows spread less; a tie
    share of `1 - spread`, with the same mean and variance, represents them.
    """

    win_rate: float
    spread: float

    @property
    def decisive_rate(self) -> float:
        return min(1.0, 0.5 + (self.win_rate - 0.5) / self.spread)


@dataclass(frozen=True, slots=True)
class OutcomeShares:
    """Of all pairs: the gated side's wins and losses, ties, and inconsistent pairs."""

    wins: float
    losses: float
    ties: float
    inconsistent: float

    @property
    def flip_share(self) -> float:
        """Of pairs without ties; every inconsistent pair counts as a full flip."""
        return self.inconsistent / (1 - self.ties)


@dataclass(frozen=True, slots=True)
class Chances:
    """`power` is the chance to name the better side; `prompts` the mean number needed."""

    power: float
    prompts: float


def fixed_chances(prompts: int, pair: TruePair, *, alpha: float) -> Chances:
    """Of the exact two-sided sign test on the decisive pairs at a fixed size."""
    numbers, weights = _decisive_numbers(prompts, pair.spread)
    losses = np.floor(np.nan_to_num(bdtrik(alpha / 2, numbers, 0.5), nan=-1.0))
    losses += bdtr(losses + 1, numbers, 0.5) <= alpha / 2  # the inverse is off by rounding
    losses -= (losses >= 0) & (bdtr(np.maximum(losses, 0), numbers, 0.5) > alpha / 2)
    power = np.where(losses >= 0, bdtr(np.maximum(losses, 0), numbers, 1 - pair.decisive_rate), 0)
    return Chances(float(weights @ power), float(prompts))


def half_count_threshold(threshold: float, flip_share: float) -> float:
    """What the lower bound of the half count must exceed for a gate at `threshold` to pass.

    Inconsistent pairs as half pull every rate towards 0.5, so below 0.5 the gate asks for more.
    From a flip share of one half on, nothing below 0.5 passes.
    """
    if threshold >= 0.5:
        return threshold
    return 0.5 - (0.5 - threshold) * max(0.0, 1 - 2 * flip_share)


def gate_power(pairs: float, shares: OutcomeShares, *, threshold: float, alpha: float) -> float:
    """The chance that a gate at `threshold` passes, by the normal approximation of its score test.

    Below 0.5 the threshold moves with the flip share that is observed, and the variance of that
    is taken into account. The bound that leaves inconsistent pairs out is
    never the stricter one. A number of pairs may be fractional, as a design effect makes it.
    """
    lead = shares.wins - shares.losses
    variance = max(0.0, shares.wins + shares.losses - lead * lead)
    even = _score_power(pairs, shares, lead=lead, variance=variance, null=0.0, alpha=alpha)
    flips = shares.flip_share
    if threshold == 0.5 or (threshold < 0.5 and flips >= 0.5):
        return even
    if threshold > 0.5:
        null = 2 * threshold - 1
        return _score_power(pairs, shares, lead=lead, variance=variance, null=null, alpha=alpha)
    # The gate takes the share of flips at the upper end of an interval of its own.
    flips += CAUTION * math.sqrt(flips * (1 - flips) / ((1 - shares.ties) * pairs))
    if flips >= 0.5:
        return even
    null = 2 * half_count_threshold(threshold, flips) - 1
    slope = 2 * (1 - 2 * threshold)
    flip_variance = flips * (1 - flips) / (1 - shares.ties)
    variance += slope * (slope * flip_variance + 2 * lead * flips / (1 - shares.ties))
    below = _score_power(pairs, shares, lead=lead, variance=variance, null=null, alpha=alpha)
    return max(below, even)  # a bound above 0.5 passes whatever the flip share


def drawn_gate_power(
    pairs: float, shares: OutcomeShares, *, both_orders: float, threshold: float, alpha: float
) -> float:
    """The same where each pair is judged in one order at random, and so large a share in both.

    Below 0.5 the gate compares 1 - 2·rate with the threshold's, less what disagreement leaves of
    it; that comes from the pairs in both orders alone (see `stretch_estimated`).
    """
    even = gate_power(pairs, shares, threshold=max(threshold, 0.5), alpha=alpha)
    named, flips = both_orders * (1 - shares.ties) * pairs, shares.flip_share
    most = most_disagreement(flips * named, named, level=1 - alpha) if named else 1.0
    if threshold >= 0.5 or most >= 0.5:
        return even
    wanted, lead = 1 - 2 * threshold, shares.wins - shares.losses
    left, least_left = 1 - 2 * flips, 1 - 2 * most
    variance = max(0.0, shares.wins + shares.losses - lead * lead)
    # The score test takes the variance at the bound that the count has to pass.
    halves = max(0.0, 1 - shares.wins - shares.losses)
    under_null = constrained_variance(
        wanted * left, wins=shares.losses, ties=halves, losses=shares.wins
    )
    error = -float(ndtri(alpha / 2)) * math.sqrt(under_null / pairs)
    margin = math.hypot(error, wanted * (left - least_left))
    flip_variance = flips * (1 - flips) / named
    ahead = wanted * (left - flip_variance / (2 * left**3)) + lead
    spread = math.sqrt(variance / pairs + flip_variance * (wanted / left) ** 2)
    below = float(ndtr((ahead - margin) / spread)) if spread else float(ahead > margin)
    if shares.ties:
        # Ties count only of a judge that named a winner in both orders often enough.
        decided = named * (1 - flips)
        below *= float(ndtr((decided - FEWEST_DECIDED + 0.5) / math.sqrt(decided)))
    return max(below, even)


def _score_power(
    pairs: float, shares: OutcomeShares, *, lead: float, variance: float, null: float, alpha: float
) -> float:
    """Of refusing `null`, on the scale of wins less losses, where `lead` is true."""
    ahead, behind = shares.wins, shares.losses
    if null < 0:  # the constrained variance is stated for the other sign
        ahead, behind = behind, ahead
    halves = max(0.0, 1 - ahead - behind)
    under_null = constrained_variance(abs(null), wins=ahead, ties=halves, losses=behind)
    margin = math.sqrt(pairs) * (lead - null) + ndtri(alpha / 2) * math.sqrt(under_null)
    if variance <= 0:
        return float(margin > 0)
    return float(ndtr(margin / math.sqrt(variance)))


def sequential_chances(plan: SequentialPlan, pair: TruePair) -> Chances:
    """Of the test that stops early, with a look after every prompt; exact for single pairs.

    Beyond some thousand prompts, a smaller plan stands for it in which the difference is as many
    standard errors.
    """
    if plan.planned * pair.spread > _WALKED:
        return _scaled_chances(plan, pair)
    numbers, weights = _decisive_numbers(plan.planned, pair.spread)
    ends = range(int(numbers[0]), int(numbers[-1]) + 1)
    leads = stopping_leads(planned_bets(plan.planned), alpha=plan.betting_alpha, longest=ends[-1])
    fair = fair_ends(leads, ends)
    real = walk(leads, pair.decisive_rate, ends)
    # Ties fall independently of who wins, so they only delay the walk.
    places = np.arange(ends[-1] + 1)
    reached = np.concatenate([np.cumsum(weights[::-1])[::-1], np.zeros(1)])
    in_time = reached[np.clip(places - ends[0], 0, len(weights))]
    power = float(real.stops_a @ in_time)
    for number, weight in zip(ends, weights, strict=True):
        last, chances = real.ends[number]
        critical = fair[number].critical_lead(plan.alpha)
        power += float(weight * chances[last >= critical].sum())
    saved = (real.stops_a + real.stops_b) @ _prompts_left(places, plan.planned, pair.spread)
    return Chances(min(1.0, power), plan.planned - float(saved))


def _scaled_chances(plan: SequentialPlan, pair: TruePair) -> Chances:
    factor = plan.planned * pair.spread / _WALKED
    smaller = plan.model_copy(update={"planned": int(plan.planned / factor)})
    rate = min(0.5 + (pair.win_rate - 0.5) * math.sqrt(factor), 0.5 + pair.spread / 2)
    alike = sequential_chances(smaller, TruePair(rate, pair.spread))
    if plan.planned * pair.spread <= LONGEST:
        return Chances(alike.power, alike.prompts * factor)
    # The final test of a very long run has only what the looks can not have spent.
    rest = fixed_chances(plan.planned, pair, alpha=plan.alpha - plan.betting_alpha)
    return Chances(rest.power, alike.prompts * factor)


def _decisive_numbers(prompts: int, spread: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How many prompts may turn out decisive, and the chance of each number."""
    if spread >= 1:
        return np.array([prompts]), np.ones(1)
    middle, reach = prompts * spread, _FAR * math.sqrt(prompts * spread * (1 - spread)) + 1
    low, high = max(0, math.floor(middle - reach)), min(prompts, math.ceil(middle + reach))
    numbers = np.arange(low, high + 1)
    logs = gammaln(prompts + 1) - gammaln(numbers + 1) - gammaln(prompts - numbers + 1)
    logs += xlogy(numbers, spread) + xlog1py(prompts - numbers, -spread)
    chances = np.exp(logs)
    return numbers, np.asarray(chances / chances.sum())


def _prompts_left(places: NDArray[np.int64], prompts: int, spread: float) -> NDArray[np.float64]:
    """The mean number of prompts that are left when the k-th decisive one has come.

    The place of that one is nearly normal with mean k/spread (negative binomial).
    """
    left = prompts - places / spread
    deviation = np.sqrt(places * max(0.0, 1 - spread)) / spread
    if spread >= 1:
        return np.maximum(left, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(deviation > 0, left / deviation, np.sign(left) * np.inf)
        density = np.exp(-(far**2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(left * ndtr(far) + deviation * density)


# How many pairs a difference needs, or what difference a number of pairs can show.

_MOST = 100_000_000  # prompts beyond which a difference is called too small to plan for
_FINEST = 1e-5  # the grain of a smallest difference


class Certainty(Model):
    """How sure: `alpha` of naming a side where none is better, `power` of naming the better."""

    alpha: float = 0.05
    power: float = 0.8


class StudyDesign(Model):
    """What the pairs are like, and how each is judged.

    `tie_share` and `inconsistent_share` are of all pairs. The planned win rate is the judge's
    preference where its two orders agree, ties as half; inconsistent pairs always count as half, so
    they shrink what a run will show. `correlation` is between two rows of one prompt.
    `both_orders`: each pair is judged in one randomly drawn order, and this share in both.
    """

    tie_share: float = 0.0
    inconsistent_share: float = 0.0
    rows_per_prompt: int = 1
    correlation: float = 0.0
    orders: int = 2
    samples: int = 1
    judges: int = 1
    both_orders: float | None = None

    @property
    def design_effect(self) -> float:
        """By how much rows of one prompt are worth less than independent ones (Kish, 1965)."""
        return 1 + (self.rows_per_prompt - 1) * self.correlation

    @property
    def calls_per_pair(self) -> float:
        orders = self.orders if self.both_orders is None else 1 + self.both_orders
        return orders * self.samples * self.judges

    @property
    def decisive_share(self) -> float:
        """In a single order an inconsistent pair has a winner like any other."""
        seen = 1.0 if self.both_orders is None else self.both_orders
        return 1 - self.tie_share - seen * self.inconsistent_share

    @property
    def highest_win_rate(self) -> float:
        """If all decided pairs are won."""
        return 1 - self.tie_share / (2 * (1 - self.inconsistent_share))

    def lowest_win_rate(self, threshold: float) -> float:
        """Above which a gate at `threshold` can pass."""
        flips = self.shares(0.5).flip_share
        bound = half_count_threshold(threshold, flips)
        return 0.5 + (bound - 0.5) / (1 - self.inconsistent_share)

    def shown_rate(self, win_rate: float) -> float:
        """A run's expected rate for a true win rate, with inconsistent pairs as half."""
        return 0.5 + (1 - self.inconsistent_share) * (win_rate - 0.5)

    def shares(self, win_rate: float) -> OutcomeShares:
        shown = self.shown_rate(win_rate)
        return OutcomeShares(
            wins=max(0.0, self.decisive_share / 2 + shown - 0.5),
            losses=max(0.0, self.decisive_share / 2 - shown + 0.5),
            ties=self.tie_share,
            inconsistent=self.inconsistent_share,
        )

    def pair(self, win_rate: float) -> TruePair:
        shown = self.shown_rate(win_rate)
        centred = (2 * shown - 1) ** 2
        rows = self.decisive_share - centred
        spread = rows * self.design_effect / self.rows_per_prompt + centred
        return TruePair(shown, min(1.0, max(spread, abs(2 * shown - 1))))


class PairPlan(Model):
    """A size, its power, and what it takes; costs are filled in by `priced`.

    `shown_rate` is the expected win rate of such a run.
    """

    win_rate: float
    shown_rate: float
    min_win_rate: float
    prompts: int
    pairs: int
    pairs_in_both_orders: int | None = None  # where each of the others has one order at random
    calls: int
    power: float
    expected_prompts: float
    expected_pairs: float
    expected_calls: float
    early_stopping: bool
    design_effect: float
    certainty: Certainty
    shape: StudyDesign
    cost: float | None = None
    expected_cost: float | None = None

    def priced(self, cost_per_call: float) -> PairPlan:
        return self.model_copy(
            update={
                "cost": self.calls * cost_per_call,
                "expected_cost": self.expected_calls * cost_per_call,
            }
        )


def plan_pairs(
    win_rate: float,
    *,
    min_win_rate: float = 0.5,
    certainty: Certainty | None = None,
    shape: StudyDesign | None = None,
    early_stopping: bool = False,
) -> PairPlan:
    """The number of prompts at which a true win rate is found with the requested power.

    Found means: a gate at `min_win_rate` passes, and at 0.5 the better side is named. There counts
    are whole, so power rises in small saw-teeth: it is met at this number and may be just missed a
    few prompts above.
    """
    certainty, shape = certainty or Certainty(), shape or StudyDesign()
    check_plan(certainty, shape, min_win_rate, early_stopping=early_stopping)
    most = shape.highest_win_rate
    halves = Message("plan.ties", ties=shape.tie_share)
    if shape.inconsistent_share:
        inconsistent = shape.inconsistent_share
        halves = Message(
            "plan.ties_and_inconsistent", ties=shape.tie_share, inconsistent=inconsistent
        )
    true_rate = win_rate
    if min_win_rate == 0.5:
        true_rate = max(win_rate, 1 - win_rate)
        if not 0.5 < true_rate <= most:
            raise InputError.of(
                "plan.win_rate_impossible",
                win_rate=win_rate,
                halves=halves,
                most=most,
                least=1 - most,
            )
    elif not shape.lowest_win_rate(min_win_rate) < win_rate <= most:
        raise InputError.of(
            "plan.win_rate_fails",
            win_rate=win_rate,
            halves=halves,
            min_win_rate=min_win_rate,
            most=most,
            least=shape.lowest_win_rate(min_win_rate),
        )

    def power(prompts: int) -> float:
        return _chances(prompts, true_rate, min_win_rate, certainty, shape).power

    # The plain test is quick to compute and needs no more prompts than the one with looks.
    least = _least(power, certainty, 1)
    if early_stopping:
        pair = shape.pair(true_rate)
        least = _least(lambda n: _early_chances(n, pair, certainty).power, certainty, least)
        chances = _early_chances(least, pair, certainty)
    else:
        chances = _chances(least, true_rate, min_win_rate, certainty, shape)
    return _plan(win_rate, least, chances, min_win_rate, certainty, shape, early_stopping)


# Shares of pairs in both orders to try.
_SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8)


def plan_both_orders(
    win_rate: float, *, min_win_rate: float, certainty: Certainty, shape: StudyDesign
) -> PairPlan:
    """The share of pairs in both orders that makes a random-order plan cheapest in calls."""
    shapes = [shape.model_copy(update={"both_orders": share}) for share in _SHARES]
    plans = [
        plan_pairs(win_rate, min_win_rate=min_win_rate, certainty=certainty, shape=tried)
        for tried in shapes
    ]
    return min(plans, key=lambda each: each.calls)


def detectable_difference(
    prompts: int,
    *,
    min_win_rate: float = 0.5,
    certainty: Certainty | None = None,
    shape: StudyDesign | None = None,
    early_stopping: bool = False,
) -> PairPlan | None:
    """The smallest win rate that passes a gate with so many prompts; None if none does."""
    certainty, shape = certainty or Certainty(), shape or StudyDesign()
    check_plan(certainty, shape, min_win_rate, early_stopping=early_stopping)
    if prompts < 1:
        raise InputError.of("stats.at_least", value=prompts, name="prompts", least=1)

    def chances(win_rate: float) -> Chances:
        if early_stopping:
            return _early_chances(prompts, shape.pair(win_rate), certainty)
        return _chances(prompts, win_rate, min_win_rate, certainty, shape)

    low, high = shape.lowest_win_rate(min_win_rate), shape.highest_win_rate
    if chances(high).power < certainty.power:
        return None
    while high - low > _FINEST:
        middle = (low + high) / 2
        enough = chances(middle).power >= certainty.power
        low, high = (low, middle) if enough else (middle, high)
    return _plan(high, prompts, chances(high), min_win_rate, certainty, shape, early_stopping)


def _chances(
    prompts: int, win_rate: float, threshold: float, certainty: Certainty, shape: StudyDesign
) -> Chances:
    if threshold == 0.5:
        return fixed_chances(prompts, shape.pair(win_rate), alpha=certainty.alpha)
    pairs = prompts * shape.rows_per_prompt / shape.design_effect
    shares = shape.shares(win_rate)
    if shape.both_orders is None:
        power = gate_power(pairs, shares, threshold=threshold, alpha=certainty.alpha)
    else:
        power = drawn_gate_power(
            pairs,
            shares,
            both_orders=shape.both_orders,
            threshold=threshold,
            alpha=certainty.alpha,
        )
    return Chances(power, float(prompts))


def _early_chances(prompts: int, pair: TruePair, certainty: Certainty) -> Chances:
    return sequential_chances(SequentialPlan(planned=prompts, alpha=certainty.alpha), pair)


def _least(power: Callable[[int], float], certainty: Certainty, start: int) -> int:
    low, high = start - 1, start
    step = max(1, start // 16)
    while power(high) < certainty.power:
        low, high, step = high, high + step, 2 * step
        if high > _MOST:
            raise InputError.of("plan.too_many_prompts", most=_MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= certainty.power else (middle, high)
    return high


def _plan(
    win_rate: float,
    prompts: int,
    chances: Chances,
    min_win_rate: float,
    certainty: Certainty,
    shape: StudyDesign,
    early_stopping: bool,
) -> PairPlan:
    rows, calls = shape.rows_per_prompt, shape.calls_per_pair
    twice = None if shape.both_orders is None else math.ceil(shape.both_orders * prompts * rows)
    return PairPlan(
        win_rate=win_rate,
        shown_rate=shape.shown_rate(win_rate),
        min_win_rate=min_win_rate,
        prompts=prompts,
        pairs=prompts * rows,
        pairs_in_both_orders=twice,
        calls=math.ceil(round(prompts * rows * calls, 6)),
        power=chances.power,
        expected_prompts=chances.prompts,
        expected_pairs=chances.prompts * rows,
        expected_calls=chances.prompts * rows * calls,
        early_stopping=early_stopping,
        design_effect=shape.design_effect,
        certainty=certainty,
        shape=shape,
    )


def check_plan(
    certainty: Certainty, shape: StudyDesign, min_win_rate: float, *, early_stopping: bool
) -> None:
    """Raise if no plan is possible, whatever the true win rate."""
    for name, value in (
        ("alpha", certainty.alpha),
        ("power", certainty.power),
        ("min-win-rate", min_win_rate),
    ):
        if not 0 < value < 1:
            raise InputError.of("stats.share_outside", name=name, value=value)
    ties, inconsistent = shape.tie_share, shape.inconsistent_share
    for name, value in (("tie-share", ties), ("inconsistent-share", inconsistent)):
        if not 0 <= value < 1:
            raise InputError.of("stats.share_not_below_one", name=name, value=value)
    if not 0 <= shape.correlation <= 1:
        raise InputError.of("plan.correlation_outside", value=shape.correlation)
    for name in ("rows_per_prompt", "orders", "samples", "judges"):
        if (number := getattr(shape, name)) < 1:
            option = name.replace("_", "-")
            raise InputError.of("stats.at_least", name=option, value=number, least=1)
    if ties + inconsistent >= 1:
        raise InputError.of("plan.no_winners_left", ties=ties, inconsistent=inconsistent)
    if shape.both_orders is not None:
        if not 0 <= shape.both_orders <= 1:
            raise InputError.of("stats.share_outside", name="both-orders", value=shape.both_orders)
        if min_win_rate < 0.5 and not shape.both_orders:
            raise InputError.of("plan.needs_both_orders", min_win_rate=min_win_rate)
    elif inconsistent and shape.orders == 1:
        raise InputError.of("plan.one_order_inconsistent", inconsistent=inconsistent)
    if early_stopping and min_win_rate != 0.5:
        raise InputError.of("plan.decided_tests_half", min_win_rate=min_win_rate)
    if min_win_rate < 0.5 and shape.shares(0.5).flip_share >= 0.5:
        raise InputError.of(
            "plan.always_undecided", inconsistent=inconsistent, ties=ties, min_win_rate=min_win_rate
        )
    if shape.lowest_win_rate(min_win_rate) >= shape.highest_win_rate:
        raise InputError.of(
            "plan.gate_out_of_reach",
            min_win_rate=min_win_rate,
            ties=ties,
            inconsistent=inconsistent,
        )
