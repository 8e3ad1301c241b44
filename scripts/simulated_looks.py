"""Reports that make more than one claim, or claims for more than they saw: files that grow, several
matchups in a run, prompts of few topics; and the power that each rule costs. Used by
`scripts.verify_conclusions --looks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scripts.simulated_claims import Outcomes, rules

from evenhand.contract.codes import INCONSISTENT, TIE, WIN_A, WIN_B
from evenhand.report.claims import ClaimedRate
from evenhand.report.topics import Topics
from evenhand.report.win_rates import RateOptions, SideRate, side_rate
from evenhand.stats.rates.topics import topic_spread
from evenhand.stats.rates.win_rate import Circumstances

ALPHA = 0.05
LOOKS = 10
MATCHUPS = 12
MOST_T1 = 0.05  # of a pass, and of a fail, over topics; nominal 2.5%
# What each rule promises of any wrong claim in a run, in either direction.
PROMISED = {"grown": 2 * ALPHA, "--growing": ALPHA, "1 - α/m": ALPHA}
Wrong = NDArray[np.bool_]  # a wrong pass, and a wrong fail
_PLANNED = RateOptions("A", "half", 1 - ALPHA, planned=True)
_LOOKED = RateOptions("A", "half", 1 - ALPHA, planned=False)
_TOGETHER = RateOptions("A", "half", 1 - ALPHA, planned=True, matchups=MATCHUPS)
_SCORES = np.array([1.0, 0.0, 0.5, 0.5])  # by outcome code


@dataclass(frozen=True, slots=True)
class GrowingFile:
    """Reported ten times, each time with a tenth of its pairs more."""

    pairs: int
    rate: float = 0.5
    ties: float = 0.0
    flips: float = 0.0
    rows_per_prompt: int = 1

    def __str__(self) -> str:
        more = f", flips {self.flips:.0%}" * (self.flips > 0)
        more += f", {self.rows_per_prompt} a prompt" * (self.rows_per_prompt > 1)
        return f"growing file, {self.pairs} pairs, ties {self.ties:.0%}{more}"

    def wrong(self, rng: np.random.Generator) -> dict[str, Wrong]:
        """Whether any look claims that A is better, and whether any claims that it is worse."""
        outcomes, prompts = self.draw(rng)
        step = self.pairs // LOOKS
        ends = range(step, self.pairs + 1, step)
        fixed = np.array([_ruled(outcomes[:n], prompts[:n], _PLANNED) for n in ends])
        looked = np.array([_ruled(outcomes[:n], prompts[:n], _LOOKED) for n in ends])
        return {
            "fixed intervals": fixed.any(axis=0),
            "grown": fixed[0] | looked[1:].any(axis=0),
            "--growing": looked.any(axis=0),
        }

    def draw(self, rng: np.random.Generator) -> tuple[Outcomes, NDArray[np.int64]]:
        prompts = np.arange(self.pairs) // self.rows_per_prompt
        rates = np.full(self.pairs, self.rate)
        if self.rows_per_prompt > 1:  # a correlation of 0.4 within prompts
            rates = rng.beta(1.5 * self.rate, 1.5 * (1 - self.rate), self.pairs)[prompts]
        outcomes = _judged(rng, rates, ties=self.ties)
        return np.where(rng.random(self.pairs) < self.flips, INCONSISTENT, outcomes), prompts


@dataclass(frozen=True, slots=True)
class SeveralMatchups:
    """Twelve models against one whose answers they share, or each against a model of its own."""

    pairs: int
    ties: float = 0.0
    shared: float = 0.0  # of the variance of a pair's outcome

    def __str__(self) -> str:
        size = f"{MATCHUPS} matchups of {self.pairs} pairs, ties {self.ties:.0%}"
        return size + f", {self.shared:.0%} shared" * (self.shared > 0)

    def wrong(self, rng: np.random.Generator) -> dict[str, Wrong]:
        """Whether any matchup claims that A is better, and whether any claims that it is worse."""
        common = np.sqrt(self.shared) * rng.standard_normal(self.pairs)
        own = np.sqrt(1 - self.shared) * rng.standard_normal((MATCHUPS, self.pairs))
        won = np.where(common + own > 0, WIN_A, WIN_B)
        tied = rng.random(won.shape) < self.ties
        drawn = np.where(tied, TIE, won).astype(np.int8)
        prompts = np.arange(self.pairs)
        wrong = {}
        for name, wanted in (("1 - α", _PLANNED), ("1 - α/m", _TOGETHER)):
            ruled: Wrong = np.array([_ruled(outcomes, prompts, wanted) for outcomes in drawn])
            wrong[name] = np.asarray(ruled.any(axis=0))
        return wrong


@dataclass(frozen=True, slots=True)
class FewTopics:
    """A topic has a win rate of its own; `icc` is the correlation of two prompts of one topic."""

    topics: int
    prompts: tuple[int, int]  # of a topic, from and to
    icc: float
    rate: float = 0.5

    def __str__(self) -> str:
        least, most = self.prompts
        size = f"{least}" if least == most else f"{least} to {most}"
        return f"{self.topics} topics of {size} prompts, ICC {self.icc:.2f}, at {self.rate:.2f}"

    def wrong(self, rng: np.random.Generator) -> dict[str, Wrong]:
        """At the rate over all topics; with `--these-topics` at the rate of those drawn."""
        outcomes, topics, rate_here = self.draw(rng)
        rates = _over_topics(outcomes, topics)
        here = rates.pop("--these-topics")
        wrong = {name: np.array(rules(rate, self.rate)) for name, rate in rates.items()}
        # By its interval alone: what a gate at 0.5 needs beside it only holds claims back.
        low, high = here.low or 0.0, 1.0 if here.high is None else here.high
        return {**wrong, "--these-topics": np.array([low > rate_here, high < rate_here])}

    def draw(self, rng: np.random.Generator) -> tuple[Outcomes, NDArray[np.intp], float]:
        least, most = self.prompts
        sizes = rng.integers(least, most + 1, self.topics)
        rates = np.full(self.topics, self.rate)
        if self.icc:
            size = 1 / self.icc - 1
            rates = rng.beta(self.rate * size, (1 - self.rate) * size, self.topics)
        topics = np.repeat(np.arange(self.topics), sizes)
        return _judged(rng, rates[topics]), topics, float(rates[topics].mean())


Cell = GrowingFile | SeveralMatchups | FewTopics


def cells(*, quick: bool) -> Iterator[Cell]:
    for pairs in (200,) if quick else (200, 1000):
        for ties, flips in ((0.0, 0.0), (0.3, 0.0), (0.3, 0.2)):
            yield GrowingFile(pairs, ties=ties, flips=flips)
        yield GrowingFile(pairs, rows_per_prompt=4)
    for pairs in (100,) if quick else (40, 100, 300):
        yield SeveralMatchups(pairs)
        yield SeveralMatchups(pairs, ties=0.3)
        yield SeveralMatchups(pairs, shared=0.5)
    for topics in (10, 30) if quick else (10, 20, 30):
        for prompts in ((5, 5), (30, 30), (5, 30)):
            for icc in (0.0, 0.2) if quick else (0.0, 0.05, 0.1, 0.2):
                for rate in (0.5, 0.6):
                    yield FewTopics(topics, prompts, icc, rate)


def measure(rng: np.random.Generator, cell: Cell, replicates: int) -> dict[str, tuple[float, ...]]:
    """By rule: the share of runs with a wrong pass, with a wrong fail, and with either."""
    wrong = [cell.wrong(rng) for _ in range(replicates)]
    shares = {}
    for rule in wrong[0]:
        each = np.array([found[rule] for found in wrong])
        shares[rule] = (*each.mean(axis=0).tolist(), float(each.any(axis=1).mean()))
    return shares


def within_limits(cell: Cell, shares: Mapping[str, tuple[float, ...]], replicates: int) -> bool:
    """With three standard errors to spare, which few replicates need where a rule is exact."""

    def at_most(share: float, limit: float) -> bool:
        return share <= limit + 3 * float(np.sqrt(limit * (1 - limit) / replicates))

    if isinstance(cell, FewTopics):
        held = [each for name, each in shares.items() if name != "topics ignored"]
        return all(at_most(max(passed, failed), MOST_T1) for passed, failed, _ in held)
    return all(at_most(shares[name][2], PROMISED[name]) for name in shares if name in PROMISED)


def power(rng: np.random.Generator, replicates: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Of a pass at one half, by rule."""

    def share(simulate: Callable[[], Mapping[str, bool]]) -> dict[str, float]:
        runs = [simulate() for _ in range(replicates)]
        return {rule: float(np.mean([run[rule] for run in runs])) for rule in runs[0]}

    for pairs, rate in ((300, 0.6), (1000, 0.55)):
        file = GrowingFile(pairs, rate)

        def last_look(file: GrowingFile = file) -> dict[str, bool]:
            outcomes, prompts = file.draw(rng)
            first = file.pairs // LOOKS
            ends = range(first, file.pairs + 1, first)
            looked = [_ruled(outcomes[:n], prompts[:n], _LOOKED)[0] for n in ends]
            by_first = _ruled(outcomes[:first], prompts[:first], _PLANNED)[0]
            return {
                "fixed": _ruled(outcomes, prompts, _PLANNED)[0],
                "always valid": looked[-1],
                "in any look": by_first or any(looked),
            }

        yield f"growing: last of ten looks, {pairs} pairs, true {rate:.2f}", share(last_look)

        def one_of_many(file: GrowingFile = file) -> dict[str, bool]:
            outcomes, prompts = file.draw(rng)
            options = {"1 - α": _PLANNED, "1 - α/m": _TOGETHER}
            return {name: _ruled(outcomes, prompts, each)[0] for name, each in options.items()}

        yield f"matchups: one of {MATCHUPS}, {pairs} pairs, true {rate:.2f}", share(one_of_many)
    for topics, size in ((10, 30), (30, 10)):
        for icc in (0.0, 0.05, 0.2):
            few = FewTopics(topics, (size, size), icc, 0.6)

            def gate(few: FewTopics = few) -> dict[str, bool]:
                outcomes, of_row, _ = few.draw(rng)
                rates = _over_topics(outcomes, of_row)
                return {rule: rules(rate, 0.5)[0] for rule, rate in rates.items()}

            yield f"topics: {few}, gate at 0.50", share(gate)


def holds(rng: np.random.Generator, *, replicates: int, quick: bool) -> bool:
    """Prints the share of runs with a wrong pass, a wrong fail, either; False beyond a limit."""
    good = True
    for cell in cells(quick=quick):
        shares = measure(rng, cell, replicates)
        held = within_limits(cell, shares, replicates)
        good &= held
        columns = "; ".join(
            f"{rule} {passed:.1%} {failed:.1%} {either:.1%}"
            for rule, (passed, failed, either) in shares.items()
        )
        print(f"  {cell}: {columns}{'' if held else '  BEYOND ITS LIMIT'}", flush=True)
    print("\npower of a pass by rule")
    for name, by_rule in power(rng, replicates):
        columns = "; ".join(f"{rule} {share:.1%}" for rule, share in by_rule.items())
        print(f"  {name}: {columns}", flush=True)
    return good


def _judged(rng: np.random.Generator, rates: NDArray[np.float64], *, ties: float = 0.0) -> Outcomes:
    won = np.where(rng.random(rates.size) < rates, WIN_A, WIN_B)
    return np.where(rng.random(rates.size) < ties, TIE, won).astype(np.int8)


def _rate(outcomes: Outcomes, prompts: NDArray[np.int64], wanted: RateOptions) -> SideRate:
    known = Circumstances(flipped=outcomes == INCONSISTENT)
    return side_rate(outcomes, prompts, wanted, circumstances=known)


def _ruled(
    outcomes: Outcomes, prompts: NDArray[np.int64], wanted: RateOptions
) -> tuple[bool, bool]:
    return rules(_rate(outcomes, prompts, wanted), 0.5)


def _over_topics(outcomes: Outcomes, topics: NDArray[np.intp]) -> dict[str, SideRate]:
    """The rate with the interval that each rule claims."""
    prompts = np.arange(outcomes.size)
    rate = _rate(outcomes, prompts, _PLANNED)
    spread = topic_spread(
        _SCORES[outcomes], prompts=prompts, topics=topics, level=_PLANNED.level_of_each
    )
    rates = {"topics ignored": rate}
    for rule, named, these in (
        ("tested", False, False),
        ("--topic", True, False),
        ("--these-topics", True, True),
    ):
        over = Topics.of_parts(spread, column="topic", named=named, these=these)
        claimed = ClaimedRate.of(rate).over(over)
        rates[rule] = rate.model_copy(update={"low": claimed.low, "high": claimed.high})
    return rates
