"""Code blocks of the documentation, and a small shell that runs them as pasted.

A block's info string says what it is:

- `sh`: commands; each must succeed;
- `console`: `$ command` and the output that follows it, compared; `…` stands for anything;
- `python`: run in order, with one namespace a page;
- `json`, `toml`: parsed;
- `text`: output or an excerpt of a file; nothing is run.

A second word, `excerpt`, marks a block that needs what a test has not (a package index, a cluster,
a browser): its commands are still checked against the command line's options.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenhand.cli.main import main
from forked import ForkedCommand

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What only a real shell understands; everything else is run in this process, which is faster.
_SHELL = re.compile(r"[|<>;&$`*]|(?<!\S)#")
_PORT = "127.0.0.1:8321"


@dataclass(frozen=True)
class Block:
    line: int
    kind: str
    excerpt: bool
    text: str


@dataclass(frozen=True)
class Step:
    command: str
    shown: str | None  # None: whatever it prints


def blocks_of(page: str) -> list[Block]:
    found = []
    for match in _FENCE.finditer(page):
        kind, *rest = match[1].split() or [""]
        line = page.count("\n", 0, match.start()) + 1
        found.append(Block(line, kind, rest == ["excerpt"], match[2]))
    return found


def steps_of(block: Block) -> Iterator[Step]:
    if block.kind == "sh":
        for command in block.text.replace("\\\n", "").splitlines():
            if command.strip() and not command.startswith("#"):
                yield Step(command.strip(), None)
        return
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        head, _, shown = part.replace("\\\n", "").partition("\n")
        yield Step(head, shown)


def looks_like(shown: str, printed: str) -> bool:
    """Whether the output is as shown; a line of `…` is any lines, `…` in a line anything in it."""
    pattern = ""
    for line in shown.rstrip("\n").split("\n"):
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pieces = [re.escape(piece) for piece in line.rstrip().split("…")]
            pattern += ".*?".join(pieces) + r"[ ]*\n"
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


class Shell:
    """A user's shell: a directory, an environment, and `evenhand` in this very process."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.directory = directory
        self.environment = environment
        self._server: subprocess.Popen[str] | None = None
        self._address = _PORT

    def run(self, command: str) -> tuple[int, str]:
        """Its exit code and everything that it printed."""
        command = command.replace(_PORT, self._address)
        words = shlex.split(command, comments=True)
        if words[0] == "cd":
            self.directory = (self.directory / words[1]).resolve()
        elif words[0] == "export" and "$(" not in command:
            name, _, value = words[1].partition("=")
            self.environment[name] = value
        elif words[:2] == ["evenhand", "serve"]:
            self._serve(words[1:])
        elif words[0] == "evenhand" and not _SHELL.search(re.sub(r"'[^']*'", "", command)):
            with self.entered():
                return _in_process(words)
        else:
            return self._outside(command)
        return 0, ""

    def close(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.communicate(timeout=30)
            self._server = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This process, in the shell's directory and environment."""
        before, where = dict(os.environ), Path.cwd()
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.directory)
        try:
            yield
        finally:
            os.chdir(where)
            os.environ.clear()
            os.environ.update(before)

    def _outside(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout

    def _serve(self, words: list[str]) -> None:
        """In the background, on a port that is free; its address then stands for the usual one."""
        self.close()
        self._server = ForkedCommand(
            [sys.executable, "-m", "evenhand", *words, "--port", "0"],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._server.stdout is not None
        self._address = self._server.stdout.readline().strip().removeprefix("http://")
        assert self._address, "the server did not start"


def _in_process(words: list[str]) -> tuple[int, str]:
    kept = (sys.argv, sys.stdin, sys.stdout, sys.stderr)
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    sys.argv, sys.stdin = words, io.TextIOWrapper(io.BytesIO())
    sys.stdout = sys.stderr = printed
    try:
        main()
    except SystemExit as left:
        code = left.code
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = kept
    printed.seek(0)
    return code if isinstance(code, int) else 0, printed.read()
