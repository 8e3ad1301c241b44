"""Pending items by spans of their numbers, and who attends to a run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from evenhand.store import Store, open_store
from store_values import begin, item

ATTENDANT = """
import sys, time
from evenhand.store import open_store
with open_store(sys.argv[1]) as store, store.register_worker(int(sys.argv[2])):
    print("there", flush=True)
    time.sleep(60)
"""


def test_a_span_ends_where_it_is_told_and_skips_what_is_judged(store: Store) -> None:
    begun = begin(store, *[item(f"k{n}", row=n) for n in range(1, 11)])
    begun.settle(begun.work()[3])  # number 4
    run, judge = begun.run_id, begun.judge_id
    assert store.work.pending_span(run, judge, after=2, limit=3) == (3, 6, 3)
    assert store.work.pending_span(run, judge, after=2, limit=9, up_to=4) == (3, 3, 1)
    assert store.work.pending_span(run, judge, after=3, limit=9, up_to=4) is None
    assert store.work.pending_span(run, judge, after=10, limit=9) is None
    found = store.work.pending(run, judge, after=2, limit=9, up_to=6)
    assert [work.number for work in found] == [3, 5, 6]


def test_of_items_with_the_same_content_only_the_first_is_among_the_firsts(store: Store) -> None:
    prompts = ["one", "two", "one", "three", "two", "one"]
    begun = begin(store, *[item(f"k{n}", row=n, prompt=p) for n, p in enumerate(prompts)])
    run, judge = begun.run_id, begun.judge_id
    found = store.work.pending(run, judge, after=0, limit=9, firsts=True)
    assert [work.number for work in found] == [1, 2, 4]
    assert store.work.pending_span(run, judge, after=1, limit=9, firsts=True) == (2, 4, 2)
    others = store.work.pending(run, judge, after=0, limit=9, firsts=False)
    assert [work.number for work in others] == [3, 5, 6]
    # The first has its verdict: the others wait for their turn all the same.
    begun.settle(found[0])
    assert store.work.pending_span(run, judge, after=0, limit=9, firsts=True) == (2, 4, 2)
    assert store.work.pending_span(run, judge, after=0, limit=9) == (2, 6, 5)


def test_several_attend_to_a_run_that_another_holds(store: Store, address: str) -> None:
    begun, other = begin(store), begin(store, name="other")
    with open_store(address) as same, store.hold(begun.run_id), same.register_worker(begun.run_id):
        with store.register_worker(begun.run_id):
            pass
        working = store.has_workers(begun.run_id)
        assert working is address.startswith("postgresql")  # a file has one process
        assert not store.has_workers(other.run_id)
    assert not store.has_workers(begun.run_id)


@pytest.mark.skipif(sys.platform == "win32", reason="kills by SIGKILL")
def test_one_that_is_killed_attends_no_more(fresh_database: str) -> None:
    with open_store(fresh_database) as store:
        run_id = begin(store).run_id
        command = [sys.executable, "-c", ATTENDANT, fresh_database, str(run_id)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attendant:
            assert attendant.stdout is not None
            assert attendant.stdout.readline() == "there\n"
            assert store.has_workers(run_id)
            attendant.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 120
        while store.has_workers(run_id):
            assert time.monotonic() < deadline
            time.sleep(0.01)
