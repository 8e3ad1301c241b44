"""How a run is carried out: limits, caps and what to do again, as one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evenhand.errors import InputError
from evenhand.judges.prices import Price
from evenhand.runs.stop_rules import RankAdaptive, UntilDecided

Again = Literal["failed", "unread"]
BadRows = Literal["stop", "skip"]
ExecutorName = Literal["local", "ray"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """None: no limit, or a good default."""

    name: str | None = None
    store: str | Path | None = None
    concurrency: int | None = None  # None: it adapts by itself
    rpm: float | None = None
    tpm: float | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    price: Price | None = None  # the caller's own, where no list has the judge
    fresh: bool = False
    retry: tuple[Again, ...] = ()
    bad_rows: BadRows = "stop"
    keep_going_unread: bool = False  # with a judge whose answers cannot be read
    until_decided: UntilDecided | None = None
    rank_adaptive: RankAdaptive | None = None
    executor: ExecutorName = "local"
    ray_address: str | None = None  # None: Ray is started on this machine
    ray_workers: int | None = None
    batch: bool = False  # by the providers' batch APIs, at half the price
    batch_poll_s: float | None = None  # how often to look there
    cancel_batches: bool = False  # give up what is there

    def __post_init__(self) -> None:
        for name, number in (
            ("concurrency", self.concurrency),
            ("max_calls", self.max_calls),
            ("ray_workers", self.ray_workers),
        ):
            if number is not None and (type(number) is not int or number < 1):
                raise InputError(f"{name} is {number!r}; it takes a whole number from 1")
        for name, amount in (
            ("rpm", self.rpm),
            ("tpm", self.tpm),
            ("max_cost", self.max_cost),
            ("batch_poll_s", self.batch_poll_s),
        ):
            if amount is not None and not (_is_number(amount) and 0 < amount < math.inf):
                raise InputError(f"{name} is {amount!r}; it takes a number above 0")
        if self.bad_rows not in ("stop", "skip"):
            raise InputError(f"bad_rows is {self.bad_rows!r}; it takes stop or skip")
        for what in self.retry:
            if what not in ("failed", "unread"):
                raise InputError(f"retry is {what!r}; it takes failed or unread")
        if self.name is not None and not self.name.strip():
            raise InputError("name is blank; give the run a name, or none")
        if self.until_decided is not None and self.rank_adaptive is not None:
            raise InputError(
                "until_decided and rank_adaptive are two ways to end a run; give one of them"
            )

        self._check_executor()
        self._check_batch()

    def _check_executor(self) -> None:
        if self.executor not in ("local", "ray"):
            raise InputError(f"executor is {self.executor!r}; it takes local or ray")
        if self.executor == "local":
            for name in ("ray_address", "ray_workers"):
                if getattr(self, name) is not None:
                    raise InputError(f"{name} belongs to executor ray; give both, or neither")
        elif self.pursued:
            option = "--until-decided" if self.until_decided else "--rank-adaptive"
            raise InputError(
                f"{option} chooses by every few verdicts what to ask next, which workers far from "
                "each other cannot; leave out --executor ray"
            )

    def _check_batch(self) -> None:
        if not self.batch:
            for name in ("batch_poll_s", "cancel_batches"):
                if getattr(self, name):
                    raise InputError(f"{name} belongs to batch; give both, or neither")
            return
        if self.executor != "local":
            raise InputError("batch and executor ray are two ways to carry a run out; give one")
        for name in ("concurrency", "rpm", "tpm"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"{name} paces calls that are made one by one, and a provider paces its "
                    "batches itself; leave it out, or batch"
                )
        if self.pursued:
            option = "--until-decided" if self.until_decided else "--rank-adaptive"
            raise InputError(
                f"{option} chooses by every few verdicts what to ask next, and a batch asks "
                "everything at once; leave out --batch"
            )

    @property
    def pursued(self) -> dict[str, Any]:
        """What a run with an end of its own is known by, beside its data and its judges."""
        wanted = self.until_decided or self.rank_adaptive
        return wanted.as_json() if wanted is not None else {}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
