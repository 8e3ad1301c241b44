"""What is prepared in a run: each text once for all pairs, counted, capped, and not asked for again
after a kill."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from benchmarks.children import Child
from benchmarks.loopback import loopback_environment

import evenhand
from evenhand import Price, RunOptions, RunSummary
from evenhand.errors import InputError
from evenhand.judges.registry import JudgeOptions, open_judge
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.config import JudgeConfig
from evenhand.runs import JudgePlan
from evenhand.runs.plan import apply_price
from evenhand.store import open_store
from run_data import answer_to, artefact_in, pairings, write_lines
from servers import JudgeServer, Reply, SeenRequest, StartServer, chat_reply

PREPARED = JudgeConfig(
    prepare=("metrics", "reference", "analysis"),
    retry=RetryPolicy(attempts=3, base_s=0.001, cap_s=0.01),
)
_STEP_S = 300.0
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def named(prompt: str) -> str:
    """The text that the server writes to this prompt, and to no other."""
    return f"note {sha256(prompt.encode()).hexdigest()[:16]}"


def writes(request: SeenRequest) -> Reply:
    kind = artefact_in(request.prompt)
    text = named(request.prompt) if kind else answer_to(request.prompt)
    return chat_reply(text, usage=USAGE)


def asked_of(requests: Sequence[SeenRequest]) -> Counter[str]:
    return Counter(request.prompt for request in requests)


def kinds_of(asked: Counter[str]) -> dict[str | None, int]:
    kinds: Counter[str | None] = Counter()
    for prompt, count in asked.items():
        kinds[artefact_in(prompt)] += count
    return dict(kinds)


async def judged(
    server: JudgeServer,
    rows: list[dict[str, Any]],
    store: Path,
    config: JudgeConfig = PREPARED,
    **options: Any,
) -> RunSummary:
    judge = open_judge("openai:m", JudgeOptions(base_url=server.url, api_key="sk-loopback"))
    try:
        return await evenhand.run(
            rows,
            judge,
            config,
            criteria=["accuracy"],
            options=RunOptions(store=store, concurrency=8, **options),
        )
    finally:
        await judge.close()


async def test_each_text_is_written_once_and_counted(
    start_server: StartServer, tmp_path: Path
) -> None:
    """Four prompts and four models: 24 pairs, 48 passes; 4 + 4 + 16 texts."""
    server = start_server(writes)
    summary = await judged(server, pairings(4, 4), tmp_path / "s.db", price=Price(1.0, 2.0))
    asked = asked_of(server.requests)
    assert set(asked.values()) == {1}
    assert kinds_of(asked) == {"metrics": 4, "reference": 4, "analysis": 16, None: 48}
    assert (summary.wins_a, summary.pending) == (24, 0)
    assert (summary.calls, summary.total.calls) == (72, 72)
    assert (summary.total.input_tokens, summary.total.output_tokens) == (7_200, 720)
    # 100 tokens in and 10 out, at 1 and 2 dollars for a million.
    assert summary.total.cost_usd == pytest.approx(72 * 120 / 1e6)
    assert summary.cost_usd == pytest.approx(72 * 120 / 1e6)


@pytest.mark.slow
async def test_the_eight_models_of_a_hundred_prompts_need_a_thousand_texts(
    start_server: StartServer, tmp_path: Path
) -> None:
    """28 pairings of each prompt: 2,800 pairs, 5,600 passes; 100 + 100 + 800 texts."""
    server = start_server(writes)
    summary = await judged(server, pairings(100, 8), tmp_path / "s.db")
    asked = asked_of(server.requests)
    assert kinds_of(asked) == {"metrics": 100, "reference": 100, "analysis": 800, None: 5_600}
    assert set(asked.values()) == {1}
    assert (summary.pairs, summary.wins_a, summary.calls) == (2_800, 2_800, 6_600)


async def test_the_cap_on_calls_ends_in_the_middle_of_preparing_and_loses_nothing(
    start_server: StartServer, tmp_path: Path
) -> None:
    server, rows, store = start_server(writes), pairings(4, 4), tmp_path / "s.db"
    spent = 0
    for most in (3, 10, 40):
        capped = await judged(server, rows, store, max_calls=most)
        spent += most
        assert (capped.stopped_by, capped.calls) == ("max-calls", most)
        assert capped.total.calls == len(server.requests) == spent
    summary = await judged(server, rows, store)
    assert set(asked_of(server.requests).values()) == {1}
    assert (summary.pending, summary.total.calls) == (0, 72)
    again = await judged(server, rows, store)
    assert (again.calls, again.total.calls, len(server.requests)) == (0, 72, 72)


async def test_a_capped_cost_needs_the_writers_price_too(tmp_path: Path) -> None:
    """The judge's is on a list; its writer's is on none, unless the caller says one."""
    config = JudgeConfig(
        judge="openai:gpt-4o-mini",
        api_key="sk-loopback",
        prepare=("metrics",),
        prepare_with="openai:nobody-sells-this",
    )
    plan = JudgePlan(config.open_judge(), config)
    capped = RunOptions(max_cost=5.0)
    with pytest.raises(InputError, match="nobody-sells-this"):
        apply_price(plan, capped)
    price = Price(3.0, 4.0)
    applied = apply_price(plan, replace(capped, price=price))
    assert (applied.price, applied.writing) == (price, price)
    # One that a list has costs what that says, whatever the judge's own price is.
    listed = replace(config, prepare_with="openai:gpt-4o")
    applied = apply_price(JudgePlan(listed.open_judge(), listed), replace(capped, price=price))
    assert (applied.price, applied.writing) == (price, None)
    # And nobody has to price a writer that writes nothing.
    unused = replace(config, prepare=())
    assert apply_price(JudgePlan(unused.open_judge(), unused), capped).writing is None


async def test_the_writers_calls_cost_the_writers_price(
    start_server: StartServer, tmp_path: Path
) -> None:
    """Two servers that no list has: the price that was given is for both."""
    server, other = start_server(writes), start_server(writes)
    writer = JudgeConfig(judge="openai:other", base_url=other.url, api_key="sk-loopback")
    config = replace(
        PREPARED,
        judge="openai:m",
        base_url=server.url,
        api_key="sk-loopback",
        prepare_with="openai:other",
        writer=writer,
    )
    judge = config.open_judge()
    try:
        summary = await evenhand.run(
            pairings(2, 3),
            judge,
            config,
            criteria=["accuracy"],
            options=RunOptions(store=tmp_path / "s.db", price=Price(1.0, 2.0), max_cost=1.0),
        )
    finally:
        await judge.close()
    # 2 + 2 + 6 texts by one, and 6 pairs in two orders by the other.
    assert (len(other.requests), len(server.requests)) == (10, 12)
    assert {request.json["model"] for request in other.requests} == {"other"}
    assert summary.total.cost_usd == pytest.approx(22 * 120 / 1e6)


class KilledAndResumed:
    """The command itself, killed by SIGKILL once the server has seen so many calls."""

    def __init__(self, folder: Path, rows: list[dict[str, Any]], *, concurrency: int) -> None:
        self._folder = folder
        self._concurrency = concurrency
        self.store = folder / "store.db"
        write_lines(folder / "pairs.jsonl", rows)

    def run(self, server: JudgeServer, *, kill_at: int | None = None) -> dict[str, Any]:
        command = [sys.executable, "-m", "evenhand", "run", "pairs.jsonl", "-c", "accuracy"]
        command += ["--judge", "openai:m", "--base-url", server.url, "--store", str(self.store)]
        command += ["--prepare", "metrics,reference,analysis", "--json", "--yes"]
        command += ["--concurrency", str(self._concurrency)]
        environment = {**loopback_environment(), "OPENAI_API_KEY": "sk-loopback"}
        child = Child(command, cwd=self._folder, environment=environment)
        while (ended := child.poll()) is None:
            assert child.running_s < _STEP_S
            if kill_at is not None and len(server.requests) >= kill_at:
                child.kill()
                return {}
            time.sleep(0.005)
        assert ended.code == 0, ended.err
        told: dict[str, Any] = json.loads(ended.out)
        return told

    def stored_texts(self) -> set[str]:
        with closing(sqlite3.connect(self.store)) as connection:
            return {text for (text,) in connection.execute("SELECT text FROM answers")}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills by SIGKILL")
@pytest.mark.parametrize(
    ("prompts", "models", "kill_at"),
    [(6, 4, 30), (100, 8, 3_000)],
    ids=["small", "2,800 pairs"],
)
def test_a_killed_run_asks_for_nothing_again_that_was_stored(
    prompts: int, models: int, kill_at: int, tmp_path: Path
) -> None:
    """100 prompts and 8 models are 100 * 28 pairs: 5,600 passes, and 100 + 100 + 800 texts."""
    rows, concurrency = pairings(prompts, models), 16
    killed = KilledAndResumed(tmp_path, rows, concurrency=concurrency)
    with JudgeServer(writes) as server:
        killed.run(server, kill_at=kill_at)
        time.sleep(0.3)  # what was on its way to the server has come
        before, stored = list(server.requests), killed.stored_texts()
        summary = killed.run(server)
        after = server.requests[len(before) :]
    texts_before = [p for p in asked_of(before).elements() if artefact_in(p)]
    texts_after = [p for p in asked_of(after).elements() if artefact_in(p)]
    assert stored
    # Who was answered and stored is not asked again, in whichever process.
    assert [prompt for prompt in texts_after if named(prompt) in stored] == []
    in_flight = [prompt for prompt in texts_before if named(prompt) not in stored]
    assert len(in_flight) <= concurrency
    twice = set(texts_before) & set(texts_after)
    assert twice <= set(in_flight)
    both = asked_of(before) + asked_of(after)
    assert kinds_of(Counter(set(both))) == {
        "metrics": prompts,
        "reference": prompts,
        "analysis": prompts * models,
        None: 2 * len(rows),
    }
    assert both.total() <= len(both) + concurrency
    assert (summary["pairs"], summary["winsA"]) == (len(rows), len(rows))
    assert (summary["pending"], summary["invalid"]) == (0, 0)
    with open_store(killed.store) as store:
        (run,) = store.runs.all()
        assert store.verdicts.tally(run.id).made.requests == 2 * len(rows)
        prepared = store.answers.spent(run.id, artefacts=True)
        assert prepared.requests == 2 * prompts + prompts * models
