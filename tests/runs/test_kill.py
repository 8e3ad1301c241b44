"""Killed anywhere, resumed each time; and a server that fails in every way. `make verify` has the
same at full size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scripts.verify_faults import run_with_faults
from scripts.verify_kill import kill_and_resume

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills by SIGKILL")


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_and_loses_only_what_was_in_flight(tmp_path: Path) -> None:
    report = kill_and_resume(tmp_path, pairs=150, kills=3, concurrency=16, seed=5)
    assert report.problems == []


@pytest.mark.slow
def test_a_faulty_server_makes_no_ties_and_hangs_nothing(tmp_path: Path) -> None:
    report = run_with_faults(tmp_path, pairs=100, concurrency=32, timeout_s=1.0, seed=3)
    assert report.problems == []
