"""The fixtures that the tests share, how long an example may take, and what is run first."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from recorded import recorded_data
from servers import start_server
from transports import transport

__all__ = ["recorded_data", "start_server", "transport"]

_TESTS = Path(__file__).parent

# No test asserts time: on a busy machine any example may take long.
settings.register_profile("evenhand", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("evenhand")

# Files that take long come first: several processes share the files, and one of them would be left
# alone with a long file that came last. Those with the embedded model, which takes every core, are
# not side by side.
_LONGEST_FIRST = (
    "cli/test_demo_command",
    "runs/ray/",
    "serve/test_background_kill",
    "trust/test_probes",
    "browser/",
    "test_embedded",
    "serve/",
    "judges/test_local",
    "doors/",
    "runs/",
    "parse/test_recorded",
    "parse/test_published_figures",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {item.path: _place(item.path) for item in items}
    items.sort(key=lambda item: places[item.path])


def _place(file: Path) -> int:
    name = file.relative_to(_TESTS).as_posix()
    found = (place for place, start in enumerate(_LONGEST_FIRST) if name.startswith(start))
    return next(found, len(_LONGEST_FIRST))
