"""The reader on real judges' completions, and the authors' figures from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from scripts import published_figures, readings

from evenhand.judging.ballots import read_ballot

pytestmark = pytest.mark.recorded


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """Both scripts read the same completions, which takes a minute."""
    with pytest.MonkeyPatch.context() as patch:
        once = cache(read_ballot)
        for script in (readings, published_figures):
            patch.setattr(script, "read_ballot", once)
        yield


@pytest.fixture(scope="module")
def judged(recorded_data: Path) -> list[tuple[str, readings.Key]]:
    """What each recorded completion is read as, and its key."""
    return [
        (one.kind, readings.key_of(one.set, one.row)) for one in readings.recorded(recorded_data)
    ]


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
    # Sentences: nearly all of LLMBar's chains of thought, and 15 others.
    assert counts["by name only"] <= 3_768 + 15
    assert counts["correct"] > 28_200


@pytest.mark.slow
def test_every_adjudication_names_a_recorded_completion(
    judged: list[tuple[str, readings.Key]],
) -> None:
    known = {key for _, key in judged}
    assert set(readings.adjudications()) <= known


# Published figures: the authors' rules give what the authors printed.


@pytest.fixture(scope="module")
def figures(recorded_data: Path) -> list[published_figures.Figure]:
    return list(published_figures.figures(recorded_data))


@pytest.mark.slow
def test_every_published_figure_is_reproduced_to_the_printed_digit(
    figures: list[published_figures.Figure],
) -> None:
    assert {one.name: one.authors for one in figures} == {
        one.name: one.published for one in figures
    }
    # 4 judgebench, 16 llmbar, 30 llmbar with steps, 3 position bias, 2 pandalm, 5 qlora.
    assert len(figures) == 4 + 16 + 30 + 3 + 2 + 5


@pytest.mark.slow
def test_our_own_reading_differs_where_the_authors_misread(
    figures: list[published_figures.Figure],
) -> None:
    by_name = {one.name: one for one in figures}
    palm = by_name["llmbar PaLM2_CoT natural, accuracy %"]
    assert palm.authors == "73.0"
    assert 79 <= float(palm.ours) <= 82
