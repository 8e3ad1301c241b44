"""The fixture `recorded_data`: where the recorded judgments are, beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from parts import missing


@pytest.fixture(scope="session")
def recorded_data() -> Path:
    data = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not (data / "judgments").is_dir():
        message = f"no recorded judgments beside the project in {data.parent.name}/{data.name}"
        missing(message)
    return data
