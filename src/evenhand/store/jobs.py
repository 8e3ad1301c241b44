"""Runs that a server judges in the background: what is wanted of them, and their progress."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import orjson
from sqlalchemy import Connection, RowMapping, Update, delete, func, select, update

from evenhand.errors import Conflict
from evenhand.store.database import Subject
from evenhand.store.faults import of_row
from evenhand.store.rows import insert_where_new, moment, to_json
from evenhand.store.schema import job_prompts, jobs

# intake: rows are arriving; run: to be judged; stop: stopped by a person or an error; done: every
# pair has its verdict, or no more are needed.
Wanted = Literal["intake", "run", "stop", "done"]


@dataclass(frozen=True, slots=True)
class NewJob:
    judges: tuple[str, ...]  # as the server's clients call them
    options: Mapping[str, Any]  # plain JSON, the server's own
    token: str | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    run_id: int
    wanted: Wanted
    judges: tuple[str, ...]
    options: Mapping[str, Any]
    token: str | None
    progress: Mapping[str, Any]
    error: Mapping[str, Any] | None
    queued_at: datetime
    beat_at: datetime | None  # when whoever judges it was last heard of
    created_at: datetime
    updated_at: datetime = field(compare=False)

    def is_judged(self, *, within_s: float) -> bool:
        """Whether some process was judging it just now."""
        return self.beat_at is not None and time.time() - self.beat_at.timestamp() <= within_s


@dataclass(frozen=True, slots=True)
class JobPrompts:
    """The prompts of an A/B test: a file, and each side's settings as plain JSON. Separate from the
    job, which is read far more often."""

    name: str
    body: bytes
    sides: Mapping[str, Any]


class JobStore(Subject):
    def add(self, run_id: int, job: NewJob, *, wanted: Wanted = "intake") -> bool:
        """False if the run has one already."""
        with self._writing() as connection:
            return add_job(connection, run_id, job, wanted=wanted)

    def find(self, run_id: int) -> JobRecord | None:
        with self._reading() as connection:
            row = connection.execute(select(jobs).where(jobs.c.run_id == run_id)).mappings().first()
        return _job(row) if row else None

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, JobRecord]:
        query = select(jobs).where(jobs.c.run_id.in_(list(run_ids)))
        with self._reading() as connection:
            return {row["run_id"]: _job(row) for row in connection.execute(query).mappings()}

    def keep_prompts(self, run_id: int, prompts: JobPrompts) -> None:
        """Until they are answered; existing ones stay."""
        values = {"run_id": run_id, "name": prompts.name, "sides": to_json(prompts.sides)}
        with self._writing() as connection:
            insert_where_new(connection, job_prompts, values | {"body": prompts.body})

    def prompts(self, run_id: int) -> JobPrompts | None:
        query = select(job_prompts).where(job_prompts.c.run_id == run_id)
        with self._reading() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        return JobPrompts(row["name"], bytes(row["body"]), orjson.loads(row["sides"]))

    def drop_prompts(self, run_id: int) -> None:
        """Once their pairs are in the store."""
        with self._writing() as connection:
            connection.execute(delete(job_prompts).where(job_prompts.c.run_id == run_id))

    def wanted(self, wanted: Wanted, *, limit: int = 1000) -> list[JobRecord]:
        """The longest waiting first."""
        query = select(jobs).where(jobs.c.wanted == wanted)
        query = query.order_by(jobs.c.queued_at, jobs.c.run_id).limit(limit)
        with self._reading() as connection:
            return [_job(row) for row in connection.execute(query).mappings()]

    def count_open(self) -> int:
        """Those waiting or being judged, and those in intake."""
        query = select(func.count()).where(jobs.c.wanted.in_(("intake", "run")))
        with self._reading() as connection:
            return connection.execute(query).scalar_one()

    def want(
        self,
        run_id: int,
        wanted: Wanted,
        *,
        only_from: Sequence[Wanted] | None = None,
        error: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        progress: Mapping[str, Any] | None = None,
        let_go: bool = False,
    ) -> bool:
        """Set the wanted state; False if it was not one of `only_from`.

        Options and progress stay unless given; an error does not.
        """
        values: dict[str, Any] = {"wanted": wanted, "error": error}
        if wanted == "run":
            values["queued_at"] = time.time()
        if let_go:
            values["beat_at"] = None
        change = _update(run_id, values, options=options, progress=progress)
        if only_from is not None:
            change = change.where(jobs.c.wanted.in_(list(only_from)))
        with self._writing() as connection:
            return bool(connection.execute(change).rowcount)

    def beat(self, run_id: int, progress: Mapping[str, Any] | None = None) -> Wanted:
        """Report that it is being judged, and its progress; returns the wanted state."""
        wanted_state = select(jobs.c.wanted).where(jobs.c.run_id == run_id)
        with self._writing() as connection:
            connection.execute(_update(run_id, {"beat_at": time.time()}, progress=progress))
            wanted: Wanted | None = connection.execute(wanted_state).scalar()
        if wanted is None:
            raise Conflict.of("store.run_gone", run_id=run_id)
        return wanted

    def let_go(
        self,
        run_id: int,
        *,
        progress: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
    ) -> None:
        """No process judges it any more; its wanted state stays."""
        change = _update(run_id, {"beat_at": None, "error": error}, progress=progress)
        with self._writing() as connection:
            connection.execute(change)


def _update(run_id: int, values: Mapping[str, Any], **given: Mapping[str, Any] | None) -> Update:
    """Values not given stay."""
    changed = {**values, **{name: each for name, each in given.items() if each is not None}}
    for name, value in changed.items():
        if isinstance(value, Mapping):
            changed[name] = to_json(value)
    changed["updated_at"] = time.time()
    return update(jobs).where(jobs.c.run_id == run_id).values(changed)


def add_job(connection: Connection, run_id: int, job: NewJob, *, wanted: Wanted) -> bool:
    now = time.time()
    values = {
        "run_id": run_id,
        "wanted": wanted,
        "queued_at": now,
        "created_at": now,
        "updated_at": now,
        "token": job.token,
        "judges": to_json(list(job.judges)),
        "options": to_json(job.options),
        "progress": "{}",
    }
    return insert_where_new(connection, jobs, values)


@of_row("job", "run_id")
def _job(row: RowMapping) -> JobRecord:
    values: dict[str, Any] = {**row}
    for name in ("judges", "options", "progress", "error"):
        values[name] = None if row[name] is None else orjson.loads(row[name])
    for name in ("queued_at", "beat_at", "created_at", "updated_at"):
        values[name] = None if row[name] is None else moment(row[name])
    return JobRecord(**values | {"judges": tuple(values["judges"])})
