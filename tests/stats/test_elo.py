"""Elo ratings against evalica's and by hand."""

from __future__ import annotations

from typing import Any

import evalica
import pytest

from evenhand.errors import InputError
from evenhand.stats.ranking.elo import rate_elo
from naive_ranking import make_field

WINNERS = {"A": evalica.Winner.X, "B": evalica.Winner.Y, "tie": evalica.Winner.Draw}


def test_ratings_are_evalicas() -> None:
    made = make_field(6, 500, seed=1)
    winners = [WINNERS[winner] for winner in made.winner]
    expected = evalica.elo(made.a, made.b, winners, k=30.0).scores.to_dict()
    found = rate_elo(made.a, made.b, made.winner, k=30.0)
    assert {row.model: row.rating for row in found.models} == pytest.approx(expected, abs=1e-9)
    assert [row.rank for row in found.models] == [1, 2, 3, 4, 5, 6]
    assert sum(row.games for row in found.models) == 1000


def test_the_first_battle_between_equals_moves_half_of_k() -> None:
    found = rate_elo(["x"], ["y"], ["A"], k=20)
    assert [(row.model, row.rating) for row in found.models] == [("x", 1010.0), ("y", 990.0)]
    assert (found.k, found.start, found.scale, found.games) == (20, 1000, 400, 1)


def test_ratings_depend_on_the_order_and_say_so() -> None:
    one = rate_elo(["x", "x", "y"], ["y", "z", "z"], ["A", "B", "A"])
    other = rate_elo(["y", "x", "x"], ["z", "z", "y"], ["A", "B", "A"])
    assert {r.model: r.rating for r in one.models} != {r.model: r.rating for r in other.models}


def test_a_weight_scales_the_move() -> None:
    double = rate_elo(["x", "x"], ["y", "y"], ["A", "B"], weight=[2, 0], k=10)
    assert double.models[0].rating == pytest.approx(1010)
    assert double.models[0].games == 1


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (([], [], []), {}, "there are no battles"),
        ((["x"], ["x"], ["A"]), {}, "compared with itself in row 1"),
        ((["x"], ["y"], ["A"]), {"k": 0}, "k is 0; give a positive number"),
        ((["x"], ["y"], ["A"]), {"scale": -400}, "scale is -400"),
        ((["x"], ["y"], ["A"]), {"weight": [-1]}, "weight is -1 in row 1"),
    ],
)
def test_what_cannot_be_rated_is_refused(columns: Any, options: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        rate_elo(*columns, **options)
