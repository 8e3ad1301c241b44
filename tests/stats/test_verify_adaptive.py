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
