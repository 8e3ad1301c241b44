"""Exports on standard output: as they are into a pipe, harmless on a terminal, without keys."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from evenhand.cli.terminal import clean, escape, without_keys
from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.report import Format


@contextmanager
def printed(form: Format) -> Iterator[BinaryIO]:
    terminal = sys.stdout.isatty()
    sys.stdout.flush()
    if form == "parquet":
        if terminal:
            raise InputError("a terminal cannot show Parquet; give -o FILE")
        yield sys.stdout.buffer
    else:
        shown = (clean if form == "csv" else escape) if terminal else str
        yield cast("BinaryIO", _Printed(sys.stdout.buffer, shown))
    sys.stdout.flush()


class _Printed:
    """Each write is whole text, so that a key or a control sequence is never cut in two."""

    def __init__(self, stream: BinaryIO, shown: Callable[[str], str]) -> None:
        self._stream = stream
        self._shown = shown

    def write(self, data: bytes) -> int:
        self._stream.write(self._shown(without_keys(data.decode())).encode())
        return len(data)
