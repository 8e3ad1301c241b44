"""Always-valid intervals: they mirror, shrink, and hold the mean at every moment at once."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.stats.always_valid import (
    BROAD_BETS,
    AlwaysValidInterval,
    always_valid_interval,
    always_valid_interval_of_counts,
)
from evenhand.stats.intervals import sign_test_p

COUNTS = st.tuples(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 5000)).filter(any)


def interval(*counts: int, level: float = 0.95) -> AlwaysValidInterval:
    found = always_valid_interval(*counts, level=level)
    assert found is not None
    return found


def test_nothing_counted_has_no_interval() -> None:
    assert always_valid_interval(0, 0, 0) is None
    assert always_valid_interval_of_counts({}) is None


@pytest.mark.parametrize("counts", [(1, 0, 0), (0, 1, 0), (805, 0, 0), (0, 805, 0), (60, 0, 40)])
def test_bounds_are_where_the_capital_is_twenty(counts: tuple[int, int, int]) -> None:
    found = interval(*counts)
    seen = {1.0: counts[0], 0.5: counts[1], 0.0: counts[2]}
    for bound, other in ((found.low, -1e-6), (found.high, 1e-6)):
        if 0 < bound < 1:
            assert BROAD_BETS.log_capital(seen, bound) == pytest.approx(math.log(20), abs=1e-4)
            assert BROAD_BETS.log_capital(seen, bound + other) > math.log(20)


def test_a_grid_of_claims_gives_the_same_interval() -> None:
    found = interval(30, 25, 12)
    grid = [step / 2000 for step in range(1, 2000)]
    seen = {1.0: 30, 0.5: 25, 0.0: 12}
    kept = [claim for claim in grid if BROAD_BETS.log_capital(seen, claim) < math.log(20)]
    assert kept[0] - 1 / 2000 <= found.low <= kept[0]
    assert kept[-1] <= found.high <= kept[-1] + 1 / 2000


@given(counts=COUNTS, level=st.sampled_from([0.8, 0.95, 0.99]))
def test_swapping_the_sides_mirrors_it_to_the_last_bit(
    counts: tuple[int, int, int], level: float
) -> None:
    found, swapped = interval(*counts, level=level), interval(*counts[::-1], level=level)
    assert (swapped.low, swapped.high) == (1 - found.high, 1 - found.low)


@given(counts=COUNTS)
def test_it_holds_the_observed_mean_and_stays_between_0_and_1(
    counts: tuple[int, int, int],
) -> None:
    found = interval(*counts)
    assert 0 <= found.low <= found.mean <= found.high <= 1
    assert found.low < found.high


@given(counts=COUNTS)
def test_a_loss_that_was_a_win_moves_both_bounds_up(counts: tuple[int, int, int]) -> None:
    wins, halves, losses = counts
    less, more = interval(wins, halves, losses + 1), interval(wins + 1, halves, losses)
    assert less.low <= more.low + 1e-9
    assert less.high <= more.high + 1e-9


@given(counts=COUNTS)
def test_a_higher_level_is_wider(counts: tuple[int, int, int]) -> None:
    wide, narrow = interval(*counts, level=0.99), interval(*counts, level=0.9)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@given(scores=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=80))
def test_scores_and_counts_give_the_same_interval(scores: list[float]) -> None:
    seen = Counter(scores)
    found = always_valid_interval_of_counts(seen)
    assert found is not None
    counted = interval(seen[1.0], seen[0.5], seen[0.0])
    assert (found.low, found.high) == pytest.approx((counted.low, counted.high), abs=1e-9)


def test_many_distinct_scores_take_the_same_bounds_as_few() -> None:
    # 200 distinct scores go through arrays; 40 groups of five of them through plain Python.
    values = np.random.default_rng(0).random(40).round(6)
    spread = (values[:, None] + np.arange(5) * 1e-9).ravel()
    by_arrays = always_valid_interval_of_counts(Counter(spread.tolist()))
    by_python = always_valid_interval_of_counts({float(value): 5 for value in values})
    assert by_arrays is not None
    assert by_python is not None
    assert (by_arrays.low, by_arrays.high) == pytest.approx(
        (by_python.low, by_python.high), abs=1e-6
    )


def test_all_sequences_of_ten_together_miss_the_mean_less_than_the_level_allows() -> None:
    # A fair coin, and a coin with ties; a miss at any of the ten moments counts.
    for chances in ({1: 0.5, -1: 0.5}, {1: 0.2, 0: 0.6, -1: 0.2}):
        missed = 0.0
        memo: dict[tuple[int, int, int], bool] = {}
        for sequence in itertools.product(chances, repeat=10 if len(chances) == 2 else 7):
            seen = [0, 0, 0]
            for outcome in sequence:
                seen[1 - outcome] += 1
                key = (seen[0], seen[1], seen[2])
                if key not in memo:
                    found = interval(*key, level=0.8)
                    memo[key] = found.low <= 0.5 <= found.high
                if not memo[key]:
                    missed += math.prod(chances[one] for one in sequence)
                    break
        assert missed <= 0.2


def test_a_million_pairs_are_told_within_two_thousandths() -> None:
    found = interval(500_000, 100_000, 400_000)
    assert found.mean == 0.55
    assert found.high - found.low < 0.004


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        (lambda: always_valid_interval(-1, 0, 0), "wins is -1"),
        (lambda: always_valid_interval(1, 0, 0, level=1.0), "level is 1.0"),
        (lambda: always_valid_interval_of_counts({0.2: 1, 1.5: 1}), "score 1.5"),
        (lambda: always_valid_interval_of_counts({math.nan: 1}), "score nan"),
    ],
)
def test_a_mistake_is_named(call: object, fact: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=fact):
        call()


def test_a_live_display_does_not_load_numpy() -> None:
    code = (
        "import sys; from evenhand.stats.always_valid import always_valid_interval as f; "
        "f(60, 5, 40); from evenhand.stats.stopping import sequential as s; "
        "s.follow(s.SequentialPlan(planned=99), [1.0, 0.0, 0.5]).look(); "
        "sys.exit('numpy' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _unfair(wins: int, losses: int) -> bool:
    found = always_valid_interval(wins, 0, losses)
    return found is not None and not found.low <= 0.5 <= found.high


def test_looking_after_every_pair_keeps_the_error_of_an_always_valid_interval() -> None:
    """All 2^14 ways in which a fair coin can fall: how many are shown to be unfair at some look."""
    looks = 14
    always = {n: [_unfair(w, n - w) for w in range(n + 1)] for n in range(15)}
    single = {n: [sign_test_p(w, n - w) < 0.05 for w in range(n + 1)] for n in range(15)}
    found = {"always": 0, "single": 0}
    for path in itertools.product((0, 1), repeat=looks):
        wins = list(itertools.accumulate(path, initial=0))
        for name, table in (("always", always), ("single", single)):
            found[name] += any(table[n][w] for n, w in enumerate(wins))
    assert found["always"] / 2**looks <= 0.05
    assert found["single"] / 2**looks > 0.05
