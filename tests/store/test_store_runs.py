"""Runs and judges: made, found, changed, renamed."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

from evenhand.errors import InputError
from evenhand.store import NewJudge, NewRun, Store, open_store
from store_values import begin, item

PLAN = {"samples": 3, "criteria": ["accuracy", "清晰"], "nested": {"nul": "\x00", "none": None}}


def test_a_run_comes_back_as_it_was_made(store: Store) -> None:
    before = datetime.now(UTC)
    made = store.runs.create(NewRun("first run", "f1", PLAN, ("a.jsonl", "standard input")))
    assert store.runs.find("first run") == made
    assert (made.plan, made.sources) == (PLAN, ("a.jsonl", "standard input"))
    assert (made.state, made.intake_done, made.stopped_by) == ("reading", False, None)
    assert (made.seconds, made.calls, made.reused_passes, made.summary) == (0, 0, 0, {})
    assert before <= made.created_at == made.updated_at <= datetime.now(UTC)
    assert store.runs.find("first") is None


def test_runs_are_listed_in_the_order_they_were_made(store: Store) -> None:
    for name in ("b", "a", "c"):
        store.runs.create(NewRun(name, name, {}))
    assert [run.name for run in store.runs.all()] == ["b", "a", "c"]


def test_a_fingerprint_finds_the_newest_run(store: Store) -> None:
    assert store.runs.of_fingerprint("same") is None
    store.runs.create(NewRun("old", "same", {}))
    new = store.runs.create(NewRun("new", "same", {}))
    store.runs.create(NewRun("other", "x" * 5000, {}))
    assert store.runs.of_fingerprint("same") == new
    other = store.runs.of_fingerprint("x" * 5000)
    assert other is not None
    assert other.name == "other"


def test_an_update_changes_what_is_given_and_nothing_else(store: Store) -> None:
    made = store.runs.create(NewRun("r", "f", {}))
    store.runs.update(made.id, state="stopped", stopped_by="max-cost", seconds=1.5, calls=7)
    store.runs.update(made.id, intake_done=True, reused_passes=2, summary={"winsA": 1})
    now = store.runs.find("r")
    assert now is not None
    assert now == dataclasses.replace(
        made,
        state="stopped",
        stopped_by="max-cost",
        seconds=1.5,
        calls=7,
        intake_done=True,
        reused_passes=2,
        summary={"winsA": 1},
        updated_at=now.updated_at,
    )
    store.runs.update(made.id, state="finished", stopped_by=None)
    now = store.runs.find("r")
    assert now is not None
    assert (now.state, now.stopped_by, now.calls) == ("finished", None, 7)


def test_updating_a_run_that_is_gone_is_an_error(store: Store) -> None:
    with pytest.raises(InputError, match="run 77 is no longer in the store"):
        store.runs.update(77, state="finished")


def test_a_name_is_given_once(store: Store) -> None:
    store.runs.create(NewRun("r", "f", {}))
    with pytest.raises(InputError, match="a run named 'r' already"):
        store.runs.create(NewRun("r", "g", {}))
    store.runs.create(NewRun("s", "g", {}))
    with pytest.raises(InputError, match="a run named 'r' already"):
        store.runs.rename("s", "r")
    store.runs.rename("s", "s")


def test_the_same_run_begun_by_two_processes_at_once_is_one(store: Store, address: str) -> None:
    """Both looked for it before either had made it."""
    new = NewRun("pairs-1a2b3c", "fingerprint", {})
    with open_store(address) as other:
        run, created = store.runs.begin(new)
        again, created_again = other.runs.begin(new)
        assert (created, created_again, again.id) == (True, False, run.id)
        with pytest.raises(InputError, match="a run named 'pairs-1a2b3c' already"):
            other.runs.begin(NewRun("pairs-1a2b3c", "of other pairs", {}))
        named, created = other.runs.begin(NewRun("mine", "fingerprint", {}))
        assert created
        assert named.id != run.id


@pytest.mark.parametrize(("name", "told"), [(" \t", "blank"), ("n" * 201, "201 characters")])
def test_a_name_is_neither_blank_nor_endless(store: Store, name: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        store.runs.create(NewRun(name, "f", {}))


def test_a_renamed_run_keeps_everything_but_its_name(store: Store) -> None:
    begun = begin(store, item("x"), name="old")
    store.runs.rename("old", "new")
    assert store.runs.find("old") is None
    found = store.runs.find("new")
    assert found is not None
    assert found.id == begun.run_id
    with pytest.raises(InputError, match="the store has no run named 'old'"):
        store.runs.rename("old", "newer")


def test_a_plan_that_is_no_json_is_refused_and_no_run_is_made(store: Store) -> None:
    with pytest.raises(InputError, match="use plain JSON"):
        store.runs.create(NewRun("r", "f", {"odd": object()}))
    assert store.runs.all() == []


def test_a_judge_with_the_same_key_is_the_same_judge(store: Store) -> None:
    judge = NewJudge("key", "openai:m", "v1", "zh", "letter", {"temperature": 0})
    first = store.runs.add_judge(judge)
    other = store.runs.add_judge(NewJudge("other key" * 500, "openai:m"))
    assert store.runs.add_judge(judge) == first != other
    assert store.runs.add_judge(NewJudge("other key" * 500, "openai:m")) == other


def test_a_runs_judges_come_in_the_order_they_were_set(store: Store) -> None:
    run = store.runs.create(NewRun("r", "f", {}))
    ids = [store.runs.add_judge(NewJudge(key, f"judge {key}")) for key in "abc"]
    store.runs.set_judges(run.id, [ids[2], ids[0], ids[2]])
    assert [judge.key for judge in store.runs.judges(run.id)] == ["c", "a"]
    store.runs.set_judges(run.id, [ids[1]])
    (judge,) = store.runs.judges(run.id)
    assert (judge.id, judge.name, judge.settings) == (ids[1], "judge b", {})
    store.runs.set_judges(run.id, [])
    assert store.runs.judges(run.id) == []
