"""Twice what the server can do, for some seconds; `make verify` does it for a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.serve import measure
from scripts.verify_load import overload

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_loaded_twice_over_answers_what_it_accepts_and_refuses_the_rest(
    tmp_path: Path, workers: int
) -> None:
    # A machine that is busy with other tests may not bring up the load: then it is tried again.
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        report = overload(folder, seconds=3, slots=4, queue=4, workers=workers)
        if report.tally.statuses[429]:
            break
    assert report.problems == []
    assert report.tally.statuses[200] > 0


def test_the_benchmark_of_the_server_measures_both_sides() -> None:
    by_server, by_comparer = measure(compares=20, rounds=1)
    assert len(by_server) == len(by_comparer) == 1
    assert by_comparer[0] > 0
