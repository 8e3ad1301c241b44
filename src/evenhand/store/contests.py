"""Which two models a verdict is about, as one number: what tables are filtered by models with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, and_, or_, select

from evenhand.store.bulk import insert_new
from evenhand.store.intake import in_slices
from evenhand.store.schema import run_contests
from evenhand.store.texts import escape_or_none

Models = tuple[str | None, str | None]
# How many models a pair names: two, one and the same twice, one alone, none.
Named = Literal["two", "same", "one", "none"]
_COLUMN = run_contests.c


def name_key(name: str) -> int:
    """Names may be long."""
    return numbered(name.encode())


def contest_key(models: Models) -> int:
    """Of a pair's two models in their order; the other order is another contest."""
    return numbered(b"".join(b"-" if name is None else _sized(name) for name in models))


def _sized(name: str) -> bytes:
    encoded = name.encode()
    return b"%d:%s" % (len(encoded), encoded)


def numbered(told: bytes) -> int:
    """What is told by a text of any length, in 64 bits."""
    return int.from_bytes(blake2b(told, digest_size=8).digest(), "little", signed=True)


def add_contests(connection: Connection, run_id: int, found: Iterable[Models]) -> None:
    """Those that are new. Whoever adds them has the run's turn, so that nobody else does."""
    by_key = {contest_key(models): models for models in found}
    known: set[int] = set()
    for some in in_slices(list(by_key)):
        there = select(_COLUMN.contest).where(_COLUMN.run_id == run_id, _COLUMN.contest.in_(some))
        known.update(connection.execute(there).scalars())
    rows = [
        (
            *(run_id, key),
            *(None if name is None else name_key(name) for name in models),
            *map(escape_or_none, models),
        )
        for key, models in by_key.items()
        if key not in known
    ]
    insert_new(connection, run_contests, tuple(_COLUMN.keys()), rows)


def contests_of(connection: Connection, run_id: int, *, most: int) -> list[Models]:
    """Who meets whom in a run, as far as its verdicts are marked; in no order that means much."""
    query = (
        select(_COLUMN.model_a, _COLUMN.model_b)
        .where(_COLUMN.run_id == run_id)
        .order_by(_COLUMN.contest)
        .limit(most)
    )
    return [(model_a, model_b) for model_a, model_b in connection.execute(query)]


def between(
    contest: ColumnElement[int],
    run_id: int,
    *,
    model: str | None,
    against: str | None,
    named: Named | None,
) -> Iterator[ColumnElement[bool]]:
    """That a verdict is about these models, wherever they stand."""
    if model is not None and against is not None:
        keys = {contest_key((model, against)), contest_key((against, model))}
        yield contest.in_(sorted(keys))
    else:
        for name in (model, against):
            if name is not None:
                key = name_key(name)
                yield contest.in_(_where(run_id, or_(_COLUMN.key_a == key, _COLUMN.key_b == key)))
    if named is not None:
        yield contest.in_(_where(run_id, _NAMED[named]))


def with_model_as(
    contest: ColumnElement[int], run_id: int, model: str, side: Literal["A", "B"]
) -> ColumnElement[bool]:
    """That the model stands there."""
    column = _COLUMN.key_a if side == "A" else _COLUMN.key_b
    return contest.in_(_where(run_id, column == name_key(model)))


def _where(run_id: int, condition: ColumnElement[bool]) -> Any:
    return select(_COLUMN.contest).where(_COLUMN.run_id == run_id, condition)


_BOTH = and_(_COLUMN.key_a.is_not(None), _COLUMN.key_b.is_not(None))
_NAMED: dict[Named, ColumnElement[bool]] = {
    "two": and_(_BOTH, _COLUMN.key_a != _COLUMN.key_b),
    "same": and_(_BOTH, _COLUMN.key_a == _COLUMN.key_b),
    "one": or_(
        and_(_COLUMN.key_a.is_(None), _COLUMN.key_b.is_not(None)),
        and_(_COLUMN.key_a.is_not(None), _COLUMN.key_b.is_(None)),
    ),
    "none": and_(_COLUMN.key_a.is_(None), _COLUMN.key_b.is_(None)),
}
