"""Runs by the batch, in this process: against a loopback provider, with what was announced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from batch_providers import AnthropicProvider, Provider
from evenhand.contract import Criterion
from evenhand.data.options import ReadOptions
from evenhand.judges import Judge, JudgeOptions, RetryPolicy, open_judge
from evenhand.judging.config import JudgeConfig
from evenhand.runs import (
    JudgePlan,
    Observer,
    RunOptions,
    RunSummary,
    Stop,
    given_pairs,
    judge_pairs,
)
from evenhand.store import JudgedItem, RunRecord, Store, open_store

KEY = "sk-loopback"
Start = Callable[..., Provider]
QUICK = JudgeConfig(retry=RetryPolicy(attempts=3, base_s=0.001, cap_s=0.01))


class Hearer(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def announce(self, what: str) -> None:
        self.heard.append(what)


def spec_of(provider: Provider) -> str:
    model = "claude-loopback" if isinstance(provider, AnthropicProvider) else "loopback-1"
    kind = "anthropic" if isinstance(provider, AnthropicProvider) else "openai"
    return f"{kind}:{model}"


def judge_of(provider: Provider, **options: Any) -> Judge:
    given = JudgeOptions(base_url=provider.url, api_key=KEY, timeout_s=60, **options)
    return open_judge(spec_of(provider), given)


async def by_batch(
    provider: Provider,
    rows: list[dict[str, Any]],
    at: str | Path,
    *,
    stop: Stop | None = None,
    hearer: Observer | None = None,
    config: JudgeConfig = QUICK,
    judge: Judge | None = None,
    **options: Any,
) -> RunSummary:
    """`batch=False` asks one by one."""
    judge = judge or judge_of(provider)
    chosen = RunOptions(**{"store": at, "batch": True, **options})
    sources = given_pairs(rows, ReadOptions(criteria=(Criterion(name="accuracy"),)))
    try:
        with open_store(at) as store:
            return await judge_pairs(
                sources,
                [JudgePlan(judge, config)],
                chosen,
                store=store,
                stop=stop,
                observer=hearer,
            )
    finally:
        sources.close()
        await judge.close()


async def interrupted(
    provider: Provider, rows: list[dict[str, Any]], at: str | Path, **options: Any
) -> RunSummary:
    """A run that is stopped while the provider holds its batch back, and goes on doing so."""
    provider.hold = True
    stop = Stop()
    running = asyncio.create_task(by_batch(provider, rows, at, stop=stop, **options))
    await asyncio.to_thread(provider.wait_for, lambda: provider.looks > 0)
    stop.ask("interrupt")
    return await running


def only_run(store: Store) -> RunRecord:
    (run,) = store.list_runs()
    return run


def judged_items(at: str | Path) -> dict[str, JudgedItem]:
    """Each row by its id, with its verdict and its passes."""
    found = {}
    with open_store(at) as store:
        run = only_run(store)
        numbers = range(1, store.count_items(run.id) + 1)
        for key in store.item_keys(run.id, numbers).values():
            whole = store.item(run.id, key)
            assert whole is not None
            (found[key],) = whole.judged
    return found
