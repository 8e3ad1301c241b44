"""Small versions of the long simulations, so that the scripts themselves are held to work."""

from __future__ import annotations

import numpy as np
import pytest
from scripts.simulated_leagues import (
    Truth,
    World,
    adaptive,
    calls_to_reach,
    neighbour_table,
    play,
    true_tau,
    uniform,
)
from scripts.verify_adaptive import Ranges


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [
        World(leagues=30, models=12, seed=7),
        World(leagues=30, models=12, seed=7, tie_weight=1.0),
        World(leagues=30, models=12, seed=7, prompt_deviation=1.0),
    ],
)
def test_asking_where_it_matters_needs_fewer_calls(world: World) -> None:
    truth = Truth.draw(world)
    even = play(truth, uniform(12), calls=1280, in_flight=0)
    ours = play(truth, adaptive(), calls=1280)
    target = float(even.mean_tau()[-1])
    needed = calls_to_reach(target, ours.calls, ours.mean_tau())
    assert needed is not None
    assert needed < 0.85 * 1280


def test_stated_certainty_of_neighbours_is_about_true() -> None:
    truth = Truth.draw(World(leagues=40, models=12, seed=3))
    course = play(truth, adaptive(), calls=640)
    assert course.posterior is not None
    stated, right = neighbour_table(course.posterior, truth.strengths)
    # 440 neighbours: a standard error of the share is at most 0.5 / √440 = 0.024.
    assert float(stated.mean()) == pytest.approx(float(right.mean()), abs=4 * 0.024)


def test_ranges_hold_by_the_uniform_share_and_not_by_what_was_chosen() -> None:
    """Six equal models: a range that leaves out a rank is wrong. Of 80 leagues a nominal 5% are 4,
    and 10 are three standard errors (√(80 · 0.05 · 0.95) = 1.9) more."""
    truth = Truth.draw(World(leagues=80, models=6, deviation=0.0, seed=5))
    ours = play(truth, adaptive(), calls=300, batch=20, in_flight=20, even=200)
    assert ours.even_scores is not None
    assert ours.scores is not None
    # Every pair is in the share 13 or 14 times: 200 over 15.
    games = (ours.even_scores + ours.even_scores.transpose(0, 2, 1))[:, *np.triu_indices(6, 1)]
    assert set(np.unique(games)) == {13.0, 14.0}
    share = Ranges.of(truth.strengths, ours.even_scores)
    assert share.wrong * 80 <= 10
    # 480 scores: 0.95 less three standard errors of dependent ones.
    assert share.covered > 0.90
    chosen = play(truth, adaptive(), calls=300, batch=20, in_flight=20)
    assert chosen.scores is not None
    assert Ranges.of(truth.strengths, chosen.scores).wrong > 0.15


def test_uniform_pairing_asks_every_pair_equally_often() -> None:
    course = play(Truth.draw(World(leagues=3, models=5)), uniform(5), calls=200, batch=20)
    assert course.games is not None
    # 200 calls over 10 pairs.
    assert (course.games[:, *np.triu_indices(5, 1)] == 20).all()


def test_tau_counts_pairs_in_the_wrong_order_twice() -> None:
    # One of three pairs is wrong: (2 - 1) / 3.
    assert true_tau(np.array([[2.0, 3.0, 1.0]]), np.array([[3.0, 2.0, 1.0]])) == pytest.approx(
        1 / 3
    )


def test_crossing_is_read_from_the_monotone_curve() -> None:
    # 0.90 and 0.80 are pooled to 0.85; 0.95 lies halfway from there to 1.05.
    tau = np.array([0.7, 0.9, 0.8, 1.05])
    assert calls_to_reach(0.95, [10, 20, 30, 40], tau) == pytest.approx(35)
    assert calls_to_reach(2.0, [10, 20, 30, 40], tau) is None
