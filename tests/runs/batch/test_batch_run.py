"""A run by the batch, from data to summary, at both providers."""

from __future__ import annotations

import asyncio
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from batch_providers import (
    KEY,
    NOT_RUN,
    QUICK,
    Answer,
    Hearer,
    ItemFault,
    OpenAIProvider,
    Provider,
    Start,
    adds_up,
    by_batch,
    interrupted,
    judge_of,
    judged_items,
    only_run,
)
from evenhand import Price
from evenhand.contract import Failure
from evenhand.errors import InputError
from evenhand.judges.batch import BatchLimits
from evenhand.judges.batch.anthropic import AnthropicBatches
from evenhand.judges.batch.openai import OpenAIBatches
from evenhand.judging.config import JudgeConfig
from evenhand.judging.decision import Judged, PassBallot, PassResult
from evenhand.runs import RankAdaptive, RunOptions, UntilDecided
from evenhand.store import open_store
from run_data import sums, wins_b
from scripted import answer_json


async def test_every_pair_is_judged_in_both_orders_at_half_the_price(
    start: Start, at: Path
) -> None:
    provider, hearer = start(), Hearer()
    summary = await by_batch(provider, sums(30), at, hearer=hearer, price=Price(1.0, 2.0))
    assert (summary.pairs, summary.wins_a, summary.wins_b) == (30, 20, wins_b(30))
    assert (summary.ties, summary.inconsistent, summary.invalid, summary.pending) == (0, 0, 0, 0)
    assert summary.calls == provider.paid == 60
    (batch,) = provider.batches.values()
    # 1,000 tokens in and 100 out each; half of 1 and 2 dollars for a million.
    assert summary.cost_usd == pytest.approx(60 * (1000 * 1.0 + 100 * 2.0) / 1e6 / 2)
    assert summary.total.cost_usd == pytest.approx(summary.cost_usd)
    assert (summary.input_tokens, summary.output_tokens) == (60_000, 6_000)
    assert any("at batch rates" in note for note in summary.notes)
    assert any(f"batch {batch.id} with 60 requests is at 127.0.0.1" in s for s in hearer.heard)
    for judged in judged_items(at).values():
        assert [stored.made.order for stored in judged.passes] == ["original", "swapped"]
    with open_store(at) as store:
        run = only_run(store)
        assert store.batches.unfinished(run.id) == []
        (judge,) = store.runs.judges(run.id)
        assert store.batches.count_answered(run.id, judge.id) == 0


async def test_a_batch_asks_and_reads_what_single_calls_do(
    start: Start, at: Path, tmp_path: Path
) -> None:
    provider = start()
    await by_batch(provider, sums(6), at)
    (batch,) = provider.batches.values()
    asked = sorted([body for _, body in batch.requests], key=str)
    singly = tmp_path / "singly.db"
    await by_batch(provider, sums(6), singly, batch=False)
    posted = [
        seen for seen in provider.requests if seen.path.endswith(("/completions", "/messages"))
    ]
    for body in asked:
        body.pop("stream", None)
    sent = [{k: v for k, v in seen.json.items() if k != "stream"} for seen in posted]
    assert asked == sorted(sent, key=str)
    by_the_batch, one_by_one = judged_items(at), judged_items(singly)
    for key, judged in one_by_one.items():
        assert isinstance(judged.settled, Judged)
        other = by_the_batch[key].settled
        assert isinstance(other, Judged)
        assert other.decision == judged.settled.decision
        for mine, theirs in zip(by_the_batch[key].passes, judged.passes, strict=True):
            assert isinstance(mine.made, PassResult)
            assert isinstance(theirs.made, PassResult)
            assert mine.made.reading == theirs.made.reading
            assert mine.made.model == theirs.made.model
            assert mine.made.usage.input_tokens == theirs.made.usage.input_tokens == 1000


def whimsical(prompt: str, body: dict[str, Any]) -> Answer:
    """Of no opinion, and always the same of what it is shown."""
    rng = random.Random(sha256(prompt.encode()).digest())
    winner = rng.choice("AB")
    return answer_json(winner, confidence=rng.random(), criteria=[("accuracy", winner)])


async def test_swapped_data_gives_mirrored_verdicts(start: Start, at: Path, tmp_path: Path) -> None:
    rows = sums(40)
    swapped = [
        {**row, "response_a": row["response_b"], "response_b": row["response_a"]} for row in rows
    ]
    provider = start(whimsical)
    await by_batch(provider, rows, at)
    other = tmp_path / "swapped.db"
    await by_batch(provider, swapped, other)
    mirrored = {"A": "B", "B": "A", "TIE": "TIE", None: None}
    found, turned = judged_items(at), judged_items(other)
    outcomes = set()
    for key, judged in found.items():
        first, second = judged.settled, turned[key].settled
        assert isinstance(first, Judged)
        assert isinstance(second, Judged)
        one, two = first.decision, second.decision
        outcomes.add(one.outcome.value)
        assert (two.outcome, two.confidence) == (one.outcome, one.confidence)
        assert two.winner == mirrored[one.winner]
        assert two.first_pass_winner == mirrored[one.second_pass_winner]
        assert two.second_pass_winner == mirrored[one.first_pass_winner]
    assert outcomes == {"win", "inconsistent"}


async def test_what_fails_is_asked_again_and_nothing_else(start: Start, at: Path) -> None:
    failed: set[str] = set()

    def sometimes(prompt: str, body: dict[str, Any]) -> Answer:
        if "What is 7 plus" in prompt and prompt not in failed:
            failed.add(prompt)
            return ItemFault(500, "the model fell over")
        return adds_up(prompt, body)

    provider = start(sometimes)
    summary = await by_batch(provider, sums(10), at)
    assert (summary.wins_a, summary.invalid, summary.pending) == (7, 0, 0)
    assert [len(batch.requests) for batch in provider.batches.values()] == [20, 2]
    assert (provider.paid, summary.calls) == (20, 22)
    for stored in judged_items(at)["sum-7"].passes:
        assert stored.made.usage.requests == 2


async def test_what_always_fails_is_invalid_after_its_attempts(start: Start, at: Path) -> None:
    def stubborn(prompt: str, body: dict[str, Any]) -> Answer:
        wrong = "What is 3 plus" in prompt
        return ItemFault(500, "the model fell over") if wrong else adds_up(prompt, body)

    provider = start(stubborn)
    summary = await by_batch(provider, sums(5), at)
    assert (summary.wins_a, summary.wins_b, summary.invalid) == (4, 0, 1)
    assert [len(batch.requests) for batch in provider.batches.values()] == [10, 2, 2]  # 3 attempts
    settled = judged_items(at)["sum-3"].settled
    assert isinstance(settled, Failure)
    assert settled.error.kind == "judge_server_error"
    assert "(tried 3 times)" in settled.error.message
    again = await by_batch(provider, sums(5), at, retry=("failed",))
    assert again.invalid == 1
    assert len(provider.batches) == 6  # asked as often as before


async def test_what_is_refused_is_invalid_at_once(start: Start, at: Path) -> None:
    def choosy(prompt: str, body: dict[str, Any]) -> Answer:
        if "What is 2 plus" in prompt:
            return ItemFault(413, "too long for me", "invalid_request_error")
        return adds_up(prompt, body)

    provider = start(choosy)
    summary = await by_batch(provider, sums(4), at)
    assert (summary.invalid, summary.pending) == (1, 0)
    assert len(provider.batches) == 1


async def test_a_judge_that_answers_nothing_makes_no_pair_invalid(start: Start, at: Path) -> None:
    provider = start(lambda *_: ItemFault(413, "no such thing", "invalid_request_error"))
    summary = await by_batch(provider, sums(4), at)
    assert (summary.invalid, summary.pending, summary.stopped_by) == (0, 4, "judge")
    assert summary.error is not None
    assert " never answered, so nothing was judged: " in summary.error.message
    assert "no such thing" in summary.error.message


async def test_what_a_batch_did_not_come_to_is_submitted_again(start: Start, at: Path) -> None:
    seen: set[str] = set()

    def slow(prompt: str, body: dict[str, Any]) -> Answer:
        late = "What is 4 plus" in prompt or "What is 5 plus" in prompt
        if late and prompt not in seen:
            seen.add(prompt)
            return NOT_RUN
        return adds_up(prompt, body)

    provider, hearer = start(slow), Hearer()
    provider.expires = True
    summary = await by_batch(provider, sums(10), at, hearer=hearer)
    assert (summary.wins_a, summary.wins_b, summary.pending) == (7, 3, 0)
    assert [len(batch.requests) for batch in provider.batches.values()] == [20, 4]
    assert provider.paid == 20
    told = [said for said in hearer.heard if "has expired, 4 of its 20 requests unanswered" in said]
    assert len(told) == 1
    # What expired was not asked, so that it is no failed attempt.
    assert {s.made.usage.requests for s in judged_items(at)["sum-4"].passes} == {1}


async def test_a_provider_that_never_answers_is_given_up(start: Start, at: Path) -> None:
    provider = start(lambda *_: NOT_RUN)
    provider.expires = True
    summary = await by_batch(provider, sums(3), at)
    assert (summary.stopped_by, summary.pending, len(provider.batches)) == ("judge", 3, 3)
    assert summary.error is not None
    assert "3 batches in a row came back" in summary.error.message


async def test_a_batch_cancelled_at_the_provider_is_not_submitted_behind_its_back(
    start: Start, at: Path
) -> None:
    provider = start()
    provider.hold = True
    running = asyncio.create_task(by_batch(provider, sums(5), at))
    await asyncio.to_thread(provider.wait_for, lambda: provider.looks > 0)
    provider.cancel_by_hand()
    summary = await running
    assert (summary.stopped_by, summary.pending, len(provider.batches)) == ("judge", 5, 1)
    assert summary.error is not None
    assert "was cancelled at 127.0.0.1" in summary.error.message
    provider.hold = False
    again = await by_batch(provider, sums(5), at)
    assert (again.pending, provider.paid) == (0, 10)


async def test_an_answer_that_cannot_be_read_is_shown_to_the_judge_again(
    start: Start, at: Path
) -> None:
    def mumbles(prompt: str, body: dict[str, Any]) -> Answer:
        first = len(body["messages"]) <= (2 if body["messages"][0]["role"] == "system" else 1)
        if first and "What is 2 plus" in prompt:
            return "Well, well."
        return adds_up(prompt, body)

    provider = start(mumbles)
    summary = await by_batch(provider, sums(4), at)
    assert (summary.wins_a, summary.invalid, summary.pending) == (3, 0, 0)
    assert [len(batch.requests) for batch in provider.batches.values()] == [8, 2]
    for stored in judged_items(at)["sum-2"].passes:
        assert isinstance(stored.made, PassResult)
        assert [unread.raw for unread in stored.made.repaired] == ["Well, well."]
        assert (stored.made.usage.requests, stored.made.usage.input_tokens) == (2, 2000)


async def test_a_judge_that_cannot_be_read_is_not_asked_to_repair_a_whole_batch(
    start: Start, at: Path
) -> None:
    provider = start(lambda prompt, body: "Well,\x1b[2J well.")
    summary = await by_batch(provider, sums(30), at)
    assert (summary.stopped_by, summary.pending, provider.paid) == ("judge", 30, 60)
    assert summary.error is not None
    assert "20 answers from " in summary.error.message
    assert "“Well, [2J well.” (before its repair)" in summary.error.message
    # The answers are there: the same command asks nothing, and its switch only for the repairs.
    again = await by_batch(provider, sums(30), at)
    assert (again.stopped_by, provider.paid) == ("judge", 60)
    whole = await by_batch(provider, sums(30), at, keep_going_unread=True)
    assert (whole.stopped_by, whole.invalid, whole.pending) == (None, 30, 0)
    assert provider.paid == 120


async def test_a_pair_that_is_in_the_data_twice_is_asked_once(start: Start, at: Path) -> None:
    rows = sums(5) + [{**row, "id": f"again-{row['id']}"} for row in sums(5)]
    provider = start()
    summary = await by_batch(provider, rows, at)
    assert (summary.pairs, summary.pending, provider.paid) == (10, 0, 10)


async def test_batches_are_as_small_as_the_provider_wants_them(
    start: Start, at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for api in (OpenAIBatches, AnthropicBatches):
        monkeypatch.setattr(api, "limits", BatchLimits(requests=7, bytes=10_000_000))
    provider = start()
    summary = await by_batch(provider, sums(10), at)
    sizes = [len(batch.requests) for batch in provider.batches.values()]
    assert sizes == [7, 7, 6]
    assert (summary.pending, provider.paid) == (0, 20)
    longest = max(
        len(str(body)) for batch in provider.batches.values() for _, body in batch.requests
    )
    for api in (OpenAIBatches, AnthropicBatches):
        monkeypatch.setattr(api, "limits", BatchLimits(requests=1000, bytes=3 * longest))
    other = at.with_name("bytes.db")
    before = len(provider.batches)
    await by_batch(provider, sums(10, begin=50), other)
    sizes = [len(batch.requests) for batch in list(provider.batches.values())[before:]]
    assert sum(sizes) == 20
    assert 1 < max(sizes) <= 3


async def test_samples_are_asked_together(start: Start, at: Path) -> None:
    provider = start()
    config = JudgeConfig(samples=3, retry=QUICK.retry)
    summary = await by_batch(provider, sums(3), at, config=config)
    assert (summary.pending, summary.calls, len(provider.batches)) == (0, 18, 1)


async def test_the_cap_on_calls_counts_what_is_submitted(start: Start, at: Path) -> None:
    provider = start()
    summary = await by_batch(provider, sums(10), at, max_calls=7)
    assert (summary.stopped_by, summary.calls, provider.submitted) == ("max-calls", 7, 7)
    assert summary.pending == 7  # three whole pairs, and half of the fourth
    again = await by_batch(provider, sums(10), at, max_calls=100)
    assert (again.stopped_by, again.pending, again.calls) == (None, 0, 13)
    assert provider.paid == 20
    assert again.total.calls == 20


async def test_the_cap_on_cost_is_kept_before_anything_is_sent(start: Start, at: Path) -> None:
    provider = start()
    each = (1000 * 1.0 + 100 * 2.0) / 1e6 / 2
    summary = await by_batch(provider, sums(40), at, price=Price(1.0, 2.0), max_cost=30 * each)
    assert summary.stopped_by == "max-cost"
    assert summary.cost_usd is not None
    assert summary.cost_usd <= 30 * each
    assert provider.paid == summary.calls < 80
    assert summary.pending > 0
    again = await by_batch(provider, sums(40), at, price=Price(1.0, 2.0), max_cost=1.0)
    assert (again.pending, provider.paid) == (0, 80)


async def test_a_stop_leaves_the_batches_and_the_same_command_collects_them(
    start: Start, at: Path
) -> None:
    provider = start()
    summary = await interrupted(provider, sums(6), at)
    assert (summary.stopped_by, summary.pending, summary.calls) == ("interrupt", 6, 12)
    assert any("1 batch with 12 requests is still at 127.0.0.1" in note for note in summary.notes)
    with pytest.raises(
        InputError, match="has 12 requests waiting in a provider's batch API; add batch"
    ):
        await by_batch(provider, sums(6), at, batch=False)
    provider.hold = False
    again = await by_batch(provider, sums(6), at)
    assert (again.stopped_by, again.pending, again.calls) == (None, 0, 0)
    assert (provider.paid, again.total.calls, len(provider.batches)) == (12, 12, 1)


async def test_batches_are_given_up_where_that_is_wanted(start: Start, at: Path) -> None:
    provider = start()
    await interrupted(provider, sums(6), at)
    given_up = await by_batch(provider, sums(6), at, cancel_batches=True)
    assert (given_up.stopped_by, given_up.pending, provider.submitted) == (None, 6, 12)
    with open_store(at) as store:
        assert store.batches.unfinished(only_run(store).id) == []
    provider.hold = False
    singly = await by_batch(provider, sums(6), at, batch=False)
    assert singly.pending == 0


async def test_a_run_in_postgresql_is_stopped_and_collected_elsewhere(
    start: Start, fresh_database: str
) -> None:
    provider = start()
    await interrupted(provider, sums(6), fresh_database)
    provider.hold = False
    again = await by_batch(provider, sums(6), fresh_database)
    assert (again.pending, again.wins_a, provider.paid) == (0, 4, 12)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rpm": 5}, "rpm limits single calls"),
        ({"concurrency": 5}, "concurrency limits single calls"),
        ({"until_decided": UntilDecided()}, "until_decided chooses"),
        ({"rank_adaptive": RankAdaptive(5)}, "rank_adaptive chooses"),
        ({"executor": "ray"}, "cannot be combined"),
        ({"batch": False, "cancel_batches": True}, "cancel_batches requires batch"),
        ({"batch": False, "batch_poll_s": 3}, "batch_poll_s requires batch"),
        ({"batch_poll_s": 0}, "batch_poll_s is 0; give a number above 0"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        RunOptions(**{"batch": True, **options})


async def test_a_judge_without_batches_is_refused_before_anything_is_stored(at: Path) -> None:
    from evenhand.judges.registry import open_judge

    with OpenAIProvider() as provider:
        with pytest.raises(InputError, match="baseline:longer has no batch API; batch takes"):
            await by_batch(provider, sums(2), at, judge=open_judge("baseline:longer"))
        fleet = open_judge_of_two(provider)
        with pytest.raises(InputError, match="has several servers, but a batch goes to one"):
            await by_batch(provider, sums(2), at, judge=fleet)
    with open_store(at) as store:
        assert store.runs.all() == []


def open_judge_of_two(provider: Provider) -> Any:
    from evenhand.judges.registry import JudgeOptions, open_judge

    urls = (provider.url, provider.url.replace("127.0.0.1", "localhost"))
    return open_judge("openai:m", JudgeOptions(base_url=urls))


async def test_a_seed_and_temperature_go_with_the_requests(at: Path) -> None:
    with OpenAIProvider() as provider:
        await by_batch(provider, sums(1), at, judge=judge_of(provider, seed=7, temperature=0.5))
        (batch,) = provider.batches.values()
        for _, body in batch.requests:
            assert (body["seed"], body["temperature"]) == (7, 0.5)


async def test_a_key_in_a_batchs_answers_is_never_stored(start: Start, at: Path) -> None:
    def echoes(prompt: str, body: dict[str, Any]) -> Answer:
        return f"{adds_up(prompt, body)}\n\nI was sent Bearer {KEY}."

    await by_batch(start(echoes), sums(3), at)
    for judged in judged_items(at).values():
        for stored in judged.passes:
            assert isinstance(stored.made, PassResult)
            assert isinstance(stored.made.reading, PassBallot)
            assert stored.made.reading.raw.endswith("I was sent Bearer ***.")
    written = b"".join(path.read_bytes() for path in at.parent.glob(f"{at.name}*"))
    assert KEY.encode() not in written
