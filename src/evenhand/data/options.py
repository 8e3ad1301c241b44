"""How rows become pairs: which column is which field, and what holds where a row is silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenhand.contract import Criterion


@dataclass(frozen=True, slots=True)
class Reading:
    """`columns` maps our field to their column; an empty column name turns the field off.

    `criteria` serve rows that have none of their own. `allow_tie` and `swap_positions`, where
    they are set, hold for every row; None leaves it to the row, and to True where it is silent.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    criteria: tuple[Criterion, ...] = ()
    criteria_needed: bool = True
    allow_tie: bool | None = None
    swap_positions: bool | None = None
