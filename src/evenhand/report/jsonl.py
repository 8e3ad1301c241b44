"""JSON lines: every field of a row, and the whole verdict with its passes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from evenhand.report.records import RunRow


def write_jsonl(stream: BinaryIO, rows: Iterable[RunRow]) -> int:
    count = 0
    for row in rows:
        count += 1
        stream.write(f"{row.model_dump_json()}\n".encode())
    return count
