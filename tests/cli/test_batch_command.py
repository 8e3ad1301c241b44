"""`evenhand run --batch`, as its user reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from batch_providers import KEY, OpenAIProvider, only_run
from command_line import Command
from evenhand.store import open_store
from evenhand.store.batches import NewBatch, RequestAsked
from run_data import CRITERIA, sums, write_lines


@pytest.fixture
def provider() -> Iterator[OpenAIProvider]:
    with OpenAIProvider() as started:
        yield started


@pytest.fixture
def asked(
    command: Command, provider: OpenAIProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> tuple[str, ...]:
    """The command without --batch."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    data = str(write_lines(tmp_path / "data.jsonl", sums(6)))
    judge = ("--judge", "openai:loopback-1", "--base-url", provider.url)
    return ("run", data, *CRITERIA, *judge, "--store", str(tmp_path / "s.db"))


def test_it_says_what_it_costs_where_it_is_and_what_it_came_to(
    command: Command, provider: OpenAIProvider, asked: tuple[str, ...]
) -> None:
    ran = command(*asked, "--batch", "--batch-poll", "0.1", "--price", "1/2")
    assert ran.code == 0, ran.err
    assert "at batch rates" in ran.err
    assert f"batch batch_1 with 12 requests is at {provider.url[7:-3]}; answers take" in ran.err
    assert "note  costs are at batch rates, half the list price" in ran.err
    # 1,000 tokens in and 100 out, twelve times, at half of 1 and 2 dollars for a million.
    assert "12 calls, 12,000 tokens in, 1,200 out, $0.0072" in ran.out
    again = command(*asked, "--batch")
    assert "all 6 pairs are already judged; nothing to do" in again.err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--cancel-batches",), "cancel_batches requires batch; give both, or neither"),
        (("--batch", "--rpm", "10"), "rpm limits single calls"),
        (("--batch", "--judge", "baseline:longer"), "baseline:longer has no batch API"),
        (("--batch", "--until-decided"), "leave out --batch"),
    ],
)
def test_what_cannot_go_by_the_batch_is_refused(
    command: Command, asked: tuple[str, ...], given: tuple[str, ...], says: str
) -> None:
    ran = command(*asked, *given)
    assert ran.code == 2
    assert says in ran.err


def test_a_run_with_requests_at_a_provider_is_not_asked_or_deleted_unawares(
    command: Command, provider: OpenAIProvider, asked: tuple[str, ...], tmp_path: Path
) -> None:
    assert command(*asked, "--batch", "--batch-poll", "0.1", "--max-calls", "4").code == 5
    with open_store(tmp_path / "s.db") as store:
        run = only_run(store)
        (judge,) = store.runs.judges(run.id)
        new = NewBatch(run.id, judge.id, "ehx", first_number=3, last_number=3)
        request = RequestAsked(3, "original", 1, 1)
        store.batches.opened(store.batches.intend(new, [request]).id, "batch_77")
    ran = command(*asked)
    assert ran.code == 2
    assert "has 1 request waiting in a provider's batch API; add --batch to collect them" in ran.err
    assert provider.paid == 4
    gone = command("runs", "--store", str(tmp_path / "s.db"), "delete", run.name, "--yes")
    assert gone.code == 0
    assert "1 request in a provider's batch API will be billed but never collected" in gone.out


def test_identical_responses_are_in_no_batch(
    command: Command, provider: OpenAIProvider, asked: tuple[str, ...], tmp_path: Path
) -> None:
    alike = [{**row, "response_b": row["response_a"]} for row in sums(4, begin=100)]
    write_lines(tmp_path / "data.jsonl", [*sums(6), *alike])
    ran = command(*asked, "--batch", "--batch-poll", "0.1", "--json")
    assert ran.code == 0, ran.err
    assert "batch batch_1 with 12 requests" in ran.err  # 6 pairs in two orders
