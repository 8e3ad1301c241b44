"""The official MCP client before the real server: in this process, over a pipe, over HTTP.

Both eras of the protocol: `mode="auto"` speaks the newest, `mode="legacy"` begins with a
handshake. A `Pipe` is spoken to line by line: also what no client would send.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, TextContent

from command_line import environment, start_command
from evenhand.judges.retry import RetryPolicy
from evenhand.serve.config import ServerConfig, ServerLimits
from evenhand.serve.mcp.server import make_server
from evenhand.serve.service import Service
from evenhand.settings import Settings
from http_service import judge_offer

Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")

# What the loopback judges of the tests know: 7 times 8 is 56.
PAIR: dict[str, Any] = {
    "prompt": "What is 7 times 8?",
    "responseA": "56",
    "responseB": "54",
    "criteria": ["accuracy"],
}


def a_config(judge_url: str, store: Path, **limits: Any) -> ServerConfig:
    return ServerConfig(
        judges=(
            judge_offer(
                "loopback", "openai:loopback", base_url=judge_url, retry=RetryPolicy(attempts=1)
            ),
        ),
        store=str(store),
        limits=ServerLimits(**limits),
    )


@asynccontextmanager
async def served(config: ServerConfig, mode: Mode = "auto") -> AsyncIterator[Client]:
    """A client of a server in this process."""
    async with (
        Service.opened(config, Settings()) as service,
        Client(make_server(service), mode=mode) as client,
    ):
        yield client


def by_pipe(
    directory: Path, judge_url: str, *more: str, mode: Mode = "auto", log: Any = None
) -> Client:
    """A client of `evenhand mcp`, which it starts itself."""
    given = ("--judge", "openai:loopback", "--base-url", judge_url)
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "evenhand", "mcp", *given, "--store", str(directory / "runs.db"), *more],
        env=environment(directory, OPENAI_API_KEY="sk-loopback-key"),
        cwd=directory,
    )
    return Client(stdio_client(parameters, errlog=log or sys.stderr), mode=mode)


async def checked(client: Client, name: str, arguments: dict[str, Any], **more: Any) -> Any:
    """A tool's structured result, once it fits the schema that the server publishes."""
    result = await client.call_tool(name, arguments, **more)
    assert not result.is_error, text_of(result)
    return await fitting(client, name, result)


async def refused(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A tool's error: it has the contract's shape, and a text that says the same."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, text_of(result)
    told = await fitting(client, name, result)
    assert told["success"] is False
    assert "winner" not in told
    assert "confidence" not in told
    error: dict[str, Any] = told["error"]
    assert error["kind"] in text_of(result)
    assert error["message"] in text_of(result)
    assert "Traceback" not in text_of(result)
    return error


async def fitting(client: Client, name: str, result: CallToolResult) -> Any:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    schema = tools[name].output_schema
    assert schema is not None
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(result.structured_content)
    return result.structured_content


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def hearing(heard: list[tuple[float, float | None]]) -> ProgressFnT:
    """A listener to progress."""

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert message is not None
        heard.append((progress, total))

    return hear


HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "pipe", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: Any, name: str, arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class Pipe:
    """The process, line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def write(self, *messages: Any, end: bytes = b"\n") -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + end)
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it has ended"
        return json.loads(line)

    def answer_to(self, number: Any) -> Any:
        while True:
            told = self.read()
            if told.get("id") == number:
                return told

    def close(self) -> tuple[int, list[Any], str]:
        """The end of its input: its exit code, what it still says, and its log."""
        assert self.process.stdin is not None
        out, err = self.process.communicate(timeout=60)
        return (
            self.process.returncode,
            [json.loads(line) for line in out.splitlines()],
            err.decode(),
        )


@contextlib.contextmanager
def a_pipe(directory: Path, judge_url: str, *more: str) -> Iterator[Pipe]:
    given = ("mcp", "--judge", "openai:loopback", "--base-url", judge_url)
    process = start_command(
        [*given, "--store", str(directory / "runs.db"), *more],
        directory,
        more={"OPENAI_API_KEY": "sk-loopback-key"},
        stdin=subprocess.PIPE,
    )
    try:
        yield Pipe(process)
    finally:
        process.kill()
        process.communicate()
