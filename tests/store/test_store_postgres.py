"""What only a server can do to a store: refuse, vanish, hold other people's tables."""

from __future__ import annotations

import builtins
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from benchmarks.stored_million import copy_to_postgres, fill
from sqlalchemy import Engine, event

from evenhand.errors import MissingExtra, StoreBusy, StoreError
from evenhand.store import locks as hold
from evenhand.store import open_store
from evenhand.store.address import ServerAddress, read_address
from evenhand.store.postgres import Growth, open_engines
from postgres_server import PASSWORD, PostgresServer, _free_port
from store_values import begin, item


def database_of(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


def refusal(url: str) -> str:
    with pytest.raises(StoreError) as caught:
        open_store(url, busy_timeout_s=1)
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "PostgreSQL"])
def test_every_spelling_of_the_scheme_is_the_same_store(fresh_database: str, scheme: str) -> None:
    with open_store(fresh_database.replace("postgresql", scheme)) as store:
        begin(store, name=scheme)
        assert store.address.startswith("postgresql://")
    with open_store(fresh_database) as store:
        assert store.runs.find(scheme) is not None


def test_no_password_is_shown_wherever_it_was_given(
    postgres: PostgresServer, fresh_database: str
) -> None:
    database, password = database_of(fresh_database), quote(PASSWORD, safe="")
    in_the_middle = postgres.loopback_url(database, password)
    at_the_end = f"postgresql://evenhand@127.0.0.1:{postgres.port}/{database}?password={password}"
    for url in (in_the_middle, at_the_end):
        with open_store(url) as store:
            assert store.address == f"postgresql://evenhand@127.0.0.1:{postgres.port}/{database}"
            assert "secret" not in repr(vars(store))


def test_a_wrong_password_is_told_without_it(postgres: PostgresServer, fresh_database: str) -> None:
    message = refusal(postgres.loopback_url(database_of(fresh_database), "wr0ng"))
    assert "refused the user or password" in message
    assert "wr0ng" not in message


def test_a_missing_database_is_told_with_its_name(postgres: PostgresServer) -> None:
    message = refusal(postgres.url("nowhere"))
    assert 'database "nowhere" does not exist' in message
    assert "create the database" in message


def test_a_server_that_is_not_there_is_told() -> None:
    message = refusal(f"postgresql://me:hidden@127.0.0.1:{_free_port()}/x")
    assert "cannot reach" in message
    assert "start the server, or correct the URL" in message
    assert "hidden" not in message


def test_a_database_without_a_store_is_not_made_one_where_it_is_only_read(
    empty_database: str,
) -> None:
    with pytest.raises(StoreError, match="is empty: no run was ever stored in it"):
        open_store(empty_database, create=False)


def test_tables_of_other_programs_may_stand_beside_ours_unless_they_have_our_names(
    postgres: PostgresServer, empty_database: str
) -> None:
    postgres.run("CREATE TABLE songs (name TEXT)", database_of(empty_database))
    postgres.run("CREATE TABLE alembic_version (x TEXT)", database_of(empty_database))
    postgres.run("CREATE TABLE runs (miles INTEGER)", database_of(empty_database))
    assert "not evenhand's (it has a table 'runs')" in refusal(empty_database)
    postgres.run("DROP TABLE runs", database_of(empty_database))
    open_store(empty_database).close()
    assert postgres.run("SELECT * FROM songs", database_of(empty_database)) == []


def test_a_store_may_have_a_schema_of_its_own(
    postgres: PostgresServer, empty_database: str
) -> None:
    postgres.run("CREATE SCHEMA apart", database_of(empty_database))
    url = f"{empty_database}&options=-csearch_path%3Dapart"
    with open_store(url) as apart, open_store(empty_database) as public:
        mine, other = begin(apart, name="mine"), begin(public, name="other")
        assert [run.name for run in apart.runs.all()] == ["mine"]
        assert [run.name for run in public.runs.all()] == ["other"]
        assert mine.run_id == other.run_id
        with apart.hold(mine.run_id), public.hold(other.run_id):
            pass


def test_a_newer_store_is_refused_with_its_schema(
    postgres: PostgresServer, fresh_database: str
) -> None:
    postgres.run("UPDATE evenhand_schema SET version_num = '9999'", database_of(fresh_database))
    assert "was written by a newer evenhand (schema 9999)" in refusal(fresh_database)


def test_a_database_that_cannot_hold_every_text_is_refused(postgres: PostgresServer) -> None:
    postgres.run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    try:
        assert "has the encoding LATIN1; create the database with ENCODING 'UTF8'" in refusal(
            postgres.url("latin")
        )
    finally:
        postgres.run("DROP DATABASE latin")


def test_a_user_without_rights_is_told(postgres: PostgresServer, fresh_database: str) -> None:
    postgres.run("DROP ROLE IF EXISTS guest")
    postgres.run("CREATE ROLE guest LOGIN")
    assert "this user may not use" in refusal(fresh_database.replace("evenhand@", "guest@"))


def test_a_lost_connection_loses_nothing_that_was_stored(
    postgres: PostgresServer, fresh_database: str
) -> None:
    with open_store(fresh_database) as store:
        begun = begin(store, item("x"), item("y"))

        def write_through_a_cut() -> None:
            with store.writing() as connection:
                connection.exec_driver_sql("UPDATE runs SET calls = 99")
                postgres.cut_connections(database_of(fresh_database))
                connection.exec_driver_sql("UPDATE runs SET calls = 100")

        with pytest.raises(StoreError, match=r"shut down by its server|lost its connection"):
            write_through_a_cut()
        # The next one gets a connection that works.
        begun.judge_all()
        assert store.verdicts.tally(begun.run_id).wins_a == 2
        found = store.runs.find("run")
        assert found is not None
        assert found.calls == 0


def test_a_hold_is_free_again_at_once(fresh_database: str) -> None:
    with open_store(fresh_database) as store, open_store(fresh_database) as other:
        begun = begin(store, item("x"))
        for _ in range(50):
            for each in (store, other):
                with each.hold(begun.run_id):
                    pass


def test_a_hold_that_is_lost_with_its_connection_stops_the_writing(
    postgres: PostgresServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold, "_LOOKED_AT_EVERY_S", 0)
    with open_store(fresh_database) as store, open_store(fresh_database) as other:
        begun = begin(store, item("x"), item("y"))
        with store.hold(begun.run_id):
            store.runs.update(begun.run_id, calls=1)
            postgres.cut_connections(database_of(fresh_database))
            for _ in range(2):  # once lost, it does not come back
                with pytest.raises(StoreError, match="the lock on run 'run' of store"):
                    store.runs.update(begun.run_id, calls=2)
            assert store.items.count(begun.run_id) == 2
            with other.hold(begun.run_id):  # as the server would have it
                other.runs.update(begun.run_id, calls=3)
        with store.hold(begun.run_id):
            store.runs.update(begun.run_id, seconds=4)
        found = store.runs.find("run")
        assert found is not None
        assert (found.calls, found.seconds) == (3, 4)


def test_a_row_that_another_process_locks_is_busy(fresh_database: str) -> None:
    with open_store(fresh_database, busy_timeout_s=0.2) as store:
        begun = begin(store)
        with psycopg.connect(fresh_database) as other:
            other.execute("UPDATE runs SET calls = 5")
            with pytest.raises(StoreBusy, match="is locked by another process"):
                store.runs.update(begun.run_id, calls=6)


def test_the_server_is_told_of_its_tables_growth(
    postgres: PostgresServer, fresh_database: str
) -> None:
    """It plans by what it knows, and by itself it looks once a minute."""
    with open_store(fresh_database) as store:
        begun = begin(store, *(item(f"k{n}") for n in range(1200)))
        for _ in range(2):  # the first thousand are told of at once
            begun.judge_all()
    known = "SELECT relname, reltuples FROM pg_class WHERE relname IN ('items', 'passes')"
    rows = {row[0]: row[1] for row in postgres.run(known, database_of(fresh_database))}
    assert rows["items"] == 1200
    assert rows["passes"] in range(1000, 2401)


def test_without_psycopg_the_message_holds_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def refuse(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "psycopg" or name.startswith("psycopg."):
            raise ImportError(name)
        return real(name, *arguments, **more)

    for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match=r"pip install .*\[postgres\]'"):
        open_store("postgresql://127.0.0.1/x")


def test_of_several_workers_one_tells_the_server_how_large_its_tables_are(
    fresh_database: str,
) -> None:
    where = read_address(fresh_database)
    assert isinstance(where, ServerAddress)
    told: list[str] = []
    first_is_at_it = threading.Event()

    def growth(name: str) -> tuple[Growth, list[Engine]]:
        engines = open_engines(where.url, busy_timeout_s=120)

        @event.listens_for(engines[1], "before_cursor_execute")
        def note(_: Any, __: Any, statement: str, *rest: Any) -> None:
            if statement.startswith("ANALYZE"):
                told.append(name)
                first_is_at_it.set()

        return Growth(engines[1]), list(engines)

    with psycopg.connect(fresh_database) as other:
        other.execute("LOCK TABLE passes IN SHARE UPDATE EXCLUSIVE MODE")  # as ANALYZE does
        (first, its), (second, others) = growth("first"), growth("second")
        waiting = threading.Thread(target=first.note, args=("passes", 5_000), daemon=True)
        waiting.start()
        assert first_is_at_it.wait(120)
        second.note("passes", 5_000)
        assert told == ["first"]
    waiting.join(120)
    assert not waiting.is_alive()
    second.note("passes", 50_000)
    assert told == ["first", "second"]
    for engine in (*its, *others):
        engine.dispose()


def test_passes_of_a_long_run_are_summed_by_joins(fresh_database: str, tmp_path: Path) -> None:
    """A list of its pairs that is too long for memory would be gone through for every pass."""
    fill(tmp_path / "s.db", 5_000)
    copy_to_postgres(tmp_path / "s.db", fresh_database)
    seen: list[tuple[str, Any]] = []

    def note(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        if "FROM passes" in statement:
            seen.append((statement, parameters))

    with open_store(fresh_database) as store:
        event.listen(store._reads, "before_cursor_execute", note)
        assert store.verdicts.tally(1).used.passes > 9_000
        event.remove(store._reads, "before_cursor_execute", note)
        with store.reading() as connection:
            connection.exec_driver_sql("SET work_mem = '64kB'")
            for sql, parameters in seen:
                rows = connection.exec_driver_sql(f"EXPLAIN {sql}", parameters)
                plan = "\n".join(row[0] for row in rows)
                assert "Semi Join" in plan
                assert "SubPlan" not in plan
                assert "Materialize" not in plan
    assert seen
