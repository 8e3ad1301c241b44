"""Drawn charts: kept while there is room, drawn once, and not too many at a time."""

from __future__ import annotations

import asyncio

import pytest

from evenhand.errors import InputError, ServerBusy
from evenhand.serve.pages import charts as drawings
from evenhand.serve.pages.charts import Drawings


def test_a_chart_is_drawn_once_for_all_who_wait_for_it() -> None:
    drawn: list[str] = []

    def draw() -> bytes:
        drawn.append("once")
        return b"picture"

    async def all_at_once() -> list[bytes]:
        kept = Drawings()
        return await asyncio.gather(*(kept.drawn("key", draw) for _ in range(20)))

    assert asyncio.run(all_at_once()) == [b"picture"] * 20
    assert drawn == ["once"]


def test_what_was_used_last_is_kept_and_the_rest_makes_room() -> None:
    drawn: list[int] = []

    async def use(keys: list[int]) -> int:
        kept = Drawings(most_bytes=25)

        for key in keys:

            def draw(key: int = key) -> bytes:
                drawn.append(key)
                return b"x" * 10

            await kept.drawn(key, draw)
        return kept.kept_bytes

    # Two of ten bytes fit: 3 takes the place of 2, since 1 was used after it.
    assert asyncio.run(use([1, 2, 1, 3, 1, 2])) == 20
    assert drawn == [1, 2, 3, 2]


def test_a_picture_larger_than_all_room_is_sent_and_not_kept() -> None:
    async def large() -> tuple[bytes, int]:
        kept = Drawings(most_bytes=5)
        return await kept.drawn("key", lambda: b"x" * 6), kept.kept_bytes

    assert asyncio.run(large()) == (b"x" * 6, 0)


def test_what_could_not_be_drawn_is_tried_again() -> None:
    def fail() -> bytes:
        raise InputError("no such chart")

    async def twice() -> bytes:
        kept = Drawings()
        with pytest.raises(InputError):
            await kept.drawn("key", fail)
        return await kept.drawn("key", lambda: b"now")

    assert asyncio.run(twice()) == b"now"


def test_too_many_that_wait_are_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawings, "_WAITING", 2)

    async def rush() -> list[bytes | BaseException]:
        kept = Drawings()
        asked = (kept.drawn(key, lambda: b"x") for key in range(10))
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(rush())
    assert answers.count(b"x") == 3
    assert sum(isinstance(each, ServerBusy) for each in answers) == 7
