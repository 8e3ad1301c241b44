"""The command as tests use it: in this process by `command`, from outside by `start_command`,
on a terminal that a test types into by `TerminalSession`.

The fixture comes by way of `conftest.py`.
"""

from __future__ import annotations

import io
import json
import math
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from jsonschema import Draft202012Validator

from evenhand.cli.main import main
from evenhand.tools import output_schema
from forked import ForkedCommand
from scripted import answer_json
from servers import (
    JudgeServer,
    Reply,
    Script,
    SeenRequest,
    chat_reply,
    forget_proxies,
    token_logprob,
)

KEY = "sk-test-0123456789abcdefghij"
BASE_URL_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
SUM = ("-p", "What is 7 times 8?", "--a", "It is 56.", "--b", "It is 54.", "-c", "accuracy")
DOCUMENT = {
    "prompt": "What is 7 times 8?",
    "responseA": "It is 56.",
    "responseB": "It is 54.",
    "criteria": ["accuracy"],
}


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def verdict(self) -> Any:
        """The JSON result, after its check against the published schema."""
        result = self.json
        Draft202012Validator(output_schema()).validate(result)
        return result

    @property
    def failure(self) -> Any:
        """The error as JSON on standard output, which is a line on standard error too."""
        result = self.verdict
        assert result["success"] is False
        assert "winner" not in result
        line = self.err.splitlines()[-1]
        assert line.startswith("error  ")
        assert self.err.endswith("\n")
        return result["error"]


class Command:
    """Runs `evenhand …` in this process, in an empty directory with nothing configured."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        captured: pytest.CaptureFixture[bytes],
        directory: Path,
    ) -> None:
        self._monkeypatch = monkeypatch
        self._captured = captured
        self.directory = directory

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ran:
        self._captured.readouterr()
        self._monkeypatch.setattr(sys, "argv", ["evenhand", *arguments])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as left:
            main()
        assert isinstance(left.value.code, int)
        written = self._captured.readouterr()
        return Ran(left.value.code, written.out.decode(), written.err.decode())


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> Command:
    forget_proxies(monkeypatch)
    for name in list(os.environ):
        if name.startswith("EVENHAND_") or name in BASE_URL_VARIABLES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capsysbinary, tmp_path)


def environment(directory: Path, **more: str) -> dict[str, str]:
    """For a process of its own: nothing configured, no proxy, no key."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    places = {"HOME": str(directory), "XDG_CONFIG_HOME": str(directory / "config")}
    return {**kept, **places, "XDG_CACHE_HOME": str(directory / "cache"), **more}


def start_command(
    arguments: Sequence[str],
    directory: Path,
    *,
    more: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    anew: bool = False,
) -> subprocess.Popen[bytes]:
    """Forked, unless it is to start anew, or an interpreter would go by what is set."""
    of_interpreter = [name for name in more or {} if name.startswith(("LC_", "PYTHON"))]
    start = subprocess.Popen if anew or of_interpreter else ForkedCommand
    return start(
        [sys.executable, "-m", "evenhand", *arguments],
        cwd=directory,
        env=environment(directory, **(more or {})),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    )


def run_command(
    *arguments: str,
    directory: Path,
    more: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float = 120,
) -> Ran:
    with start_command(arguments, directory, more=more, stdin=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(stdin, timeout=timeout_s)
        except BaseException:
            process.kill()  # and not left to spoil the tests that follow
            raise
    return Ran(process.returncode, out.decode(), err.decode())


def on_a_terminal(
    directory: Path, *arguments: str, kind: str = "dumb", columns: int = 100
) -> tuple[int, bytes]:
    """The exit code, and what a terminal on standard output would get."""
    controller, terminal = pty.openpty()
    more = {"TERM": kind, "COLUMNS": str(columns)}
    process = start_command(
        arguments, directory, stdout=terminal, stderr=subprocess.STDOUT, more=more
    )
    os.close(terminal)
    shown = b""
    with suppress(OSError):  # Linux says so where the other side is closed
        while block := os.read(controller, 4096):
            shown += block
    os.close(controller)
    return process.wait(timeout=120), shown


def winner_shown(request: SeenRequest, better: str = "56", worse: str = "54") -> str:
    """Which label the better response has in this request."""
    return (
        "A"
        if request.prompt.index(f"It is {better}") < request.prompt.index(f"It is {worse}")
        else "B"
    )


def fair(request: SeenRequest) -> Reply:
    """A judge that can multiply."""
    winner = winner_shown(request)
    return chat_reply(answer_json(winner, confidence=0.9, criteria=[("accuracy", winner)]))


def follows_place(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("A", confidence=0.9, criteria=[("accuracy", "A")]))


def ties(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("TIE", confidence=0.6, criteria=[("accuracy", "TIE")]))


def says(text: str) -> Script:
    return lambda request: chat_reply(text)


def letters(request: SeenRequest) -> Reply:
    """Letter mode: 80% for the better response, 15% for the other, 5% for a tie."""
    better = winner_shown(request)
    worse = "B" if better == "A" else "A"
    top = {better: math.log(0.8), worse: math.log(0.15), "C": math.log(0.05)}
    return chat_reply(better, logprobs=[token_logprob(better, top[better], top)])


def judged_by(server: JudgeServer) -> tuple[str, ...]:
    return ("--judge", "openai:loopback", "--base-url", server.url)


_WAIT_S = 30.0


class TerminalSession:
    """Standard input, output and error are one terminal, as where a person sits."""

    def __init__(self, directory: Path, *arguments: str, kind: str = "dumb", lines: int = 40):
        self._controller, terminal = pty.openpty()
        more = {"TERM": kind, "COLUMNS": "80", "LINES": str(lines)}
        self.process = start_command(
            arguments,
            directory,
            more=more,
            stdin=terminal,
            stdout=terminal,
            stderr=subprocess.STDOUT,
        )
        os.close(terminal)
        self._unread = ""
        self.shown = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._controller)

    def until(self, text: str) -> str:
        """What is shown up to and with this text."""
        end = time.monotonic() + _WAIT_S
        while text not in self._unread:
            if not self._read(end):
                raise AssertionError(f"{text!r} was never shown, but {self._unread!r}")
        found, _, self._unread = self._unread.partition(text)
        return found + text

    def press(self, keys: str) -> None:
        os.write(self._controller, keys.encode())

    def rest(self) -> str:
        """All that is still shown until the command ends."""
        end = time.monotonic() + _WAIT_S
        while self._read(end):
            pass
        found, self._unread = self._unread, ""
        return found

    def ended(self) -> int:
        return self.process.wait(timeout=_WAIT_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _read(self, end: float) -> bool:
        left = end - time.monotonic()
        if left <= 0 or not select.select([self._controller], [], [], left)[0]:
            return False
        block = b""
        with suppress(OSError):  # Linux says so where the other side is closed
            block = os.read(self._controller, 65536)
        self.shown += block
        self._unread = self._unread + block.decode(errors="replace").replace("\r\n", "\n")
        return bool(block)
