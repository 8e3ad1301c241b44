"""A file that fails: full disk, lock, damage. One line, and nothing half-written."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.errors import StoreBusy, StoreError
from evenhand.store import NewPass, Store, open_store
from store_values import begin, item, read_pass

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits and mounts")


def integrity(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        return found + [str(row) for row in connection.execute("PRAGMA foreign_key_check")]
    finally:
        connection.close()


def fill(store: Store, run_id: int) -> tuple[int, StoreError]:
    """Batches of ten until one fails: how many items were stored, and the failure."""
    for batch in range(10_000):
        rows = [item(f"{batch}-{n}", response_a=f"{batch} {n} " + "x" * 10_000) for n in range(10)]
        try:
            store.add_items(run_id, rows)
        except StoreError as error:
            return batch * 10, error
    raise AssertionError("the disk never filled")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "mount") or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk; the limit on file size is tested instead")
    if libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, b"size=2m") != 0:
        pytest.skip(f"no disk can be mounted here: {os.strerror(ctypes.get_errno())}")
    yield folder
    libc.umount2(bytes(folder), 2)


@posix
def test_a_full_disk_is_told_and_what_was_stored_is_intact(small_disk: Path) -> None:
    path = small_disk / "s.db"
    with open_store(path) as store:
        begun = begin(store)
        stored, error = fill(store, begun.run_id)
        assert error.message == (
            f"store {path} is full: no room on its disk; "
            "make room (what was stored before is intact)"
        )
        assert stored >= 10
        assert store.count_items(begun.run_id) == stored
        assert integrity(path) == ["ok"]
    with open_store(path) as store:
        assert store.count_items(begun.run_id) == stored
        assert len(store.pending(begun.run_id, begun.judge_id, after=0, limit=9999)) == stored


@posix
def test_a_disk_without_room_for_a_store_is_told(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (2 * 1024 * 1024 - 8192))
    with pytest.raises(StoreError, match="is full: no room on its disk"):
        open_store(small_disk / "s.db")


LIMITED = """
import resource, sys
sys.path[:0] = sys.argv[2:]
from evenhand.store import open_store
from test_store_faults import fill
from store_values import begin
with open_store(sys.argv[1]) as store:
    begun = begin(store)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    stored, error = fill(store, begun.run_id)
    assert store.count_items(begun.run_id) == stored
    print(stored, error.message)
"""


@posix
def test_a_file_that_may_not_grow_is_told_and_what_was_stored_is_intact(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(here), str(here.parent)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stored, _, message = done.stdout.strip().partition(" ")
    assert message.startswith(f"store {path} ")
    assert message.endswith("(what was stored before is intact)")
    assert int(stored) >= 10
    assert integrity(path) == ["ok"]
    with open_store(path) as store:
        assert store.count_items(1) == int(stored)


def test_a_store_that_another_process_locks_is_busy_and_then_free(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path, busy_timeout_s=0.1) as store:
        begun = begin(store, item("x"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy) as caught:
            begun.judge_all()
        assert caught.value.message == (
            f"store {path} is locked by another process; "
            "wait until that is done, or name another store"
        )
        assert len(begun.work()) == 1  # reading goes on
        other.execute("ROLLBACK")
        other.close()
        begun.judge_all()
        assert begun.work() == []


def test_two_writers_in_one_process_wait_for_each_other(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "s.db", busy_timeout_s=0.1) as store,
        store._writing(),
        pytest.raises(StoreBusy, match="in use by another thread"),
    ):
        begin(store)


def test_a_damaged_store_is_told_without_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path) as store:
        begun = begin(store, *(item(f"k{n}", response_a="x" * 5000) for n in range(200)))
    damaged = bytearray(path.read_bytes())
    for place in range(16 * 1024 * 4, len(damaged)):
        damaged[place] = 0xA5
    path.write_bytes(damaged)
    with open_store(path) as store, pytest.raises(StoreError) as caught:
        store.pending(begun.run_id, begun.judge_id, after=0, limit=1000)
    assert f"store {path} is damaged; restore it from a backup" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_store_whose_file_became_read_only_is_told(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        begun = begin(store, item("x"))
        with store._writes.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only=ON")
        with pytest.raises(StoreError, match="cannot be written: it is read-only"):
            begun.judge_all()


def test_an_error_quotes_no_text_of_the_data(store: Store) -> None:
    begun = begin(store, item("x", prompt="confidential"))
    secret = read_pass("original").model_copy(update={"model": "confidential"})
    with pytest.raises(StoreError) as caught:
        store.write([NewPass(99, begun.judge_id, begun.run_id, secret)], [])
    assert "confidential" not in caught.value.message
    assert caught.value.__cause__ is None
