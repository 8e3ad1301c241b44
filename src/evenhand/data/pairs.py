"""Files of pairs, and pairs that Python code has, as one stream of records and bad rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.contract import Pair
from evenhand.data.columns import PAIR_FIELDS, Columns
from evenhand.data.formats import open_table
from evenhand.data.options import Reading
from evenhand.data.pair_rows import PairRows
from evenhand.data.record import BadRow, Record
from evenhand.data.rows import kind_of
from evenhand.data.source import Source, source_of
from evenhand.errors import DataError


@dataclass(frozen=True, slots=True)
class Place:
    """How far files have been read: the number of the file, from 0, and the last row of it."""

    file: int = 0
    row: int = 0


def read_pairs(paths: Sequence[Source | Path | str], reading: Reading) -> Iterator[Record | BadRow]:
    """Every row of every file, in order, as a record or as the reason why it is none."""
    for _, records in read_files(paths, reading):
        yield from records


def read_files(
    paths: Sequence[Source | Path | str], reading: Reading, *, after: Place | None = None
) -> Iterator[tuple[int, Iterator[Record | BadRow]]]:
    """The same file by file, with the file's number; those before a place are not opened."""
    sources = [source_of(path) for path in paths]
    files = [file for source in sources for file in source.files]
    prefixes = _prefixes(files)
    after = after or Place()
    begin = 0
    for source in sources:
        seen = [0]
        for number, file in enumerate(source.files, begin):
            row = after.row if number == after.file else 0
            if number < after.file or row:
                seen[0] += 1
            if number >= after.file:
                prefix = prefixes[number]
                yield number, _of_file(file, reading, prefix=prefix, after=row, seen=seen)
        begin += len(source.files)
        if not seen[0]:
            raise DataError(f"{source.name} holds no rows; give a file with at least one")


def pairs_from(pairs: Iterable[Any], reading: Reading) -> Iterator[Record | BadRow]:
    """The same from Python: mappings with columns, or Pairs, numbered from 1."""
    rows = PairRows("pairs", reading)
    number = 0
    for number, given in enumerate(pairs, 1):
        if isinstance(given, Pair):
            yield _of_pair(given, number, reading)
        elif isinstance(given, Mapping):  # callers may be untyped
            yield rows.read(number, given)
        else:
            yield BadRow("pairs", number, f"a pair is a mapping or a Pair, not {kind_of(given)}")
    if not number:
        raise DataError("pairs holds no rows; give at least one pair")


def _of_file(
    source: Source, reading: Reading, *, prefix: str, after: int, seen: list[int]
) -> Iterator[Record | BadRow]:
    wanted = Columns(PAIR_FIELDS, reading.columns).wanted
    table = open_table(source, wanted=wanted, after=after)
    rows = PairRows(source.name, reading, prefix=prefix, tabular=table.tabular)
    if table.columns is not None:
        rows.check(table.columns)
    for number, row in table.rows:
        seen[0] += 1
        yield rows.read(number, row)


def _of_pair(pair: Pair, number: int, reading: Reading) -> Record | BadRow:
    key = pair.id or f"#{number}"
    changes: dict[str, Any] = {"id": key}
    if not pair.criteria:
        if not reading.criteria and reading.criteria_needed:
            return BadRow("pairs", number, "the pair has no criteria; name at least one")
        changes["criteria"] = reading.criteria
    if reading.allow_tie is not None:
        changes["allow_tie"] = reading.allow_tie
    if reading.swap_positions is not None:
        changes["swap_positions"] = reading.swap_positions
    return Record(key, pair.model_copy(update=changes), "pairs", number)


def _prefixes(sources: Sequence[Source]) -> list[str]:
    """What tells rows without an id apart: nothing, the files' stems, or their whole names."""
    if len(sources) == 1:
        return [""]
    stems = [source.stem for source in sources]
    return stems if len(set(stems)) == len(stems) else [source.name for source in sources]
