"""Small versions of scripts/verify_coverage.py: do the intervals hold what they promise?"""

from __future__ import annotations

import numpy as np
import pytest
from scripts.verify_coverage import (
    clustered_coverage,
    exact_coverage,
    false_alarms,
    half_tie_widths,
)


@pytest.mark.parametrize("pairs", [50, 120])
@pytest.mark.parametrize(
    ("rate", "ties"), [(0.5, 0.0), (0.5, 0.6), (0.6, 0.3), (0.7, 0.1), (0.8, 0.3), (0.9, 0.1)]
)
def test_independent_rows_are_covered_exactly(pairs: int, rate: float, ties: float) -> None:
    assert 0.93 <= exact_coverage(pairs, rate, ties) <= 0.97


def test_without_ties_exact_coverage_is_wilsons_written_out() -> None:
    # 5 pairs at one half: only 0 and 5 wins exclude it, so 1 - 2 / 32
    assert exact_coverage(5, 0.5, 0.0) == pytest.approx(30 / 32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prompts", "rate", "ties"),
    [
        (10, 0.6, 0.0),
        pytest.param(40, 0.5, 0.4, marks=pytest.mark.slow),
        pytest.param(100, 0.6, 0.2, marks=pytest.mark.slow),
    ],
)
def test_prompts_are_covered_where_rows_as_if_alone_are_not(
    prompts: int, rate: float, ties: float
) -> None:
    clustered, rows = clustered_coverage(
        np.random.default_rng(prompts),
        replicates=600,
        sizes=np.full(prompts, 5),
        rate=rate,
        ties=ties,
        correlation=0.25,
        shape="dirichlet",
    )
    # 600 replicates err by 0.9 points; rows: 2 Phi(1.96 / sqrt(1 + 4 / 4)) - 1 = 0.834
    assert 0.93 - 0.02 <= clustered <= 0.97 + 0.02
    assert rows == pytest.approx(0.834, abs=0.05)


def test_a_judge_without_a_favourite_place_is_seldom_accused() -> None:
    # 5% and two and a half standard errors of 400 replicates
    assert false_alarms(np.random.default_rng(4), 400) <= 0.078


def test_wilson_on_half_ties_is_far_too_wide() -> None:
    three, two = half_tie_widths(1000)
    assert two / three == pytest.approx(np.sqrt(2), rel=0.01)
