"""The order of a seed: the same each time, fair over seeds."""

from __future__ import annotations

from collections import Counter

import pytest

from evenhand.stats.seeded_order import order_key


@pytest.mark.parametrize("number", [2, 3, 5, 10])
def test_over_seeds_each_prompt_comes_first_equally_often(number: int) -> None:
    prompts = [f"prompt {n}" for n in range(number)]
    seen = Counter(
        min(prompts, key=lambda prompt: order_key(prompt, seed=seed)) for seed in range(3000)
    )
    share = 3000 / number
    chi_square = sum((seen[prompt] - share) ** 2 / share for prompt in prompts)
    # Its mean is number - 1, its variance twice that; five deviations are never seen.
    assert chi_square < number - 1 + 5 * (2 * (number - 1)) ** 0.5


def test_a_key_depends_on_prompt_and_seed_and_fits_a_column() -> None:
    keys = [order_key(f"prompt {n}", seed=1) for n in range(1000)]
    assert len(set(keys)) == 1000
    assert all(0 <= key < 2**63 for key in keys)
    assert keys[5] == order_key("prompt 5", seed=1) != order_key("prompt 5", seed=2)
    # The upper half of the keys holds about half the prompts: ±5·√250.
    assert abs(sum(key >= 2**62 for key in keys) - 500) < 80


def test_half_a_surrogate_pair_has_its_place_too() -> None:
    assert order_key("\ud800", seed=0) != order_key("\udfff", seed=0)
