"""A command on a terminal that a test types into."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from command_line import start_command

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
