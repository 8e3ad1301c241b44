"""What the skill says of MCP and HTTP is done: the servers it names are started and asked."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from door_server import ChangingJudge, shell, started_server
from evenhand.skill import skill_texts

TEXTS = {name: text.decode() for name, text in skill_texts().items()}
SERVICE = TEXTS["references/service.md"]
BLOCKS = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", SERVICE, re.DOTALL)]
(SETUP,) = [block["mcpServers"]["evenhand"] for block in BLOCKS if "mcpServers" in block]
CALLS = [block for block in BLOCKS if "name" in block]
(SERVE,) = re.findall(r"^evenhand serve .*$", SERVICE, re.MULTILINE)


@asynccontextmanager
async def connected(directory: Path, judge: ChangingJudge) -> AsyncIterator[Client]:
    """As the configuration in the skill says, with a judge at this machine."""
    told = {"OPENAI_BASE_URL": judge.url, "OPENAI_API_KEY": "sk-loopback"}
    server = StdioServerParameters(
        command=SETUP["command"], args=SETUP["args"], env=shell(directory, **told), cwd=directory
    )
    async with Client(stdio_client(server)) as client:
        yield client


@pytest.mark.slow
async def test_calls_that_the_skill_shows_work_in_their_order(tmp_path: Path) -> None:
    with ChangingJudge() as judge:
        async with connected(tmp_path, judge) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            found: dict[str, Any] = {}
            for call in CALLS:
                result = await client.call_tool(call["name"], call["arguments"])
                assert not result.is_error, result.content
                Draft202012Validator(tools[call["name"]].output_schema or {}).validate(
                    result.structured_content
                )
                found[call["name"]] = result.structured_content
    assert found["pairwiseCompare"]["winner"] == "B"
    assert found["runStatus"]["state"] == "finished"
    assert found["runStatus"]["winsB"] == 1
    assert set(tools) == set(re.findall(r"`(\w+)`", _named_tools()))


def _named_tools() -> str:
    """The first column of the table of tools."""
    rows = re.findall(r"^\| (`.*?) \|", SERVICE, re.MULTILINE)
    return " ".join(rows)


def test_tools_that_the_skill_announces_are_there() -> None:
    announced = re.search(r"MCP tools \((.*?)\)", TEXTS["SKILL.md"])
    assert announced is not None
    assert set(announced[1].split(", ")) <= set(re.findall(r"`(\w+)`", _named_tools()))


async def test_server_that_the_skill_starts_answers_where_it_says(tmp_path: Path) -> None:
    """A run that is not there is told from an address that is not there."""
    with ChangingJudge() as judge:
        told = shell(tmp_path, OPENAI_BASE_URL=judge.url, OPENAI_API_KEY="sk-loopback")
        with started_server(shlex.split(SERVE), tmp_path, told) as url:
            async with Client(f"{url}/mcp") as agent:
                assert len((await agent.list_tools()).tools) >= 6
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                assert (await client.get("/v1/runs")).json()["runs"] == []
                for path in re.findall(r"`(?:GET )?(/v1/runs/ID[/\w]*)`", SERVICE):
                    missing = await client.get(path.replace("ID", "1"))
                    assert missing.json()["error"]["kind"] == "not_found"
                    assert "run" in missing.json()["detail"]
                answer = await client.post("/v1/compare", json=CALLS[0]["arguments"])
                assert answer.json()["winner"] == "B"
