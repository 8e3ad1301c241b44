"""The command `evenhand`: its commands, and the last line of defence against tracebacks."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from evenhand import __version__
from evenhand.cli import session
from evenhand.cli.command_tree import Invocation, RootCommands, path_of
from evenhand.errors import (
    EvenhandError,
    InputError,
    Interrupted,
    SettingsError,
    Status,
    exit_code,
)
from evenhand.messages import Message, speaking_to

# typer checks choices with pydantic, which puts this before what is wrong.
_PYDANTICS_OWN = "Value error, "
# Their JSON of a failure says what is known of the pair.
_OF_ONE_PAIR = frozenset({"compare", "prompt", "doctor"})

app = typer.Typer(
    name="evenhand",
    cls=RootCommands,
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        session.write_text(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def evenhand(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """An even-handed LLM judge: pairwise comparison in both orders.

    Exit codes: 0 success, 1 a gate failed, 2 bad input, 3 the judge failed, 4 no valid
    verdict, 5 a run's cap was reached, 6 a gate is undecided, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        session.write_text(context.get_help())


def main() -> NoReturn:
    # Sums over some ten thousand rows are no work for threads: they spin for longer than it takes,
    # a third of a report's CPU.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    session.prepare_streams()
    with speaking_to("cli"):
        code = _run()
    _flush()
    raise SystemExit(code)


def _run() -> int:
    """The exit code; every error that a command raises is shown here."""
    invocation = Invocation()
    error: EvenhandError
    try:
        # typer turns Ctrl-C into the exit code 130, wherever it comes.
        code: int = app(standalone_mode=False, obj=invocation) or Status.OK
        if code != Status.INTERRUPTED:
            return code
        error = _interrupted(invocation)
    except SystemExit as left:  # everything was shown already
        return left.code if isinstance(left.code, int) else Status.OK
    except typer.TyperException as problem:
        text = " ".join(problem.format_message().split()).rstrip(".").replace(_PYDANTICS_OWN, "", 1)
        # A usage error knows the command that it stopped.
        context = getattr(problem, "ctx", None)
        path = "evenhand" if context is None else " ".join(path_of(context))
        error = InputError(Message("command.usage", text=text, path=path))
    except (KeyboardInterrupt, typer.Abort):
        error = _interrupted(invocation)
    except EvenhandError as problem:
        error = problem
    except OSError as problem:
        error = InputError(_on_disk(problem))
    except Exception as problem:  # whatever it is, it is our fault and no news for the caller
        if os.environ.get("EVENHAND_DEBUG"):
            raise
        error = _not_utf8(invocation.words) or _bug(problem)
    _show_error(error, as_json="--json" in invocation.words, of_pair=_of_pair(invocation))
    return exit_code(error)


def _of_pair(invocation: Invocation) -> bool:
    return invocation.command is None or invocation.command in _OF_ONE_PAIR


def _interrupted(invocation: Invocation) -> Interrupted:
    # Another Ctrl-C would only break off the interpreter's own end, with a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return Interrupted(
        Message(
            "command.interrupted_before_verdict" if _of_pair(invocation) else "command.interrupted"
        )
    )


def _show_error(error: EvenhandError, *, as_json: bool, of_pair: bool) -> None:
    from evenhand.cli.compare import show_failure
    from evenhand.contract import Metadata
    from evenhand.judging.explanation import failure_of

    # A file's name may hold bytes that are no text.
    error.message = error.message.encode("utf-8", "backslashreplace").decode()
    failure = failure_of(error)
    if as_json:
        try:
            left_out = set() if of_pair else set(Metadata.model_fields)
            session.write_json(failure.model_dump(mode="json", exclude={"metadata": left_out}))
        except OSError:
            session.silence_output()
    if isinstance(error, Interrupted):
        sys.stderr.write("interrupted\n")
    else:
        show_failure(session.err(), failure, kept=not as_json)


def _on_disk(error: OSError) -> Message:
    reason = error.strerror or str(error)
    if error.filename:
        return Message("command.file_failed", reason=reason, file=error.filename)
    return Message("command.disk_failed", reason=reason)


def _not_utf8(words: Sequence[str]) -> InputError | None:
    """What was given that is no text, and so made whatever met it fail."""
    for place, word in enumerate(words, start=1):
        if not _is_text(word):
            return InputError(
                Message("command.argument_not_utf8", place=place, word=_in_bytes(word))
            )
    for name, value in os.environ.items():
        if not _is_text(value) and name.startswith(("EVENHAND_", "OPENAI_")):
            return SettingsError(
                Message("command.variable_not_utf8", name=name, value=_in_bytes(value))
            )
    return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _in_bytes(value: str) -> str:
    return repr(os.fsencode(value)[:60])[2:-1]


def _bug(error: Exception) -> EvenhandError:
    description = " ".join(str(error).split())[:200]
    return EvenhandError(Message("command.bug", reason=description, kind=type(error).__name__))


def _flush() -> None:
    # At exit Python would complain of what it cannot write, and change the exit code.
    try:
        sys.stdout.flush()
    except OSError:
        session.silence_output()
