"""Small versions of the long simulations, so that the script itself is held to work."""

from __future__ import annotations

import pytest
from scripts.verify_sequential import (
    Draw,
    lopsided,
    prompt_means,
    simulate,
    single_pairs,
)

from evenhand.stats.stopping.sequential import SequentialPlan

PLAN = SequentialPlan(planned=200)
RUNS = 1000


@pytest.mark.parametrize(
    "draw",
    [
        single_pairs(0.5, 0.0),
        single_pairs(0.5, 0.5),
        prompt_means(0.5, rows=3, correlation=0.4, tie_share=0.2),
        lopsided,
    ],
)
def test_a_winner_is_rarely_named_where_there_is_none(draw: Draw) -> None:
    seen = simulate(PLAN, draw, truth=0.5, runs=RUNS, seed=3)
    # Three standard errors: 3·√(0.05·0.95/1000) = 0.021.
    assert seen.named <= 0.05 + 0.021
    assert seen.covered >= 0.95 - 0.021


def test_a_clear_winner_saves_most_of_the_prompts() -> None:
    seen = simulate(PLAN, single_pairs(0.8, 0.0), truth=0.8, runs=200, seed=3)
    assert seen.named_a == 1
    assert seen.named_b == 0
    assert seen.saved(200) > 0.8
    assert seen.saved(200, under_way=50) < seen.saved(200) - 0.2
