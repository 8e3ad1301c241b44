"""The script that tries juries of recorded judges does its work; its figures are its own affair."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.verify_juries import main


@pytest.mark.slow
@pytest.mark.recorded
def test_a_default_is_no_worse_than_its_best_member(
    recorded_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(recorded_data), "--panels", "1", "--later", "0"]) == 0
    told = capsys.readouterr().out
    for name in ("LLMBar Natural", "LLMBar adversarial", "JudgeBench"):
        assert f"| {name} |" in told
    assert "8 panels built with" in told
    assert "beyond its interval in 0" in told
