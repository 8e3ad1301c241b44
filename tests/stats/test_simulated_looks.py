"""A smaller one of `scripts.verify_conclusions --looks`: growing files, matchups, topics."""

from __future__ import annotations

import numpy as np
import pytest
from scripts.simulated_looks import (
    ALPHA,
    Cell,
    FewTopics,
    GrowingFile,
    SeveralMatchups,
    measure,
    power,
    within_limits,
)


@pytest.mark.parametrize(
    ("cell", "rule", "unguarded", "replicates"),
    [
        (GrowingFile(100), "--growing", "fixed intervals", 40),
        (SeveralMatchups(60), "1 - α/m", "1 - α", 60),
        (FewTopics(10, (30, 30), 0.2), "tested", "topics ignored", 100),
    ],
    ids=str,
)
def test_a_rule_keeps_its_promise_where_plain_intervals_do_not(
    cell: Cell, rule: str, unguarded: str, replicates: int
) -> None:
    shares = measure(np.random.default_rng(0), cell, replicates)
    assert within_limits(cell, shares, replicates)
    assert shares[unguarded][2] > max(2 * ALPHA, shares[rule][2])


def test_what_is_true_of_these_topics_is_claimed_of_them_alone() -> None:
    """Ten topics far from the mean of all: claims about these hold, whatever others are like."""
    cell = FewTopics(10, (30, 30), 0.2)
    shares = measure(np.random.default_rng(1), cell, 100)
    # Topics alone spread the mean of ten by √(0.25·0.2/10) = 0.071, prompts by √(0.2/300) = 0.026.
    assert shares["topics ignored"][2] > 0.3
    assert shares["--these-topics"][2] <= 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5


def test_a_cell_beyond_its_limit_is_reported() -> None:
    promised = {"grown": (0.05, 0.05, 0.1), "--growing": (0.02, 0.03, 0.05)}
    assert within_limits(GrowingFile(100), promised, 10_000)
    # Three standard errors of 10,000 runs at 5%: 3·√(0.05·0.95/10,000) = 0.65%.
    assert not within_limits(GrowingFile(100), promised | {"--growing": (0.03, 0.03, 0.06)}, 10_000)
    topics = {"topics ignored": (0.2, 0.2, 0.4), "tested": (0.05, 0.05, 0.1)}
    assert within_limits(FewTopics(10, (5, 5), 0.1), topics, 10_000)
    assert not within_limits(
        FewTopics(10, (5, 5), 0.1), topics | {"tested": (0.06, 0, 0.06)}, 10_000
    )


def test_the_power_that_each_rule_costs_is_measured() -> None:
    for name, by_rule in power(np.random.default_rng(0), 3):
        first, *others = by_rule.values()
        assert all(0 <= share <= 1 for share in by_rule.values()), name
        assert others[0] <= first, name
