"""A file that fails: full disk, lock, damage. One line, and nothing half-written."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.errors import StoreBusy, StoreError
from evenhand.store import NewPass, Store, open_store
from store_values import Begun, begin, item, read_pass

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
            store.items.add(run_id, rows)
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
            f"store {path} is full: its disk has no space left; free some (everything stored "
            "before is intact)"
        )
        assert stored >= 10
        assert store.items.count(begun.run_id) == stored
        assert integrity(path) == ["ok"]
    with open_store(path) as store:
        assert store.items.count(begun.run_id) == stored
        assert len(store.work.pending(begun.run_id, begun.judge_id, after=0, limit=9999)) == stored


@posix
def test_a_disk_without_room_for_a_store_is_told(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (2 * 1024 * 1024 - 8192))
    with pytest.raises(StoreError, match="is full: its disk"):
        open_store(small_disk / "s.db")


LIMITED = """
import resource, sys
sys.path[:0] = sys.argv[2:]
from evenhand.store import open_store
from test_store_faults import fill
from store_values import begin
with open_store(sys.argv[1]) as store:
    begun = begin(store)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
    stored, error = fill(store, begun.run_id)
    assert store.items.count(begun.run_id) == stored
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
    assert message.startswith(f"cannot read or write store {path} (SQLITE_")
    assert message.endswith("(everything stored before is intact)")
    assert int(stored) >= 10
    assert integrity(path) == ["ok"]
    with open_store(path) as store:
        assert store.items.count(1) == int(stored)


WRITER = """
import sys
sys.path[:0] = sys.argv[2:]
from evenhand.store import NewPass, NewVerdict, open_store
from store_values import begin, item, read_pass, win
with open_store(sys.argv[1]) as store:
    begun = begin(store, *(item(f"k{n}", response_a="x" * 3000) for n in range(20_000)))
    print("ready", flush=True)
    made = [read_pass("original"), read_pass("swapped")]
    after = 0
    while page := store.work.pending(begun.run_id, begun.judge_id, after=after, limit=50):
        after = page[-1].number
        ids = (begun.judge_id, begun.run_id)
        passes = [NewPass(each.pair_id, *ids, one) for each in page for one in made]
        verdict = win("A", made)
        verdicts = [NewVerdict(ids[1], each.number, ids[0], verdict) for each in page]
        store.work.write(passes, verdicts)
"""


@pytest.mark.slow
@posix
def test_a_writer_that_is_killed_leaves_whole_batches(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    here = Path(__file__).parent
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(here), str(here.parent)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    with open_store(path) as store:
        while store.verdicts.tally(1).judged == 0:
            assert writer.poll() is None
        writer.kill()
        writer.communicate()
        tally = store.verdicts.tally(1)
        assert 0 < tally.wins_a < 20_000
        assert tally.wins_a % 50 == 0
        assert (tally.used.passes, tally.pending) == (2 * tally.wins_a, 20_000 - tally.wins_a)
    assert integrity(path) == ["ok"]


def test_two_processes_that_write_the_same_in_other_orders_do_not_block(
    store: Store, address: str
) -> None:
    one = begin(store, *(item(f"k{n}") for n in range(200)), name="one")
    with open_store(address) as second:
        other = begin(second, *(item(f"k{n}") for n in reversed(range(200))), name="other")
        problems: list[BaseException] = []

        def write(begun: Begun) -> None:
            try:
                work = begun.work()
                made = [read_pass("original"), read_pass("swapped")]
                ids = (begun.judge_id, begun.run_id)
                for _ in range(5):
                    begun.store.work.write(
                        [NewPass(each.pair_id, *ids, one) for each in work for one in made], []
                    )
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=write, args=[begun]) for begun in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []
    assert store.verdicts.tally(one.run_id).used.passes == 400


def test_a_store_that_another_process_locks_is_busy_and_then_free(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path, busy_timeout_s=0.1) as store:
        begun = begin(store, item("x"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy) as caught:
            begun.judge_all()
        assert caught.value.message == (
            f"store {path} is locked by another process; wait until it is done, or name "
            "another store"
        )
        assert len(begun.work()) == 1  # reading goes on
        other.execute("ROLLBACK")
        other.close()
        begun.judge_all()
        assert begun.work() == []


def test_two_writers_in_one_process_wait_for_each_other(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "s.db", busy_timeout_s=0.1) as store,
        store.writing(),
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
        store.work.pending(begun.run_id, begun.judge_id, after=0, limit=1000)
    assert f"store {path} is damaged; restore it from a backup" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_store_whose_file_became_read_only_is_told(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        begun = begin(store, item("x"))
        with store._writes.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only=ON")
        with pytest.raises(StoreError, match=": it is read-only"):
            begun.judge_all()


def test_an_error_quotes_no_text_of_the_data(store: Store) -> None:
    begun = begin(store, item("x", prompt="confidential"))
    secret = replace(read_pass("original"), model="confidential")
    with pytest.raises(StoreError) as caught:
        store.work.write([NewPass(99, begun.judge_id, begun.run_id, secret)], [])
    assert "confidential" not in caught.value.message
    assert caught.value.__cause__ is None
