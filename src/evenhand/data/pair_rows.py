"""One row to one record, validated: the step that every pair of a data set goes through."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from evenhand.contract import Criterion, Pair, Winner
from evenhand.contract.pair import read_pair, refuse
from evenhand.data.columns import PAIR_FIELDS, Columns, gathered, plain
from evenhand.data.labels import read_label
from evenhand.data.options import Reading
from evenhand.data.record import BadRow, Record
from evenhand.data.rows import kind_of, shortened
from evenhand.errors import DataError, InputError

_REQUIRED = ("prompt", "response_a", "response_b")
# Rows of one file share a handful of shapes; a file where each row has its own must not grow this.
_SHAPES_MAX = 256
_CRITERIA_MAX = 4096
_SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where the fields are in rows that have the same columns."""

    single: tuple[tuple[str, str], ...]
    several: tuple[tuple[str, tuple[str, ...]], ...]
    missing: str | None
    numbered: bool
    preferred: bool


class PairRows:
    """Makes records of rows; `prefix` tells apart the keys of several sources."""

    def __init__(
        self, source: str, reading: Reading, *, prefix: str = "", tabular: bool = False
    ) -> None:
        self._source = source
        self._reading = reading
        self._prefix = prefix
        self._tabular = tabular
        self._columns = Columns(PAIR_FIELDS, reading.columns)
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._criteria: dict[bytes, tuple[Criterion, ...]] = {}

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a table whose header lacks a field: no row of it can be a pair."""
        missing = self._shape_of(tuple(columns)).missing
        if missing:
            raise DataError(f"{self._source}: {missing}")

    def read(self, number: int, row: Mapping[str, Any] | str) -> Record | BadRow:
        if isinstance(row, str):
            return BadRow(self._source, number, row)
        try:
            return self._record(number, row)
        except InputError as error:
            return BadRow(self._source, number, error.message)

    def _record(self, number: int, row: Mapping[str, Any]) -> Record:
        columns = tuple(row)
        shape = self._shapes.get(columns) or self._shape_of(columns)
        if shape.missing is not None:
            raise DataError(shape.missing)
        values = {field: row[column] for field, column in shape.single}
        for field, candidates in shape.several:
            values[field] = self._chosen(field, candidates, row)
        identity = text_of_id(values.get("id"))
        key = identity if identity is not None else f"{self._prefix}#{number}"
        model_a = optional_text("model_a", values.get("model_a"))
        model_b = optional_text("model_b", values.get("model_b"))
        label = read_label(
            values.get("label"), numbered=shape.numbered, model_a=model_a, model_b=model_b
        )
        if shape.preferred:
            label = _preferred(label)
        tags = values.get("tags")
        pair = self._pair(key, values)
        return Record(
            key,
            pair,
            self._source,
            number,
            label,
            model_a,
            model_b,
            read_tags(tags) if tags else (),
        )

    def _pair(self, key: str, values: Mapping[str, Any]) -> Pair:
        reading = self._reading
        fields: dict[str, Any] = {
            "id": key,
            "prompt": values["prompt"],
            "response_a": values["response_a"],
            "response_b": values["response_b"],
        }
        for name in ("context", "reference"):
            # An empty text is no context: a table has no other way to say "none".
            if values.get(name) not in (None, ""):
                fields[name] = values[name]
        for name, forced in (
            ("allow_tie", reading.allow_tie),
            ("swap_positions", reading.swap_positions),
        ):
            if forced is not None:
                fields[name] = forced
            elif values.get(name) not in (None, ""):
                fields[name] = self._switch(values[name])
        criteria = self._criteria_of(values.get("criteria"))
        if criteria:
            fields["criteria"] = criteria
        elif reading.criteria_needed:
            raise DataError("the row has no criteria; name some for all rows, e.g. -c accuracy")
        else:
            return read_pair(fields, criteria_needed=False)
        try:
            return Pair.model_validate(fields)
        except ValidationError as error:
            refuse(error, Pair)

    def _criteria_of(self, given: Any) -> tuple[Criterion, ...]:
        if given is None or given in ("", []):
            return self._reading.criteria
        if self._tabular and isinstance(given, str):
            given = _listed_criteria(given)
        try:
            name = orjson.dumps(given)
        except TypeError:
            name = repr(given).encode(errors="replace")
        known = self._criteria.get(name)
        if known is None:
            whole = read_pair({"prompt": "", "response_a": "", "response_b": "", "criteria": given})
            if len(self._criteria) >= _CRITERIA_MAX:
                self._criteria.clear()
            known = self._criteria[name] = whole.criteria
        return known

    def _switch(self, value: Any) -> Any:
        if self._tabular and isinstance(value, str):
            return _SWITCH.get(value.strip().lower(), value)
        return value

    def _chosen(self, field: str, candidates: tuple[str, ...], row: Mapping[str, Any]) -> Any:
        given = [column for column in candidates if row[column] not in (None, "")]
        if gathered(field):
            return [tag for column in given for tag in read_tags(row[column])]
        if not given:
            return row[candidates[0]]
        if any(row[column] != row[given[0]] for column in given[1:]):
            differing = next(column for column in given if row[column] != row[given[0]])
            raise DataError(self._columns.clash(field, (given[0], differing)))
        return row[given[0]]

    def _shape_of(self, columns: tuple[str, ...]) -> _Shape:
        found = self._columns.find(columns)
        missing = next((field for field in _REQUIRED if field not in found), None)
        names = [tuple(map(plain, found.get(field, ("",)))) for field in _REQUIRED[1:]]
        shape = _Shape(
            single=tuple((field, many[0]) for field, many in found.items() if len(many) == 1),
            several=tuple((field, many) for field, many in found.items() if len(many) > 1),
            missing=None if missing is None else self._columns.missing(missing, columns),
            numbered=names[0][0].endswith("1")
            and names[1][0].endswith("2")
            and names[0][0][:-1] == names[1][0][:-1],
            preferred=names == [("chosen",), ("rejected",)]
            and not {"response_a", "response_b"} & set(map(_underscored, self._reading.columns)),
        )
        if len(self._shapes) >= _SHAPES_MAX:
            self._shapes.clear()
        self._shapes[columns] = shape
        return shape


def text_of_id(value: Any) -> str | None:
    """An id as text: files may have numbers, and an empty one is none."""
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 10**40 else _wrong_id(value)
    return _wrong_id(value)


def _wrong_id(value: Any) -> str:
    raise DataError(f"id takes a text or a whole number, not {kind_of(value)}")


def optional_text(field: str, value: Any) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise DataError(f"{field} takes a text, not {kind_of(value)}")
    return sendable(field, value)


def sendable(field: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{field} is not valid Unicode at character {error.start + 1}; save it as UTF-8"
        ) from None
    return text


def read_tags(value: Any) -> tuple[str, ...]:
    """Tags from a list, or from a text that separates them with `;`, or else with `,`."""
    if value is None:
        return ()
    if isinstance(value, str):
        parts = value.split(";" if ";" in value else ",")
        named = (part.strip() for part in parts)
        return tuple(sendable("tags", tag) for tag in dict.fromkeys(named) if tag)
    if isinstance(value, (list, tuple)):
        for tag in value:
            if not isinstance(tag, str):
                raise DataError(f"tags takes a list of texts, but one is {kind_of(tag)}")
        return tuple(sendable("tags", tag) for tag in dict.fromkeys(value) if tag)
    raise DataError(f"tags takes a list of texts, not {kind_of(value)}")


def _listed_criteria(text: str) -> Any:
    if not text.lstrip().startswith("["):
        return [name.strip() for name in text.split(";") if name.strip()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(
            f"criteria {shortened(text)!r} is not a JSON list; "
            "give one, or names separated by semicolons"
        ) from None


def _preferred(label: Winner | None) -> Winner:
    if label not in (None, "A"):
        raise DataError(
            f"the label is {label}, but the chosen response is A; remove one of the two"
        )
    return "A"


def _underscored(name: str) -> str:
    return {"responsea": "response_a", "responseb": "response_b"}.get(plain(name), name)
