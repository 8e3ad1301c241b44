"""A service over a loopback judge, for tests of background runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from evenhand.serve.comparisons import ServiceObserver
from evenhand.serve.config import JudgeOffer, ServerConfig, ServerLimits
from evenhand.serve.service import Service
from evenhand.serve.uploads import Upload
from evenhand.serve.values import RunStatus, StartRun
from evenhand.settings import Settings
from http_service import judge_offer

SETTINGS = Settings(api_key="sk-loopback")


def offer(url: str, name: str = "adder", **more: Any) -> JudgeOffer:
    return judge_offer(name, "openai:loopback", base_url=url, **more)


def config(url: str, store: str, *offers: JudgeOffer, **limits: Any) -> ServerConfig:
    return ServerConfig(judges=offers or (offer(url),), store=store, limits=ServerLimits(**limits))


@asynccontextmanager
async def opened(
    url: str,
    store: str,
    *offers: JudgeOffer,
    background: bool = True,
    observer: ServiceObserver | None = None,
    **limits: Any,
) -> AsyncIterator[Service]:
    made = config(url, store, *offers, **limits)
    async with Service.opened(made, SETTINGS, background=background, observer=observer) as service:
        yield service


async def start(service: Service, rows: Iterable[Any], **options: Any) -> RunStatus:
    wishes = StartRun(**({"criteria": ("accuracy",)} | options))
    return await service.start_run(Upload.of_pairs(rows), wishes)


async def at_rest(service: Service, run_id: str, *, within_s: float = 60) -> RunStatus:
    """Its last status, once it changes no more."""
    last: RunStatus | None = None
    async with asyncio.timeout(within_s):
        async for status in service.follow(run_id, every_s=0.05):
            last = status
    assert last is not None
    return last


def adds_up(status: RunStatus) -> bool:
    """Four outcomes, kept apart: every pair of every judge is one of them, or pending."""
    outcomes = (status.wins_a, status.wins_b, status.ties, status.inconsistent, status.invalid)
    judgments = status.pairs * len(status.judges)
    return status.done == sum(outcomes) and status.done + status.pending == judgments
