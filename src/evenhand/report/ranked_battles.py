"""The rows of a file of battles that a ranking takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.data.battles import BattleColumns
from evenhand.errors import InputError
from evenhand.report.ranked_verdicts import unknown_tag


@dataclass(frozen=True, slots=True)
class RankedBattles:
    """Models are places in `models`, which are sorted; `preference` is A's score, from 0 to 1."""

    models: tuple[str, ...]
    model_a: NDArray[Any]
    model_b: NDArray[Any]
    preference: NDArray[np.float64]
    prompt: NDArray[Any] | None
    weight: NDArray[np.float64] | None

    @classmethod
    def of(cls, read: BattleColumns, tag: str | None) -> RankedBattles:
        rows = np.asarray if tag is None else _tagged_rows(read, tag)
        a, b = rows(read.model_a), rows(read.model_b)
        used = sorted(np.union1d(a, b).tolist(), key=read.models.__getitem__)
        place = np.zeros(len(read.models), dtype=np.int32)
        place[used] = np.arange(len(used))
        return cls(
            tuple(read.models[each] for each in used),
            place[a],
            place[b],
            rows(read.preference),
            None if read.prompt is None else rows(read.prompt),
            None if read.weight is None else rows(read.weight),
        )

    def outcomes(self) -> tuple[int, int, int]:
        """How many rows are B's win, a tie, and A's win; the others are graded."""
        lost, tied, won = (int((self.preference == score).sum()) for score in (0.0, 0.5, 1.0))
        return lost, tied, won


_Rows = Callable[[Any], NDArray[Any]]


def _tagged_rows(read: BattleColumns, tag: str) -> _Rows:
    there = sorted({each for tags in read.tag_sets for each in tags})
    if read.tags is None or tag not in there:
        raise InputError(unknown_tag(tag, there))
    has_it = np.array([tag in tags for tags in read.tag_sets])
    wanted = has_it[np.asarray(read.tags)]
    return lambda column: np.asarray(column)[wanted]
