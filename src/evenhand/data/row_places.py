"""Rows of a data set in several files: one number each, and from the number back to its file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from evenhand.data.formats import open_tables
from evenhand.data.rows import Table, Wanted
from evenhand.data.source import Source


class RowPlaces:
    """Rows count on from file to file, so that a number tells a row from all others."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._begins: list[int] = []  # how many numbers were given before each file
        self._last = 0

    def tables(self, wanted: Wanted) -> Iterator[tuple[Source, Table]]:
        for file, table in open_tables(self._source, wanted=wanted):
            self._begins.append(self._last)
            yield file, table

    def number(self, row: int) -> int:
        """What a row of the file that is being read is called among all."""
        self._last = self._begins[-1] + row
        return self._last

    def place(self, number: int) -> tuple[str, int]:
        """The file's name, and the row in it."""
        file = bisect_left(self._begins, number) - 1
        return self._source.files[file].name, number - self._begins[file]
