"""The reader on real judges' completions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from scripts import readings

pytestmark = pytest.mark.recorded


def test_nothing_nasty_is_misread(recorded_data: Path) -> None:
    judged = list(readings.nasty(recorded_data))
    assert len(judged) == 9
    assert [one.row["why"] for one in judged if one.kind == "misread"] == []


def test_no_recorded_completion_is_misread(recorded_data: Path) -> None:
    counts = Counter(one.kind for one in readings.recorded(recorded_data))
    assert counts["misread"] == 0
    # The one that a person can read and the reader does not: it prefers B without saying so.
    assert counts["unread though readable"] <= 1
    assert counts["correct"] > 28_000


def test_every_adjudication_names_a_recorded_completion(recorded_data: Path) -> None:
    known = {readings.key_of(one.set, one.row) for one in readings.recorded(recorded_data)}
    assert set(readings.adjudications()) <= known
