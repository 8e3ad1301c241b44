"""The command `evenhand`: its commands, and the last line of defence against tracebacks."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from evenhand import __version__
from evenhand.cli import session
from evenhand.cli.compare import compare
from evenhand.cli.demo import demo
from evenhand.cli.doctor import doctor
from evenhand.cli.models import models
from evenhand.cli.prompt import prompt
from evenhand.cli.schema import schema
from evenhand.errors import EvenhandError, InputError, Status

app = typer.Typer(
    name="evenhand",
    no_args_is_help=True,
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
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """An even-handed LLM judge: pairwise comparison in both orders, with honest outcomes."""


app.command()(compare)
app.command()(prompt)
app.command()(demo)
app.command()(doctor)
app.command()(schema)
app.add_typer(models, name="models")


def main() -> NoReturn:
    as_json = "--json" in sys.argv[1:]
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        code = _usage(error, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        session.leave_interrupted()
    except EvenhandError as error:
        code = _failed(error, as_json=as_json)
    except BrokenPipeError:
        session.leave_broken_pipe()
    except OSError as error:
        code = _failed(InputError(_about(error)), as_json=as_json)
    except Exception as error:
        if os.environ.get("EVENHAND_DEBUG"):
            raise
        code = _bug(error, as_json=as_json)
    raise SystemExit(code if isinstance(code, int) else Status.OK)


def _usage(error: typer.TyperException, *, as_json: bool) -> int:
    text = " ".join(error.format_message().split())
    if not text:
        # Help was asked for by giving no command; it has been shown.
        return Status.BAD_INPUT
    return _failed(InputError(f"{text.rstrip('.')}; see evenhand --help"), as_json=as_json)


def _failed(error: EvenhandError, *, as_json: bool) -> int:
    try:
        session.fail(error, as_json=as_json)
    except typer.Exit as left:
        return left.exit_code


def _about(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}; check the disk, the path and its permissions"


def _bug(error: Exception, *, as_json: bool) -> int:
    kind = type(error).__name__
    said = " ".join(str(error).split())[:200]
    return _failed(
        EvenhandError(
            f"this is a bug in evenhand: {kind}: {said}; "
            "run again with EVENHAND_DEBUG=1 and report what it shows"
        ),
        as_json=as_json,
    )
