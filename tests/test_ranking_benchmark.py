"""What the benchmark of rankings rests on: its battles, its cells, its limits."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.ranking import Limit, limits
from benchmarks.ranking_data import MODELS, WORDS, cells, make_battles

from evenhand.stats.ranking.leaderboard import rank_battles, rank_counts


def test_the_battles_are_the_same_each_time() -> None:
    one, other = make_battles(1_000), make_battles(1_000)
    assert (one.a == other.a).all()
    assert (one.a != one.b).all()
    assert set(one.outcome.tolist()) == {0, 1, 2}


def test_own_texts_are_equal_and_other_objects() -> None:
    made = make_battles(500)
    shared, own = made.texts(made.a, made.names), made.own_texts(made.a, made.names)
    assert shared == own
    assert len({id(cell) for cell in shared}) <= MODELS
    assert len({id(cell) for cell in own}) == 500


def test_cells_hold_every_battle_once() -> None:
    made = make_battles(20_000)
    first, second, outcome, count = cells(made)
    assert count.sum() == 20_000
    winner = made.texts(made.outcome, WORDS)
    whole = rank_battles(made.a, made.b, winner, models=made.names, intervals=None)
    grouped = rank_counts(
        made.names,
        first,
        second,
        wins_a=np.where(outcome == 0, count, 0),
        wins_b=np.where(outcome == 1, count, 0),
        halves=np.where(outcome == 2, count, 0),
        intervals=None,
    )
    assert [row.score for row in grouped.models] == pytest.approx(
        [row.score for row in whole.models]
    )


def test_a_limit_is_held_missed_or_not_measured() -> None:
    assert Limit("faster", 0.1, 1.0, 10).held is True
    assert Limit("faster", 0.1, 0.9, 10).held is False
    assert Limit("of a yardstick", 3.1, 1.0, 3, at_most=True).held is False
    assert Limit("without a peer", 0.1, None, 10).held is None


def test_the_best_route_of_a_peer_is_the_one_to_beat() -> None:
    found = limits({"bootstrap": 0.5}, {"bootstrap: rows": 90.0, "bootstrap: cells": 4.0}, {})
    [limit] = [limit for limit in found if "replicates" in limit.what]
    assert limit.ratio == 8
    assert limit.held is False
