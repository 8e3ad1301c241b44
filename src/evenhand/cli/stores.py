"""The store that a command means: its option, the environment's, the config file's, or yours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.store import Store


def named_store(address: str | None) -> str | None:
    from evenhand.settings import load_settings

    return address or load_settings().store


def opened_store(address: str | None) -> Store:
    """One that is there: looking at runs is no reason to make a store."""
    from evenhand.store import open_store

    return open_store(named_store(address), create=False)
