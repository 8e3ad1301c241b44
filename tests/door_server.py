"""The real server as a process of its own, a loopback judge behind it that can change its mind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from command_line import environment
from door_judge import knows_56
from forked import ForkedCommand
from servers import JudgeServer, Reply, Script, Scripted, SeenRequest, error_reply

BIN = Path(sys.executable).parent


class ChangingJudge(JudgeServer):
    """Judges by `script`, which a test may replace."""

    def __init__(self) -> None:
        super().__init__(self._scripted)
        self.script: Script = knows_56

    def _scripted(self, request: SeenRequest) -> Scripted:
        return self.script(request)


def refuses(request: SeenRequest) -> Reply:
    return error_reply(401, "no such key")


@dataclass(frozen=True)
class Door:
    """A running server: where it is, and who judges behind it."""

    url: str
    judge: ChangingJudge


def shell(directory: Path, **more: str) -> dict[str, str]:
    """A user's environment with the command in PATH; the network ends at this machine."""
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    data = str(directory / "data")
    return environment(directory, **{"PATH": path, "XDG_DATA_HOME": data, **more})


@contextmanager
def started_server(
    arguments: Sequence[str],
    directory: Path,
    surroundings: Mapping[str, str],
    *,
    log: str = "serve.log",
) -> Iterator[str]:
    """A process that is a server, and says its address; until the test is done with it."""
    with (directory / log).open("wb") as kept:
        assert arguments[0] == "evenhand"
        process = ForkedCommand(
            [sys.executable, "-m", *arguments, "--port", "0"],  # the usual one may be taken
            cwd=directory,
            env=dict(surroundings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=kept,
        )
        try:
            assert process.stdout is not None
            address = process.stdout.readline().decode().strip()
            assert address, (directory / log).read_text("utf-8")
            yield address
        finally:
            process.terminate()
            process.communicate(timeout=30)


@contextmanager
def opened_door(directory: Path, **more: str) -> Iterator[Door]:
    """`evenhand serve` in this environment, with a judge behind it."""
    with ChangingJudge() as judge:
        served = ("evenhand", "serve", "--judge", "openai:loopback")
        surroundings = shell(directory, OPENAI_API_KEY="sk-loopback", **more)
        with started_server([*served, "--base-url", judge.url], directory, surroundings) as address:
            yield Door(address, judge)
