"""What a thread writes comes at once, in order and whole; a reader who leaves ends it."""

from __future__ import annotations

import asyncio
import threading
from typing import BinaryIO

import pytest

from evenhand.serve.pages.pairs import piped


async def test_everything_comes_in_order() -> None:
    parts = [bytes([place % 251]) * (place * 37 % 5_000) for place in range(400)]

    def write(stream: BinaryIO) -> None:
        for part in parts:
            assert stream.write(part) == len(part)

    blocks = [block async for block in piped(write)]
    assert b"".join(blocks) == b"".join(parts)
    assert len(blocks) < len(parts)


async def test_the_beginning_comes_before_the_end_is_written() -> None:
    seen = threading.Event()

    def write(stream: BinaryIO) -> None:
        stream.write(b"x" * 100_000)
        assert seen.wait(120)
        stream.write(b"end")

    blocks = []
    async for block in piped(write):
        blocks.append(block)
        seen.set()
    assert b"".join(blocks) == b"x" * 100_000 + b"end"


async def test_what_goes_wrong_in_the_thread_is_raised() -> None:
    def write(stream: BinaryIO) -> None:
        stream.write(b"some")
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        [block async for block in piped(write)]


async def test_a_reader_who_leaves_ends_the_writing() -> None:
    ended = threading.Event()

    def write(stream: BinaryIO) -> None:
        try:
            while True:
                stream.write(b"x" * 1_000_000)
        finally:
            ended.set()

    blocks = piped(write)
    assert await anext(blocks)
    await blocks.aclose()  # type: ignore[attr-defined]
    assert await asyncio.to_thread(ended.wait, 120)
