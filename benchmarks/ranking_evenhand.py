"""What evenhand takes for the battles of `ranking_data`; prints one JSON object."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.ranking_data import MODELS, WORDS, cpu_s, make_battles, tell

from evenhand.stats.ranking.leaderboard import rank_battles

pa: Any = import_module("pyarrow")


def main() -> None:
    made = make_battles()
    a, b = made.texts(made.a, made.names), made.texts(made.b, made.names)
    winner = made.texts(made.outcome, WORDS)
    took: dict[str, float] = {}

    def timed(name: str, *columns: Any, rounds: int = 7, **options: Any) -> None:
        took[name] = cpu_s(lambda: rank_battles(*columns, **options), rounds=rounds)

    timed("lists", a, b, winner)
    own = [
        made.own_texts(codes, words)
        for codes, words in ((made.a, made.names), (made.b, made.names), (made.outcome, WORDS))
    ]
    timed("own lists", *own, rounds=5)
    arrays = [np.array(column) for column in (a, b, winner)]
    timed("numpy", *arrays, rounds=5)
    timed("pandas", *(pd.Series(column) for column in (a, b, winner)), rounds=5)
    held = [pa.array(column) for column in (a, b, winner)]
    timed("arrow", *held, rounds=5)
    # What a library that takes lists has to do first.
    took["arrow to lists"] = cpu_s(lambda: [column.to_pylist() for column in held], rounds=2)
    prompt = [f"prompt {number}" for number in range(made.prompt.max() + 1)]
    prompts = [prompt[code] for code in made.prompt.tolist()]
    timed("lists with prompts", a, b, winner, prompt=prompts, rounds=3)
    preference = np.array([1.0, 0.0, 0.5])[made.outcome]
    for _ in range(3):
        timed("again", made.a, made.b, preference, models=made.names, intervals=None, rounds=10)
        took["coded"] = min(took.get("coded", 1.0), took.pop("again"))
        plain = cpu_s(lambda: np.bincount(made.a * MODELS + made.b), rounds=20)
        took["bincount"] = min(took.get("bincount", 1.0), plain)
    timed("bootstrap", a, b, winner, intervals="bootstrap", replicates=1000, rounds=3)
    tell(took)


if __name__ == "__main__":
    main()
