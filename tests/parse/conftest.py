"""Makes `scripts/` importable, and says where the recorded judgments are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))


@pytest.fixture(scope="session")
def recorded_data() -> Path:
    data = ROOT.parent / "shared" / "data"
    if not (data / "judgments").is_dir():
        message = f"no recorded judgments beside the project in {data.parent.name}/{data.name}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return data
