"""`evenhand runs show` tells of a run's batches: where each is, and what it may cost."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

from batch_providers import Start, by_batch, interrupted, only_run, spec_of
from command_line import Command
from evenhand import Price
from evenhand.store import open_store
from evenhand.store.batches import NewBatch
from run_data import sums


def test_runs_show_lists_the_batches_of_a_run(start: Start, at: Path, command: Command) -> None:
    provider, price = start(), Price(1.0, 2.0)
    asyncio.run(interrupted(provider, sums(6), at, price=price, name="sums"))
    (batch,) = provider.batches.values()
    shown = command("runs", "show", "sums", "--store", str(at))
    assert shown.code == 0
    assert "1 batch, 12 requests not collected" in shown.out
    line = next(line for line in shown.out.splitlines() if batch.id in line)
    assert spec_of(provider) in line
    assert "at the provider" in line
    (told,) = command("runs", "show", "sums", "--store", str(at), "--json").json["batches"]
    assert (told["id"], told["judge"], told["state"]) == (batch.id, spec_of(provider), "open")
    assert told["requests"] == 12
    assert datetime.fromisoformat(told["sentAt"]).timestamp() > 0
    # As it was reckoned: more than the 1,000 tokens in and 100 out that each takes in the end.
    assert told["reservedUsd"] > 0

    provider.hold = False
    asyncio.run(by_batch(provider, sums(6), at, price=price, name="sums"))
    shown = command("runs", "show", "sums", "--store", str(at))
    assert "1 batch, all collected" in shown.out
    (told,) = command("runs", "show", "sums", "--store", str(at), "--json").json["batches"]
    assert (told["id"], told["state"]) == (batch.id, "done")


def test_a_batch_that_nobody_saw_arrive_is_told_apart(
    start: Start, at: Path, command: Command
) -> None:
    asyncio.run(by_batch(start(), sums(2), at, name="sums"))
    with open_store(at) as store:
        run = only_run(store)
        (judge,) = store.runs.judges(run.id)
        for nonce in ("eh1", "eh2"):
            new = NewBatch(run.id, judge.id, nonce, first_number=1, last_number=2)
            batch = store.batches.intend(new, [])
        store.batches.sending(batch.id)
    told = command("runs", "show", "sums", "--store", str(at), "--json").json["batches"]
    assert [each["state"] for each in told] == ["done", "intended", "sent"]
    assert [each["id"] is None for each in told] == [False, True, True]
    assert [each["sentAt"] is None for each in told] == [False, True, False]
    assert [each["reservedUsd"] for each in told] == [None, None, None]
    shown = command("runs", "show", "sums", "--store", str(at)).out
    for words in ("collected", "not sent yet", "sent, not yet confirmed", "unknown"):
        assert words in shown


def test_a_run_without_batches_says_nothing_of_them(
    start: Start, at: Path, command: Command
) -> None:
    asyncio.run(by_batch(start(), sums(2), at, name="sums", batch=False))
    assert "reserved" not in command("runs", "show", "sums", "--store", str(at)).out
    assert command("runs", "show", "sums", "--store", str(at), "--json").json["batches"] == []
