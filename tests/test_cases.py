"""Cases that are looped through are all tried, and named where they fail."""

from __future__ import annotations

import inspect

import pytest

from cases import each_case


def test_every_case_is_tried_and_each_that_fails_is_named() -> None:
    tried: list[int] = []

    @each_case(
        ("number", "square"), [(1, 1), (2, 5), (3, 9), (4, 17)], ids=lambda case: f"{case[0]}²"
    )
    def squares(number: int, square: int, offset: int) -> None:
        tried.append(number)
        assert number**2 + offset == square

    assert list(inspect.signature(squares).parameters) == ["offset"]
    with pytest.raises(pytest.fail.Exception, match=r"(?s)2 of 4 cases:\n2²: .*\n\n4²: "):
        squares(offset=0)
    assert tried == [1, 2, 3, 4]


def test_no_case_at_all_is_a_failure() -> None:
    @each_case("number", [])
    def never(number: int) -> None:
        raise NotImplementedError

    with pytest.raises(AssertionError, match="there is no case"):
        never()
