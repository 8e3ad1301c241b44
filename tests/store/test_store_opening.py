"""Files that are stores, become stores, or are none."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.errors import StoreError
from evenhand.store import default_address, open_store
from evenhand.store.schema import HEAD
from store_values import begin, item

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")


def mode(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def refusal(path: Path | str, *, create: bool = True) -> str:
    with pytest.raises(StoreError) as caught:
        open_store(path, create=create, busy_timeout_s=1)
    assert "\n" not in caught.value.message
    return caught.value.message


@posix
@pytest.mark.usefixtures("open_umask")
def test_everything_of_a_new_store_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there" / "s.db"
    with open_store(path) as store:
        begin(store, item("x"))
        files = list(path.parent.iterdir())
        assert {file.name for file in files} == {"s.db", "s.db-wal", "s.db-shm"}
        assert {mode(file) for file in files} == {0o600}
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


@posix
def test_an_empty_file_becomes_a_store_of_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.touch(mode=0o644)
    with open_store(path) as store:
        assert store.runs.all() == []
    assert mode(path) == 0o600


def test_a_store_is_in_wal_mode_and_enforces_its_keys(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store, store.reading() as connection:

        def setting(name: str) -> object:
            return connection.exec_driver_sql(f"PRAGMA {name}").scalar()

        assert setting("journal_mode") == "wal"
        assert setting("synchronous") == 1  # NORMAL
        assert setting("foreign_keys") == 1
        assert setting("mmap_size") in (0, None)
        assert setting("busy_timeout") == 30_000


def test_what_was_stored_is_there_when_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path) as store:
        begin(store, item("x"), name="mine")
    with open_store(str(path), create=False) as store:
        assert [run.name for run in store.runs.all()] == ["mine"]
        assert store.address == str(path)


@pytest.mark.parametrize("content", [b"x", b"prompt,response\n" * 200, b"\x00" * 8192])
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(content)
    message = refusal(path)
    assert str(path) in message
    assert "not an SQLite file; name another store" in message
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["pairs.csv"]


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE songs (name TEXT)")
    other.close()
    before = path.read_bytes()
    assert "not evenhand's (it has a table 'songs')" in refusal(path)
    assert path.read_bytes() == before


def test_a_directory_is_refused_with_a_file_in_it_as_the_remedy(tmp_path: Path) -> None:
    assert refusal(tmp_path) == (
        f"{tmp_path} is a directory; name a file in it, e.g. {tmp_path / 'evenhand.db'}"
    )


def test_a_store_that_is_not_there_is_not_made_where_it_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    assert refusal(path, create=False) == f"no store at {path}; name another store"
    assert not path.exists()


@posix
def test_a_device_is_no_store() -> None:
    assert refusal("/dev/null") == "/dev/null is not a regular file; name another store"


def test_a_folder_that_is_a_file_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "file" in refusal(tmp_path / "file" / "s.db")


def test_a_store_of_a_newer_evenhand_is_refused_with_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_store(path).close()
    with sqlite3.connect(path) as newer:
        newer.execute("UPDATE evenhand_schema SET version_num = '9999'")
    newer.close()
    assert refusal(path) == (
        f"store {path} was written by a newer evenhand (schema 9999); "
        "upgrade evenhand, or name another store"
    )


def test_a_link_leads_to_the_store_it_names(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    with open_store(tmp_path / "link.db") as store:
        assert store.address == str(tmp_path / "real.db")
    assert mode(tmp_path / "real.db") == 0o600


# Loaded before the user changes, who may not be allowed to read this environment.
AS_ANOTHER_USER = """
import os, sys
import alembic.command, evenhand.store.store
from evenhand.errors import StoreError
from evenhand.messages import catalogue
from evenhand.store import open_store
catalogue("en")
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
for path in sys.argv[1:]:
    try:
        open_store(path).close()
        print("opened")
    except StoreError as error:
        print(error.message)
"""


@posix
def test_what_may_not_be_read_or_written_is_said_so() -> None:
    """Root may do anything, so the question is put by another user where we are root."""
    folder = Path(tempfile.mkdtemp(prefix="evenhand-store-"))
    try:
        folder.chmod(0o755)
        for name in ("unreadable", "readonly"):
            open_store(folder / f"{name}.db").close()
        (folder / "unreadable.db").chmod(0)
        (folder / "readonly.db").chmod(0o444)
        (folder / "locked").mkdir(mode=0)
        names = ("unreadable.db", "readonly.db", "locked/s.db", "new.db")
        if os.geteuid() != 0:
            folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", AS_ANOTHER_USER, *(folder / name for name in names)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        unreadable, readonly, locked, new = done.stdout.splitlines()
        assert (
            "unreadable.db is not writable; make it writable, or name another store" in unreadable
        )
        assert "readonly.db is not writable; make it writable, or name another store" in readonly
        assert "locked/s.db: permission denied; name another store" in locked
        assert "new.db: permission denied; name another store" in new
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_store_at_the_head_is_opened_without_alembic(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_store(path).close()
    code = (
        "import sys\n"
        "from evenhand.store import open_store\n"
        "assert 'sqlalchemy' not in sys.modules or 'open_store' in globals()\n"
        f"open_store({str(path)!r}).close()\n"
        "print('alembic' in sys.modules, 'psycopg' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_the_values_of_a_store_are_had_without_sqlalchemy() -> None:
    code = "import sys, evenhand.store\nprint('sqlalchemy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False"]


@pytest.mark.slow
def test_processes_that_make_the_same_store_at_once_all_get_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "s.db"
    code = f"from evenhand.store import open_store\nopen_store({str(path)!r}).close()"
    started = [
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    told = [process.communicate(timeout=120)[1] for process in started]
    assert [process.returncode for process in started] == [0] * 5, told
    with sqlite3.connect(path) as made:
        assert made.execute("SELECT version_num FROM evenhand_schema").fetchall() == [(HEAD,)]
    made.close()


def test_the_default_is_the_variable_then_a_file_of_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVENHAND_STORE", f" {tmp_path / 'mine.db'} ")
    assert default_address() == str(tmp_path / "mine.db")
    with open_store() as store:
        assert store.address == str(tmp_path / "mine.db")
    monkeypatch.setenv("EVENHAND_STORE", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Path(default_address()).name == "evenhand.db"
    assert tmp_path in Path(default_address()).parents


def test_a_sqlite_url_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store(f"sqlite:///{tmp_path}/absolute.db") as store:
        assert store.address == str(tmp_path / "absolute.db")
    with open_store("sqlite:///relative.db") as store:
        assert store.address == str(tmp_path / "relative.db")
    with open_store(":memory:") as store:  # a name like any other: nothing is kept in memory only
        assert store.address == str(tmp_path / ":memory:")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("mysql://u:secret@h/d", "mysql:// is not a known kind of store"),
        ("postgresql://u:secret@h:port/d", "cannot read the postgresql:// URL"),
        ("sqlite://", "has no file"),
        ("  ", "is empty"),
        ("a\x00b", "is not a valid path"),
    ],
)
def test_an_address_that_cannot_be_read_is_told_without_its_password(
    address: str, told: str
) -> None:
    message = refusal(address)
    assert told in message
    assert "secret" not in message
