"""Runs and judges: making, finding, changing them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import orjson
from sqlalchemy import Connection, RowMapping, delete, insert, select, update
from sqlalchemy.exc import DBAPIError

from evenhand.errors import InputError, StoreError
from evenhand.store.bulk import insert_new
from evenhand.store.faults import of_row
from evenhand.store.records import JudgeRecord, NewJudge, NewRun, RunRecord, RunState
from evenhand.store.rows import moment
from evenhand.store.schema import judges, run_judges, runs
from evenhand.store.texts import escape, escape_or_none, shorten, unprintable

_LONGEST_NAME = 200
_RUN_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("name", "fingerprint"), (str,)),
    "stopped_by": (str, type(None)),
    **dict.fromkeys(("seconds", "created_at", "updated_at"), (float, int)),
    **dict.fromkeys(("calls", "reused_passes"), (int,)),
}
_JUDGE_COLUMNS = (*("key", "name", "prompt_version", "locale", "mode", "settings", "created_at"),)


def create_run(connection: Connection, run: NewRun) -> RunRecord:
    _refuse_name(connection, run.name)
    now = time.time()
    values = {
        "name": run.name,
        "fingerprint": shorten(run.fingerprint),
        "state": "reading",
        "intake_done": False,
        "stopped_by": None,
        "seconds": 0.0,
        "calls": 0,
        "reused_passes": 0,
        "created_at": now,
        "updated_at": now,
        "sources": to_json(list(run.sources)),
        "plan": to_json(run.plan),
        "summary": "{}",
    }
    connection.execute(insert(runs).values(values))
    found = find_run(connection, run.name)
    assert found is not None  # noqa: S101 - just inserted
    return found


def find_run(connection: Connection, name: str) -> RunRecord | None:
    row = connection.execute(select(runs).where(runs.c.name == name)).mappings().first()
    return _run(row) if row else None


def run_at(connection: Connection, run_id: int) -> RunRecord | None:
    row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().first()
    return _run(row) if row else None


def run_page(connection: Connection, *, before: int | None, limit: int) -> list[RunRecord]:
    query = select(runs).order_by(runs.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(runs.c.id < before)
    return _sound(connection.execute(query).mappings())


def _sound(rows: Iterable[RowMapping]) -> list[RunRecord]:
    read = map(_run_or_error, rows)
    return [run for run in read if isinstance(run, RunRecord)]


def _run_or_error(row: RowMapping) -> RunRecord | StoreError:
    try:
        return _run(row)
    except StoreError as error:
        return error


def run_of_fingerprint(connection: Connection, fingerprint: str) -> RunRecord | None:
    query = select(runs).where(runs.c.fingerprint == shorten(fingerprint))
    row = connection.execute(query.order_by(runs.c.id.desc()).limit(1)).mappings().first()
    return _run(row) if row else None


def list_runs(connection: Connection) -> list[RunRecord]:
    """Those that can be read; what is wrong with the others is in `damaged_runs`."""
    return [run for run in _each_run(connection) if isinstance(run, RunRecord)]


def damaged_runs(connection: Connection) -> list[StoreError]:
    return [run for run in _each_run(connection) if isinstance(run, StoreError)]


def _each_run(connection: Connection) -> Iterator[RunRecord | StoreError]:
    try:
        rows = list(connection.execute(select(runs).order_by(runs.c.id)).mappings())
    except DBAPIError:  # a text that cannot be read hides all rows
        ids = connection.execute(select(runs.c.id).order_by(runs.c.id)).scalars()
        for run_id in list(ids):
            try:
                found = run_at(connection, run_id)
            except StoreError as error:
                yield error
            except DBAPIError:
                yield StoreError(
                    f"the store's run (id {run_id}) is damaged: it holds a text that is not UTF-8; "
                    "restore the store from a backup, or delete the run"
                )
            else:
                if found is not None:
                    yield found
        return
    yield from map(_run_or_error, rows)


def update_run(connection: Connection, run_id: int, changes: Mapping[str, Any]) -> None:
    values = {**changes, "updated_at": time.time()}
    done = connection.execute(update(runs).where(runs.c.id == run_id).values(values))
    if not done.rowcount:
        raise InputError(f"run {run_id} is not in the store any more; start it again")


def rename_run(connection: Connection, name: str, new: str) -> None:
    run = needed_run(connection, name)
    if new != name:
        _refuse_name(connection, new)
        update_run(connection, run.id, {"name": new})


def needed_run(connection: Connection, name: str) -> RunRecord:
    run = find_run(connection, name)
    if run is None:
        raise InputError(f"there is no run named {name!r} in the store; list them: evenhand runs")
    return run


def refuse_forgotten(connection: Connection, run_id: int) -> None:
    """A run without its texts can be judged by nobody."""
    run = run_at(connection, run_id)
    if run is not None and run.summary.get("forgotten_at"):
        raise InputError(
            f"the texts of run {run.name!r} were forgotten, so that it cannot be judged any more; "
            "run its data again under another --name"
        )


def _refuse_name(connection: Connection, name: str) -> None:
    if not name.strip():
        raise InputError("the run's name is blank; give it a name")
    if len(name) > _LONGEST_NAME:
        raise InputError(
            f"the run's name has {len(name)} characters; it may have {_LONGEST_NAME} at most"
        )
    if character := unprintable(name):
        raise InputError(
            f"the run's name holds {character}, a character that is not seen; leave it out"
        )
    if find_run(connection, name):
        raise InputError(f"there is a run named {name!r} already; give another name, or delete it")


@of_row("run", "id", "name")
def _run(row: RowMapping) -> RunRecord:
    for name, kinds in _RUN_TYPES.items():
        if not isinstance(row[name], kinds):
            raise TypeError(f"its {name} is {row[name]!r:.80}")
    if row["state"] not in get_args(RunState):
        raise ValueError(f"its state is {row['state']!r:.80}")
    for name, kind in (("plan", dict), ("sources", list), ("summary", dict)):
        if not isinstance(orjson.loads(row[name]), kind):
            raise TypeError(f"its {name} is {row[name]!r:.80}")
    return RunRecord(
        id=row["id"],
        name=row["name"],
        fingerprint=row["fingerprint"],
        plan=orjson.loads(row["plan"]),
        sources=tuple(orjson.loads(row["sources"])),
        state=row["state"],
        intake_done=row["intake_done"],
        stopped_by=row["stopped_by"],
        seconds=row["seconds"],
        calls=row["calls"],
        reused_passes=row["reused_passes"],
        summary=orjson.loads(row["summary"]),
        created_at=moment(row["created_at"]),
        updated_at=moment(row["updated_at"]),
    )


def add_judge(connection: Connection, judge: NewJudge) -> int:
    key = shorten(judge.key)
    values = (
        *(escape(key), escape(judge.name), escape_or_none(judge.prompt_version)),
        *(judge.locale, judge.mode, to_json(judge.settings), time.time()),
    )
    insert_new(connection, judges, _JUDGE_COLUMNS, [values])
    return int(connection.execute(select(judges.c.id).where(judges.c.key == key)).scalar_one())


def set_run_judges(connection: Connection, run_id: int, judge_ids: Sequence[int]) -> None:
    connection.execute(delete(run_judges).where(run_judges.c.run_id == run_id))
    wanted = enumerate(dict.fromkeys(judge_ids))
    rows = [{"run_id": run_id, "judge_id": each, "place": place} for place, each in wanted]
    if rows:
        connection.execute(insert(run_judges), rows)


def judges_of_run(connection: Connection, run_id: int) -> list[JudgeRecord]:
    query = (
        select(judges)
        .join(run_judges, run_judges.c.judge_id == judges.c.id)
        .where(run_judges.c.run_id == run_id)
        .order_by(run_judges.c.place)
    )
    return [_judge(row) for row in connection.execute(query).mappings()]


@of_row("judge", "id", "name")
def _judge(row: RowMapping) -> JudgeRecord:
    return JudgeRecord(
        id=row["id"],
        key=row["key"],
        name=row["name"],
        prompt_version=row["prompt_version"],
        locale=row["locale"],
        mode=row["mode"],
        settings=orjson.loads(row["settings"]),
        created_at=moment(row["created_at"]),
    )


def to_json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise InputError(
            f"a plan or a setting cannot be stored ({error}); use plain JSON"
        ) from None
