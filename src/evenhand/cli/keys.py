"""Single keys from a terminal, without Enter."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Also what a terminal sends when it is closed.
END = "\x04"
_ESCAPE = b"\x1b"
# The rest of an arrow key comes at once.
_REST_S = 0.05


@contextmanager
def single_keys() -> Iterator[Callable[[], str]]:
    """A function that waits for the next key that is a plain sign, and gives it in lower case.

    What was typed before it is called is dropped: a key that was pressed too often must not
    answer a question that nobody has seen. Ctrl-C interrupts as ever.
    """
    if sys.platform == "win32":
        yield _windows_key
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSADRAIN)

    def key() -> str:
        termios.tcflush(terminal, termios.TCIFLUSH)
        while True:
            byte = os.read(terminal, 1)
            if not byte:
                return END
            if byte == _ESCAPE:
                while select.select([terminal], [], [], _REST_S)[0] and os.read(terminal, 1):
                    pass
            elif byte < b"\x80":
                return byte.decode().lower()

    try:
        yield key
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _windows_key() -> str:
    import msvcrt

    keys = vars(msvcrt)
    while keys["kbhit"]():
        keys["getwch"]()
    while True:
        key: str = keys["getwch"]()
        if key in ("\x00", "\xe0"):  # an arrow or a function key; its second half follows
            keys["getwch"]()
        elif key == "\x03":
            raise KeyboardInterrupt
        else:
            return key.lower()
