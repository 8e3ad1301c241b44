"""The script that times the trust commands does its work; how long it takes is its own affair."""

from __future__ import annotations

import pytest
from scripts.verify_trust_speed import main


@pytest.mark.slow
def test_every_command_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--pairs", "120"]) == 0
    told = capsys.readouterr().out
    for name in ("audit", "calibrate", "abstentions", "jury", "correct", "correct --draw", "votes"):
        assert f"| {name}" in told
