"""The order of a seed: a permutation, the same each time, fair over seeds."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.stats.seeded_order import order_key, shuffled_order


@given(number=st.integers(0, 400), seed=st.integers())
def test_every_number_has_one_place_and_the_place_is_found_again(number: int, seed: int) -> None:
    order = shuffled_order(number, seed=seed)
    assert sorted(order) == list(range(number))
    assert [order.index(value) for value in order] == list(range(number))


def test_a_million_prompts_are_placed_without_a_list() -> None:
    order = shuffled_order(10**6, seed=7)
    places = [0, 1, 499_999, 999_999]
    assert [order.index(order[place]) for place in places] == places
    assert order[-1] == order[999_999]
    assert order[2:4] == [order[2], order[3]]


def test_the_order_depends_on_the_seed_alone() -> None:
    assert list(shuffled_order(50, seed=3)) == list(shuffled_order(50, seed=3))
    assert list(shuffled_order(50, seed=3)) != list(shuffled_order(50, seed=4))


@pytest.mark.parametrize("number", [2, 3, 5, 10])
def test_over_seeds_each_prompt_comes_first_equally_often(number: int) -> None:
    seen = Counter(shuffled_order(number, seed=seed)[0] for seed in range(3000))
    share = 3000 / number
    chi_square = sum((seen[value] - share) ** 2 / share for value in range(number))
    # Its mean is number - 1, its variance twice that; five deviations are never seen.
    assert chi_square < number - 1 + 5 * (2 * (number - 1)) ** 0.5


def test_a_key_depends_on_prompt_and_seed_and_fits_a_column() -> None:
    keys = [order_key(f"prompt {n}", seed=1) for n in range(1000)]
    assert len(set(keys)) == 1000
    assert all(0 <= key < 2**63 for key in keys)
    assert keys[5] == order_key("prompt 5", seed=1) != order_key("prompt 5", seed=2)
    # The upper half of the keys holds about half the prompts: ±5·√250.
    assert abs(sum(key >= 2**62 for key in keys) - 500) < 80


def test_what_is_not_there_has_no_place() -> None:
    order = shuffled_order(5, seed=0)
    with pytest.raises(IndexError):
        order[5]
    with pytest.raises(ValueError, match="9"):
        order.index(9)
    with pytest.raises(InputError, match="-1 prompts"):
        shuffled_order(-1, seed=0)
