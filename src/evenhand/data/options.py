"""How rows become pairs: which column is which field, what holds where a row is silent, and how
much a file from outside may make of the memory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenhand.contract.pair import Criterion
from evenhand.errors import InputError, SettingsError
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.data.orders import OrderDraw

MIB = 1 << 20
_PACKED_AT_MOST = 100
VARIABLE = "EVENHAND_MAX_ROW"
_SIZE = re.compile(r"([0-9]{1,12})\s*(B|KB|MB|GB|KiB|MiB|GiB)?", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20}
_UNITS["gib"] = 1 << 30


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What is in memory at once of a file: one row of any format, and of Parquet the pages of the
    columns that are read. `keys_every`: of so many rows of JSON one is searched for a key that
    stands twice, after the first thousand, since that takes longer than to parse it."""

    row_bytes: int = 128 * MIB
    page_bytes: int = 512 * MIB
    columns: int = 100_000
    delta_encoded: bool = True  # pages of Parquet whose headers do not tell how much they become
    keys_every: int = 16
    rows: int | None = None  # of a file
    # What a packed file may become: a kilobyte of gzip or Parquet can mean a gigabyte.
    unpacked_bytes: int | None = None
    unpacked_spare: int = 1024 * MIB
    raisable: bool = True  # by whoever reads of them

    @property
    def values(self) -> int:
        """Of a row: a list of empty lists takes twenty times the memory of its text."""
        return self.row_bytes // 16

    @property
    def table_row_bytes(self) -> int:
        """Of CSV and TSV, whose parser keeps each character in four bytes."""
        return self.row_bytes // 2

    @property
    def footer_bytes(self) -> int:
        """Of a Parquet file: it becomes up to fifty times as much in memory."""
        return max(1 << 16, self.page_bytes // 16)

    def unpacked_most(self, packed_bytes: int) -> int:
        """Honest data packs to a tenth; texts that repeat, to a hundredth."""
        most = self.unpacked_spare + _PACKED_AT_MOST * packed_bytes
        return most if self.unpacked_bytes is None else min(most, self.unpacked_bytes)

    @property
    def remedy(self) -> Message:
        if self.raisable:
            return Message("data.shorten_or_raise", variable=VARIABLE)
        return Message("data.shorten")

    @property
    def row_too_long(self) -> Message:
        return Message("data.row_longer_than", most=self.row_bytes, remedy=self.remedy)


def default_limits() -> ReadLimits:
    """Those of files that somebody names on this machine; the environment may raise them."""
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return _DEFAULT
    match = _SIZE.fullmatch(given)
    size = int(match[1]) * _UNITS[(match[2] or "b").lower()] if match else 0
    if size < 1 << 10:
        raise SettingsError(Message("data.size_malformed", variable=VARIABLE, given=given[:40]))
    return ReadLimits(row_bytes=size, page_bytes=4 * size)


_DEFAULT = ReadLimits()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """`columns` maps our field to their column; an empty column name turns the field off.

    `criteria` serve rows that have none of their own. `allow_tie` and `swap_positions`, where
    they are set, hold for every row; None leaves it to the row, and to True where it is silent.
    `orders` draws the order of every row, whatever the row says of it. `values` says what a
    spelling of a label means: `{"0": "TIE"}`.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    criteria: tuple[Criterion, ...] = ()
    criteria_needed: bool = True
    allow_tie: bool | None = None
    swap_positions: bool | None = None
    orders: OrderDraw | None = None
    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.orders is not None and self.swap_positions is not None:
            raise InputError(Message("data.orders_given_twice"))
