"""Intervals of rankings hold the truth as often as they say: a small version of the long check."""

from __future__ import annotations

from typing import Any

import pytest
from scripts.verify_ranking import CLUSTERED, INDEPENDENT, ROW_LEVEL_MOST, Scene, measure

# 150 runs of 8 models are some 1,200 intervals that go together run by run: three standard
# deviations of their share are at most 3 * sqrt(0.95 * 0.05 / 150) = 0.053 and about half of that.
RUNS = 150


@pytest.mark.parametrize(
    ("scene", "by_prompt", "intervals"),
    [
        (INDEPENDENT, False, "sandwich"),
        (CLUSTERED, True, "sandwich"),
        (INDEPENDENT, False, "bootstrap"),
    ],
)
def test_intervals_hold_the_truth(scene: Scene, by_prompt: bool, intervals: Any) -> None:
    covered = measure(
        scene, runs=RUNS, seed=2, by_prompt=by_prompt, intervals=intervals, replicates=200
    )
    assert 0.92 <= covered.scores <= 0.98
    assert covered.ranks >= 0.95
    assert covered.apart <= 0.02


def test_rows_taken_for_independent_hold_it_less_often() -> None:
    covered = measure(CLUSTERED, runs=RUNS, seed=2, by_prompt=False)
    assert covered.scores <= ROW_LEVEL_MOST
