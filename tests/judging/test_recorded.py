"""The reader on real judges' completions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from scripts import readings

pytestmark = pytest.mark.recorded


@pytest.fixture(scope="module")
def judged(recorded_data: Path) -> list[tuple[str, readings.Key]]:
    """What each recorded completion is read as, and its key."""
    return [
        (one.kind, readings.key_of(one.set, one.row)) for one in readings.recorded(recorded_data)
    ]


@pytest.mark.slow
def test_of_a_sample_nothing_is_misread(recorded_data: Path) -> None:
    counts = Counter(one.kind for one in readings.recorded(recorded_data, every=40))
    assert counts["misread"] == 0
    assert counts["correct"] > 28_000 / 40


def test_nothing_nasty_is_misread(recorded_data: Path) -> None:
    nasty = list(readings.nasty(recorded_data))
    assert len(nasty) == 9
    assert [one.row["why"] for one in nasty if one.kind == "misread"] == []


@pytest.mark.slow
def test_no_recorded_completion_is_misread(judged: list[tuple[str, readings.Key]]) -> None:
    counts = Counter(kind for kind, _ in judged)
    assert counts["misread"] == 0
    # The one that a person can read and the reader does not: it prefers B without saying so.
    assert counts["unread though readable"] <= 1
    assert counts["correct"] > 28_000


@pytest.mark.slow
def test_every_adjudication_names_a_recorded_completion(
    judged: list[tuple[str, readings.Key]],
) -> None:
    known = {key for _, key in judged}
    assert set(readings.adjudications()) <= known
