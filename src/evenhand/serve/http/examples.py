"""The examples of the OpenAPI document: what a real server was sent, and what it answered."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import orjson


def example(name: str) -> Any:
    """JSON as a value, anything else as its text."""
    folder = files(__package__).joinpath("examples")
    text = folder.joinpath(f"{name}.txt")
    if text.is_file():
        return text.read_text("utf-8")
    return orjson.loads(folder.joinpath(f"{name}.json").read_bytes())
