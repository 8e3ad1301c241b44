"""How long to wait for what, where answers take hours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """In seconds. Looks come more and more seldom, from `first_look_s` to `look_s`."""

    first_look_s: float = 2.0
    look_s: float = 60.0
    grows_by: float = 1.5
    # A batch whose submission nobody saw end is there by then, or it never will be.
    arrives_within_s: float = 60.0
    # A provider that answers nothing for so long is given up; its batches stay, and can be
    # collected later.
    patience_s: float = 3600.0
    first_patience_s: float = 60.0  # where it has not answered this command at all
    fetches: int = 5  # of results that come cut short
    empty_batches: int = 3  # that expire in a row with nothing answered

    @classmethod
    def looking_every(cls, seconds: float | None) -> BatchTiming:
        if seconds is None:
            return cls()
        return cls(first_look_s=seconds, look_s=seconds)
