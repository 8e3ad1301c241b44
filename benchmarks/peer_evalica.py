"""What evalica takes for the battles of `ranking_data`; prints one JSON object.

From string columns, so that the words of winners are mapped to its own type, as its users do; that
is measured apart. It has no intervals but by bootstrap: the fit alone is what is measured.
"""

from __future__ import annotations

from typing import Any

import evalica
import numpy as np
import pandas as pd
from benchmarks.ranking_data import ROWS, WORDS, cells, cpu_s, make_battles, tell

OUTCOMES = (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)
MEANING = dict(zip(WORDS, OUTCOMES, strict=True))
REPLICATES = 1_000


def main() -> None:
    made = make_battles()
    a, b = made.texts(made.a, made.names), made.texts(made.b, made.names)
    winner: Any = [OUTCOMES[place] for place in made.outcome.tolist()]
    index = evalica.indexing(a, b)[2]
    fit: Any = evalica.bradley_terry
    took = {
        "lists": cpu_s(lambda: fit(a, b, winner), rounds=4),
        "lists with an index": cpu_s(lambda: fit(a, b, winner, index=index), rounds=4),
    }
    own = [made.own_texts(codes, made.names) for codes in (made.a, made.b)]
    took["own lists"] = cpu_s(lambda: fit(*own, winner), rounds=3)
    took["own lists with an index"] = cpu_s(lambda: fit(*own, winner, index=index), rounds=3)
    arrays: Any = (np.array(a), np.array(b))
    took["numpy"] = cpu_s(lambda: fit(*arrays, winner), rounds=2)
    took["numpy with an index"] = cpu_s(lambda: fit(*arrays, winner, index=index), rounds=2)
    series: Any = (pd.Series(a), pd.Series(b))
    took["pandas"] = cpu_s(lambda: fit(*series, winner), rounds=2)
    took["pandas with an index"] = cpu_s(lambda: fit(*series, winner, index=index), rounds=2)
    words = made.texts(made.outcome, WORDS)
    own_words = made.own_texts(made.outcome, WORDS)
    array, column = np.array(words), pd.Series(words)
    took |= {
        "words, lists": cpu_s(lambda: [MEANING[word] for word in words], rounds=3),
        "words, own lists": cpu_s(lambda: [MEANING[word] for word in own_words], rounds=3),
        "words, numpy": cpu_s(lambda: [MEANING[word] for word in array.tolist()], rounds=3),
        "words, pandas": cpu_s(lambda: column.map(MEANING).tolist(), rounds=3),
    }
    took |= bootstraps(made, a, b, winner, index)
    tell(took)


def bootstraps(made: Any, a: Any, b: Any, winner: Any, index: Any) -> dict[str, float]:
    """A thousand replicates by each route, from a few of them."""
    rng = np.random.default_rng(0)
    weights = rng.poisson(1.0, ROWS).astype(float)
    by_rows = cpu_s(
        lambda: evalica.bradley_terry(a, b, winner, index=index, weights=weights), rounds=2
    )
    first, second, outcome, count = cells(made)
    names = np.array(made.names, dtype=object)
    low, high = names[first].tolist(), names[second].tolist()
    winners: Any = [OUTCOMES[place] for place in outcome.tolist()]
    drawn = [rng.poisson(count).astype(float).tolist() for _ in range(20)]

    def by_cells() -> None:
        for weight in drawn:
            evalica.bradley_terry(low, high, winners, index=index, weights=weight)

    codes_low, codes_high = first.tolist(), second.tolist()
    places = pd.RangeIndex(len(made.names))

    def by_coded_cells() -> None:
        for weight in drawn:
            evalica.bradley_terry(codes_low, codes_high, winners, index=places, weights=weight)

    some = len(drawn)
    return {
        "bootstrap: rows, weights, an index": by_rows * REPLICATES,
        "bootstrap: cells, weights, an index": cpu_s(by_cells, rounds=3) / some * REPLICATES,
        "bootstrap: coded cells, weights": cpu_s(by_coded_cells, rounds=3) / some * REPLICATES,
    }


if __name__ == "__main__":
    main()
