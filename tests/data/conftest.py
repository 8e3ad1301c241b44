"""Writes a file, reads it as pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from evenhand.contract import Criterion
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.records import BadRow, Record

Write: TypeAlias = Callable[[str, "str | bytes"], Path]
Read: TypeAlias = Callable[..., "list[Record | BadRow]"]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.fixture
def read(write: Write) -> Read:
    def read_file(name: str, content: str | bytes, **columns: str) -> list[Record | BadRow]:
        reading = ReadOptions(columns=columns, criteria=(Criterion(name="accuracy"),))
        return list(read_pairs([write(name, content)], reading))

    return read_file
