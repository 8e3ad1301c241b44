"""A small version of the million, so that the script itself is held to work."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.verify_rank_store import MODELS, RANKINGS, fill, rank


@pytest.mark.slow
@pytest.mark.parametrize("intervals", RANKINGS)
def test_command_ranks_every_verdict_that_was_written(tmp_path: Path, intervals: str) -> None:
    filled = fill(tmp_path / "some.db", 3_000)
    took, outcomes = rank(tmp_path / "some.db", intervals)
    assert outcomes == filled.outcomes
    assert sum(outcomes.values()) == 3_000
    assert took["models"] == MODELS
    assert took["peak_mb"] > 0
