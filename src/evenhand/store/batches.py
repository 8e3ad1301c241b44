"""Batches at a provider: their requests and answers, until the pass or artefact is stored.

A batch is recorded before it is sent, so a crash leaves either one that was certainly not sent, or
one whose nonce finds it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import (
    Connection,
    Row,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from evenhand.store.database import Subject
from evenhand.store.rows import insert_new
from evenhand.store.schema import batch_requests, batches

BatchPhase = Literal["intended", "open", "done"]
_REQUEST_COLUMNS = (
    *("batch_id", "place", "run_id", "judge_id", "pair_id"),
    *("shown_order", "sample", "turn", "form"),
)


@dataclass(frozen=True, slots=True)
class NewBatch:
    run_id: int
    judge_id: int
    nonce: str
    first_number: int  # the items that it asks about lie between these
    last_number: int
    reserved_usd: float | None = None  # what it may cost; None where nobody knows


@dataclass(frozen=True, slots=True)
class BatchRecord:
    id: int
    run_id: int
    judge_id: int
    nonce: str
    state: BatchPhase
    requests: int
    first_number: int
    last_number: int
    created_at: float
    sent_at: float | None  # from then on it may be at the provider
    reserved_usd: float | None
    provider_id: str | None


def artefact_number(key: str) -> int:
    """In place of a pair id, for an artefact's requests. Negative, unlike a pair's; `order` is the
    artefact's key."""
    return -1 - int(key.rpartition("-")[2][:15], 16)


def is_artefact(pair_id: int) -> bool:
    return pair_id < 0


class RequestAsked(NamedTuple):
    """One request of a pass or artefact; `turn` counts from 1."""

    pair_id: int
    order: str
    sample: int
    turn: int
    form: str | None = None  # in which of the judge's ways it was written


class OpenRequest(NamedTuple):
    order: str
    sample: int
    turn: int
    form: str | None
    answer: str | None  # None: it has not come yet


class PassAsked(NamedTuple):
    """What the requests of a pass or artefact are filed under."""

    run_id: int
    judge_id: int
    pair_id: int
    order: str
    sample: int


class BatchStore(Subject):
    def intend(self, new: NewBatch, asked: Sequence[RequestAsked]) -> BatchRecord:
        """Record what is about to be sent; requests are numbered from 1."""
        values: dict[str, Any] = {
            "run_id": new.run_id,
            "judge_id": new.judge_id,
            "nonce": new.nonce,
            "state": "intended",
            "requests": len(asked),
            "first_number": new.first_number,
            "last_number": new.last_number,
            "created_at": time.time(),
            "reserved_usd": new.reserved_usd,
        }
        with self._writing() as connection:
            added = connection.execute(insert(batches).values(values).returning(*batches.c))
            record = _record(added.one())
            filed = (record.id, new.run_id, new.judge_id)
            rows = [(filed[0], place, *filed[1:], *each) for place, each in enumerate(asked, 1)]
            insert_new(connection, batch_requests, _REQUEST_COLUMNS, rows)
        return record

    def sending(self, batch_id: int) -> None:
        """From now on it may be at the provider."""
        self._change(batch_id, sent_at=time.time())

    def opened(self, batch_id: int, provider_id: str) -> None:
        self._change(batch_id, state="open", provider_id=provider_id)

    def drop(self, batch_id: int) -> None:
        """It never reached the provider: its requests are wanted again."""
        with self._writing() as connection:
            connection.execute(delete(batch_requests).where(_of(batch_id)))
            connection.execute(delete(batches).where(batches.c.id == batch_id))

    def finish(self, batch_id: int) -> int:
        """All its results are stored. Returns how many requests had no answer; they are dropped,
        and so asked again."""
        lacking = delete(batch_requests).where(_of(batch_id), batch_requests.c.answer.is_(None))
        with self._writing() as connection:
            lapsed = connection.execute(lacking).rowcount
            done = update(batches).where(batches.c.id == batch_id).values(state="done")
            connection.execute(done)
        return lapsed

    def unfinished(self, run_id: int, judge_id: int | None = None) -> list[BatchRecord]:
        """Those that are, or may be, at the provider; oldest first."""
        query = select(batches).where(batches.c.run_id == run_id, batches.c.state != "done")
        if judge_id is not None:
            query = query.where(batches.c.judge_id == judge_id)
        with self._reading() as connection:
            return [_record(row) for row in connection.execute(query.order_by(batches.c.id))]

    def of_run(self, run_id: int) -> list[BatchRecord]:
        query = select(batches).where(batches.c.run_id == run_id).order_by(batches.c.id)
        with self._reading() as connection:
            return [_record(row) for row in connection.execute(query)]

    def provider_ids(self) -> set[str]:
        """Of every run: known batches need not be inspected."""
        known = select(batches.c.provider_id).where(batches.c.provider_id.is_not(None))
        with self._reading() as connection:
            return {row.provider_id for row in connection.execute(known)}

    def open_requests(
        self, run_id: int, judge_id: int, pair_ids: Collection[int]
    ) -> dict[int, list[OpenRequest]]:
        """These pairs' unsettled requests, oldest first."""
        row = batch_requests.c
        query = (
            select(row.pair_id, row.shown_order, row.sample, row.turn, row.form, row.answer)
            .where(row.run_id == run_id, row.judge_id == judge_id)
            .where(row.pair_id.in_(list(pair_ids)))
            .order_by(row.batch_id, row.place)
        )
        requests: defaultdict[int, list[OpenRequest]] = defaultdict(list)
        with self._reading() as connection:
            for pair_id, *request in connection.execute(query):
                requests[pair_id].append(OpenRequest(*request))
        return requests

    def lacking(self, batch_id: int) -> dict[int, int]:
        """The requests without an answer, with their pair or artefact."""
        query = select(batch_requests.c.place, batch_requests.c.pair_id)
        query = query.where(_of(batch_id), batch_requests.c.answer.is_(None))
        with self._reading() as connection:
            return {row.place: row.pair_id for row in connection.execute(query)}

    def receive(self, batch_id: int, answers: Sequence[tuple[int, str]]) -> None:
        if not answers:
            return
        change = update(batch_requests).values(answer=bindparam("came"))
        change = change.where(_of(batch_id), batch_requests.c.place == bindparam("at"))
        with self._writing() as connection:
            connection.execute(change, [{"at": place, "came": text} for place, text in answers])

    def count_answered(self, run_id: int, judge_id: int) -> int:
        """Answers that wait for the rest of their passes."""
        row = batch_requests.c
        query = select(func.count()).where(row.run_id == run_id, row.judge_id == judge_id)
        with self._reading() as connection:
            return connection.execute(query.where(row.answer.is_not(None))).scalar_one()

    def _change(self, batch_id: int, **values: Any) -> None:
        with self._writing() as connection:
            connection.execute(update(batches).where(batches.c.id == batch_id).values(values))


def forget(connection: Connection, settled: Sequence[PassAsked]) -> None:
    """Drop the requests of passes that are now stored."""
    if not settled:
        return
    row = batch_requests.c
    settled_requests = delete(batch_requests).where(
        row.run_id == bindparam("run"),
        row.judge_id == bindparam("judge"),
        row.pair_id == bindparam("pair"),
        row.shown_order == bindparam("order_"),
        row.sample == bindparam("sample_"),
    )
    names = ("run", "judge", "pair", "order_", "sample_")
    connection.execute(settled_requests, [dict(zip(names, each, strict=True)) for each in settled])


def _of(batch_id: int) -> Any:
    return batch_requests.c.batch_id == batch_id


def _record(row: Row[Any]) -> BatchRecord:
    return BatchRecord(**row._mapping)
