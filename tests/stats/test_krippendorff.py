"""Krippendorff's alpha, against his own worked examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.agreement.raters import agreement_among, krippendorff
from parts import examples

# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability": two observers and two values,
# then four observers and five values, some missing.
MEG = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
OWEN = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
FOUR = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, -1, -1, -1],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, -1, 3],
    [-1, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, -1],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, -1],
]


def votes(table: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A row a unit and a column a rater, as one vote a row."""
    values = np.asarray(table, dtype=np.int64)
    raters = values.shape[1] if values.ndim == 2 else 0
    return np.repeat(np.arange(len(values)), raters), values.ravel()


def test_two_observers_with_two_values() -> None:
    found = krippendorff(*votes(np.array([MEG, OWEN]).T))
    # 20 values, 14 of them 0 and 6 of them 1; the coincidences of 0 with 1 are 4
    assert found.alpha == pytest.approx(1 - 19 * 4 / (14 * 6))
    assert round(found.alpha or 0, 3) == 0.095


def test_four_observers_with_missing_values() -> None:
    found = krippendorff(*votes(np.array(FOUR).T))
    # 40 values that can be paired: 9, 13, 10, 5 and 3 of each class; the coincidences of a class
    # with itself are 7, 10, 8, 4 and 3
    chance = 9 * 8 + 13 * 12 + 10 * 9 + 5 * 4 + 3 * 2
    assert found.alpha == pytest.approx((39 * 32 - chance) / (40 * 39 - chance))
    assert round(found.alpha or 0, 3) == 0.743
    assert (found.units, found.single, found.values) == (11, 1, 40)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.743 < found.high < 1


def test_votes_in_any_order_give_the_same_as_a_table() -> None:
    table = np.array(FOUR).T
    units, raters = np.nonzero(table >= 0)
    order = np.random.default_rng(1).permutation(units.size)
    voted = krippendorff([f"pair {unit}" for unit in units[order]], table[units, raters][order])
    assert voted.alpha == pytest.approx(krippendorff(*votes(table)).alpha)


def test_unanimous_raters_have_alpha_one_and_still_an_interval() -> None:
    found = krippendorff(*votes([[0, 0], [1, 1]] * 10))
    assert (found.alpha, found.high) == (1, 1)
    assert found.low is not None
    assert 0.5 < found.low < 1


def test_a_single_class_has_no_alpha_and_says_so() -> None:
    found = krippendorff(*votes([[1, 1]] * 10))
    assert (found.alpha, found.low) == (None, None)
    assert found.reason == "alpha is undefined: every value is the same"


def test_few_units_have_no_interval() -> None:
    found = krippendorff(*votes([[0, 1], [1, 1], [0, 0]]))
    assert found.alpha is not None
    assert found.low is None
    assert found.reason == "not enough data: 3 items rated twice; at least 5 are needed"
    assert krippendorff(*votes([])).alpha is None


def test_the_interval_holds_what_it_promises() -> None:
    rng = np.random.default_rng(0)
    # two raters who each see a fair coin's side with probability 0.9 and guess otherwise:
    # agreement 0.81 + 0.19 / 2 and chance 0.5, so alpha is 0.81
    held = 0
    for draw in range(200):
        truth = rng.integers(0, 2, (60, 1))
        seen = np.where(rng.random((60, 2)) < 0.9, truth, rng.integers(0, 2, (60, 2)))
        found = krippendorff(*votes(seen), resamples=200, seed=draw)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.81 <= found.high
    # 95% less three standard errors of 200 draws
    assert held >= 200 * (0.95 - 3 * (0.05 * 0.95 / 200) ** 0.5)


def test_the_same_seed_gives_the_same_interval() -> None:
    table = np.array(FOUR).T
    assert krippendorff(*votes(table), seed=3) == krippendorff(*votes(table), seed=3)


def test_what_is_no_code_is_an_error() -> None:
    with pytest.raises(InputError, match="values has -2"):
        krippendorff(*votes([[0, -2]]))


tables = st.integers(2, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(-1, 2), min_size=width, max_size=width), min_size=1, max_size=25
    )
)


@given(tables)
@settings(max_examples=examples(40))
def test_raters_and_classes_may_change_places(table: list[list[int]]) -> None:
    first = krippendorff(*votes(table), resamples=100)
    exchanged = [[{0: 2, 2: 0}.get(code, code) for code in row[::-1]] for row in table]
    turned = krippendorff(*votes(exchanged), resamples=100)
    assert turned.alpha == (None if first.alpha is None else pytest.approx(first.alpha))
    if first.alpha is not None:
        assert -1 <= first.alpha <= 1


def test_samples_that_agree_are_counted_by_pairs() -> None:
    # three samples that agree give 3 pairs, two against one give 1 of 3, two samples 1 of 1
    found = agreement_among(*votes([[0, 0, 0]] * 4 + [[0, 0, 1]] * 4 + [[1, 1, -1]] * 4))
    assert (found.agreement.part, found.agreement.of) == (4 * 3 + 4 * 1 + 4 * 1, 28)
    assert (found.unanimous.part, found.unanimous.of) == (8, 12)
    assert found.units == 12


def test_agreement_of_two_samples_is_the_plain_share() -> None:
    units, values = votes([[0, 0]] * 15 + [[0, 1]] * 5)
    found = agreement_among(units, values)
    assert found.agreement.value == pytest.approx(0.75)
    assert not found.clustered
    assert agreement_among(units, values, prompts=units % 5).clustered
