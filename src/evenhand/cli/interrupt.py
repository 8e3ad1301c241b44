"""Ctrl-C in a run: the first lets what is in flight come home, the second leaves at once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from evenhand.runs import Stop


@contextlib.contextmanager
def stop_when_told(
    stop: Stop,
    say: Callable[[str], None],
    leave: Callable[[], NoReturn],
    *,
    by_the_batch: bool = False,
) -> Iterator[None]:
    """For SIGINT and SIGTERM, while the body runs."""
    loop = asyncio.get_running_loop()
    told = False

    def tell() -> None:
        nonlocal told
        if told:
            leave()
        told = True
        stop.ask("interrupt")
        what = "what is in flight is finished and saved"
        if by_the_batch:
            what = "what is at the provider stays there, and the same command collects it"
        say(f"stopping: {what}; Ctrl-C again leaves at once")

    def tell_from_handler(*_: object) -> None:
        loop.call_soon_threadsafe(tell)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.getsignal(number)
        try:
            loop.add_signal_handler(number, tell)
        except NotImplementedError:  # Windows
            signal.signal(number, tell_from_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)
