"""A loopback provider of each kind, and little patience."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batch_providers import AnthropicProvider, OpenAIProvider, Provider, Start
from command_line import command
from evenhand.runs.batch.context import BatchTiming
from servers import forget_proxies

__all__ = ["command"]


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks come at once, and what was sent is there within a quarter of a second."""
    forget_proxies(monkeypatch)
    quick = BatchTiming(first_look_s=0.02, look_s=0.05, arrives_within_s=0.25, patience_s=60.0)
    monkeypatch.setattr(BatchTiming, "looking_every", lambda _: quick)


@pytest.fixture(params=[OpenAIProvider, AnthropicProvider], ids=["openai", "anthropic"])
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """Starts a provider of this kind: `start(judge, on_create=…)`."""
    started: list[Provider] = []

    def begin(*given: Any, **named: Any) -> Provider:
        provider: Provider = request.param(*given, **named)
        started.append(provider.__enter__())
        return provider

    yield begin
    for provider in started:
        provider.__exit__(None, None, None)


@pytest.fixture
def at(tmp_path: Path) -> Path:
    return tmp_path / "store.db"
