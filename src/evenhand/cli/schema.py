"""`evenhand schema`: the contract as JSON Schema."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from evenhand.cli import session


def schema(
    which: Annotated[
        Literal["input", "output"], typer.Argument(help="What goes in, or what comes out.")
    ] = "input",
) -> None:
    """Print the JSON Schema of a comparison's input or output."""
    from evenhand.tools import input_schema, output_schema

    shown = input_schema() if which == "input" else output_schema()
    session.write_json(json.dumps(shown, ensure_ascii=False, indent=2))
