"""The report cache: figures that take long to compute, kept as JSON with a stamp of the run's
state. A lease tells other processes that one is computing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy import Connection, and_, delete, func, or_, select, update

from evenhand.store.rows import insert_where_new
from evenhand.store.schema import replaced_votes, report_cache, votes

LEASED_S = 60.0
# Of one run: parameters come from clients, who may think of very many.
MOST_OF_A_RUN = 200
_Opened = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class ReportKey:
    run_id: int
    what: str
    parameters: str

    @classmethod
    def of(cls, run_id: int, what: str, parameters: dict[str, Any]) -> ReportKey:
        """`parameters` are plain JSON; in whatever order, they name the same figure."""
        canonical = orjson.dumps(parameters, option=orjson.OPT_SORT_KEYS)
        return cls(run_id, what, blake2b(canonical, digest_size=16).hexdigest())


@dataclass(frozen=True, slots=True)
class CachedReport:
    """`body` is JSON, and None until it was worked out for the first time."""

    stamp: str | None
    computed_at: float | None
    took_s: float | None
    leased: bool  # somebody works it out now
    failed: bool
    body: bytes | None


class ReportCacheStore:
    """The kept figures of one store; every call is a transaction of its own."""

    def __init__(self, reading: _Opened, writing: _Opened) -> None:
        self._reading = reading
        self._writing = writing

    def find(self, key: ReportKey) -> CachedReport | None:
        with self._reading() as connection:
            row = connection.execute(select(report_cache).where(_is(key))).mappings().first()
        if row is None:
            return None
        return CachedReport(
            stamp=row["stamp"],
            computed_at=row["computed_at"],
            took_s=row["took_s"],
            leased=row["owner"] is not None and row["leased_until"] > time.time(),
            failed=row["failed"],
            body=None if row["body"] is None else row["body"].encode(),
        )

    def take(self, key: ReportKey, owner: str, *, leased_s: float = LEASED_S) -> bool:
        """Whether the caller is to work it out; not where somebody else does."""
        now = time.time()
        new = {
            "run_id": key.run_id,
            "what": key.what,
            "parameters": key.parameters,
            "owner": owner,
            "leased_until": now + leased_s,
            "asked_at": now,
            "failed": False,
        }
        column = report_cache.c
        with self._writing() as connection:
            if insert_where_new(connection, report_cache, new):
                _drop_oldest(connection, key.run_id)
                return True
            is_free = or_(column.owner.is_(None), column.leased_until <= now)
            change = update(report_cache).where(_is(key), is_free)
            lease = {"owner": owner, "leased_until": now + leased_s, "asked_at": now}
            return bool(connection.execute(change.values(lease)).rowcount)

    def renew(self, key: ReportKey, owner: str, *, leased_s: float = LEASED_S) -> bool:
        """False where another has taken it over."""
        change = update(report_cache).where(_is(key), report_cache.c.owner == owner)
        with self._writing() as connection:
            changed = connection.execute(change.values(leased_until=time.time() + leased_s))
        return bool(changed.rowcount)

    def put(
        self,
        key: ReportKey,
        owner: str,
        body: bytes,
        *,
        stamp: str,
        took_s: float,
        failed: bool = False,
    ) -> bool:
        """Keep it; False where another has taken it over, or the run is gone."""
        values = {
            "stamp": stamp,
            "computed_at": time.time(),
            "took_s": took_s,
            "owner": None,
            "failed": failed,
            "body": body.decode(),
        }
        change = update(report_cache).where(_is(key), report_cache.c.owner == owner)
        with self._writing() as connection:
            return bool(connection.execute(change.values(values)).rowcount)

    def let_go(self, key: ReportKey, owner: str) -> None:
        """It was not worked out after all."""
        change = update(report_cache).where(_is(key), report_cache.c.owner == owner)
        with self._writing() as connection:
            connection.execute(change.values(owner=None))

    def votes_stamp(self) -> str:
        """Changes with every vote in the store; they are few beside verdicts."""
        with self._reading() as connection:
            newest = connection.execute(select(func.count(), func.max(votes.c.voted_at))).one()
            replaced = connection.execute(select(func.max(replaced_votes.c.id))).scalar()
        return f"{newest[0]} {newest[1]} {replaced}"


def _is(key: ReportKey) -> Any:
    column = report_cache.c
    return and_(
        column.run_id == key.run_id,
        column.what == key.what,
        column.parameters == key.parameters,
    )


def _drop_oldest(connection: Connection, run_id: int) -> None:
    column = report_cache.c
    newest = (
        select(column.asked_at)
        .where(column.run_id == run_id)
        .order_by(column.asked_at.desc())
        .offset(MOST_OF_A_RUN)
        .limit(1)
    )
    bound = connection.execute(newest).scalar()
    if bound is not None:
        connection.execute(
            delete(report_cache).where(column.run_id == run_id, column.asked_at <= bound)
        )


# They are kept with the first of their runs, and may quote the others.
_OF_SEVERAL_RUNS = ("diff", "audit", "ranking", "probes")


def drop_joint_figures(connection: Connection) -> None:
    """Before a run's texts go: whoever wants such a figure has it computed again."""
    connection.execute(delete(report_cache).where(report_cache.c.what.in_(_OF_SEVERAL_RUNS)))
