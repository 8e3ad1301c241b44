"""Pairs to label: drawn with chances that are known, in a queue that may stop or go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.stats.correction.labels import doubts_of_confidence, draw_labels, joint_chances
from evenhand.stats.seeded_order import order_key


def doubts(pairs: int = 200, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0, 1, pairs) ** 3


@given(st.integers(1, 100), st.integers(0, 120), st.integers(0, 5))
def test_a_draw_has_its_number_and_true_chances(pairs: int, number: int, seed: int) -> None:
    draw = draw_labels(doubts(pairs), seed=seed)
    chances = draw.chances_after(min(pairs, number))
    assert sorted(draw.queue.tolist()) == list(range(pairs))
    assert chances.size == pairs
    assert (chances > 0).all()
    assert (chances <= 1).all()


def test_estimates_weighted_by_the_chances_are_unbiased() -> None:
    doubt = doubts(60)
    values = np.random.default_rng(1).normal(3, 1, 60) + 2 * doubt
    totals = []
    for seed in range(4000):
        draw = draw_labels(doubt, seed=seed)
        rows = draw.queue[:12]
        totals.append(float((values[rows] / draw.chances_after(12)[rows]).sum()))
    error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - values.sum()) < 3.5 * error


def test_a_doubtful_pair_is_drawn_more_often_but_none_is_left_out() -> None:
    doubt = np.array([0.0] * 50 + [1.0] * 50)
    drawn = np.zeros(100)
    for seed in range(2000):
        drawn[draw_labels(doubt, seed=seed).queue[:20]] += 1
    # Sizes are 0.5 and 0.5 + 0.5 * 2: three times as many of 20 come from the doubtful half.
    assert drawn[50:].sum() / drawn[:50].sum() == pytest.approx(3, rel=0.05)
    assert drawn.min() / 2000 == pytest.approx(0.1, abs=0.03)


def test_a_later_draw_goes_on_where_the_first_stopped() -> None:
    first, second = draw_labels(doubts(), seed=7), draw_labels(doubts(), seed=7)
    assert np.array_equal(first.queue, second.queue)
    assert np.array_equal(second.chances_after(50), first.chances_after(50))
    assert (second.chances_after(50) >= first.chances_after(30)).all()


def test_people_may_stop_early() -> None:
    whole = draw_labels(doubts(), seed=7)
    assert (whole.chances_after(200) == 1).all()
    with pytest.raises(InputError, match="201 of 200 pairs"):
        whole.chances_after(201)


def test_with_ids_the_order_of_rows_does_not_matter() -> None:
    ids = [f"pair {number}" for number in range(200)]
    doubt, turned = doubts(), doubts()[::-1]
    draw = draw_labels(doubt, ids=ids, seed=3)
    mirrored = draw_labels(turned, ids=ids[::-1], seed=3)
    assert [ids[row] for row in draw.queue] == [ids[::-1][row] for row in mirrored.queue]
    chances, other = draw.chances_after(30), mirrored.chances_after(30)
    assert chances[draw.queue] == pytest.approx(other[mirrored.queue])


def test_a_draw_is_independent_of_the_order_that_people_label_in_by_the_same_seed() -> None:
    ids = [f"pair {number}" for number in range(400)]
    rows = []
    for seed in range(20):
        queue = draw_labels(np.ones(400), ids=ids, seed=seed).queue
        labelled = sorted(range(400), key=lambda row: order_key(ids[row], seed=seed))
        rows.append(len(set(queue[:100].tolist()) & set(labelled[:100])))
    # Each hundred takes a quarter of the other: 25, and its mean over 20 errs by about 0.84.
    assert abs(np.mean(rows) - 25) < 4


def test_without_doubt_the_draw_is_even() -> None:
    draw = draw_labels(np.zeros(100))
    assert len(set(draw.chances_after(10).tolist())) == 1


def test_two_independent_draws_have_a_joint_chance() -> None:
    # 1 - 0.5 * 0.8, and certain is certain
    assert joint_chances([0.5, 1.0], [0.2, 0.1]).tolist() == pytest.approx([0.6, 1.0])


def test_doubt_is_the_root_of_the_chance_of_error() -> None:
    found = doubts_of_confidence([1.0, 0.75, 0.3], read=np.array([True, True, False]))
    assert found.tolist() == pytest.approx([0.0, 0.5, np.sqrt(0.5)])


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        ([0.1, -1.0], {}, "doubts has -1.0 in row 1"),
        ([float("inf")], {}, "doubts has inf in row 0"),
        ([0.1, 0.2], {"ids": ["a"]}, "ids has length 1"),
        ([0.1, 0.2], {"ids": ["a", "a"]}, "contains an id twice"),
    ],
)
def test_a_mistake_is_named(column: list[float], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw_labels(column, **options)


def test_a_confidence_above_one_is_no_probability() -> None:
    with pytest.raises(InputError, match=r"confidence has 1\.2 in row 1"):
        doubts_of_confidence([0.5, 1.2])


def test_the_largest_doubts_are_only_large() -> None:
    huge = draw_labels(np.array([1e308, 1e308, 1.0]), seed=1)
    plain = draw_labels(np.array([1.0, 1.0, 1e-308]), seed=1)
    assert huge.queue.tolist() == plain.queue.tolist()
    assert huge.chances_after(2) == pytest.approx(plain.chances_after(2))
