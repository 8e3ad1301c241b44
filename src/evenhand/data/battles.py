"""A plain file of battles as columns: who met whom, who won, and what belongs to which prompt.

Names are kept once and rows as numbers, so that a million battles take some 20 MB.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from evenhand.data.columns import (
    Columns,
    FieldValues,
    number_of,
    read_label,
    read_tags,
    sendable,
)
from evenhand.data.records import BadRow, Table, kind_of
from evenhand.data.source import Source, source_of
from evenhand.data.tables import open_tables
from evenhand.errors import DataError, InputError
from evenhand.messages import Message

BATTLE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "model_a": ("model_a", "model_1", "generator_a", "generator_1", "model_name_a", "left"),
    "model_b": ("model_b", "model_2", "generator_b", "generator_2", "model_name_b", "right"),
    "winner": ("winner", "label", "outcome", "verdict", "human_label"),
    "preference": ("preference", "preference_a", "score_a"),
    "prompt": ("prompt", "prompt_id", "question_id", "question", "instruction", "conversation_id"),
    "weight": ("weight", "weights"),
    "tags": ("tags", "tag", "category", "categories"),
}
_PREFERENCES = {"A": 1.0, "B": 0.0, "TIE": 0.5}
# Longer prompts are kept as digests, so that texts do not fill the memory.
_PROMPT_KEPT = 24
_LEFT_RIGHT = {"left": 1.0, "right": 0.0}


@dataclass(frozen=True, slots=True)
class BattleFile:
    """Battles as columns of codes; `preference` is A's score, from 0 to 1.

    `model_a`, `model_b`, `prompt` and `tags` hold places in `models`, `prompts` and `tag_sets`.
    `prompt` and `weight` are None where the file has no such column.
    """

    models: tuple[str, ...]
    model_a: array[int]
    model_b: array[int]
    preference: array[float]
    prompt: array[int] | None
    prompts: int
    weight: array[float] | None
    tags: array[int] | None
    tag_sets: tuple[tuple[str, ...], ...]
    bad_rows: tuple[BadRow, ...]
    bad_row_count: int
    name: str  # of the file

    def __len__(self) -> int:
        return len(self.preference)


def read_battles(
    path: Source | Path | str,
    *,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = True,
    bad_rows_kept: int = 100,
) -> BattleFile:
    """Every row of a CSV, TSV, JSON, JSON lines or Parquet file, gzipped or not.

    An unusable row stops the reading, or is skipped and counted; the first `bad_rows_kept` are
    returned.
    """
    source = source_of(path)
    mapped = columns or {}
    reader = _Rows(mapped)
    bad: list[BadRow] = []
    bad_count = 0
    for file, table in open_tables(source, wanted=Columns(BATTLE_FIELDS, mapped).wanted):
        for row in reader.read(table, file.name):
            bad_count += 1
            if not skip_bad_rows:
                raise DataError(Message("report.skip_bad_rows", message=row.message))
            if len(bad) < bad_rows_kept:
                bad.append(row)
    if not bad_count and not len(reader.preference):
        raise DataError.of("data.file_without_rows", name=source.name)
    return reader.columns(tuple(bad), bad_count, source.name)


class _Numbers(dict[Any, int]):
    """Numbers keys from 0 as they first come."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


class _Rows:
    def __init__(self, mapped: Mapping[str, str]) -> None:
        self._fields = FieldValues(BATTLE_FIELDS, mapped, required=("model_a", "model_b"))
        self._models = _Numbers()
        self._prompts = _Numbers()
        self._tags: dict[str | tuple[str, ...], int] = {}
        self._tag_sets = _Numbers()
        self._winners: dict[Any, float] = {}
        self._known: dict[Any, str] = {}
        self.preference = array("d")
        self._model_a, self._model_b = array("i"), array("i")
        self._prompt, self._weight, self._tag = array("i"), array("d"), array("i")
        self._has = dict.fromkeys(("prompt", "weight", "tags"), False)

    def _check(self, columns: Sequence[str], source: str) -> None:
        shape = self._fields.shape(tuple(columns))
        fields = {field for field, _ in (*shape.single, *shape.several)}
        missing = shape.missing
        if missing is None and not fields & {"winner", "preference"}:
            missing = Message("data.no_winner")
        if missing:
            raise DataError.of("data.source_missing", source=source, missing=missing)

    def read(self, table: Table, source: str) -> Iterator[BadRow]:
        """Read every battle; yield the bad rows."""
        if table.columns is not None:
            self._check(table.columns, source)
        fields = self._fields.read
        for number, row in table.rows:
            if isinstance(row, str):
                yield BadRow(source, number, row)
                continue
            try:
                _, values = fields(row)
                self._take(values)
            except InputError as error:
                yield BadRow(source, number, error.message)

    def _take(self, values: Mapping[str, Any]) -> None:
        # All fields are read before any is stored, so a bad row leaves no trace.
        model_a, model_b = self._name("model_a", values), self._name("model_b", values)
        if model_a == model_b:
            raise DataError.of("data.model_against_itself", model_a=model_a)
        preference = self._preference(values, model_a, model_b)
        weight = _weight(values.get("weight"))
        prompt = _prompt(values.get("prompt"))
        tags = values.get("tags")
        tag = self._tag_place(tags) if "tags" in values else self._tag_sets[()]
        self.preference.append(preference)
        self._model_a.append(self._models[model_a])
        self._model_b.append(self._models[model_b])
        self._weight.append(1.0 if weight is None else weight)
        # A row without a prompt is a cluster of its own.
        self._prompt.append(self._prompts[prompt if prompt is not None else len(self.preference)])
        self._tag.append(tag)
        has = self._has
        if weight is not None:
            has["weight"] = True
        if prompt is not None:
            has["prompt"] = True
        if tag:
            has["tags"] = True

    def _name(self, field: str, values: Mapping[str, Any]) -> str:
        given = values[field]
        if type(given) is str and given in self._known:
            return self._known[given]
        if isinstance(given, int) and not isinstance(given, bool):
            return str(given)
        if not isinstance(given, str) or not given.strip():
            raise DataError.of("data.model_name_needed", field=field, given=kind_of(given))
        name = sendable(field, given.strip())
        self._known[given] = name
        return name

    def _preference(self, values: Mapping[str, Any], model_a: str, model_b: str) -> float:
        given = values.get("winner")
        if given is None or given == "":
            given = values.get("preference")
            if given is None or given == "":
                raise DataError.of("data.no_winner")
        if isinstance(given, str):
            known = self._winners.get(given)
            if known is not None and given not in (model_a, model_b):
                return known
        read = _read_preference(given, model_a, model_b)
        if isinstance(given, str) and given not in (model_a, model_b):
            self._winners[given] = read
        return read

    def _tag_place(self, given: Any) -> int:
        key = given if isinstance(given, str) else tuple(given) if isinstance(given, list) else None
        try:
            place = self._tags.get(key) if key is not None else None
        except TypeError:
            place = None
        if place is None:
            self._tag_sets[()]
            place = self._tag_sets[read_tags(given)]
            if key is not None:
                self._tags[key] = place
        return place

    def columns(self, bad: tuple[BadRow, ...], bad_count: int, name: str) -> BattleFile:
        return BattleFile(
            models=tuple(self._models),
            model_a=self._model_a,
            model_b=self._model_b,
            preference=self.preference,
            prompt=self._prompt if self._has["prompt"] else None,
            prompts=len(self._prompts),
            weight=self._weight if self._has["weight"] else None,
            tags=self._tag if self._has["tags"] else None,
            tag_sets=tuple(self._tag_sets),
            bad_rows=bad,
            bad_row_count=bad_count,
            name=name,
        )


def _read_preference(given: Any, model_a: str, model_b: str) -> float:
    number = float(given) if isinstance(given, bool) else number_of(given)
    if number is not None:
        if 0 <= number <= 1:
            return number
        raise DataError.of("data.preference_outside", given=kind_of(given))
    if isinstance(given, str):
        side = _LEFT_RIGHT.get(given.strip().lower())
        if side is not None and given not in (model_a, model_b):
            return side
    try:
        label = read_label(given, numbered=False, model_a=model_a, model_b=model_b)
    except DataError:
        label = None
    if label is None:
        raise DataError.of("data.winner_unknown", given=kind_of(given))
    named = given.strip() if isinstance(given, str) else None
    if named in (model_a, model_b) and label != ("A" if named == model_a else "B"):
        raise DataError.of("data.winner_ambiguous", named=named)
    return _PREFERENCES[label]


def _weight(given: Any) -> float | None:
    if given is None or given == "":
        return None
    number = number_of(given)
    if number is None or not (math.isfinite(number) and number >= 0):
        raise DataError.of("data.weight_outside", given=kind_of(given))
    return number


def _prompt(given: Any) -> str | bytes | None:
    if given is None or given == "":
        return None
    if isinstance(given, str):
        if len(given) <= _PROMPT_KEPT:
            return given
        return blake2b(given.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return str(given)
    raise DataError.of("data.prompt_no_text", given=kind_of(given))
