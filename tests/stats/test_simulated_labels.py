"""Smaller ones of `scripts.verify_conclusions --labels` and `--changes`: what people's labels hold
back, and that noise is no change of preference."""

from __future__ import annotations

import numpy as np
import pytest
from scripts.simulated_changes import Change, claimed
from scripts.simulated_labels import Labelled, cell


@pytest.mark.parametrize(
    "case",
    [
        Labelled("every pair", 100, 100, 0.5, blind=0.6, to_a=0.9),
        Labelled("at random", 300, 60, 0.5, blind=0.3, to_a=1.0),
    ],
    ids=str,
)
def test_labels_that_cover_all_or_were_drawn_hold_whatever_the_judge_favours(
    case: Labelled,
) -> None:
    found = cell(np.random.default_rng(0), case, 100)
    assert found.corrected == 1.0
    # The judge alone claims that A is better nearly always.
    assert found.judge_better > 0.9
    # Nominal 2.5%, and three standard errors of 100 replicates: 3·√(0.025·0.975/100) = 4.7%.
    assert found.wrong(0.5) <= 0.072
    assert found.covered >= 0.95 - 0.066


def test_labels_of_unknown_origin_hold_back_what_they_contradict() -> None:
    case = Labelled("unknown, theirs", 300, 90, 0.5, blind=0.3, to_a=1.0)
    found = cell(np.random.default_rng(0), case, 50)
    assert found.corrected == 0.0
    assert found.better < 0.1 < found.judge_better


@pytest.mark.parametrize("shares", [(0.0, 0.4), (0.4, 0.0)])
def test_a_judge_that_flips_coins_has_no_other_preference(shares: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    case = Change("coins", 1000, 0.25, shares)
    wrong = np.mean([claimed(rng, case) != 0 for _ in range(100)])
    assert wrong <= 0.072
