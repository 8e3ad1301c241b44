"""Whether what the extra `serve` brings is there, found out without loading any of it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from evenhand.errors import MissingExtra

Needed = Literal["fastapi", "uvicorn", "mcp"]
# Of the SDK it is the second version that is needed, which has two modules.
_MODULES: dict[Needed, tuple[str, ...]] = {
    "fastapi": ("fastapi",),
    "uvicorn": ("uvicorn",),
    "mcp": ("mcp", "mcp_types"),
}


def refuse_without(*wanted: Needed) -> None:
    """To be told at the start, and not to whoever first asks for what is missing."""
    for what in wanted:
        if any(find_spec(module) is None for module in _MODULES[what]):
            raise MissingExtra(what, "serve")
