"""The real server as a process of its own, a loopback judge behind it that can change its mind.

Until then it knows that 56 is right, whatever else it is shown.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from command_line import environment
from forked import ForkedCommand
from scripted import answer_json
from servers import JudgeServer, Reply, Script, Scripted, SeenRequest, chat_reply, error_reply

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


_SECTION = r"<<<\w+ {}>>>\n(.*?)\n<<<end"
_RIGHT = re.compile("56|Seven")


def knows_56(request: SeenRequest) -> Reply:
    shown = {name: _section(request.prompt, f"Response {name}") for name in "AB"}
    right = [name for name, text in shown.items() if _RIGHT.search(text)]
    winner = right[0] if len(right) == 1 else "TIE"
    listed = _section(request.prompt, "Criteria").splitlines()
    criteria = [re.sub(r"^\d+\. |:.*$", "", line) for line in listed]
    return chat_reply(
        answer_json(winner, confidence=0.9, criteria=[(name, winner) for name in criteria])
    )


def takes_the_first(request: SeenRequest) -> Reply:
    """Inconsistent: the winner changes with the order."""
    return chat_reply(answer_json("A", confidence=0.9, criteria=[("accuracy", "A")]))


def _section(prompt: str, name: str) -> str:
    (*_, text) = re.findall(_SECTION.format(re.escape(name)), prompt, re.DOTALL)
    assert isinstance(text, str)
    return text
