"""Drawings: by attributes alone, in their bounds, and nothing where there is nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.present.html.rendering import environment
from html_reading import Html, harm_in

SHARES = st.floats(0, 1)
COUNTS = st.integers(0, 10**7)


def drawn(name: str, *given: Any) -> Html:
    drawings: Any = environment().get_template("_drawings.html").module
    return Html(str(getattr(drawings, name)(*given)))


def percent(value: str) -> float:
    assert value.endswith("%")
    return float(value[:-1])


def places(page: Html) -> list[float]:
    return [
        percent(each.attributes[name])
        for each in page.elements
        for name in ("x", "x1", "x2", "cx")
        if each.attributes.get(name, "0") != "0"
    ]


def test_a_figure_that_is_not_there_is_not_drawn() -> None:
    assert drawn("interval_line", None, None, None).elements == []
    assert drawn("gauge", None, None, None).elements == []


def test_an_interval_stands_where_its_figures_are() -> None:
    page = drawn("interval_line", 0.5, 0.25, 0.75)
    shown = page.one("line", class_="range").attributes
    assert (shown["x1"], shown["x2"]) == ("25.00%", "75.00%")
    assert page.one("circle").attributes["cx"] == "50.00%"
    assert page.one("svg").attributes["aria-hidden"] == "true"


def test_an_interval_has_the_winners_colour_where_it_leaves_out_the_middle() -> None:
    def classes(*given: Any) -> str:
        return drawn("interval_line", *given).one("svg").attributes["class"]

    assert classes(0.7, 0.6, 0.8, "B") == "interval-line for-B"
    assert classes(0.3, 0.2, 0.4, "B") == "interval-line for-A"
    assert classes(0.7, 0.4, 0.9, "B") == "interval-line"
    assert classes(0.7, 0.6, 0.8) == "interval-line"


@settings(deadline=None)
@given(SHARES, SHARES, SHARES)
def test_nothing_is_drawn_outside(value: float, low: float, high: float) -> None:
    for page in (
        drawn("interval_line", value, low, high),
        drawn("gauge", 2 * value - 1, 2 * low - 1, 2 * high - 1),
    ):
        assert harm_in(page) == []
        assert all(0 <= place <= 100 for place in places(page))


def test_a_gauge_has_zero_in_its_middle_and_fails_where_zero_is_left_out() -> None:
    page = drawn("gauge", 0.0, -0.5, 0.5)
    assert page.one("circle").attributes["cx"] == "50.00%"
    shown = page.one("line", class_="range").attributes
    assert (shown["x1"], shown["x2"]) == ("25.00%", "75.00%")
    assert page.one("svg").attributes["class"] == "gauge"
    assert drawn("gauge", 0.5, 0.2, 0.8).one("svg").attributes["class"] == "gauge fails"


@settings(deadline=None)
@given(COUNTS, COUNTS, COUNTS)
def test_shares_fill_the_bar(a: int, inconsistent: int, b: int) -> None:
    parts = [("A", a, None), ("inconsistent", inconsistent, "/x"), ("B", b, None)]
    page = drawn("outcome_bar", parts)
    widths = [percent(each.attributes["width"]) for each in page.all("rect")]
    assert len(widths) == sum(count > 0 for _, count, _ in parts)
    assert sum(widths) == 0 if a + b + inconsistent == 0 else abs(sum(widths) - 100) < 0.05
    assert page.links == (["/x"] if inconsistent else [])


def test_bars_of_a_histogram_are_as_tall_as_their_counts() -> None:
    page = drawn("histogram", [(5, "/a"), (10, None), (0, "/c")], 102)
    assert [each.attributes["height"] for each in page.all("rect")] == ["50.0", "100.0", "0.0"]
    assert page.links == ["/a"]  # a bar of nothing leads nowhere


def test_a_cell_diverges_at_one_half() -> None:
    drawings: Any = environment().get_template("_drawings.html").module
    tones = [str(drawings.tone(share)) for share in (0.1, 0.3, 0.42, 0.5, 0.58, 0.7, 0.9)]
    assert tones == ["tone-a3", "tone-a2", "tone-a1", "", "tone-b1", "tone-b2", "tone-b3"]
