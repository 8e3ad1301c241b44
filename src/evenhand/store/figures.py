"""Slow figures, kept as JSON with a stamp of their inputs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy import Connection, and_, delete, func, or_, select, update

from evenhand.store.database import Subject
from evenhand.store.rows import insert_where_new
from evenhand.store.schema import figures, replaced_votes, votes

# Per run: clients choose parameters, and may choose very many.
MOST_OF_A_RUN = 200
# A computation longer than this is taken for dead.
COMPUTED_WITHIN_S = 60.0
_FIGURE = figures.c


@dataclass(frozen=True, slots=True)
class FigureKey:
    run_id: int
    name: str
    parameters: str

    @classmethod
    def of(cls, run_id: int, name: str, parameters: dict[str, Any]) -> FigureKey:
        """`parameters` are plain JSON, in any order."""
        canonical = orjson.dumps(parameters, option=orjson.OPT_SORT_KEYS)
        return cls(run_id, name, blake2b(canonical, digest_size=16).hexdigest())


@dataclass(frozen=True, slots=True)
class StoredFigure:
    """`body` is JSON; None until first computed."""

    stamp: str | None
    computed_at: float | None
    took_s: float | None
    computing: bool  # somebody does now
    failed: bool  # the body is why there is no figure
    body: bytes | None


class FigureStore(Subject):
    def find(self, key: FigureKey) -> StoredFigure | None:
        with self._reading() as connection:
            row = connection.execute(select(figures).where(_is(key))).mappings().first()
        if row is None:
            return None
        begun_at = row["begun_at"]
        return StoredFigure(
            stamp=row["stamp"],
            computed_at=row["computed_at"],
            took_s=row["took_s"],
            computing=begun_at is not None and time.time() - begun_at < COMPUTED_WITHIN_S,
            failed=row["failed"],
            body=None if row["body"] is None else row["body"].encode(),
        )

    def begin(self, key: FigureKey) -> int | None:
        """The number to keep the figure under; None if another process computes it now."""
        now = time.time()
        new = {
            "run_id": key.run_id,
            "name": key.name,
            "parameters": key.parameters,
            "begun_at": now,
            "asked_at": now,
            "failed": False,
        }
        with self._writing() as connection:
            if insert_where_new(connection, figures, new):
                _drop_oldest(connection, key.run_id)
            else:
                is_free = or_(
                    _FIGURE.begun_at.is_(None), _FIGURE.begun_at <= now - COMPUTED_WITHIN_S
                )
                change = update(figures).where(_is(key), is_free)
                if not connection.execute(change.values(begun_at=now, asked_at=now)).rowcount:
                    return None
            number: int = connection.execute(select(_FIGURE.id).where(_is(key))).scalar_one()
            return number

    def keep(
        self, number: int, body: bytes, *, stamp: str, took_s: float, failed: bool = False
    ) -> bool:
        """False if it was deleted meanwhile, with a run or its texts, which it may quote."""
        values = {
            "stamp": stamp,
            "computed_at": time.time(),
            "took_s": took_s,
            "begun_at": None,
            "failed": failed,
            "body": body.decode(),
        }
        with self._writing() as connection:
            kept = update(figures).where(_FIGURE.id == number).values(values)
            return bool(connection.execute(kept).rowcount)

    def let_go(self, number: int) -> None:
        """It was not computed after all."""
        with self._writing() as connection:
            connection.execute(update(figures).where(_FIGURE.id == number).values(begun_at=None))

    def votes_stamp(self) -> str:
        """Changes with every vote in the store."""
        with self._reading() as connection:
            newest = connection.execute(select(func.count(), func.max(votes.c.voted_at))).one()
            replaced = connection.execute(select(func.max(replaced_votes.c.id))).scalar()
        return f"{newest[0]} {newest[1]} {replaced}"


def _is(key: FigureKey) -> Any:
    return and_(
        _FIGURE.run_id == key.run_id,
        _FIGURE.name == key.name,
        _FIGURE.parameters == key.parameters,
    )


def _drop_oldest(connection: Connection, run_id: int) -> None:
    newest = (
        select(_FIGURE.asked_at)
        .where(_FIGURE.run_id == run_id)
        .order_by(_FIGURE.asked_at.desc())
        .offset(MOST_OF_A_RUN)
        .limit(1)
    )
    bound = connection.execute(newest).scalar()
    if bound is not None:
        of_run = _FIGURE.run_id == run_id
        connection.execute(delete(figures).where(of_run, _FIGURE.asked_at <= bound))


# Kept with the first of their runs, but they may quote the others.
_OF_SEVERAL_RUNS = ("diff", "audit", "ranking", "probes")


def drop_joint_figures(connection: Connection) -> None:
    """Before a run's texts are deleted; such figures are recomputed on demand."""
    connection.execute(delete(figures).where(_FIGURE.name.in_(_OF_SEVERAL_RUNS)))
