"""The fixtures that the tests share, how long an example may take, and what is run first."""

import os
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from parts import PACKAGES, WHOLE, absent_packages, examples, need_packages, recorded_data
from postgres_server import (
    _databases,
    address,
    empty_database,
    fresh_database,
    postgres,
    store,
)
from servers import start_server, transport

__all__ = [
    "_databases",
    "address",
    "empty_database",
    "fresh_database",
    "postgres",
    "recorded_data",
    "start_server",
    "store",
    "transport",
]

_TESTS = Path(__file__).parent

# No test asserts time: on a busy machine any example may take long.
settings.register_profile(
    "evenhand",
    max_examples=examples(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("evenhand")

# Each call of `main` would build all commands anew, which takes longer than most of them run.
typer.main.get_command = cache(typer.main.get_command)

# What every test of a folder, or all that take a fixture, need.
_PART_OF_PLACE = {
    "browser/": "browser",
    "cli/test_batch_command": "agents",
    "runs/batch/": "agents",
    "runs/ray/test_joining": "ray",
    "runs/ray/test_ray_itself": "ray",
    "runs/ray/test_refusal": "ray",
    "runs/ray/test_three_ways": "agents",
    "serve/test_http_schemathesis": "fuzz",
    "serve/test_mcp_fuzz": "fuzz",
}
_PART_OF_FIXTURE = {"postgres": "postgres", "crowd": "ray"}

# These import at their head what `make test` does not install.
_IMPORTING = {"browser": "browser", "serve/test_http_schemathesis.py": "fuzz"}
collect_ignore = [] if WHOLE else [p for p, part in _IMPORTING.items() if absent_packages(part)]

# Each of several processes reads all tests, and the first time rewrites their assertions; every
# other one begins at the end, and finds half of them done.
_BACKWARDS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2 == 1

# Files that take long come first: several processes share the files, and one of them would be left
# alone with a long file that came last. Those with the embedded model, which takes every core, are
# not side by side.
_LONGEST_FIRST = (
    "cli/test_demo_command",
    "runs/ray/",
    "serve/test_background_kill",
    "trust/test_probes",
    "browser/",
    "judging/test_embedded",
    "serve/",
    "judges/test_local",
    "doors/",
    "runs/",
    "test_doc_blocks",
    "cli/",
    "trust/",
    "report/",
    "judging/",
)


@pytest.fixture
def unconfigured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is set for the judge, and no config file is near."""
    for name in list(os.environ):
        if name.startswith(("EVENHAND_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def pytest_report_header() -> list[str]:
    return [f"tests/{path}: left out; `make test-all` has what it needs" for path in collect_ignore]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if _BACKWARDS and isinstance(collector, pytest.Dir):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)  # before those that are not wanted are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {item.path: (_place(item.path), item.path) for item in items}
    items.sort(key=lambda item: places[item.path])
    for item in items:
        name = item.path.relative_to(_TESTS).as_posix()
        for start, part in _PART_OF_PLACE.items():
            if name.startswith(start):
                item.add_marker(part)
        for fixture, part in _PART_OF_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(part)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for part in PACKAGES:
        if item.get_closest_marker(part):
            need_packages(part)


def _place(file: Path) -> int:
    name = file.relative_to(_TESTS).as_posix()
    found = (place for place, start in enumerate(_LONGEST_FIRST) if name.startswith(start))
    return next(found, len(_LONGEST_FIRST))
