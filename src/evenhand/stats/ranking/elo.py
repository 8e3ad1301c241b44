"""Elo ratings (1978): one battle after another, each moving two ratings. Unlike a Bradley–Terry
score, a rating depends on the order of battles and has no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.ranking.battles import encode_battles


class EloRating(Model):
    model: str
    rating: float
    rank: int
    games: int


class EloRatings(Model):
    """Ratings after the last battle, best first; they depend on the order of battles."""

    models: tuple[EloRating, ...]
    k: float
    start: float
    scale: float
    games: int


def rate_elo(
    model_a: Any,
    model_b: Any,
    winner: Any,
    *,
    weight: Any = None,
    models: Sequence[str] | None = None,
    k: float = 16.0,
    start: float = 1000.0,
    scale: float = 400.0,
) -> EloRatings:
    """`k` is the most a rating moves in a battle of weight 1; columns as for rank_battles."""
    for name, value in (("k", k), ("scale", scale)):
        if not 0 < value < float("inf"):
            raise InputError.of("stats.not_positive", name=name, value=value)
    read = encode_battles(model_a, model_b, winner, weight=weight, models=models)
    ratings = [start] * len(read.models)
    games = [0] * len(read.models)
    first, second = read.model_a.tolist(), read.model_b.tolist()
    scores = read.score.tolist()
    weights = [1.0] * len(first) if read.weight is None else read.weight.tolist()
    for a, b, score, times in zip(first, second, scores, weights, strict=True):
        if times == 0:
            continue
        expected = 1 / (1 + 10.0 ** ((ratings[b] - ratings[a]) / scale))
        moved = k * times * (score - expected)
        ratings[a] += moved
        ratings[b] -= moved
        games[a] += 1
        games[b] += 1
    order = sorted(range(len(ratings)), key=lambda place: (-ratings[place], read.models[place]))
    return EloRatings(
        models=tuple(
            EloRating(
                model=read.models[place], rating=ratings[place], rank=rank, games=games[place]
            )
            for rank, place in enumerate(order, 1)
        ),
        k=k,
        start=start,
        scale=scale,
        games=sum(games) // 2,
    )
