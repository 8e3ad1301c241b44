"""Clients that ask for the newest protocol, give up waiting, and shake hands as they used to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from command_line import start_command

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "hasty", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
DISCOVER = {"id": 0, "method": "server/discover", "params": {"_meta": META}}
GIVEN_UP = {"method": "notifications/cancelled", "params": {"requestId": 0}}
HELLO = {
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "hasty", "version": "1"},
    },
}
READY = {"method": "notifications/initialized"}
LIST = {"id": 2, "method": "tools/list"}


def answers(directory: Path, *messages: dict[str, Any]) -> dict[Any, Any]:
    """All of it at once, as it lies in the pipe when a slow server comes up; answers by id."""
    process = start_command(
        ["mcp", "--judge", "openai:loopback", "--base-url", "http://127.0.0.1:9/v1"],
        directory,
        more={"XDG_DATA_HOME": str(directory / "data")},
        stdin=subprocess.PIPE,
    )
    lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in messages]
    out, err = process.communicate("\n".join((*lines, "")).encode(), timeout=60)
    assert process.returncode == 0, err.decode()
    told = [json.loads(line) for line in out.splitlines()]
    return {message["id"]: message for message in told if "id" in message}


@pytest.mark.parametrize("given_up", [[], [GIVEN_UP]], ids=["silently", "by a word"])
def test_handshake_after_a_probe_is_taken(tmp_path: Path, given_up: list[dict[str, Any]]) -> None:
    told = answers(tmp_path, DISCOVER, *given_up, HELLO, READY, LIST)
    assert told[1]["result"]["protocolVersion"] == "2025-11-25"
    assert "pairwiseCompare" in [tool["name"] for tool in told[2]["result"]["tools"]]


def test_probe_that_is_waited_for_leads_to_the_newest_protocol(tmp_path: Path) -> None:
    told = answers(tmp_path, DISCOVER, {**LIST, "params": {"_meta": META}})
    assert "2026-07-28" in told[0]["result"]["supportedVersions"]
    assert "pairwiseCompare" in [tool["name"] for tool in told[2]["result"]["tools"]]


def test_handshake_in_the_middle_of_the_newest_protocol_is_refused(tmp_path: Path) -> None:
    told = answers(tmp_path, DISCOVER, {**LIST, "params": {"_meta": META}}, HELLO)
    assert "error" in told[1]
