"""The values of a row's fields, whichever columns they are in, and the small ones as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.data.columns import Columns, gathered, plain
from evenhand.data.rows import kind_of
from evenhand.errors import DataError

# Rows of one file share a handful of shapes; a file where each row has its own must not grow this.
_SHAPES_MAX = 256
_SHAPE_COLUMNS_MAX = 1000  # of one that is kept
_TAGS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the fields are in rows that have the same columns.

    `numbered` responses are 1 and 2; `preferred` ones are named for which was chosen.
    """

    single: tuple[tuple[str, str], ...]
    several: tuple[tuple[str, tuple[str, ...]], ...]
    missing: str | None
    numbered: bool
    preferred: bool


class FieldValues:
    def __init__(
        self,
        fields: Mapping[str, tuple[str, ...]],
        mapped: Mapping[str, str],
        *,
        required: Sequence[str],
    ) -> None:
        self._columns = Columns(fields, mapped)
        self._required = required
        self._responses_mapped = any(plain(name).startswith("response") for name in mapped)
        self._shapes: dict[tuple[str, ...], Shape] = {}

    def read(self, row: Mapping[str, Any]) -> tuple[Shape, dict[str, Any]]:
        columns = tuple(row)
        shape = self._shapes.get(columns) or self.shape(columns)
        if shape.missing is not None:
            raise DataError(shape.missing)
        values = {field: row[column] for field, column in shape.single}
        for field, candidates in shape.several:
            values[field] = self._agreed(field, candidates, row)
        return shape, values

    def shape(self, columns: tuple[str, ...]) -> Shape:
        found = self._columns.find(columns)
        missing = next((field for field in self._required if field not in found), None)
        first, second = (
            [plain(column) for column in found.get(field, ("",))]
            for field in ("response_a", "response_b")
        )
        shape = Shape(
            single=tuple((field, many[0]) for field, many in found.items() if len(many) == 1),
            several=tuple((field, many) for field, many in found.items() if len(many) > 1),
            missing=None if missing is None else self._columns.missing(missing, columns),
            numbered=first[0][-1:] == "1" and second[0] == f"{first[0][:-1]}2",
            preferred=(first, second) == (["chosen"], ["rejected"]) and not self._responses_mapped,
        )
        if len(self._shapes) >= _SHAPES_MAX:
            self._shapes.clear()
        if len(columns) <= _SHAPE_COLUMNS_MAX:
            self._shapes[columns] = shape
        return shape

    def _agreed(self, field: str, candidates: tuple[str, ...], row: Mapping[str, Any]) -> Any:
        """What several columns say together; they may not contradict each other."""
        given = [column for column in candidates if row[column] not in (None, "")]
        if gathered(field):
            return [tag for column in given for tag in read_tags(row[column])]
        if not given:
            return row[candidates[0]]
        for column in given[1:]:
            if row[column] != row[given[0]]:
                raise DataError(self._columns.clash(field, (given[0], column)))
        return row[given[0]]


def text_of_id(value: Any, *, field: str = "id") -> str | None:
    """An id as text: files may have numbers, and an empty one is none."""
    if isinstance(value, str):
        return sendable(field, value) or None
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**40:
        return str(value)
    raise DataError(f"{field} takes a text or a whole number, not {kind_of(value)}")


def text_of_cluster(value: Any) -> str | None:
    """A table with gaps in a column of whole numbers holds 3.0, and no number in the gaps."""
    if isinstance(value, float):
        if value != value:  # not a number
            return None
        if value.is_integer():
            value = int(value)
    return text_of_id(value, field="cluster")


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
        mark = ";" if ";" in value else ","
        _refuse_many_tags(value.count(mark) + 1)
        parts = value.split(mark)
        named = (part.strip() for part in parts)
        return tuple(sendable("tags", tag) for tag in dict.fromkeys(named) if tag)
    if isinstance(value, (list, tuple)):
        _refuse_many_tags(len(value))
        for tag in value:
            if not isinstance(tag, str):
                raise DataError(f"tags takes a list of texts, but one is {kind_of(tag)}")
        return tuple(sendable("tags", tag) for tag in dict.fromkeys(value) if tag)
    raise DataError(f"tags takes a list of texts, not {kind_of(value)}")


def _refuse_many_tags(count: int) -> None:
    if count > _TAGS_MAX:
        raise DataError(f"tags has {count:,}; give {_TAGS_MAX:,} at most")
