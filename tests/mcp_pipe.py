"""`evenhand mcp` as a process, spoken to line by line: also what no client would send."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from command_line import start_command

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
