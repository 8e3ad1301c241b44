"""What every command shares: streams, errors to exit codes, the event loop, the judge's caveat
shown once, and the store and the run that a command means.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar, cast

import typer

from evenhand.errors import Status
from evenhand.present.terminal import one_line
from evenhand.present.terminal import print_line as print_line

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path
    from types import FrameType

    from pydantic import BaseModel
    from rich.console import Console

    from evenhand.judges.protocol import Judge
    from evenhand.store import Store


T = TypeVar("T")
R = TypeVar("R", bound="BaseModel")
_CLOSED_WITHIN_S = 1.0  # after a second Ctrl-C


def prepare_streams() -> None:
    """Streams that take every character; without an output there is no use in asking a judge."""
    from evenhand.present.terminal import register_plain_signs

    plain_signs = register_plain_signs()
    if sys.stderr is None:  # closed by the caller
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - it stays open as long as we do
    if sys.stdout is None:
        sys.stderr.write(
            "error  standard output is closed; redirect it to a file, a pipe or a terminal\n"
        )
        raise SystemExit(Status.BAD_INPUT)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=plain_signs)


def out() -> Console:
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            # Rich would leave with 1; the exit code should still be the verdict's.
            self.quiet = True
            silence_output()

    # What Rich pads for a terminal's sake should not end up in files and pipes.
    file = sys.stdout if sys.stdout.isatty() else cast("IO[str]", _Trimmed(sys.stdout))
    return Output(file=file, highlight=False, soft_wrap=False)


class _Trimmed:
    """A text stream whose lines end without spaces; it is written to in whole lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        from evenhand.present.terminal import without_commands

        # A search for spaces at a line's end looks at every run of them again and again.
        trimmed = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
        return self._stream.write(without_commands(trimmed))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def err() -> Console:
    from rich.console import Console

    file = sys.stderr if sys.stderr.isatty() else cast("IO[str]", _Trimmed(sys.stderr))
    return Console(file=file, highlight=False)


def note(text: str) -> None:
    """A line on standard error."""
    from rich.text import Text

    print_line(err(), Text.assemble(("note  ", "yellow"), one_line(text)))


def present(report: R, show: Callable[[Console, R], None], *, as_json: bool) -> None:
    """What a command has to say: as JSON, or as `show` shows it."""
    if as_json:
        write_json(report)
    else:
        show(out(), report)


def write_json(value: BaseModel | Mapping[str, Any]) -> None:
    """JSON on standard output, in UTF-8 whatever the terminal's locale is."""
    from evenhand.present.terminal import escape, without_keys

    if isinstance(value, Mapping):
        text = json.dumps(value, ensure_ascii=False, indent=2)
    else:
        text = value.model_dump_json(indent=2)
    write_text(escape(without_keys(text)))


def write_text(text: str) -> None:
    from evenhand.present.terminal import without_commands

    data = (without_commands(text) + "\n").encode()
    stream = getattr(sys.stdout, "buffer", None)
    try:
        if stream is None:
            sys.stdout.write(data.decode())
        else:
            sys.stdout.flush()
            stream.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_output()


def silence_output() -> None:
    """Nobody reads our output any more, or it cannot be written: what is left of it is dropped."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def leave(code: int) -> NoReturn:
    if code == Status.INTERRUPTED:
        raise SystemExit(code)  # and not Exit, of which main would say so again
    raise typer.Exit(code)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; Ctrl-C cancels and lets everything close, for a second after the next one
    and not at all after a third."""
    import asyncio

    before = signal.getsignal(signal.SIGINT)

    async def interruptible() -> T:
        with contextlib.suppress(ValueError):  # signals go to the main thread alone
            signal.signal(signal.SIGINT, _cancelling_once(signal.getsignal(signal.SIGINT)))
        return await work

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(interruptible())
    finally:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, before)


def _cancelling_once(runners: Any) -> Callable[[int, FrameType | None], None]:
    """The runner's own handler raises KeyboardInterrupt the second time, wherever the loop is by
    then: within its own works that leaves a loop that waits for ever, or cannot be closed."""
    pressed = 0

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1 and callable(runners):
            runners(number, frame)
        elif pressed == 2:
            ending = threading.Timer(_CLOSED_WITHIN_S, _end_at_once)
            ending.daemon = True
            ending.start()
        elif pressed > 2:
            _end_at_once()

    return interrupted


def _end_at_once() -> None:
    shown = "\x1b[?25h" if sys.stderr.isatty() else ""  # a progress bar hides the cursor
    with contextlib.suppress(OSError):
        os.write(2, f"{shown}interrupted\n".encode())
    os._exit(Status.INTERRUPTED)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Something that moves while nothing can be shown."""
    from rich.text import Text

    from evenhand.present.terminal import one_line

    with err().status(Text(one_line(what))):
        yield


@contextlib.asynccontextmanager
async def opened(judge: Judge, *, quiet: bool = False) -> AsyncIterator[Judge]:
    """A judge that is closed in the end, whatever happens, and whose caveat is said once."""
    if judge.traits.caveat and not quiet:
        from rich.text import Text

        from evenhand.present.terminal import one_line

        note = f"{one_line(judge.name)}: {judge.traits.caveat}"
        print_line(err(), Text.assemble(("note  ", "yellow"), note))
    try:
        yield judge
    finally:
        await judge.close()


# The store that a command means: its option, the environment's, the config file's, or yours.


def named_store(address: str | None) -> str | None:
    from evenhand.settings import load_settings

    store = address or load_settings().store
    return None if store is None else str(store)


def pasted(*words: str, store: str | Path | None) -> str:
    """A command to go on with, and its store where that was named by an option."""
    import shlex

    usual = named_store(None)
    where = () if store is None or str(store) == usual else ("--store", str(store))
    return one_line(shlex.join(("evenhand", *words, *where)))


def opened_store(address: str | None) -> Store:
    """One that is there: looking at runs is no reason to make a store."""
    from evenhand.store import open_store

    return open_store(named_store(address), create=False)


def named_or_latest(store: Store, name: str | None) -> str:
    """Which run it is, is said where it was not named, so that nobody takes it for another."""
    if name is not None:
        return name
    from evenhand.report.lookup import latest_run

    run = latest_run(store)
    err().print(f"latest run: {one_line(run.name)}", markup=False, highlight=False)
    return run.name
