"""What arena-rank takes for the battles of `ranking_data`, as its documentation shows it."""

from __future__ import annotations

import pandas as pd
from arena_rank.models.bradley_terry import BradleyTerry  # type: ignore[import-not-found] # in its own environment
from arena_rank.utils.data_utils import PairDataset  # type: ignore[import-not-found] # in its own environment
from benchmarks.ranking_data import WORDS, cpu_s, make_battles, tell


def main() -> None:
    made = make_battles()
    frame = pd.DataFrame(
        {
            "model_a": made.texts(made.a, made.names),
            "model_b": made.texts(made.b, made.names),
            "winner": made.texts(made.outcome, WORDS),
        }
    )

    def fit() -> object:
        dataset = PairDataset.from_pandas(frame)
        model = BradleyTerry(n_competitors=len(dataset.competitors))
        return model.compute_ratings_and_cis(dataset, significance_level=0.05)

    first = cpu_s(fit, rounds=1)
    tell({"pandas, the first time": first, "pandas": min(first, cpu_s(fit, rounds=3))})


if __name__ == "__main__":
    main()
