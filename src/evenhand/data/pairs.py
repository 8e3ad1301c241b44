"""Files of pairs as one stream of records and bad rows; each row is validated here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from evenhand.contract import Criterion, Pair, Winner
from evenhand.contract.pair import at_field, field_of, read_pair, refuse
from evenhand.data.columns import (
    PAIR_FIELDS,
    Columns,
    FieldValues,
    optional_text,
    plain,
    read_label,
    read_meanings,
    reference_text,
    text_of_cluster,
    text_of_id,
)
from evenhand.data.frames import ArrowStream, frame_rows, is_frame
from evenhand.data.options import ReadOptions
from evenhand.data.records import BadRow, Record, shortened
from evenhand.data.source import Source, source_of
from evenhand.data.tables import open_table
from evenhand.errors import DataError, InputError
from evenhand.messages import Message

GIVEN = "pairs"  # what messages call what no file holds
_REQUIRED = ("prompt", "response_a", "response_b")
_CRITERIA_KEPT = 4096  # lists, that are read once
_CRITERIA_KEPT_BYTES = 1 << 12  # of one
_CRITERIA_MAX = 1000  # of a pair; each becomes an object
_LISTED_MAX = 1 << 20  # characters of a list that is spelled in a cell
_SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class PairRows:
    """Makes records of rows; `prefix` keeps the keys of several sources apart."""

    def __init__(
        self, source: str, reading: ReadOptions, *, prefix: str = "", tabular: bool = False
    ) -> None:
        self._source = source
        self._reading = reading
        self._prefix = prefix
        self._tabular = tabular
        self._fields = FieldValues(PAIR_FIELDS, reading.columns, required=_REQUIRED)
        self._meanings = read_meanings(reading.values)
        self._criteria: dict[bytes, tuple[Criterion, ...]] = {}

    def check(self, columns: Sequence[str]) -> None:
        missing = self._fields.shape(tuple(columns)).missing
        if missing:
            raise DataError.of("data.source_missing", source=self._source, missing=missing)

    def read(self, number: int, row: Mapping[str, Any] | str) -> Record | BadRow:
        if isinstance(row, str):
            return BadRow(self._source, number, row)
        try:
            return self._record(number, row)
        except InputError as error:
            return BadRow(self._source, number, error.message)

    def _record(self, number: int, row: Mapping[str, Any]) -> Record:
        shape, values = self._fields.read(row)
        identity = text_of_id(values.get("id"))
        key = identity if identity is not None else f"{self._prefix}#{number}"
        model_a = optional_text("model_a", values.get("model_a"))
        model_b = optional_text("model_b", values.get("model_b"))
        label = read_label(
            values.get("label"),
            numbered=shape.numbered,
            model_a=model_a,
            model_b=model_b,
            meanings=self._meanings,
        )
        if shape.preferred:
            label = _preferred(label)
        try:
            pair = self._pair(key, values)
        except InputError as error:
            raise DataError(_with_column(error.message, dict(shape.single))) from None
        return Record(
            key,
            pair,
            self._source,
            number,
            label,
            model_a,
            model_b,
            shape.tags(values),
            text_of_cluster(values.get("cluster")),
        )

    def _pair(self, key: str, values: Mapping[str, Any]) -> Pair:
        reading = self._reading
        fields: dict[str, Any] = {
            "id": key,
            "prompt": values["prompt"],
            "response_a": values["response_a"],
            "response_b": values["response_b"],
        }
        given = {
            "context": values.get("context"),
            "reference": reference_text(values.get("reference")),
        }
        # An empty text is no context: a table cannot say None otherwise.
        fields |= {name: value for name, value in given.items() if value not in (None, "")}
        for name in ("allow_tie", "swap_positions"):
            if values.get(name) not in (None, ""):
                fields[name] = self._switch(values[name])
        return make_pair(fields, self._criteria_of(values.get("criteria")), reading)

    def _criteria_of(self, given: Any) -> tuple[Criterion, ...]:
        if given is None or given in ("", []):
            return self._reading.criteria
        if self._tabular and isinstance(given, str):
            given = _listed_criteria(given)
        if isinstance(given, list) and len(given) > _CRITERIA_MAX:
            raise DataError.of("data.too_many_criteria", n=len(given), criteria_max=_CRITERIA_MAX)
        try:
            name = orjson.dumps(given)
        except TypeError:
            name = repr(given).encode(errors="replace")
        known = self._criteria.get(name)
        if known is None:
            whole = read_pair({"prompt": "", "response_a": "", "response_b": "", "criteria": given})
            known = whole.criteria
            if len(self._criteria) >= _CRITERIA_KEPT:
                self._criteria.clear()
            if len(name) <= _CRITERIA_KEPT_BYTES:
                self._criteria[name] = known
        return known

    def _switch(self, value: Any) -> Any:
        if self._tabular and isinstance(value, str):
            return _SWITCH.get(value.strip().lower(), value)
        return value


def make_pair(
    fields: dict[str, Any], criteria: tuple[Criterion, ...], reading: ReadOptions
) -> Pair:
    pair = _validated(fields, criteria, reading)
    return pair if reading.orders is None else reading.orders.draw(pair)


def _validated(
    fields: dict[str, Any], criteria: tuple[Criterion, ...], reading: ReadOptions
) -> Pair:
    if reading.allow_tie is not None:
        fields["allow_tie"] = reading.allow_tie
    if reading.swap_positions is not None:
        fields["swap_positions"] = reading.swap_positions
    if not criteria:
        if reading.criteria_needed:
            raise DataError.of("data.row_without_criteria")
        return read_pair(fields, criteria_needed=False)
    fields["criteria"] = criteria
    try:
        return Pair.model_validate(fields)
    except ValidationError as error:
        refuse(error, Pair)


def _with_column(message: str, columns: Mapping[str, str]) -> str:
    """Add the column's name if the file calls the field something else."""
    field = field_of(message)
    column = None if field is None else columns.get(field)
    if field is None or column is None or plain(column) == plain(field):
        return message
    return at_field(message, Message("data.field_in_column", field=field, column=column))


def _listed_criteria(text: str) -> Any:
    if len(text) > _LISTED_MAX:
        raise DataError.of("data.criteria_too_long", n=len(text), listed_max=_LISTED_MAX)
    if not text.lstrip().startswith("["):
        return [name.strip() for name in text.split(";") if name.strip()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DataError.of("data.criteria_malformed", text=shortened(text)) from None


def _preferred(label: Winner | None) -> Winner:
    if label not in (None, "A"):
        raise DataError.of("data.label_contradicts_chosen", label=label)
    return "A"


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """How far the files have been read: the file's number, from 0, and its last row."""

    file: int = 0
    row: int = 0


def read_pairs(
    paths: Sequence[Source | Path | str], reading: ReadOptions
) -> Iterator[Record | BadRow]:
    """Every row of every file in order, as a record or a bad row."""
    for _, records in read_files(paths, reading):
        yield from records


def read_files(
    paths: Sequence[Source | Path | str], reading: ReadOptions, *, after: ReadPosition | None = None
) -> Iterator[tuple[int, Iterator[Record | BadRow]]]:
    """The same with each file's number; files before `after` are not opened."""
    sources = [source_of(path) for path in paths]
    files = [file for source in sources for file in source.files]
    prefixes = _prefixes(files)
    after = after or ReadPosition()
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
            raise DataError.of("data.file_without_rows", name=source.name)


def read_rows(
    given: ArrowStream | Iterable[Pair | Mapping[str, Any]], reading: ReadOptions
) -> Iterator[Record | BadRow | Pair]:
    """Rows from Python: a DataFrame, or an iterable of mappings and pairs."""
    rows = PairRows(GIVEN, reading, tabular=is_frame(given))
    values: Iterable[object]
    if is_frame(given):
        columns, values = frame_rows(given, GIVEN)
        rows.check(columns)
    else:
        values = plain_rows(given, GIVEN)
    for number, row in enumerate(values, start=1):
        if isinstance(row, Pair):
            yield row
        elif isinstance(row, Mapping):
            yield rows.read(number, row)
        else:
            reason = Message("data.no_pair", kind=type(row).__name__)
            yield BadRow(GIVEN, number, reason)


def plain_rows(given: object, name: str) -> Iterable[object]:
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise DataError.of("data.rows_no_rows", name=name, kind=type(given).__name__)
    return given


def _of_file(
    source: Source, reading: ReadOptions, *, prefix: str, after: int, seen: list[int]
) -> Iterator[Record | BadRow]:
    wanted = Columns(PAIR_FIELDS, reading.columns).wanted
    table = open_table(source, wanted=wanted, after=after)
    tabular = table.tabular or source.tabular
    rows = PairRows(source.name, reading, prefix=prefix, tabular=tabular)
    if table.columns is not None:
        rows.check(table.columns)
    for number, row in table.rows:
        seen[0] += 1
        yield rows.read(number, row)


def _prefixes(sources: Sequence[Source]) -> list[str]:
    """What distinguishes rows without ids: nothing, the files' stems, or their full names."""
    if len(sources) == 1:
        return [""]
    stems = [source.stem for source in sources]
    return stems if len(set(stems)) == len(stems) else [source.name for source in sources]
