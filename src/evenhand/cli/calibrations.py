"""Which judge takes which calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.judges import Judge
    from evenhand.procedure import Calibrating


def calibrations_of(
    names: Sequence[str] | None, judges: Sequence[Judge], *, forced: bool
) -> list[Calibrating | None]:
    """For each judge the calibration that was learned on it, or none.

    A calibration that is no judge's goes to the first without one, which it refuses in its own
    words unless it is forced.
    """
    if not names:
        if forced:
            raise InputError("--force-calibration belongs to --calibration; give both, or neither")
        return [None] * len(judges)
    from evenhand.trust.calibrations import open_calibration

    taken: list[Calibrating | None] = [None] * len(judges)
    strange = []
    for name in names:
        opened = open_calibration(name, forced=forced)
        own = [
            place
            for place, judge in enumerate(judges)
            if judge.name == opened.saved.learned_on.judge and taken[place] is None
        ]
        if own:
            taken[own[0]] = opened
        else:
            strange.append((name, opened))
    for name, opened in strange:
        if None not in taken:
            raise InputError(f"calibration {name!r} is one too many; give one for a judge")
        taken[taken.index(None)] = opened
    return taken
