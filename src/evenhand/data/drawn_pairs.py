"""Files that say which pairs people are to label, in their order: a pair, and its chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from evenhand.data.columns import Columns
from evenhand.data.fields import FieldValues, text_of_id
from evenhand.data.formats import open_tables
from evenhand.data.source import Source, source_of
from evenhand.data.votes import (
    VOTE_FIELDS,
    VoteDraw,
    VoteOrigin,
    read_chance,
    read_one_of,
)
from evenhand.errors import DataError

_FIELDS = {name: VOTE_FIELDS[name] for name in ("pair", "id", "draw", "chance", "origin")}


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """`draw`, `chance` and `origin` are None where the file does not tell them."""

    pair: str
    row: int
    draw: VoteDraw | None
    chance: float | None
    origin: VoteOrigin | None


def read_drawn(
    path: Source | Path | str,
    *,
    columns: Mapping[str, str] | None = None,
    unescape: Callable[[str], str] = str,
) -> Iterator[DrawnRow]:
    """Every row in its order; one that names no pair stops it, since the order is what counts."""
    source = source_of(path)
    fields = FieldValues(_FIELDS, columns or {}, required=())
    number = 0
    for file, table in open_tables(source, wanted=Columns(_FIELDS, columns or {}).wanted):
        for number, row in table.rows:
            try:
                if isinstance(row, str):
                    raise DataError(row)
                _, values = fields.read(row)
                pair = text_of_id(values.get("pair")) or text_of_id(values.get("id"))
                if pair is None:
                    raise DataError("it names no pair; give a column pair with the pairs' ids")
                yield DrawnRow(
                    pair=unescape(pair) if table.tabular else pair,
                    row=number,
                    draw=read_one_of("draw", values.get("draw"), get_args(VoteDraw)),
                    chance=read_chance(values.get("chance")),
                    origin=read_one_of("origin", values.get("origin"), get_args(VoteOrigin)),
                )
            except DataError as error:
                raise DataError(f"{file.name}, row {number}: {error.message}") from None
    if not number:
        raise DataError(f"{source.name} holds no rows; give a file with at least one")
