"""The sign-flip test of prompt means, against enumeration and the exact sign test."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.stats.intervals import sign_test_p
from evenhand.stats.sign_flip import sign_flip_test
from parts import examples

MEANS = [0.0, 1.0, -1.0, 0.5, -0.5, 1 / 3, -1 / 3, 2 / 3, -2 / 3, 0.25, -0.75]


def enumerated(differences: list[float]) -> float:
    """Every sign pattern, one by one."""
    reached = abs(sum(differences)) - 1e-9
    patterns = list(itertools.product((1, -1), repeat=len(differences)))
    sums = (sum(s * d for s, d in zip(p, differences, strict=True)) for p in patterns)
    return sum(abs(each) >= reached for each in sums) / len(patterns)


@given(st.lists(st.sampled_from(MEANS), min_size=1, max_size=9))
@settings(max_examples=examples(60), deadline=None)
def test_it_is_the_share_of_all_sign_patterns(differences: list[float]) -> None:
    test = sign_flip_test(np.array(differences))
    assert test.p_value == pytest.approx(enumerated(differences), abs=1e-9)
    assert test.decisive == sum(each != 0 for each in differences)


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=examples(60), deadline=None)
def test_with_one_pair_a_prompt_it_is_the_exact_sign_test(
    wins: int, ties: int, losses: int
) -> None:
    test = sign_flip_test(np.array([1.0, 0.0, -1.0]), np.array([wins, ties, losses], dtype=float))
    assert test.p_value == (sign_test_p(wins, losses) if wins + losses else 1.0)
    assert test.decisive == wins + losses


@given(st.lists(st.floats(-1, 1, allow_nan=False), min_size=1, max_size=200))
@settings(max_examples=examples(60), deadline=None)
def test_mirrored_prompts_have_the_same_p_value_to_the_last_bit(differences: list[float]) -> None:
    values = np.array(differences)
    assert sign_flip_test(values) == sign_flip_test(-values)


def test_means_off_every_small_lattice_are_counted_on_a_fine_one() -> None:
    # Irrational sizes: 12 prompts, all to one side. 2 of 4,096 patterns go as far.
    sizes = np.sqrt(np.arange(1, 13)) / 4
    assert sign_flip_test(sizes).p_value == pytest.approx(2 / 4096, abs=1e-9)


def test_large_samples_agree_with_the_normal_limit() -> None:
    # 4,000 prompts of thirds: variance of the sum is that of its parts; 1.96 deviations are 5%.
    values = np.resize([1 / 3, -1 / 3, 2 / 3, -2 / 3, 1.0, -1.0], 3996)
    moved = values.copy()
    spread = np.sqrt((values**2).sum())
    moved[values == -1.0] = np.where(np.arange(666) < round(1.96 * spread / 2), 1.0, -1.0)
    assert sign_flip_test(moved).p_value == pytest.approx(0.05, abs=0.003)
