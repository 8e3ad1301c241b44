"""`/mcp` on the real server: the official client over streamable HTTP, in both eras."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from door_server import knows_56
from evenhand.serve.config import Token
from http_service import StartService, start_service
from mcp_clients import MODES, PAIR, Mode, checked, hearing, refused
from servers import Slow, chat_reply, error_reply

__all__ = ["start_service"]

JSON = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_lists_the_tools_and_compares(
    mode: Mode, start_service: StartService
) -> None:
    service = start_service(knows_56)
    heard: list[tuple[float, float | None]] = []
    hear = hearing(heard)

    async with Client(f"{service.url}/mcp", mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[0] == "pairwiseCompare"
        told = await checked(client, "pairwiseCompare", PAIR, progress_callback=hear)
        assert told["winner"] == "A"
        assert heard[-1:] == [(2, 2)]
        error = await refused(client, "pairwiseCompare", PAIR | {"criteria": []})
        assert error["kind"] == "input"
        assert (await client.list_prompts()).prompts
        assert (await client.read_resource("evenhand://judging-prompt")).contents


@pytest.mark.parametrize("mode", MODES)
async def test_a_failing_judge_is_a_tool_error(mode: Mode, start_service: StartService) -> None:
    service = start_service(lambda _: error_reply(401, "no such key"))
    async with Client(f"{service.url}/mcp", mode=mode) as client:
        error = await refused(client, "pairwiseCompare", PAIR)
    assert error["kind"] == "judge_authentication"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_a_run_by_one_client_is_seen_by_another_and_over_http(
    mode: Mode, start_service: StartService
) -> None:
    service = start_service(knows_56)
    async with Client(f"{service.url}/mcp", mode=mode) as client:
        started = await checked(client, "startRun", {"pairs": [PAIR]})
    async with Client(f"{service.url}/mcp", mode=mode) as client:
        done = await checked(client, "runStatus", {"run": started["id"], "waitS": 60})
    assert done["state"] == "finished"
    answer = await asyncio.to_thread(service.client.get, f"/v1/runs/{started['id']}")
    assert answer.json()["winsA"] == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_leaves_ends_its_comparison(
    mode: Mode, start_service: StartService
) -> None:
    service = start_service(lambda _: Slow(3600, chat_reply("late")))
    judge = service.judge
    assert judge is not None
    async with Client(f"{service.url}/mcp", mode=mode) as client:
        calling = asyncio.ensure_future(client.call_tool("pairwiseCompare", PAIR))
        assert await asyncio.to_thread(judge.wait_until, lambda: len(judge.requests) == 2)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert await asyncio.to_thread(judge.wait_until_idle)


@pytest.mark.parametrize("mode", MODES)
async def test_a_token_is_needed_where_one_is_set(mode: Mode, start_service: StartService) -> None:
    service = start_service(knows_56, tokens=(Token("agent", "t0ken-of-the-agent"),))
    address = f"{service.url}/mcp"
    headers = {"Authorization": "Bearer t0ken-of-the-agent"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        assert (await checked(client, "pairwiseCompare", PAIR))["winner"] == "A"
    answer = service.client.post("/mcp", headers=JSON, json={"jsonrpc": "2.0", "id": 1})
    assert answer.status_code == 401


def test_a_web_page_elsewhere_does_not_reach_it(start_service: StartService) -> None:
    service = start_service(knows_56)
    hello: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        answer = service.client.post("/mcp", headers=JSON | headers, json=hello)
        assert answer.status_code == 403
    assert service.client.post("/mcp", headers=JSON, json=hello).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_without_sessions_there_is_nothing_to_listen_to(
    method: str, start_service: StartService
) -> None:
    service = start_service(knows_56)
    answer = service.client.request(method, "/mcp", headers=JSON)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["kind"] == "wrong_method"
