"""The parts of a run by the batch, each by itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batch_providers import QUICK
from evenhand import Price
from evenhand.contract import Pair, Usage
from evenhand.errors import JudgeConnectionLost, JudgeRateLimited, JudgeRejected, JudgeServerError
from evenhand.judges.batch import BATCH_RATE, BatchLimits
from evenhand.judges.batch.sdk import never_arrived, objects_in
from evenhand.judges.protocol import Traits
from evenhand.runs.batch.context import BatchBudget, BatchTiming, PollTimer
from evenhand.runs.batch.requests import BatchBuilder, WantedRequest, custom_id_of, place_of
from evenhand.runs.budget import Budget
from evenhand.runs.executor import RunJudge
from evenhand.runs.options import RunOptions
from evenhand.runs.progress import JudgeCounts
from evenhand.runs.stop import Stop
from evenhand.store import WorkItem
from evenhand.store.batches import BatchRecord
from scripted import ScriptedJudge, make_pair


def work_item(number: int, pair: Pair | None = None) -> WorkItem:
    return WorkItem(number, f"k{number}", number, pair or make_pair(), {})


def wanted(size: int = 10) -> WantedRequest:
    return WantedRequest("original", 1, 1, None, b"x" * size, 100.0)


# Lines


async def read(data: bytes, cuts: list[int]) -> tuple[list[dict[str, Any]], bool]:
    """What comes of a file that arrives in these pieces, and whether it was called cut short."""

    async def pieces() -> AsyncIterator[bytes]:
        ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
        begin = 0
        for end in ends:
            yield data[begin:end]
            begin = end

    found = []
    try:
        async for each in objects_in(pieces(), host="h"):
            found.append(each)  # noqa: PERF401 - what came before the error counts
    except JudgeConnectionLost:
        return found, True
    return found, False


rows = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), min_size=1), max_size=8)


@settings(deadline=None)
@given(rows, st.lists(st.integers(0, 2000), max_size=6))
def test_lines_are_the_same_in_whatever_pieces_they_come(
    objects: list[dict[str, str]], cuts: list[int]
) -> None:
    data = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)
    encoded = data.encode("utf-8", "surrogatepass")
    assert asyncio.run(read(encoded, cuts)) == (objects, False)


@settings(deadline=None)
@given(rows.filter(bool), st.data())
def test_a_file_that_ends_inside_a_line_is_known_to_be_cut(
    objects: list[dict[str, str]], data: st.DataObject
) -> None:
    lines = [json.dumps(each).encode() + b"\n" for each in objects]
    kept = data.draw(st.integers(0, len(lines) - 1))
    inside = data.draw(st.integers(1, len(lines[kept]) - 2))
    cut = b"".join(lines[:kept]) + lines[kept][:inside]
    assert asyncio.run(read(cut, [])) == (objects[:kept], True)


def test_a_line_of_too_many_values_is_not_parsed() -> None:
    line = b'{"custom_id":"x","y":[' + b"[]," * 1_000_000 + b"[]]}\n"
    assert asyncio.run(read(line + b'{"custom_id":"z"}\n', [])) == ([{"custom_id": "z"}], True)


# Drafts


@settings(deadline=None)
@given(st.lists(st.integers(1, 400), max_size=60), st.integers(1, 10), st.integers(200, 3000))
def test_a_draft_stays_within_its_limits_unless_one_request_is_beyond_them(
    sizes: list[int], most: int, most_bytes: int
) -> None:
    batches, drafting = [], BatchBuilder(BatchLimits(most, most_bytes))
    for number, size in enumerate(sizes, 1):
        if not drafting.has_room(wanted(size)):
            batches.append(drafting)
            drafting = BatchBuilder(BatchLimits(most, most_bytes))
        drafting.add(work_item(number), wanted(size), reserved_usd=0.5)
    batches += [drafting] if len(drafting) else []
    asked = []
    for batch in batches:
        new, requests, draft = batch.closed(1, 2)
        assert 1 <= len(requests) <= most
        total = sum(len(body) + len(custom_id) for custom_id, body in draft.lines)
        assert len(requests) == 1 or total <= most_bytes
        assert new.first_number <= min(r.pair_id for r in requests)
        assert new.last_number >= max(r.pair_id for r in requests)
        assert new.reserved_usd == pytest.approx(0.5 * len(requests))
        asked += [request.pair_id for request in requests]
        for place, (custom_id, _) in enumerate(draft.lines, 1):
            assert place_of(custom_id, new.nonce) == place
            assert len(custom_id) <= 64
            assert custom_id.replace("-", "").isalnum()
            assert custom_id.isascii()
    assert asked == list(range(1, len(sizes) + 1))


@settings(deadline=None)
@given(st.text(max_size=80))
def test_foreign_ids_are_nobodys(text: str) -> None:
    nonce = "eh0123"
    place = place_of(text, nonce)
    assert place is None or text.rpartition("-")[0] == nonce
    assert place_of(custom_id_of("another", 3), nonce) is None


# Caps and prices


def seat(price: Price | None) -> RunJudge:
    judge = ScriptedJudge(lambda call: "")
    count = JudgeCounts("scripted", 10)
    return RunJudge(1, judge, QUICK, price, count, None)  # type: ignore[arg-type]


def record(reserved: float, requests: int = 10) -> BatchRecord:
    return BatchRecord(1, 1, 1, "n", "open", requests, 1, 9, 0.0, 0.0, reserved, "b")


def test_a_cap_on_cost_counts_what_is_spoken_for() -> None:
    budget = Budget(Stop(), max_cost=1.0)
    allowance = BatchBudget(RunOptions(batch=True, max_cost=1.0), budget)
    allowance.reserve(record(0.5))
    assert allowance.take(0.3) is None
    assert allowance.take(0.3) is not None  # 0.5 + 0.3 + 0.3
    allowance.closed(1, 0.3)
    allowance.ended(record(0.5))
    allowance.record(Usage(input_tokens=1, output_tokens=1), 0.1)
    assert allowance.take(0.9) is None  # 0.1 + 0.9
    assert allowance.take(0.01) is not None


def test_what_a_request_may_cost_follows_those_that_came() -> None:
    allowance = BatchBudget(RunOptions(batch=True), Budget(Stop()))
    its_seat = seat(Price(10.0, 20.0))
    expected = allowance.expected_usd(its_seat, work_item(1), 1000.0)
    # 1,000 tokens by the dearest tokenizer, and the longest answer on one criterion; half of it.
    assert expected == pytest.approx((1250 * 10 + 750 * 20) / 1e6 / 2)
    for _ in range(20):
        allowance.record(Usage(input_tokens=1, output_tokens=1), 0.002)
    assert allowance.expected_usd(its_seat, work_item(1), 1000.0) == pytest.approx(0.0022)
    assert (
        BatchBudget(RunOptions(batch=True), Budget(Stop())).expected_usd(
            seat(None), work_item(1), 1000.0
        )
        is None
    )


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-4.1-mini"),
        ("openai", "gpt-4o"),
        ("openai", "o3"),
        ("anthropic", "claude-sonnet-4-5"),
    ],
)
def test_batch_rates_are_those_that_the_price_lists_have(provider: str, model: str) -> None:
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    used = PricedUsage(input_tokens=1000, output_tokens=1000)
    whole = calc_price(used, model, provider_id=provider).total_price
    context: Any = {"processing": "batch"}
    by_batch = calc_price(used, model, provider_id=provider, price_context=context).total_price
    assert float(by_batch) == pytest.approx(float(whole) * BATCH_RATE)


# Waiting


async def test_looks_come_more_and_more_seldom_and_a_stop_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    async def wait_for(what: Any, timeout: float) -> None:  # noqa: ASYNC109 - asyncio's own name
        what.close()
        waited.append(timeout)

    stop = Stop()
    waiting = PollTimer(BatchTiming(first_look_s=2, look_s=10, grows_by=2), stop)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "wait_for", wait_for)
        for _ in range(4):
            await waiting.rest()
        waiting.anew()
        await waiting.rest()
        waiting.failed(JudgeRateLimited("slow down", retry_after_s=77))
        await waiting.rest()
        await waiting.rest(at_most_s=0.5)
    assert waited == [2, 4, 8, 10, 2, 77, 0.5]
    stop.ask("interrupt")
    await waiting.rest()  # at once


def test_what_cannot_be_mended_by_waiting_is_not_waited_for() -> None:
    waiting = PollTimer(BatchTiming(), Stop())
    assert waiting.failed(JudgeServerError("down"))
    assert not waiting.failed(JudgeRejected("no"))
    assert never_arrived(JudgeRejected("no"))
    assert not never_arrived(JudgeServerError("perhaps"))
    assert Traits().deferred is False
