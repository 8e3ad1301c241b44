"""Background runs in the store: what is wanted of them, by whichever process."""

from __future__ import annotations

import time

import pytest

from evenhand.errors import Conflict
from evenhand.store import NewRun, Store, open_store
from evenhand.store.jobs import JobPrompts, JobRecord, NewJob
from store_values import begin, item

JOB = NewJob(("fast", "slow"), {"asked": {"max_calls": 5}}, "ci")


def found(store: Store, run_id: int) -> JobRecord:
    job = store.jobs.find(run_id)
    assert job is not None
    return job


def test_a_job_comes_back_as_it_was_given(store: Store) -> None:
    run_id = begin(store, item("x")).run_id
    assert store.jobs.find(run_id) is None
    assert store.jobs.add(run_id, JOB)
    assert not store.jobs.add(run_id, NewJob(("another",), {}))
    job = found(store, run_id)
    assert (job.wanted, job.judges, job.token) == ("intake", ("fast", "slow"), "ci")
    assert job.options == {"asked": {"max_calls": 5}}
    assert (job.progress, job.error, job.beat_at) == ({}, None, None)
    assert store.jobs.of_runs([run_id, 99]) == {run_id: job}


def test_prompts_are_kept_as_they_came_until_they_are_dropped(store: Store) -> None:
    run_id = begin(store, item("x")).run_id
    prompts = JobPrompts("prompts.jsonl", b'{"prompt": "\\u0000"}\n\xff\x00', {"system_a": "é"})
    store.jobs.keep_prompts(run_id, prompts)
    store.jobs.keep_prompts(run_id, JobPrompts("later.jsonl", b"", {}))
    assert store.jobs.prompts(run_id) == prompts
    store.jobs.drop_prompts(run_id)
    assert store.jobs.prompts(run_id) is None


def test_a_run_and_its_job_are_made_together_and_only_once(store: Store, address: str) -> None:
    new = NewRun("mine", "fingerprint-1", {}, ())
    with open_store(address) as other:
        run, created = store.runs.begin(new, JOB)
        again, created_again = other.runs.begin(NewRun("mine-2", "fingerprint-1", {}, ()), JOB)
    assert (created, created_again, again.id) == (True, False, run.id)
    assert found(store, run.id).wanted == "intake"


def test_the_longest_waiting_comes_first_and_a_resumed_one_last(store: Store) -> None:
    ids = [begin(store, item(name), name=name).run_id for name in "abc"]
    for run_id in ids:
        store.jobs.add(run_id, JOB, wanted="run")
    assert store.jobs.count_open() == 3
    store.jobs.want(ids[0], "stop")
    assert store.jobs.count_open() == 2
    store.jobs.want(ids[0], "run")
    assert [job.run_id for job in store.jobs.wanted("run")] == [ids[1], ids[2], ids[0]]
    assert [job.run_id for job in store.jobs.wanted("run", limit=1)] == [ids[1]]


def test_what_is_wanted_changes_only_from_what_was_expected(store: Store) -> None:
    run_id = begin(store, item("x")).run_id
    store.jobs.add(run_id, JOB, wanted="run")
    assert store.jobs.want(run_id, "stop", only_from=("run",), error={"kind": "x"})
    assert not store.jobs.want(run_id, "done", only_from=("run",))
    job = found(store, run_id)
    assert (job.wanted, job.error) == ("stop", {"kind": "x"})
    assert store.jobs.want(run_id, "run", only_from=("stop",), options={"more": 1})
    job = found(store, run_id)
    assert (job.wanted, job.error, job.options) == ("run", None, {"more": 1})


def test_a_beat_tells_how_far_it_is_and_hears_what_is_wanted(store: Store, address: str) -> None:
    run_id = begin(store, item("x")).run_id
    store.jobs.add(run_id, JOB, wanted="run")
    assert store.jobs.beat(run_id, {"done": 1}) == "run"
    assert found(store, run_id).is_judged(within_s=60)
    with open_store(address) as other:
        other.jobs.want(run_id, "stop")
    assert store.jobs.beat(run_id) == "stop"
    assert found(store, run_id).progress == {"done": 1}
    store.jobs.let_go(run_id, progress={"done": 2})
    job = found(store, run_id)
    assert (job.wanted, job.progress, job.beat_at) == ("stop", {"done": 2}, None)
    assert not job.is_judged(within_s=60)


def test_a_silent_job_is_nobodys(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = begin(store, item("x")).run_id
    store.jobs.add(run_id, JOB, wanted="run")
    store.jobs.beat(run_id)
    job = found(store, run_id)
    later = time.time() + 11
    monkeypatch.setattr(time, "time", lambda: later)
    assert not job.is_judged(within_s=10)
    assert job.is_judged(within_s=12)


def test_a_job_goes_with_its_run(store: Store) -> None:
    begun = begin(store, item("x"))
    store.jobs.add(begun.run_id, JOB, wanted="run")
    store.deletion.delete("run")
    assert store.jobs.wanted("run") == []
    with pytest.raises(Conflict, match="no longer in the store"):
        store.jobs.beat(begun.run_id)


def test_runs_are_paged_newest_first(store: Store) -> None:
    ids = [begin(store, item(name), name=name).run_id for name in "abc"]
    assert [run.id for run in store.runs.page(limit=2)] == ids[:0:-1]
    assert [run.id for run in store.runs.page(before=ids[1])] == ids[:1]
    run = store.runs.at(ids[0])
    assert run is not None
    assert run.name == "a"
    assert store.runs.at(ids[-1] + 1) is None


def test_verdicts_are_counted_as_in_a_tally(store: Store) -> None:
    begun = begin(store, item("x"), item("y"), item("z"))
    first, second, _ = begun.work()
    begun.settle(first, "A")
    begun.settle(second, "B")
    counted, whole = store.verdicts.count(begun.run_id), store.verdicts.tally(begun.run_id)
    assert (counted.wins_a, counted.wins_b, counted.pending, counted.pairs) == (1, 1, 1, 3)
    assert counted.judged == whole.judged
    assert counted.used.passes == 0
