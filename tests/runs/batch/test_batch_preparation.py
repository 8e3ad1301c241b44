"""What a judge writes beside its verdicts goes by the batch too: each once, whoever needs it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batch_providers import (
    KEY,
    NOT_RUN,
    QUICK,
    Answer,
    ItemFault,
    OpenAIProvider,
    Provider,
    Start,
    by_batch,
    by_plans,
    interrupted,
    judge_of,
    judged_items,
    only_run,
)
from evenhand import Price
from evenhand.contract import Failure
from evenhand.errors import InputError
from evenhand.judging.config import JudgeConfig
from evenhand.runs import JudgePlan
from evenhand.store import open_store
from run_data import answer_to, artefact_in, pairings

PREPARED = replace(QUICK, prepare=("metrics", "reference", "analysis"))
# Three prompts and four models: six pairs a prompt, two texts of it, and one of each response.
ROWS = pairings(3, 4)
WANTED = {"metrics": 3, "reference": 3, "analysis": 12, None: 36}


def writes(prompt: str, body: dict[str, Any]) -> Answer:
    return answer_to(prompt)


def asked_of(provider: Provider) -> Counter[str]:
    """Every request of every batch, by its whole text."""
    return Counter(
        provider._prompt(body) for batch in provider.batches.values() for _, body in batch.requests
    )


def kinds_of(prompts: Any) -> dict[str | None, int]:
    return dict(Counter(artefact_in(prompt) for prompt in prompts))


def open_rows(at: Path) -> int:
    with open_store(at) as store:
        run = only_run(store)
        (judge,) = store.runs.judges(run.id)
        return store.batches.count_answered(run.id, judge.id)


async def test_each_artefact_is_asked_by_one_pair_and_shared_by_all(start: Start, at: Path) -> None:
    provider = start(writes)
    summary = await by_batch(provider, ROWS, at, config=PREPARED, price=Price(1.0, 2.0))
    asked = asked_of(provider)
    assert set(asked.values()) == {1}
    assert kinds_of(asked) == WANTED
    assert (summary.wins_a, summary.pending) == (18, 0)
    # What is prepared goes first and all together; the passes are the second batch.
    assert [len(batch.requests) for batch in provider.batches.values()] == [18, 36]
    # 54 requests of 1,000 tokens in and 100 out, at half of 1 and 2 dollars for a million.
    cost = 54 * (1000 * 1.0 + 100 * 2.0) / 1e6 / 2
    assert (summary.calls, summary.total.calls) == (54, 54)
    assert summary.cost_usd == pytest.approx(cost)
    assert summary.total.cost_usd == pytest.approx(cost)
    assert summary.total.input_tokens == 54_000
    assert all("my metrics" in text for text in asked if artefact_in(text) is None)
    assert open_rows(at) == 0
    with open_store(at) as store:
        assert store.answers.spent(only_run(store).id, artefacts=True).requests == 18


async def test_pairs_far_from_each_other_wait_for_the_same_artefact(at: Path) -> None:
    """More pairs than are looked at together, and batches smaller than what they want: 300 pairs of
    one prompt need 1 + 25 texts (25 * 24 / 2 = 300)."""
    rows = pairings(1, 25)
    with OpenAIProvider(writes) as provider:
        provider.crowd = 100
        config = replace(QUICK, prepare=("metrics", "analysis"))
        summary = await by_batch(provider, rows, at, config=config)
        answered = Counter(
            provider._prompt(body)
            for batch in provider.batches.values()
            if batch.phase == "ended"
            for _, body in batch.requests
        )
        assert set(answered.values()) == {1}
        assert kinds_of(answered) == {"metrics": 1, "analysis": 25, None: 600}
        assert (summary.wins_a, summary.pending) == (300, 0)


async def test_an_interrupted_run_collects_what_it_had_asked_for(start: Start, at: Path) -> None:
    provider = start(writes)
    stopped = await interrupted(provider, ROWS, at, config=PREPARED)
    assert (stopped.stopped_by, stopped.pending) == ("interrupt", 18)
    provider.hold = False
    summary = await by_batch(provider, ROWS, at, config=PREPARED)
    assert set(asked_of(provider).values()) == {1}
    assert (summary.wins_a, summary.pending, summary.total.calls) == (18, 0, 54)


async def test_the_cap_on_calls_ends_in_the_middle_of_preparing_and_loses_nothing(
    start: Start, at: Path
) -> None:
    provider = start(writes)
    capped = await by_batch(provider, ROWS, at, config=PREPARED, max_calls=10)
    assert (capped.stopped_by, capped.calls, capped.pending) == ("max-calls", 10, 18)
    assert kinds_of(asked_of(provider)).keys() <= {"metrics", "reference", "analysis"}
    summary = await by_batch(provider, ROWS, at, config=PREPARED)
    assert set(asked_of(provider).values()) == {1}
    assert (summary.calls, summary.total.calls, summary.pending) == (44, 54, 0)


async def test_the_cap_on_cost_is_reserved_for_what_is_written(start: Start, at: Path) -> None:
    provider = start(writes)
    price = Price(1.0, 2.0)
    each = (1000 * 1.0 + 100 * 2.0) / 1e6 / 2
    capped = await by_batch(provider, ROWS, at, config=PREPARED, price=price, max_cost=12 * each)
    assert capped.stopped_by == "max-cost"
    assert capped.cost_usd is not None
    assert 0 < capped.cost_usd <= 12 * each
    summary = await by_batch(provider, ROWS, at, config=PREPARED, price=price)
    assert set(asked_of(provider).values()) == {1}
    assert (summary.pending, summary.total.calls) == (0, 54)


async def test_what_expires_or_fails_is_asked_again(start: Start, at: Path) -> None:
    """Every text is first not run, then fails once in a way that may pass, then is written."""
    tries: Counter[str] = Counter()

    def answer(prompt: str, body: dict[str, Any]) -> Answer:
        tries[prompt] += artefact_in(prompt) is not None
        if tries[prompt] == 1:
            return NOT_RUN
        return ItemFault(500) if tries[prompt] == 2 else answer_to(prompt)

    provider = start(answer)
    provider.expires = True
    summary = await by_batch(provider, ROWS, at, config=PREPARED)
    assert (summary.wins_a, summary.pending) == (18, 0)
    asked = asked_of(provider)
    assert {count for text, count in asked.items() if artefact_in(text)} == {3}
    assert {count for text, count in asked.items() if not artefact_in(text)} == {1}
    with open_store(at) as store:  # a request that failed was one; one that was not run was none
        assert store.answers.spent(only_run(store).id, artefacts=True).requests == 2 * 18
    assert open_rows(at) == 0


async def test_a_text_that_cannot_be_had_fails_its_pairs_and_is_asked_again_on_retry(
    start: Start, at: Path
) -> None:
    refused = True

    def answer(prompt: str, body: dict[str, Any]) -> Answer:
        if refused and artefact_in(prompt) == "metrics" and "What is 2 plus 2?" in prompt:
            return ItemFault(400, "not this one", "invalid_request_error")
        return answer_to(prompt)

    provider = start(answer)
    summary = await by_batch(provider, ROWS, at, config=PREPARED)
    assert (summary.wins_a, summary.invalid, summary.pending) == (12, 6, 0)
    settled = {key: item.settled for key, item in judged_items(at).items()}
    failed = {key: each for key, each in settled.items() if isinstance(each, Failure)}
    assert {key.split("-")[0] for key in failed} == {"2"}
    assert all("not this one" in each.error.message for each in failed.values())
    # The six pairs of the prompt share one request, and it is settled.
    assert max(asked_of(provider).values()) == 1
    assert open_rows(at) == 0
    refused = False
    again = await by_batch(provider, ROWS, at, config=PREPARED, retry=("failed",))
    assert (again.wins_a, again.invalid) == (18, 0)
    assert again.calls == 1 + 12


async def test_cancelled_batches_leave_what_they_brought(start: Start, at: Path) -> None:
    provider = start(writes)
    await interrupted(provider, ROWS, at, config=PREPARED)
    provider.hold = False  # it ends before anybody can cancel it
    given_up = await by_batch(provider, ROWS, at, config=PREPARED, cancel_batches=True)
    assert given_up.pending == 18
    assert len(provider.batches) == 1
    with open_store(at) as store:
        assert store.answers.spent(only_run(store).id, artefacts=True).requests == 18
        assert store.batches.unfinished(only_run(store).id) == []
    summary = await by_batch(provider, ROWS, at, config=PREPARED)
    assert set(asked_of(provider).values()) == {1}
    assert summary.pending == 0


async def test_a_batch_goes_to_one_model(at: Path) -> None:
    with OpenAIProvider(writes) as provider:
        config = JudgeConfig(
            judge="openai:loopback-1",
            base_url=provider.url,
            api_key=KEY,
            prepare=("metrics",),
            prepare_with="openai:another",
        )
        with pytest.raises(InputError, match="openai:another would write for openai:loopback-1"):
            await by_batch(provider, ROWS, at, config=config, judge=config.open_judge())
        assert provider.requests == []


async def test_judges_that_share_a_writer_ask_for_each_text_once(start: Start, at: Path) -> None:
    """One model twice, once with repairs and once without."""
    provider = start(writes)
    configs = (PREPARED, replace(PREPARED, repairs=0))
    plans = [JudgePlan(judge_of(provider), config) for config in configs]
    summary = await by_plans(plans, ROWS, at)
    asked = asked_of(provider)
    assert kinds_of(asked) == WANTED
    assert {count for text, count in asked.items() if artefact_in(text)} == {1}
    assert {count for text, count in asked.items() if not artefact_in(text)} == {2}
    assert summary.pending == 0
