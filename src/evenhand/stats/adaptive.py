"""Asking where it matters: which pairs of models to compare next, and when to stop.

A pure function of the counts so far, what is in flight and the seed: a run that was killed goes
on by computing it again from its store.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.pair_choice import choose_linking_pairs, choose_settling_pairs
from evenhand.stats.pair_counts import PairCounts
from evenhand.stats.rank_certainty import RankCertainty, describe_certainty
from evenhand.stats.strength_posterior import StrengthPosterior, fit_posterior, tie_dispersion

Measure = Literal["tau", "neighbours"]
Stop = Literal["certain", "budget", "exhausted"]


class StoppingRule(Model):
    """Stop when the order is as sure as this.

    `tau`: the expected Kendall tau reaches the target. `neighbours`: so does, for every two
    neighbours, the probability that they are in the right order.
    """

    measure: Measure = "tau"
    target: float = 0.95


class PairChoice(Model):
    """The next comparisons, most valuable first, or why there are none."""

    pairs: tuple[tuple[str, str], ...]  # a pair stands as often as it should be asked
    linking: int  # how many of them, in front, join models that were never compared
    stop: Stop | None
    reason: str | None
    certainty: RankCertainty
    asked: int  # so far, whatever came of it, and with what is in flight
    budget: int | None
    batch: int
    rule: StoppingRule | None
    prior_deviation: float | None
    dispersion: float | None
    seed: int


def choose_pairs(
    counts: PairCounts,
    *,
    batch: int,
    budget: int | None = None,
    asked: int | None = None,
    rule: StoppingRule | None = None,
    prior_deviation: float | None = None,
    dispersion: float | None = None,
    seed: int = 0,
) -> PairChoice:
    """At most `batch` pairs, never more than are unasked or than the budget still allows.

    `asked` is how many pairs were sent in all, where some gave no verdict and so do not count.
    `dispersion` is estimated from the ties where they are given, and 1 otherwise; give it where
    it is known, such as from a clustered fit. Without a rule only the budget ends the asking.
    """
    sent = counts.completed + counts.waiting if asked is None else asked
    _check(counts, batch=batch, budget=budget, asked=sent, rule=rule)
    _check_positive("prior_deviation", prior_deviation)
    _check_positive("dispersion", dispersion)
    order = _canonical_order(counts.models, seed)
    league = counts.reordered(order)
    posterior = know_strengths(league, prior_deviation=prior_deviation, dispersion=dispersion)
    certainty = describe_certainty(league.models, posterior, comparisons=league.completed)

    stop, reason = _end(counts, certainty, budget=budget, asked=sent, rule=rule)
    allowed = batch if budget is None else min(batch, budget - sent)
    picked: list[tuple[int, int]] = []
    linking = 0
    if stop is None:
        picked, linking = _pick(league, posterior, number=min(allowed, counts.open), seed=seed)
    place = {name: index for index, name in enumerate(counts.models)}
    named = ((league.models[first], league.models[second]) for first, second in picked)
    return PairChoice(
        pairs=tuple((a, b) if place[a] < place[b] else (b, a) for a, b in named),
        linking=linking,
        stop=stop,
        reason=reason,
        certainty=certainty,
        asked=sent,
        budget=budget,
        batch=batch,
        rule=rule,
        prior_deviation=prior_deviation,
        dispersion=dispersion,
        seed=seed,
    )


def know_strengths(
    counts: PairCounts, *, prior_deviation: float | None = None, dispersion: float | None = None
) -> StrengthPosterior:
    """The posterior of one league, as a stack of one."""
    scores = counts.scores[None]
    noise = np.ones(1) if dispersion is None else np.full(1, dispersion)
    if dispersion is None and counts.ties is not None:
        noise = tie_dispersion(scores, counts.ties[None].astype(np.float64))
    variance = None if prior_deviation is None else prior_deviation**2
    return fit_posterior(scores, prior_variance=variance, dispersion=noise)


def _pick(
    league: PairCounts, posterior: StrengthPosterior, *, number: int, seed: int
) -> tuple[list[tuple[int, int]], int]:
    models = len(league.models)
    tie_break = np.random.default_rng(seed).random((models, models))
    asked = np.round(league.scores + league.scores.T).astype(np.int64) + league.in_flight
    links = choose_linking_pairs(asked, league.unasked, number=number, tie_break=tie_break)
    room = league.unasked.copy()
    in_flight = league.in_flight.astype(np.float64)
    for first, second in links:
        room[[first, second], [second, first]] -= 1
        in_flight[[first, second], [second, first]] += 1.0
    settling = choose_settling_pairs(
        posterior,
        room[None],
        number=number - len(links),
        in_flight=in_flight[None],
        tie_break=tie_break,
    )
    chosen = [(int(first), int(second)) for first, second in settling[0] if first >= 0]
    return links + chosen, len(links)


def _end(
    counts: PairCounts,
    certainty: RankCertainty,
    *,
    budget: int | None,
    asked: int,
    rule: StoppingRule | None,
) -> tuple[Stop | None, str | None]:
    if rule is not None:
        by_tau = rule.measure == "tau"
        reached = certainty.expected_tau if by_tau else certainty.least_neighbour
        if reached >= rule.target:
            what = "expected Kendall tau" if by_tau else "least certain two neighbours"
            return "certain", f"{what}: {reached:.3f}, and {rule.target:g} was asked for"
    if budget is not None and asked >= budget:
        return "budget", f"all {budget} pairs of the budget are asked"
    if counts.open == 0:
        return "exhausted", f"no pair is left to ask after {asked}"
    return None, None


def _canonical_order(models: tuple[str, ...], seed: int) -> NDArray[np.int64]:
    """An order by names and seed alone, so that no choice hangs on the order of the caller."""
    keys = [hashlib.sha256(f"{seed}\0{name}".encode()).digest() for name in models]
    return np.array(sorted(range(len(models)), key=keys.__getitem__), dtype=np.int64)


def _check(
    counts: PairCounts, *, batch: int, budget: int | None, asked: int, rule: StoppingRule | None
) -> None:
    if batch < 1:
        raise InputError(f"batch is {batch}; give at least 1 pair")
    if budget is not None and budget < 0:
        raise InputError(f"budget is {budget}; give 0 pairs or more")
    known = counts.completed + counts.waiting
    if asked < known:
        raise InputError(
            f"asked is {asked}, but {known} pairs are completed or in flight;"
            " count all that were sent"
        )
    if rule is not None and not 0.0 < rule.target < 1.0:
        raise InputError(f"target is {rule.target:g}; give a certainty between 0 and 1")


def _check_positive(what: str, value: float | None) -> None:
    if value is not None and not 0.0 < value < float("inf"):
        raise InputError(f"{what} is {value:g}; give a positive number")
