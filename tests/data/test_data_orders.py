"""The order of a pair, drawn at random from a seed and the unordered pair."""

from __future__ import annotations

import math

import pytest

from evenhand.contract import ORDERS, Pair
from evenhand.contract.pair import drawn_order
from evenhand.data.options import ReadOptions
from evenhand.data.orders import OrderDraw
from evenhand.errors import InputError
from scripted import make_pair


def answered(number: int) -> Pair:
    return make_pair(prompt=f"Is {number} prime?", response_a="yes", response_b="no")


def test_half_of_the_pairs_are_asked_in_either_order_though_their_answers_are_the_same() -> None:
    drawn = [drawn_order(OrderDraw(3, 0).draw(answered(n))) for n in range(2_000)]
    assert set(drawn) == set(ORDERS)
    # Five standard errors of 2,000 throws.
    assert abs(drawn.count("original") / 2_000 - 0.5) < 5 * 0.5 / math.sqrt(2_000)


def test_another_seed_draws_anew_and_the_same_seed_the_same() -> None:
    one, same, other = (
        [OrderDraw(seed, 0).order_of(answered(n)) for n in range(400)] for seed in (1, 1, 2)
    )
    assert one == same
    agreeing = sum(a == b for a, b in zip(one, other, strict=True))
    assert abs(agreeing - 200) < 5 * 10  # a standard deviation is sqrt(400)/2


def test_a_share_is_asked_in_both_orders_and_a_larger_one_holds_it() -> None:
    both = [
        {n for n in range(2_000) if OrderDraw(0, share).order_of(answered(n)) is None}
        for share in (0, 0.1, 0.3, 1)
    ]
    assert [len(both[0]), len(both[3])] == [0, 2_000]
    assert both[1] < both[2]
    assert abs(len(both[1]) - 200) < 5 * math.sqrt(2_000 * 0.1 * 0.9)


def test_the_rest_keep_their_orders_whatever_the_share() -> None:
    for number in range(200):
        order = OrderDraw(0, 0.3).order_of(answered(number))
        assert order is None or order == OrderDraw(0, 0).order_of(answered(number))


def test_what_a_row_says_of_its_orders_gives_way() -> None:
    pair = answered(1).model_copy(update={"swap_positions": False})
    assert OrderDraw(0, 1).draw(pair).orders == ORDERS
    drawn = OrderDraw(0, 0).draw(pair)
    assert drawn.orders == (drawn_order(drawn),)
    assert drawn.mirrored().orders != drawn.orders
    assert drawn.mirrored().mirrored() == drawn


def test_identical_responses_are_asked_in_both_orders() -> None:
    pair = make_pair(response_a="x", response_b="x")
    assert OrderDraw(0, 0).draw(pair).orders == ORDERS


def test_a_share_beyond_all_and_orders_that_are_given_twice_are_refused() -> None:
    with pytest.raises(
        InputError,
        match=(
            r"the share of pairs judged in both orders is 1\.5; "
            r"give a number"
        ),
    ):
        OrderDraw(0, 1.5)
    with pytest.raises(InputError, match="orders and swap_positions both decide"):
        ReadOptions(orders=OrderDraw(), swap_positions=False)
