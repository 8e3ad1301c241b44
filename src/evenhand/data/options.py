"""How rows become pairs: the columns of each field, defaults for rows, and memory limits for
untrusted files.
"""

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
    """Limits on what a file may hold in memory at once: one row, or the pages of the Parquet
    columns read. After the first thousand JSON rows, one in `keys_every` is checked for repeated
    keys, which takes longer than parsing."""

    row_bytes: int = 128 * MIB
    page_bytes: int = 512 * MIB
    columns: int = 100_000
    delta_encoded: bool = True  # pages of Parquet whose headers do not tell how much they become
    keys_every: int = 16
    rows: int | None = None  # of a file
    # A packed kilobyte of gzip or Parquet can unpack to a gigabyte.
    unpacked_bytes: int | None = None
    unpacked_spare: int = 1024 * MIB
    raisable: bool = True  # by whoever reads of them

    @property
    def values(self) -> int:
        """For a row: a list of empty lists takes twenty times the memory of its text."""
        return self.row_bytes // 16

    @property
    def table_row_bytes(self) -> int:
        """For CSV and TSV, whose parser keeps four bytes a character."""
        return self.row_bytes // 2

    @property
    def footer_bytes(self) -> int:
        """For a Parquet file, whose footer takes up to fifty times its size in memory."""
        return max(1 << 16, self.page_bytes // 16)

    def unpacked_most(self, packed_bytes: int) -> int:
        """Honest data packs to a tenth, repetitive text to a hundredth."""
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
    """The limits for local files; the environment may raise them."""
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return _DEFAULT
    match = _SIZE.fullmatch(given)
    size = int(match[1]) * _UNITS[(match[2] or "b").lower()] if match else 0
    if size < 1 << 10:
        raise SettingsError.of("data.size_malformed", variable=VARIABLE, given=given[:40])
    return ReadLimits(row_bytes=size, page_bytes=4 * size)


_DEFAULT = ReadLimits()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """`columns` maps our field to their column; an empty name turns the field off.

    `criteria` apply to rows without their own. `allow_tie` and `swap_positions` override every row
    unless None; rows default to True. `orders` draws the order of every row. `values` says what a
    label's spelling means: `{"0": "TIE"}`.
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
            raise InputError.of("data.orders_given_twice")
