"""Leagues of made-up models, many at once, whose pairs are asked by one rule or another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit, ndtr

from evenhand.stats.columns import Floats
from evenhand.stats.ranking.adaptive import (
    Counts,
    Worth,
    await_results,
    choose_linking_pairs,
    choose_settling_pairs,
    information,
    settling_worth,
)
from evenhand.stats.ranking.posterior import (
    StrengthPosterior,
    expected_tau,
    fit_posterior,
    gap_variance,
    misorder_probability,
    tie_dispersion,
)

# (posterior, room, number, in flight, tie break, random numbers) -> (leagues, number, 2)
Rule = Callable[
    [StrengthPosterior, Counts, int, Floats, Floats, np.random.Generator], NDArray[np.int64]
]

_STRIDES = (1, 2, 3, 4, 6, 8, 9, 11, 12, 13)  # coprime with 805, so that each walks all prompts
_BLOCK = 50


@dataclass(frozen=True, slots=True)
class World:
    """What the leagues are like. A tie weight is Davidson's (1970); effects are in log-odds."""

    leagues: int = 500
    models: int = 20
    deviation: float = 0.7
    tie_weight: float = 0.0
    prompt_deviation: float = 0.0
    prompts: int = 805
    seed: int = 20261116


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    world: World
    strengths: Floats
    # How each model does on each prompt beside its strength; means of zero keep the true order.
    effects: NDArray[np.float32] | None
    starts: NDArray[np.int64]

    @classmethod
    def draw(cls, world: World) -> Truth:
        rng = np.random.default_rng(world.seed)
        shape = (world.leagues, world.models)
        strengths = rng.normal(0.0, world.deviation, shape)
        effects = None
        if world.prompt_deviation:
            drawn = rng.standard_normal((*shape, world.prompts), dtype=np.float32)
            drawn -= drawn.mean(axis=2, keepdims=True)
            effects = drawn * np.float32(world.prompt_deviation)
        starts = rng.integers(0, world.prompts, (*shape, world.models))
        return cls(world, strengths, effects, starts)

    def judge(
        self, pairs: NDArray[np.int64], rounds: NDArray[np.int64], rng: np.random.Generator
    ) -> Floats:
        """The score of the first of each pair; rounds says how often it was asked before."""
        league = np.arange(self.world.leagues)[:, None]
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        gap = self.strengths[league, first] - self.strengths[league, second]
        if self.effects is not None:
            stride = np.array(_STRIDES)[(first * self.world.models + second) % len(_STRIDES)]
            prompt = (self.starts[league, first, second] + stride * rounds) % self.world.prompts
            gap = gap + self.effects[league, first, prompt] - self.effects[league, second, prompt]
        won = np.exp(gap / 2.0)
        lost, tied = 1.0 / won, self.world.tie_weight
        draw = rng.random(gap.shape) * (won + lost + tied)
        score: Floats = np.where(draw < won, 1.0, np.where(draw < won + tied, 0.5, 0.0))
        return score


@dataclass(slots=True)
class Course:
    """What one rule came to, look by look."""

    calls: list[int] = field(default_factory=list)
    tau: list[Floats] = field(default_factory=list)  # each of shape (leagues,)
    likelihood_tau: list[Floats] = field(default_factory=list)
    promised_tau: list[Floats] = field(default_factory=list)
    posterior: StrengthPosterior | None = None
    games: Floats | None = None
    scores: Floats | None = None
    even_scores: Floats | None = None  # of the calls before `even`

    def mean_tau(self) -> Floats:
        return np.array([float(tau.mean()) for tau in self.tau])

    def mean_likelihood_tau(self) -> Floats:
        return np.array([float(tau.mean()) for tau in self.likelihood_tau])


def true_tau(order_by: Floats, strengths: Floats) -> Floats:
    above = np.triu_indices(strengths.shape[1], 1)
    said = np.sign(order_by[:, above[0]] - order_by[:, above[1]])
    true = np.sign(strengths[:, above[0]] - strengths[:, above[1]])
    tau: Floats = (said * true).mean(axis=1)
    return tau


def calls_to_reach(target: float, calls: list[int], tau: Floats) -> float | None:
    """Where the mean tau, made monotone by isotonic regression, crosses the target."""
    smooth: Floats = isotonic_regression(tau).x
    if smooth[-1] < target:
        return None
    at = int(np.argmax(smooth >= target))
    if at == 0:
        return float(calls[0])
    share = (target - smooth[at - 1]) / (smooth[at] - smooth[at - 1])
    return float(calls[at - 1] + share * (calls[at] - calls[at - 1]))


def play(
    truth: Truth,
    rule: Rule,
    *,
    calls: int,
    batch: int = 64,
    in_flight: int = 64,
    look_every: int = 1,
    likelihood: bool = False,
    ties_known: bool = True,
    even: int = 0,
) -> Course:
    """Ask in batches; a batch is chosen while `in_flight` comparisons are still unanswered. The
    first `even` calls are spread evenly, whatever the rule."""
    world = truth.world
    rng = np.random.default_rng(world.seed + 1)
    league = np.arange(world.leagues)[:, None]
    table = (world.leagues, world.models, world.models)
    scores, ties, asked = np.zeros(table), np.zeros(table), np.zeros(table, dtype=np.int64)
    tie_break = rng.random(table)
    waiting: list[NDArray[np.int64]] = []
    course = Course()
    done = sent = 0
    evenly = uniform(world.models)
    while True:
        dispersion: Floats | float = 1.0
        if world.tie_weight and ties_known:
            dispersion = tie_dispersion(scores, ties)
        posterior = fit_posterior(scores, dispersion=dispersion)
        if done and (done // batch) % look_every == 0:
            course.calls.append(done)
            course.tau.append(true_tau(posterior.mean, truth.strengths))
            course.promised_tau.append(expected_tau(posterior))
            if likelihood:
                plain = fit_posterior(scores, prior_variance=100.0)
                course.likelihood_tau.append(true_tau(plain.mean, truth.strengths))
        course.posterior, course.games = posterior, scores + scores.transpose(0, 2, 1)
        if done == even:
            course.even_scores = scores.copy()
        if done >= calls:
            course.scores = scores
            return course
        while len(waiting) * batch <= in_flight:
            flying = asked - course.games
            room = np.maximum(world.prompts - asked, 0)
            room[:, np.arange(world.models), np.arange(world.models)] = 0
            choose = evenly if sent < even else rule
            pairs = choose(posterior, room, batch, flying, tie_break, rng)
            sent += batch
            waiting.append(pairs)
            for pick in range(batch):
                first, second = pairs[:, pick, 0], pairs[:, pick, 1]
                asked[league[:, 0], first, second] += 1
                asked[league[:, 0], second, first] += 1
        pairs = waiting.pop(0)
        # A batch may hold a pair several times; which prompt each gets is all that rounds decide.
        rounds = (course.games[league, pairs[:, :, 0], pairs[:, :, 1]]).astype(np.int64)
        rounds += _earlier_in_batch(pairs, world.models)
        score = truth.judge(pairs, rounds, rng)
        for pick in range(batch):
            first, second, won = pairs[:, pick, 0], pairs[:, pick, 1], score[:, pick]
            scores[league[:, 0], first, second] += won
            scores[league[:, 0], second, first] += 1.0 - won
            ties[league[:, 0], first, second] += won == 0.5
            ties[league[:, 0], second, first] += won == 0.5
        done += batch


def _earlier_in_batch(pairs: NDArray[np.int64], models: int) -> NDArray[np.int64]:
    """How often each pair stands before its place in the batch."""
    code = pairs[:, :, 0] * models + pairs[:, :, 1]
    same = code[:, :, None] == code[:, None, :]
    earlier: NDArray[np.int64] = np.tril(same, -1).sum(axis=2)
    return earlier


def adaptive(worth: Worth = settling_worth) -> Rule:
    def rule(
        posterior: StrengthPosterior,
        room: Counts,
        number: int,
        flying: Floats,
        tie_break: Floats,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        links = _links(flying, posterior, room, number, tie_break)
        if links is None:
            return _settling_in_blocks(posterior, room, number, flying, tie_break, worth)
        league = np.arange(room.shape[0])
        for pick in range(links.shape[1]):
            for a, b in ((0, 1), (1, 0)):
                room[league, links[:, pick, a], links[:, pick, b]] -= 1
                flying[league, links[:, pick, a], links[:, pick, b]] += 1.0
        left = number - links.shape[1]
        rest = _settling_in_blocks(posterior, room, left, flying, tie_break, worth)
        return np.concatenate([links, rest], axis=1)

    return rule


def _settling_in_blocks(
    posterior: StrengthPosterior,
    room: Counts,
    number: int,
    flying: Floats,
    tie_break: Floats,
    worth: Worth,
) -> NDArray[np.int64]:
    """Blocks small enough for the processor's cache take half the time of all leagues at once."""
    chosen = []
    for start in range(0, room.shape[0], _BLOCK):
        some = slice(start, start + _BLOCK)
        part = replace(
            posterior,
            mean=posterior.mean[some],
            covariance=posterior.covariance[some],
            prior_variance=posterior.prior_variance[some],
            dispersion=posterior.dispersion[some],
        )
        chosen.append(
            choose_settling_pairs(
                part,
                room[some],
                number=number,
                in_flight=flying[some],
                tie_break=tie_break[some],
                worth=worth,
            )
        )
    return np.concatenate(chosen)


def _links(
    flying: Floats, posterior: StrengthPosterior, room: Counts, number: int, tie_break: Floats
) -> NDArray[np.int64] | None:
    """The first batch of all leagues joins their models; later ones find them joined."""
    if flying.any() or posterior.mean.any():
        return None
    nothing = np.zeros(room.shape[1:], dtype=np.int64)
    return np.array(
        [
            choose_linking_pairs(nothing, room[0], number=number, tie_break=tie_break[league])
            for league in range(room.shape[0])
        ]
    )


def uniform(models: int) -> Rule:
    """All against all, in rounds of every pair once, each round in a random order."""
    above = np.array(np.triu_indices(models, 1)).T
    rest: list[NDArray[np.int64]] = []

    def rule(
        posterior: StrengthPosterior,
        room: Counts,
        number: int,
        flying: Floats,
        tie_break: Floats,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        leagues = room.shape[0]
        ready = rest.pop() if rest else np.empty((leagues, 0, 2), dtype=np.int64)
        while ready.shape[1] < number:
            order = np.argsort(rng.random((leagues, len(above))), axis=1)
            ready = np.concatenate([ready, above[order]], axis=1)
        rest.append(ready[:, number:])
        return ready[:, :number]

    return rule


def thompson(worth: Worth) -> Rule:
    """The worth of gaps at strengths drawn from the posterior, once a batch."""
    inner = adaptive(worth)

    def rule(
        posterior: StrengthPosterior,
        room: Counts,
        number: int,
        flying: Floats,
        tie_break: Floats,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        root = np.linalg.cholesky(posterior.covariance)
        drawn = posterior.mean + (root @ rng.standard_normal((*posterior.mean.shape, 1)))[:, :, 0]
        return inner(replace(posterior, mean=drawn), room, number, flying, tie_break, rng)

    return rule


def own_gap_only(worth: Worth) -> Rule:
    """Scores a pair by what its comparison does to its own gap, and to no other."""

    def rule(
        posterior: StrengthPosterior,
        room: Counts,
        number: int,
        flying: Floats,
        tie_break: Floats,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        leagues, models = posterior.mean.shape
        league = np.arange(leagues)
        gaps = posterior.mean[:, :, None] - posterior.mean[:, None, :]
        told = information(posterior)
        covariance = await_results(posterior, flying).copy()
        left = np.where(np.triu(np.ones((models, models), dtype=bool), 1), room, 0)
        chosen = np.empty((leagues, number, 2), dtype=np.int64)
        for pick in range(number):
            variance = np.maximum(gap_variance(covariance), 1e-300)
            score = worth(gaps, variance) * told * variance**2 / (1.0 + told * variance)
            score = np.where(left > 0, score * (1.0 + 1e-6 * tie_break), -1.0)
            first, second = np.divmod(score.reshape(leagues, -1).argmax(axis=1), models)
            chosen[:, pick, 0], chosen[:, pick, 1] = first, second
            left[league, first, second] -= 1
            direction = covariance[league, :, first] - covariance[league, :, second]
            one = told[league, first, second]
            shrink = one / (1.0 + one * variance[league, first, second])
            covariance -= shrink[:, None, None] * direction[:, :, None] * direction[:, None, :]
        return chosen

    return rule


def at_horizon(share: float) -> Worth:
    def worth(gaps: Floats, variances: Floats) -> Floats:
        value: Floats = np.exp(-(gaps**2) / (2.0 * (1.0 - share) * variances)) / variances
        return value

    return worth


def misorder_over_variance(gaps: Floats, variances: Floats) -> Floats:
    worth: Floats = ndtr(-np.abs(gaps) / np.sqrt(variances)) / variances
    return worth


def plugged_in_slope(gaps: Floats, variances: Floats) -> Floats:
    """How fast the misorder probability falls if the gap is what it is estimated to be."""
    ratio = np.abs(gaps) / np.sqrt(variances)
    worth: Floats = np.exp(-(ratio**2) / 2.0) * ratio / variances
    return worth


def every_gap_alike(gaps: Floats, variances: Floats) -> Floats:
    return np.ones_like(gaps)


def favour_top(count: int) -> Worth:
    """The settling worth of pairs with one of the best few in them; a fifth of it for others."""

    def worth(gaps: Floats, variances: Floats) -> Floats:
        place = (gaps < 0.0).sum(axis=2)
        top = (place[:, :, None] < count) | (place[:, None, :] < count)
        value: Floats = settling_worth(gaps, variances) * np.where(top, 1.0, 0.2)
        return value

    return worth


def neighbour_table(posterior: StrengthPosterior, strengths: Floats) -> tuple[Floats, Floats]:
    """For all neighbours of all leagues: the stated certainty, and whether they are right."""
    order = np.argsort(-posterior.mean, axis=1, kind="stable")
    league = np.arange(order.shape[0])[:, None]
    above, below = order[:, :-1], order[:, 1:]
    stated: Floats = 1.0 - misorder_probability(posterior)[league, above, below]
    right = (strengths[league, above] > strengths[league, below]).astype(np.float64)
    return stated.ravel(), right.ravel()


def tie_share(truth: Truth) -> float:
    """How many comparisons of two models of the leagues are ties, all against all."""
    gap = truth.strengths[:, :, None] - truth.strengths[:, None, :]
    above = np.triu_indices(truth.world.models, 1)
    chance = expit(gap)[:, above[0], above[1]]
    root = np.sqrt(chance * (1.0 - chance))
    tied = truth.world.tie_weight * root
    return float((tied / (1.0 + tied)).mean())
