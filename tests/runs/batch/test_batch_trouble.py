"""What goes wrong between a run and its provider: nothing is lost, and nothing paid twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from batch_providers import (
    KEY,
    QUICK,
    Answer,
    Cut,
    FakeBatch,
    Hearer,
    ItemFault,
    OpenAIProvider,
    Start,
    adds_up,
    by_batch,
    judged_items,
    only_run,
)
from evenhand.judges.registry import JudgeOptions, open_judge
from evenhand.judging.config import JudgeConfig
from evenhand.judging.decision import PassBallot, PassResult
from evenhand.runs import Stop
from evenhand.runs.batch.context import BatchTiming
from evenhand.store import open_store
from evenhand.store.schema import batches
from run_data import sums
from scripted import answer_json
from servers import RESET, Reply, Scripted, error_reply


def bytes_of(at: Path) -> bytes:
    return at.read_bytes()


# An SDK that parsed it would go on with the id in it.
TOO_MUCH = Reply({"id": "batch_other", "padding": [[]] * 20_000})


@pytest.mark.parametrize(
    "lost",
    [RESET, error_reply(504, "gateway timeout"), TOO_MUCH],
    ids=["reset", "504", "too many values"],
)
async def test_a_batch_whose_creation_was_not_heard_of_is_found_again(
    start: Start, at: Path, lost: Scripted
) -> None:
    provider, hearer = start(on_create=lambda batch: lost), Hearer()
    summary = await by_batch(provider, sums(8), at, hearer=hearer)
    assert (summary.pending, summary.wins_a, summary.wins_b) == (0, 6, 2)
    assert (len(provider.batches), provider.paid, summary.calls) == (1, 16, 16)
    assert any("was already submitted to 127.0.0.1" in said for said in hearer.heard)


async def test_batches_of_others_are_not_taken_for_ours(start: Start, at: Path) -> None:
    """Others have as many requests, and run at the same time; ours is lost on its way back."""
    provider = start()
    await by_batch(provider, sums(8, begin=100), at.with_name("other.db"))
    elsewhere = start(on_create=lambda batch: RESET)
    for batch in list(provider.batches.values()):
        renamed = [(custom_id.upper(), body) for custom_id, body in batch.requests]
        elsewhere.batches[f"other_{batch.id}"] = FakeBatch(
            f"other_{batch.id}", renamed, batch.created_at, {"evenhand": "another"}
        )
    summary = await by_batch(elsewhere, sums(8), at)
    assert (summary.pending, summary.calls) == (0, 16)
    ours = [batch for name, batch in elsewhere.batches.items() if not name.startswith("other_")]
    assert [len(batch.requests) for batch in ours] == [16]


async def test_what_an_earlier_command_sent_is_none_of_this_ones_calls(
    start: Start, at: Path
) -> None:
    """Its batch is found again after this command has submitted as much as it may."""
    provider = start()
    provider.hold = True
    stop = Stop()
    running = asyncio.create_task(by_batch(provider, sums(8), at, stop=stop, max_calls=4))
    await asyncio.to_thread(provider.wait_for, lambda: provider.looks > 0)
    stop.ask("interrupt")
    await running
    with open_store(at) as store, store.writing() as connection:
        lost = update(batches).values(state="intended", provider_id=None)
        connection.execute(lost)
    provider.hold = False
    again = await by_batch(provider, sums(8), at, max_calls=4)
    assert (again.stopped_by, again.calls, again.total.calls) == ("max-calls", 4, 8)
    assert (again.pending, provider.paid) == (4, 8)


async def test_one_that_never_arrived_is_submitted_again(start: Start, at: Path) -> None:
    provider = start()
    lost: list[FakeBatch] = []

    def forget_the_first(batch: FakeBatch) -> Scripted | None:
        if lost:
            return None
        lost.append(provider.batches.pop(batch.id))
        return RESET

    provider._on_create = forget_the_first
    summary = await by_batch(provider, sums(4), at)
    assert (summary.pending, provider.paid, summary.calls) == (0, 8, 8)
    (batch,) = provider.batches.values()
    assert batch is not lost[0]


@pytest.mark.parametrize("cut", ["half", "quiet"])
async def test_results_cut_short_are_fetched_again_and_not_asked_again(
    start: Start, at: Path, cut: Cut
) -> None:
    provider = start()
    provider.cuts = [cut, cut]
    summary = await by_batch(provider, sums(20), at)
    assert (summary.pending, summary.calls, provider.paid) == (0, 40, 40)
    assert provider.cuts == []
    assert summary.input_tokens == 40_000  # each answer is counted once


async def test_what_the_provider_does_not_give_however_often_is_asked_anew(
    start: Start, at: Path
) -> None:
    provider, hearer = start(), Hearer()
    provider.cuts = ["quiet"] * 5
    summary = await by_batch(provider, sums(20), at, hearer=hearer)
    assert summary.pending == 0
    first, second = provider.batches.values()
    assert len(first.requests) == 40
    assert 0 < len(second.requests) < 20  # a third of the file was missing
    assert any("could not be fetched in 5 attempts" in said for said in hearer.heard)


async def test_a_provider_that_is_down_for_a_while_is_waited_for(start: Start, at: Path) -> None:
    provider, hearer = start(), Hearer()
    provider.hold = True
    running = asyncio.create_task(by_batch(provider, sums(5), at, hearer=hearer))
    await asyncio.to_thread(provider.wait_for, lambda: provider.looks > 0)
    provider.down = True
    seen = len(provider.requests)
    await asyncio.to_thread(provider.wait_for, lambda: len(provider.requests) > seen + 3)
    provider.down = provider.hold = False
    summary = await running
    assert (summary.pending, provider.paid) == (0, 10)
    told = [said for said in hearer.heard if "answered HTTP 503: down for a while" in said]
    assert len(told) == 1  # and not at every look


async def test_a_provider_that_stays_away_is_given_up_and_its_batches_stay(
    start: Start, at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = BatchTiming(first_look_s=0.02, look_s=0.05, patience_s=0.2)
    monkeypatch.setattr(BatchTiming, "looking_every", lambda _: hasty)
    provider = start()
    provider.hold = True
    running = asyncio.create_task(by_batch(provider, sums(5), at))
    await asyncio.to_thread(provider.wait_for, lambda: provider.looks > 0)
    provider.down = True
    summary = await running
    assert (summary.stopped_by, summary.pending) == ("judge", 5)
    assert any("1 batch with 10 requests is still at" in note for note in summary.notes)
    provider.down = provider.hold = False
    again = await by_batch(provider, sums(5), at)
    assert (again.pending, provider.paid, len(provider.batches)) == (0, 10, 1)


async def test_a_batch_that_this_key_does_not_know_stops_the_run(start: Start, at: Path) -> None:
    provider = start()
    provider.hold = True
    stop = Stop()
    running = asyncio.create_task(by_batch(provider, sums(3), at, stop=stop))
    await asyncio.to_thread(provider.wait_for, lambda: provider.looks > 0)
    stop.ask("interrupt")
    await running
    provider.batches.clear()
    again = await by_batch(provider, sums(3), at)
    assert (again.stopped_by, again.calls, provider.submitted) == ("judge", 0, 0)
    assert again.error is not None
    assert "no such batch for this key" in again.error.message
    given_up = await by_batch(provider, sums(3), at, cancel_batches=True)
    assert (given_up.stopped_by, given_up.pending) == (None, 3)
    provider.hold = False
    anew = await by_batch(provider, sums(3), at)
    assert (anew.pending, provider.paid) == (0, 6)


async def test_a_provider_that_cannot_be_reached_at_all_is_given_up_soon(
    start: Start, at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = BatchTiming(first_look_s=0.02, look_s=0.05, first_patience_s=0.2)
    monkeypatch.setattr(BatchTiming, "looking_every", lambda _: hasty)
    provider, hearer = start(), Hearer()
    provider.down = True
    summary = await by_batch(provider, sums(3), at, hearer=hearer)
    assert (summary.stopped_by, summary.pending) == ("judge", 3)
    assert summary.error is not None
    assert "answered HTTP 503" in summary.error.message


async def test_a_wrong_key_stops_the_run_and_is_shown_nowhere(at: Path) -> None:
    wrong = Reply({"error": {"message": "Incorrect API key: sk-wrong-123456789"}}, status=401)
    with OpenAIProvider() as provider:
        provider._routed = lambda request: wrong  # type: ignore[method-assign]
        options = JudgeOptions(base_url=provider.url, api_key="sk-wrong-123456789")
        judge = open_judge("openai:m", options)
        summary = await by_batch(provider, sums(2), at, judge=judge)
    assert (summary.stopped_by, summary.pending) == ("judge", 2)
    assert summary.error is not None
    assert summary.error.kind == "judge_authentication"
    assert "sk-wrong" not in summary.model_dump_json()
    assert b"sk-wrong" not in bytes_of(at)
    with open_store(at) as store:
        assert store.batches.of_run(only_run(store).id) == []


async def test_a_server_without_batches_says_so(at: Path) -> None:
    with OpenAIProvider() as provider:
        provider._routed = lambda request: error_reply(404, "Not Found")  # type: ignore[method-assign]
        summary = await by_batch(provider, sums(2), at)
    assert summary.error is not None
    assert "there is no batch API there" in summary.error.message


async def test_a_refused_batch_stops_the_run_with_the_providers_reason(at: Path) -> None:
    def refuse(batch: FakeBatch) -> None:
        batch.phase = "refused"
        message = "The model `loopback-1` does not exist."
        batch.errors = [{"code": "model_not_found", "message": message, "line": 1}] * 4

    with OpenAIProvider(on_create=refuse) as provider:
        summary = await by_batch(provider, sums(2), at)
        assert (summary.stopped_by, summary.pending, summary.invalid) == ("judge", 2, 0)
        assert summary.error is not None
        reason = (
            "refused batch batch_1: The model `loopback-1` does not exist. (line 1), and 3 more"
        )
        assert reason in summary.error.message
        provider._on_create = None
        again = await by_batch(provider, sums(2), at)
        assert (again.pending, provider.paid) == (0, 4)


async def test_where_too_much_is_there_smaller_batches_are_tried(at: Path) -> None:
    with OpenAIProvider() as provider:
        provider.crowd = 6
        hearer = Hearer()
        summary = await by_batch(provider, sums(10), at, hearer=hearer)
        assert (summary.pending, provider.paid) == (0, 20)
        sizes = [len(batch.requests) for batch in provider.batches.values()]
        # Half of it, and half of that; after each that went, twice as much is tried.
        assert sizes[:3] == [20, 10, 10]
        assert {5} <= set(sizes) <= {20, 10, 5}
        assert summary.calls == sum(size for size in sizes if size <= 6) == 20
        assert any("Enqueued token limit reached" in said for said in hearer.heard)


async def test_what_a_model_refuses_in_every_request_is_left_out(at: Path) -> None:
    def picky(prompt: str, body: dict[str, Any]) -> Answer:
        if "temperature" in body:
            message = "Unsupported value: 'temperature' does not support 0 with this model."
            return ItemFault(400, message, "invalid_request_error", "temperature")
        return adds_up(prompt, body)

    with OpenAIProvider(picky) as provider:
        summary = await by_batch(provider, sums(3), at)
        assert (summary.pending, summary.invalid) == (0, 0)
        first, second = provider.batches.values()
        assert all("temperature" in body for _, body in first.requests)
        assert not any("temperature" in body for _, body in second.requests)


async def test_letters_are_all_asked_in_one_batch(at: Path) -> None:
    rows = [{**row, "criteria": ["accuracy", "brevity"]} for row in sums(2)]
    with OpenAIProvider(lambda *_: "A") as provider:
        config = JudgeConfig(mode="letter", retry=QUICK.retry)
        summary = await by_batch(provider, rows, at, config=config)
        assert summary.pending == 0
        # Overall and two criteria, in two orders, for two pairs.
        assert [len(batch.requests) for batch in provider.batches.values()] == [12]
        assert all(body["logprobs"] for _, body in provider.batches["batch_1"].requests)


async def test_an_answer_may_hold_any_character(start: Start, at: Path) -> None:
    """Line ends of Unicode, and what no store's text can hold, come through as they are."""
    odd = "one\u2028two\u2029three\x85four\x0bfive\x00six\x1aseven"

    def says(prompt: str, body: dict[str, Any]) -> Answer:
        return answer_json("A", reasoning=odd, criteria=[("accuracy", "A")])

    provider = start(says)
    summary = await by_batch(provider, sums(3), at)
    assert (summary.inconsistent, summary.pending) == (3, 0)
    for judged in judged_items(at).values():
        for stored in judged.passes:
            assert isinstance(stored.made, PassResult)
            assert isinstance(stored.made.reading, PassBallot)
            assert stored.made.reading.raw == says("", {})


async def test_results_of_others_and_twice_the_same_change_nothing(start: Start, at: Path) -> None:
    provider = start()
    whole = provider._file

    def noisy(lines: list[dict[str, Any]]) -> Scripted:
        foreign = [{**lines[0], "custom_id": name} for name in ("x", "x-1", "eh-99", "eh-²")]
        return whole([*foreign, {"odd": 1}, *lines, *lines])

    provider._file = noisy  # type: ignore[method-assign]
    summary = await by_batch(provider, sums(4), at)
    assert (summary.pending, summary.calls, summary.input_tokens) == (0, 8, 8000)


async def test_no_secret_is_kept_in_the_store(start: Start, at: Path) -> None:
    await by_batch(start(), sums(2), at)
    assert KEY.encode() not in bytes_of(at)
