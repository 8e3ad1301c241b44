"""The fixtures that the commands' tests share."""

from collections.abc import Iterator

import pytest

from command_line import Command, command
from evenhand.store import Store
from stored_runs import opened

__all__ = ["command"]


@pytest.fixture
def store(command: Command) -> Iterator[Store]:
    """Empty, where a command finds it by `--store evenhand.db`."""
    with opened(command.directory) as opened_store:
        yield opened_store
