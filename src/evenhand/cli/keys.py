"""Single keys from a terminal, without Enter."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

# Also what a terminal sends when it is closed.
END = "\x04"
_ESCAPE = b"\x1b"
# The rest of an arrow key comes at once.
_REST_S = 0.05


class Keys(Protocol):
    def forget(self) -> None:
        """Drop what was typed before now: a key that was pressed too often must not answer a
        question that nobody has seen."""

    def read(self) -> str:
        """Wait for the next key that is a plain sign, in lower case. Ctrl-C interrupts as ever."""


@contextmanager
def single_keys() -> Iterator[Keys]:
    if sys.platform == "win32":
        import msvcrt

        yield _WindowsKeys(msvcrt)
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSADRAIN)
    try:
        yield _UnixKeys(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class _UnixKeys:
    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def forget(self) -> None:
        import termios

        termios.tcflush(self._terminal, termios.TCIFLUSH)

    def read(self) -> str:
        while True:
            byte = os.read(self._terminal, 1)
            if not byte:
                return END
            if byte == _ESCAPE:
                self._drop_sequence()
            elif byte < b"\x80":
                return byte.decode().lower()

    def _drop_sequence(self) -> None:
        """The rest of an arrow or a function key, up to its letter; or of Alt and a key."""
        byte = self._rest()
        if byte in (b"[", b"O"):
            byte = self._rest()
            while byte and not b"@" <= byte <= b"~":
                byte = self._rest()

    def _rest(self) -> bytes:
        if not select.select([self._terminal], [], [], _REST_S)[0]:
            return b""
        return os.read(self._terminal, 1)


class _WindowsKeys:
    def __init__(self, console: Any) -> None:
        self._console = console

    def forget(self) -> None:
        while self._console.kbhit():
            self._console.getwch()

    def read(self) -> str:
        while True:
            key: str = self._console.getwch()
            if key in ("\x00", "\xe0"):  # an arrow or a function key; its second half follows
                self._console.getwch()
            elif key == "\x03":
                raise KeyboardInterrupt
            else:
                return key.lower()
