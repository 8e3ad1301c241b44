"""Runs over data in an object store: found again by what the store tells, resumed in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import pytest

from command_line import Command, command
from data.test_remote import lines, parquet
from evenhand.data.options import ReadOptions
from evenhand.data.remote import RemoteObject
from evenhand.errors import DataUnreachable
from evenhand.runs import PairFiles, Stop
from evenhand.runs.sources import note_on_repeats, take_in
from evenhand.store import NewRun, Store, open_store
from object_store import SECRET, Bucket, bucket, s3_port
from run_data import sums

__all__ = ["bucket", "command", "s3_port"]

JUDGED = ("-c", "accuracy", "--judge", "baseline:longer", "--store", "runs.db", "--json")


def longer_a(count: int, begin: int = 1) -> list[dict[str, Any]]:
    return [
        {**row, "response_a": row["response_a"] + " For sure."} for row in sums(count, begin=begin)
    ]


def test_a_run_over_a_store_is_found_again_until_its_data_changes(
    bucket: Bucket, command: Command
) -> None:
    bucket.put("set/a.parquet", parquet(longer_a(30)))
    bucket.put("set/b.parquet", parquet(longer_a(20, 31)))
    url = bucket.url("set/*.parquet")
    first = command("run", url, *JUDGED).json
    assert (first["pairs"], first["winsA"]) == (50, 50)
    assert first["run"].startswith("set-")
    again = command("run", url, *JUDGED).json
    assert (again["run"], again["calls"]) == (first["run"], 0)
    bucket.put("set/b.parquet", parquet(longer_a(21, 31)))
    other = command("run", url, *JUDGED).json
    assert other["run"] != first["run"]
    assert (other["pairs"], other["reusedPasses"]) == (51, 100)


def test_keys_are_neither_stored_nor_shown(bucket: Bucket, command: Command) -> None:
    url = bucket.put("pairs.jsonl", lines(longer_a(3)))
    ran = command("run", url, *JUDGED)
    assert ran.code == 0
    assert command("runs", "--store", "runs.db").code == 0
    for path in command.directory.glob("runs.db*"):
        assert SECRET.encode() not in path.read_bytes()
    refused = command("run", f"s3://me:{SECRET}@{bucket.name}/pairs.jsonl", *JUDGED)
    assert refused.code == 2
    assert refused.json["error"]["kind"] == "data"
    assert SECRET not in refused.out + refused.err


def test_two_models_outputs_and_an_audit_come_by_url(bucket: Bucket, command: Command) -> None:
    for model, said in (("old", "Yes, it is so."), ("new", "Yes.")):
        answers = [{"id": n, "prompt": f"p{n}", "response": said} for n in range(4)]
        bucket.put(f"{model}/0.jsonl", lines(answers[:2]))
        bucket.put(f"{model}/1.jsonl", lines(answers[2:]))
    ran = command("run", "--a", bucket.url("old/"), "--b", bucket.url("new/*.jsonl"), *JUDGED).json
    assert (ran["pairs"], ran["winsA"]) == (4, 4)
    assert "A is old, B is new" in ran["notes"]
    url = bucket.put("labelled.jsonl", lines([{**row, "label": "A"} for row in longer_a(12)]))
    audited = command("audit", url, *JUDGED)
    assert audited.code == 0, audited.err
    battles = bucket.put("battles.csv", b"model_a,model_b,winner\n" + b"x,y,A\ny,x,B\nx,y,B\n" * 5)
    assert command("rank", "--battles", battles, "--json").code == 0
    absent = command("audit", bucket.url("absent.jsonl"), *JUDGED)
    assert absent.code == 2
    assert "does not exist" in absent.json["error"]["message"]


def cut_off(broken: pytest.MonkeyPatch, name: str) -> None:
    """The store answers, but not for this one."""
    really = RemoteObject.open

    def open_or_fail(self: RemoteObject) -> BinaryIO:
        if self.name == name:
            raise DataUnreachable(f"{name} cannot be read")
        return really(self)

    broken.setattr(RemoteObject, "open", open_or_fail)


def taken_in(store: Store, url: str) -> tuple[bool, int]:
    """Whether all came in, and how many rows were told of last."""
    run = store.runs.find("run") or store.runs.create(NewRun("run", "print", {}, ()))
    heard: list[int] = [0]
    sources = PairFiles.of([url], ReadOptions(criteria_needed=False))
    whole = take_in(
        store,
        run.id,
        sources,
        bad_rows="skip",
        by_id=False,
        stop=Stop(),
        report=heard.append,
    )
    return whole, heard[-1]


def test_an_intake_that_broke_off_goes_on_where_it_was(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.runs.sources._NOTED_EVERY", 1)
    rows = sums(1300)
    bucket.put("set/0.jsonl", lines(rows[:600]) + b"no row\n")
    # 900 rows in groups of 100, of which the last 300 repeat rows of before.
    bucket.put("set/1.parquet", parquet([*rows[600:1200], *rows[300:600]], row_group_size=100))
    bucket.put("set/2.jsonl", lines(rows[1200:]))
    last, before = bucket.url("set/2.jsonl"), bucket.url("set")
    with open_store(tmp_path / "store.db") as store:
        with monkeypatch.context() as broken:
            cut_off(broken, last)
            with pytest.raises(DataUnreachable):
                taken_in(store, before)
        run = store.runs.find("run")
        assert run is not None
        assert store.items.count(run.id) == 1200
        bucket.wire.asked.clear()
        assert taken_in(store, before) == (True, 601 + 900 + 100)
        assert not [asked for asked in bucket.wire.asked if "0.jsonl" in asked]
        run = store.runs.find("run")
        assert run is not None
        assert store.items.count(run.id) == 1300
        assert "300 rows repeat" in (note_on_repeats(run) or "")
        assert [row.row for row in store.items.skipped(run.id)] == [601]
        assert set(run.summary) == {"repeatedRows"}


def test_a_run_whose_store_was_cut_off_is_kept_and_resumed(
    bucket: Bucket, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.runs.sources._NOTED_EVERY", 1)
    bucket.put("set/0.jsonl", lines(longer_a(600)))
    last = bucket.put("set/1.jsonl", lines(longer_a(10, 601)))
    with monkeypatch.context() as broken:
        cut_off(broken, last)
        failed = command("run", bucket.url("set"), *JUDGED)
    assert failed.code == 2
    assert failed.json["error"] == {
        "kind": "data_unreachable",
        "message": f"{last} cannot be read",
        "retryable": True,
    }
    bucket.wire.asked.clear()
    ran = command("run", bucket.url("set"), *JUDGED).json
    assert (ran["pairs"], ran["winsA"]) == (610, 610)
    downloads = [asked for asked in bucket.wire.asked if asked.startswith("GET")]
    assert any("1.jsonl" in asked for asked in downloads)
