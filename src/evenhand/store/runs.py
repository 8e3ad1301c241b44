"""Runs and their judges: create, find, change and list them; a run's prompts and models."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    delete,
    func,
    insert,
    select,
    true,
    update,
)
from sqlalchemy.exc import DBAPIError

from evenhand.errors import InputError, StoreError
from evenhand.store import postgres
from evenhand.store.database import Subject
from evenhand.store.faults import of_row
from evenhand.store.jobs import NewJob, add_job
from evenhand.store.records import (
    ENVIRONMENTS,
    JudgeRecord,
    NewJudge,
    NewRun,
    RunRecord,
    RunState,
)
from evenhand.store.rows import insert_new, moment, to_json
from evenhand.store.schema import (
    AT_REST,
    escape,
    escape_or_none,
    items,
    judges,
    passes,
    run_judges,
    runs,
    shorten,
    unprintable,
)

_LONGEST_NAME = 200
_RUN_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("name", "fingerprint"), (str,)),
    "stopped_by": (str, type(None)),
    **dict.fromkeys(("seconds", "created_at", "updated_at"), (float, int)),
    **dict.fromkeys(("calls", "reused_passes"), (int,)),
}
_JUDGE_COLUMNS = (
    *("key", "name", "prompt_version", "locale", "mode", "settings", "created_at", "template"),
)


class RunStore(Subject):
    def create(self, run: NewRun) -> RunRecord:
        with self._writing() as connection:
            return create_run(connection, run)

    def begin(self, run: NewRun, job: NewJob | None = None) -> tuple[RunRecord, bool]:
        """The run, and whether it is new: another process may have just made it. A server's run and
        job are created together."""
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":
                postgres.take_turn(connection)
            if job is None:
                existing = find_run(connection, run.name)
            else:  # the name is the server's choice
                existing = run_of_fingerprint(connection, run.fingerprint)
            same = existing is not None and existing.fingerprint == shorten(run.fingerprint)
            if existing is not None and same and not existing.texts_forgotten:
                return existing, False
            created = create_run(connection, run)
            if job is not None:
                add_job(connection, created.id, job, wanted="intake")
            return created, True

    def at(self, run_id: int) -> RunRecord | None:
        with self._reading() as connection:
            return run_at(connection, run_id)

    def page(self, *, before: int | None = None, limit: int = 100) -> list[RunRecord]:
        """Newest first, from below this id; without unreadable ones."""
        with self._reading() as connection:
            newest = select(runs.c.id).order_by(runs.c.id.desc())
            while True:
                page = newest if before is None else newest.where(runs.c.id < before)
                ids = list(connection.execute(page.limit(limit)).scalars())
                sound = [run for run in _each_run(connection, ids) if isinstance(run, RunRecord)]
                if sound or not ids:
                    return sound[::-1]
                before = ids[-1]  # none of them can be read

    def find(self, name: str) -> RunRecord | None:
        with self._reading() as connection:
            return find_run(connection, name)

    def of_fingerprint(self, fingerprint: str) -> RunRecord | None:
        """The newest one."""
        with self._reading() as connection:
            return run_of_fingerprint(connection, fingerprint)

    def all(self) -> list[RunRecord]:
        """Oldest first; without unreadable ones."""
        with self._reading() as connection:
            return [run for run in _each_run(connection) if isinstance(run, RunRecord)]

    def damaged(self) -> list[StoreError]:
        """What is wrong with each unreadable run."""
        with self._reading() as connection:
            return [run for run in _each_run(connection) if isinstance(run, StoreError)]

    def update(
        self,
        run_id: int,
        *,
        state: RunState | None = None,
        intake_done: bool | None = None,
        stopped_by: str | Literal[False] | None = False,
        seconds: float | None = None,
        calls: int | None = None,
        reused_passes: int | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> None:
        """Set what is given; the rest stays. `stopped_by` stays if False."""
        given: dict[str, Any] = {
            "state": state,
            "intake_done": intake_done,
            "seconds": seconds,
            "calls": calls,
            "reused_passes": reused_passes,
            "summary": None if summary is None else to_json(summary),
        }
        changes = {name: value for name, value in given.items() if value is not None}
        if stopped_by is not False:
            changes["stopped_by"] = stopped_by
        with self._writing() as connection:
            update_run(connection, run_id, changes)

    def rename(self, name: str, new: str) -> None:
        with self._writing() as connection:
            run = needed_run(connection, name)
            if new != name:
                _refuse_name(connection, new)
                update_run(connection, run.id, {"name": new})

    def add_judge(self, judge: NewJudge) -> int:
        """The id of the judge with this key, added if new."""
        with self._writing() as connection:
            key = shorten(judge.key)
            values = (
                *(escape(key), escape(judge.name), escape_or_none(judge.prompt_version)),
                *(judge.locale, judge.mode, to_json(judge.settings), time.time()),
                escape_or_none(judge.template),
            )
            insert_new(connection, judges, _JUDGE_COLUMNS, [values])
            if judge.template is not None:  # an earlier evenhand did not keep it
                bare = and_(judges.c.key == key, judges.c.template.is_(None))
                connection.execute(update(judges).where(bare).values(template=judge.template))
            return int(
                connection.execute(select(judges.c.id).where(judges.c.key == key)).scalar_one()
            )

    def set_judges(self, run_id: int, judge_ids: Sequence[int]) -> None:
        with self._writing() as connection:
            connection.execute(delete(run_judges).where(run_judges.c.run_id == run_id))
            wanted = enumerate(dict.fromkeys(judge_ids))
            rows = [{"run_id": run_id, "judge_id": each, "place": place} for place, each in wanted]
            if rows:
                connection.execute(insert(run_judges), rows)

    def judges_stamp(self, run_id: int | None = None) -> str:
        """Changes when a run of one of this run's judges ends, since its labels apply here too.
        Without a run, when any does."""
        query = select(func.count(), func.max(runs.c.updated_at)).where(runs.c.state.in_(AT_REST))
        if run_id is not None:
            own = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
            theirs = select(run_judges.c.run_id).where(run_judges.c.judge_id.in_(own))
            query = query.where(runs.c.id.in_(theirs))
        with self._reading() as connection:
            count, newest = connection.execute(query).one()
        return f"{count} {newest}"

    def judges(self, run_id: int) -> list[JudgeRecord]:
        with self._reading() as connection:
            return judges_of_run(connection, run_id)

    def survey(self, run_id: int) -> Survey:
        """How many prompts a run has, and which models meet in it."""
        with self._reading() as connection:
            column = items.c
            prompts = select(func.count(column.prompt_key.distinct())).where(
                column.run_id == run_id
            )
            models = (
                select(
                    column.model_a,
                    column.model_b,
                    func.count(),
                    func.min(column.number).label("first"),
                )
                .where(column.run_id == run_id)
                .group_by(column.model_a, column.model_b)
                .order_by("first")
            )
            return Survey(
                prompts=connection.execute(prompts).scalar_one(),
                models=tuple((a, b, count) for a, b, count, _ in connection.execute(models)),
            )

    def first_models(self, run_id: int) -> tuple[str, str] | None:
        """The two models of a run's first pair, if named."""
        first = select(items.c.model_a, items.c.model_b).where(items.c.run_id == run_id)
        with self._reading() as connection:
            found = connection.execute(first.order_by(items.c.number).limit(1)).first()
        return None if found is None or None in tuple(found) else (found[0], found[1])

    def served_models(self, run_id: int) -> dict[str, list[str]]:
        """By judge key: the model names in its answers."""
        its_pairs = select(items.c.pair_id).where(items.c.run_id == run_id)
        judge_ids = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
        query = (
            select(judges.c.key, passes.c.model)
            .join(judges, judges.c.id == passes.c.judge_id)
            .where(
                passes.c.pair_id.in_(its_pairs),
                passes.c.judge_id.in_(judge_ids),
                passes.c.model.is_not(None),
            )
            .distinct()
            .order_by(judges.c.key, passes.c.model)
        )
        served: dict[str, list[str]] = {}
        with self._reading() as connection:
            for key, model in connection.execute(query):
                served.setdefault(key, []).append(model)
        return served

    def note_environment(self, run_id: int, environment: Mapping[str, Any]) -> None:
        """Record the versions that a command judges with, once."""
        with self._writing() as connection:
            run = run_at(connection, run_id)
            noted = [] if run is None else [*run.summary.get(ENVIRONMENTS, ())]
            if run is not None and environment not in noted:
                summary = {**run.summary, ENVIRONMENTS: [*noted, dict(environment)]}
                update_run(connection, run_id, {"summary": to_json(summary)})

    def grown_from(self, run_id: int, judge_id: int) -> tuple[str, ...]:
        """The names of this judge's finished runs over fewer pairs, mostly this run's: each was a
        look at data that grew into these."""
        its_pairs = select(items.c.pair_id).where(items.c.run_id == run_id)
        pairs = func.count(items.c.pair_id.distinct())
        sharing = (
            select(runs.c.id, runs.c.name, pairs)
            .join_from(items, runs, runs.c.id == items.c.run_id)
            .join(run_judges, run_judges.c.run_id == runs.c.id)
            .where(items.c.pair_id.in_(its_pairs), run_judges.c.judge_id == judge_id)
            .where(runs.c.id < run_id, runs.c.state == "finished")
            .group_by(runs.c.id, runs.c.name)
            .order_by(runs.c.id)
        )
        with self._reading() as connection:
            earlier = connection.execute(sharing).all()
            of_runs = items.c.run_id.in_([run_id, *(row[0] for row in earlier)])
            counted = select(items.c.run_id, pairs).where(of_runs).group_by(items.c.run_id)
            sizes: dict[int, int] = {}
            if earlier:
                sizes = {row[0]: row[1] for row in connection.execute(counted)}
        return tuple(
            name
            for other, name, shared in earlier
            if sizes[other] < sizes[run_id] and 2 * shared > sizes[other]
        )


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
    return needed_run(connection, run.name)


def find_run(connection: Connection, name: str) -> RunRecord | None:
    return _newest(connection, runs.c.name == name)


def run_at(connection: Connection, run_id: int) -> RunRecord | None:
    return _newest(connection, runs.c.id == run_id)


def _run_or_error(row: RowMapping) -> RunRecord | StoreError:
    try:
        return _run(row)
    except StoreError as error:
        return error


def run_of_fingerprint(connection: Connection, fingerprint: str) -> RunRecord | None:
    return _newest(connection, runs.c.fingerprint == shorten(fingerprint))


def _newest(connection: Connection, meant: ColumnElement[bool]) -> RunRecord | None:
    query = select(runs).where(meant).order_by(runs.c.id.desc()).limit(1)
    row = connection.execute(query).mappings().first()
    return _run(row) if row else None


def _each_run(
    connection: Connection, ids: Sequence[int] | None = None
) -> Iterator[RunRecord | StoreError]:
    """Oldest first: of these ids, or all."""
    meant = true() if ids is None else runs.c.id.in_(ids)
    try:
        rows = list(connection.execute(select(runs).where(meant).order_by(runs.c.id)).mappings())
    except DBAPIError:  # a text that cannot be read hides all rows
        each = connection.execute(select(runs.c.id).where(meant).order_by(runs.c.id)).scalars()
        for run_id in list(each):
            try:
                run = run_at(connection, run_id)
            except StoreError as error:
                yield error
            except DBAPIError:
                yield StoreError.of("store.run_not_utf8", run_id=run_id)
            else:
                if run is not None:
                    yield run
        return
    yield from map(_run_or_error, rows)


def update_run(connection: Connection, run_id: int, changes: Mapping[str, Any]) -> None:
    values = {**changes, "updated_at": time.time()}
    done = connection.execute(update(runs).where(runs.c.id == run_id).values(values))
    if not done.rowcount:
        raise InputError.of("store.run_gone", run_id=run_id)


def needed_run(connection: Connection, name: str) -> RunRecord:
    run = find_run(connection, name)
    if run is None:
        raise InputError.of("store.run_unknown", name=name)
    return run


def refuse_forgotten(connection: Connection, run_id: int) -> None:
    """A run without texts cannot be judged."""
    run = run_at(connection, run_id)
    if run is not None and run.texts_forgotten:
        raise InputError.of("store.texts_forgotten", name=run.name)


def _refuse_name(connection: Connection, name: str) -> None:
    if not name.strip():
        raise InputError.of("store.run_name_blank")
    if len(name) > _LONGEST_NAME:
        raise InputError.of("store.run_name_too_long", n=len(name), most=_LONGEST_NAME)
    if character := unprintable(name):
        raise InputError.of("store.run_name_unprintable", character=character)
    if find_run(connection, name):
        raise InputError.of("store.run_name_taken", name=name)


@of_row("run", "id", "name")
def _run(row: RowMapping) -> RunRecord:
    for name, kinds in _RUN_TYPES.items():
        if not isinstance(row[name], kinds):
            raise TypeError(f"its {name} is {row[name]!r:.80}")
    if row["state"] not in get_args(RunState):
        raise ValueError(f"its state is {row['state']!r:.80}")
    values: dict[str, Any] = {**row}
    for name, kind in (("plan", dict), ("sources", list), ("summary", dict)):
        values[name] = orjson.loads(row[name])
        if not isinstance(values[name], kind):
            raise TypeError(f"its {name} is {row[name]!r:.80}")
    values["sources"] = tuple(values["sources"])
    for name in ("created_at", "updated_at"):
        values[name] = moment(row[name])
    return RunRecord(**values)


def judges_of_run(connection: Connection, run_id: int) -> list[JudgeRecord]:
    """A model that judges twice, with another prompt or mode, is `name (2)` the second time, since
    judges are distinguished by name."""
    query = (
        select(judges)
        .join(run_judges, run_judges.c.judge_id == judges.c.id)
        .where(run_judges.c.run_id == run_id)
        .order_by(run_judges.c.place)
    )
    found: dict[str, JudgeRecord] = {}
    for row in connection.execute(query).mappings():
        record = judge_record(row)
        name, again = record.name, 2
        while name in found:
            name, again = f"{record.name} ({again})", again + 1
        found[name] = replace(record, name=name)
    return list(found.values())


@of_row("judge", "id", "name")
def judge_record(row: RowMapping) -> JudgeRecord:
    read = {"settings": orjson.loads(row["settings"]), "created_at": moment(row["created_at"])}
    return JudgeRecord(**{**row, **read})


@dataclass(frozen=True, slots=True)
class Survey:
    """What a run consists of. `models` has each row's A and B, with counts, in order of arrival."""

    prompts: int
    models: tuple[tuple[str | None, str | None, int], ...]
