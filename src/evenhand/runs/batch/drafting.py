"""Requests gathered into batches that a provider takes."""

from __future__ import annotations

import secrets

from evenhand.judges.batch import BatchLimits, Draft
from evenhand.runs.batch.collecting import Wanted
from evenhand.store import WorkItem
from evenhand.store.batches import NewBatch, RequestAsked

# What stands around a request's body in a batch, its id included.
_AROUND = 160
# The provider tells letters, digits and these two signs, up to 64 of them.
_NONCE_BYTES = 12


class Drafting:
    """One batch in the making. A request alone is never too much for it: if it is for the provider,
    that will say so."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._bytes = 0
        self._asked: list[RequestAsked] = []
        self._bodies: list[bytes] = []
        self._numbers: list[int] = []
        self._reserved: float | None = 0.0

    def __len__(self) -> int:
        return len(self._asked)

    def has_room(self, wanted: Wanted) -> bool:
        if not self._asked:
            return True
        full = len(self._asked) >= self._limits.requests
        return not full and self._bytes + len(wanted.body) + _AROUND <= self._limits.bytes

    def add(self, work: WorkItem, wanted: Wanted, *, reserved_usd: float | None) -> None:
        asked = RequestAsked(work.pair_id, wanted.order, wanted.sample, wanted.turn, wanted.form)
        self._asked.append(asked)
        self._bodies.append(wanted.body)
        self._numbers.append(work.number)
        self._bytes += len(wanted.body) + _AROUND
        known = self._reserved is not None and reserved_usd is not None
        self._reserved = (self._reserved or 0.0) + (reserved_usd or 0.0) if known else None

    @property
    def reserved_usd(self) -> float | None:
        return self._reserved

    def closed(self, run_id: int, judge_id: int) -> tuple[NewBatch, list[RequestAsked], Draft]:
        nonce = f"eh{secrets.token_hex(_NONCE_BYTES)}"
        new = NewBatch(
            run_id,
            judge_id,
            nonce,
            first_number=min(self._numbers),
            last_number=max(self._numbers),
            reserved_usd=self._reserved,
        )
        lines = tuple(
            (custom_id_of(nonce, place), body) for place, body in enumerate(self._bodies, 1)
        )
        return new, self._asked, Draft(nonce, lines)


def custom_id_of(nonce: str, place: int) -> str:
    return f"{nonce}-{place}"


def place_of(custom_id: str, nonce: str) -> int | None:
    """None where it is none of this batch's: a provider's file is foreign text."""
    mine, _, place = custom_id.rpartition("-")
    return int(place) if mine == nonce and place.isascii() and place.isdigit() else None
