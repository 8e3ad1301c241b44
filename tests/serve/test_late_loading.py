"""What is loaded by the first request: once for all, whoever leaves, and again after a failure."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from evenhand.errors import ServerBusy
from evenhand.serve import app as late_pages
from evenhand.serve.app import make_app
from evenhand.serve.config import ServerConfig
from evenhand.serve.mcp import endpoint as mcp_endpoint
from evenhand.serve.mcp.endpoint import McpEndpoint
from evenhand.serve.pages.routes import PAGES
from evenhand.serve.service import Service
from evenhand.serve.startup import importing
from evenhand.settings import Settings
from mcp_clients import HELLO

ACCEPTED = {"Accept": "application/json, text/event-stream"}


class Gate:
    """Stands before a function: counts the calls, and holds them until it is opened."""

    def __init__(self, work: Any, *, failures: int = 0) -> None:
        self._work = work
        self._failures = failures
        self.calls = 0
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, *given: Any) -> Any:
        self.calls += 1
        self.reached.set()
        assert self.opened.wait(120)
        if self.calls <= self._failures:
            raise OSError("the disk is gone")
        return self._work(*given)


@asynccontextmanager
async def asking(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    config = ServerConfig(judges=(), store=str(tmp_path / "runs.db"))
    async with Service.opened(config, Settings(), background=False) as opened:
        yield opened


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Before MCP's SDK."""
    made = Gate(mcp_endpoint._load)
    monkeypatch.setattr(mcp_endpoint, "_load", made)
    yield made
    made.opened.set()


async def handshake(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/mcp", json=HELLO, headers=ACCEPTED)


async def test_first_requests_of_mcp_wait_for_one_loading(service: Service, gate: Gate) -> None:
    door = McpEndpoint()
    async with door.serving(service), asking(door) as client:
        first = [asyncio.ensure_future(handshake(client)) for _ in range(5)]
        assert await asyncio.to_thread(gate.reached.wait, 120)
        assert not any(each.done() for each in first)
        gate.opened.set()
        answers = await asyncio.gather(*first)
        answers.append(await handshake(client))
    assert [answer.status_code for answer in answers] == [200] * 6
    assert all('"evenhand"' in answer.text for answer in answers)
    assert gate.calls == 1


async def test_the_first_may_leave_and_the_others_are_served(service: Service, gate: Gate) -> None:
    door = McpEndpoint()
    async with door.serving(service), asking(door) as client:
        first, second = (asyncio.ensure_future(handshake(client)) for _ in range(2))
        assert await asyncio.to_thread(gate.reached.wait, 120)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gate.opened.set()
        assert (await second).status_code == 200
    assert gate.calls == 1


async def test_a_loading_that_failed_is_tried_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(mcp_endpoint._load, failures=1)
    gate.opened.set()
    monkeypatch.setattr(mcp_endpoint, "_load", gate)
    door = McpEndpoint()
    async with door.serving(service), asking(door) as client:
        assert (await handshake(client)).status_code == 500
        assert (await handshake(client)).status_code == 200
    assert gate.calls == 2


async def test_the_end_may_come_while_it_is_loading(service: Service, gate: Gate) -> None:
    door = McpEndpoint()
    async with asking(door) as client, door.serving(service):
        first = asyncio.ensure_future(handshake(client))
        assert await asyncio.to_thread(gate.reached.wait, 120)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gate.opened.set()
    assert gate.calls == 1


async def test_before_the_start_and_after_the_end_mcp_asks_for_patience(service: Service) -> None:
    door = McpEndpoint()

    async def nothing(*_: Any) -> Any:
        raise AssertionError("nothing is to be read or sent")

    async def refused() -> None:
        with pytest.raises(ServerBusy):
            await door({"type": "http", "method": "POST", "path": "/mcp"}, nothing, nothing)

    await refused()
    async with door.serving(service):
        pass
    await refused()


async def test_first_visits_of_pages_wait_for_one_loading(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(late_pages._pages)
    monkeypatch.setattr(late_pages, "_pages", gate)
    app = make_app(ServerConfig(judges=()))
    app.state.service = service
    routes = len(app.routes)
    async with asking(app) as client:
        first = [asyncio.ensure_future(client.get("/")) for _ in range(4)]
        assert await asyncio.to_thread(gate.reached.wait, 120)
        assert len(app.routes) == routes
        assert (await client.get("/healthz")).status_code == 200  # it does not wait for pages
        gate.opened.set()
        answers = await asyncio.gather(*first)
        answers.append(await client.get("/"))
    assert [answer.status_code for answer in answers] == [200] * 5
    assert gate.calls == 1
    assert len(app.routes) == routes + len(PAGES)


async def test_pages_whose_loading_failed_are_loaded_by_the_next_visit(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(late_pages._pages, failures=1)
    gate.opened.set()
    monkeypatch.setattr(late_pages, "_pages", gate)
    app = make_app(ServerConfig(judges=()))
    app.state.service = service
    async with asking(app) as client:
        assert (await client.get("/")).status_code == 500
        assert (await client.get("/")).status_code == 200


@pytest.mark.parametrize("visits_before", [0, 1])
async def test_a_wrong_method_is_told_alike_on_the_first_visit_and_later(
    service: Service, visits_before: int
) -> None:
    app = make_app(ServerConfig(judges=()))
    app.state.service = service
    async with asking(app) as client:
        for _ in range(visits_before):
            await client.get("/")
        answer = await client.delete("/")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]


@pytest.fixture
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


@pytest.mark.usefixtures("thawed")
def test_nothing_is_collected_while_loading_and_what_is_loaded_is_left_alone() -> None:
    before = gc.get_freeze_count()
    with importing():
        assert not gc.isenabled()
        kept: list[list[int]] = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)


@pytest.mark.usefixtures("thawed")
def test_the_collector_is_as_it_was_after_a_loading_that_failed_too() -> None:
    with pytest.raises(OSError, match="the disk is gone"), importing():
        raise OSError("the disk is gone")
    assert gc.isenabled()
    gc.disable()
    with importing():
        pass
    assert not gc.isenabled()
