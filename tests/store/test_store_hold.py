"""A run is held by one process at a time, and by none that is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenhand.errors import StoreBusy
from evenhand.store import Store, open_store
from store_values import begin

HOLDER = """
import sys, time
from evenhand.store import open_store
with open_store(sys.argv[1]) as store, store.hold(int(sys.argv[2])):
    print("held", flush=True)
    time.sleep(60)
"""


def start_holder(address: str, run_id: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, address, str(run_id)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_run_is_held_once_and_let_go(store: Store) -> None:
    begun, other = begin(store), begin(store, name="other")
    with store.hold(begun.run_id):
        with store.hold(other.run_id):
            pass
        told = "run 'run' of store .* in use by another"
        with pytest.raises(StoreBusy, match=told), store.hold(begun.run_id):
            raise AssertionError
    with store.hold(begun.run_id):
        pass


def test_a_hold_on_a_run_that_is_not_there_is_told_by_its_number(store: Store) -> None:
    with (
        store.hold(4711),
        pytest.raises(StoreBusy, match="run 4711 of store"),
        store.hold(4711),
    ):
        raise AssertionError


def test_another_store_object_cannot_have_a_held_run(store: Store, address: str) -> None:
    begun = begin(store)
    with (
        open_store(address) as same,
        store.hold(begun.run_id),
        pytest.raises(StoreBusy),
        same.hold(begun.run_id),
    ):
        raise AssertionError


def test_a_run_whose_process_was_killed_is_free(store: Store, address: str) -> None:
    begun = begin(store)
    holder = start_holder(address, begun.run_id)
    try:
        with pytest.raises(StoreBusy) as caught, store.hold(begun.run_id):
            raise AssertionError
        if address.endswith(".db"):
            assert f"another process ({holder.pid})" in caught.value.message
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    deadline = time.monotonic() + 20
    while True:  # a server takes a moment to see that its client is gone
        try:
            with store.hold(begun.run_id):
                break
        except StoreBusy:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_the_lock_file_goes_with_the_lock(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        begun = begin(store)
        lock = tmp_path / f"s.db.run-{begun.run_id}.lock"
        with store.hold(begun.run_id):
            assert lock.read_text() == f"{os.getpid()}\n"
            assert lock.stat().st_mode & 0o777 == 0o600
        assert not lock.exists()
        lock.write_text("left behind by a process that was killed")
        with store.hold(begun.run_id):
            assert lock.read_text() == f"{os.getpid()}\n"


def test_an_error_inside_lets_go_too(store: Store) -> None:
    begun = begin(store)
    with pytest.raises(KeyError), store.hold(begun.run_id):
        raise KeyError
    with store.hold(begun.run_id):
        pass


def test_the_store_is_read_and_written_while_a_run_is_held(store: Store) -> None:
    begun = begin(store)
    with store.hold(begun.run_id):
        store.runs.update(begun.run_id, state="judging")
        assert store.items.count(begun.run_id) == 0
