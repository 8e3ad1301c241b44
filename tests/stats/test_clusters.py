"""Prompts as clusters: their codes, and what they do to a variance."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.stats.clusters import label_codes, score_spread, student_quantile

pa: Any = import_module("pyarrow")


@given(st.lists(st.integers(-5, 5) | st.integers(10**12, 10**12 + 3), max_size=30))
def test_codes_lead_back_to_their_labels(labels: list[int]) -> None:
    for given_as in (labels, np.array(labels, dtype=np.int64), [f"p{label}" for label in labels]):
        codes, distinct = label_codes(given_as)
        assert [distinct[code] for code in codes] == list(given_as)
        assert len(set(distinct)) == len(distinct)


def test_labels_come_from_pandas_and_arrow_too() -> None:
    labels = ["b", "a", "b"]
    for column in (pd.Series(labels), pa.array(labels), pa.chunked_array([labels[:1], labels[1:]])):
        codes, distinct = label_codes(column)
        assert (codes.tolist(), distinct) == ([0, 1, 0], ["b", "a"])


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_row_without_a_label_is_named(missing: object) -> None:
    with pytest.raises(InputError, match="prompts has no label in row 2; label every row"):
        label_codes(["a", "b", missing])


def test_copies_of_a_row_have_their_number_as_design_effect() -> None:
    # 10 prompts, half won, three equal rows each: variance 3 times that of 30 independent rows,
    # with the corrections 10/9 for prompts and 30/29 for rows
    wins = np.array([3.0] * 5 + [0.0] * 5)
    spread = score_spread(wins, np.zeros(10), 3.0 - wins)
    assert spread.design_effect == pytest.approx(3 * (10 / 9) / (30 / 29))
    assert spread.degrees == 9


def test_single_rows_have_no_design_effect() -> None:
    wins = np.array([1.0] * 30 + [0.0] * 10)
    spread = score_spread(wins, np.zeros(40), 1.0 - wins)
    # both variances are p (1 - p) / (n - 1)
    assert spread.design_effect == pytest.approx(1.0)


def test_the_jackknife_written_out_agrees() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 9, 12)
    wins = rng.binomial(sizes, 0.6)
    ties = rng.binomial(sizes - wins, 0.5)
    losses = sizes - wins - ties
    scores = wins - losses
    left_out = [
        (scores.sum() - own) / (sizes.sum() - size) for own, size in zip(scores, sizes, strict=True)
    ]
    whole = scores.sum() / sizes.sum()
    clustered = 11 / 12 * sum((one - whole) ** 2 for one in left_out)
    independent = ((wins + losses).sum() / sizes.sum() - whole**2) / (sizes.sum() - 1)
    found = score_spread(*(column.astype(float) for column in (wins, ties, losses)))
    assert found.design_effect == pytest.approx(clustered / independent)


def test_prompts_that_are_all_alike_count_as_one_row_each() -> None:
    spread = score_spread(np.full(8, 5.0), np.zeros(8), np.zeros(8))
    assert spread.design_effect == 5.0


def test_equal_prompts_do_not_make_certainty() -> None:
    spread = score_spread(np.ones(8), np.zeros(8), np.ones(8))
    assert spread.design_effect == 0.25


def test_one_prompt_that_carries_the_variance_costs_degrees() -> None:
    wins = np.array([10.0] * 39 + [0.0])
    spread = score_spread(wins, np.zeros(40), 10.0 - wins)
    assert spread.degrees < 5


def test_quantiles_are_the_published_ones() -> None:
    assert student_quantile(0.95, 4) == pytest.approx(2.776, abs=5e-4)
    assert student_quantile(0.95, 49) == pytest.approx(2.010, abs=5e-4)
    assert student_quantile(0.99, 9) == pytest.approx(3.250, abs=5e-4)
