"""What every command shares: consoles, errors to exit codes, the judge's caveat said once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from evenhand.errors import EvenhandError, Status, exit_code

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.judges import Judge

T = TypeVar("T")


def out() -> Console:
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, soft_wrap=False)


def err() -> Console:
    from rich.console import Console

    return Console(file=sys.stderr, highlight=False)


def write_json(text: str) -> None:
    """JSON on standard output, in UTF-8 whatever the terminal's locale is."""
    from evenhand.cli.terminal import escape

    write_text(escape(text))


def write_text(text: str) -> None:
    data = (text + "\n").encode()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:
        sys.stdout.write(data.decode())
    else:
        sys.stdout.flush()
        stream.write(data)
    sys.stdout.flush()


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; Ctrl-C cancels and lets everything close, and a second one ends at once."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(work)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def fail(error: EvenhandError, *, as_json: bool) -> NoReturn:
    """Say what went wrong, as JSON or on one line, and leave with its code."""
    import typer

    from evenhand.cli.show import show_failure
    from evenhand.comparer import failure_of

    failure = failure_of(error)
    if as_json:
        write_json(failure.model_dump_json(indent=2))
    else:
        show_failure(err(), failure)
    raise typer.Exit(exit_code(error))


@contextlib.asynccontextmanager
async def opened(judge: Judge, *, quiet: bool = False) -> AsyncIterator[Judge]:
    """A judge that is closed in the end, whatever happens, and whose caveat is said once."""
    if judge.traits.caveat and not quiet:
        from rich.text import Text

        err().print(Text.assemble(("note  ", "yellow"), f"{judge.name}: {judge.traits.caveat}"))
    try:
        yield judge
    finally:
        await judge.close()


def leave_interrupted() -> NoReturn:
    sys.stderr.write("interrupted\n")
    raise SystemExit(Status.INTERRUPTED)


def leave_broken_pipe() -> NoReturn:
    """The reader of our output went away; nothing is left to say to it."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(Status.OK)
