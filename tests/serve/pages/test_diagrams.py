"""Drawings: by attributes alone, in their bounds, and nothing where there is nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.serve.pages.rendering import interval_line, share_bar
from html_reading import Html, harm_in

SHARES = st.floats(0, 1)
COUNTS = st.integers(0, 10**7)
WIDTH = 160


def test_a_figure_that_is_not_there_is_not_drawn() -> None:
    assert interval_line(None, None, None) == ""


def test_an_interval_stands_where_its_figures_are() -> None:
    page = Html(interval_line(0.5, 0.25, 0.75))
    drawn = page.one("line", class_="range").attributes
    assert (float(drawn["x1"]), float(drawn["x2"])) == (0.25 * WIDTH, 0.75 * WIDTH)
    assert float(page.one("circle").attributes["cx"]) == 0.5 * WIDTH
    assert page.one("svg").attributes["aria-hidden"] == "true"


@settings(deadline=None)
@given(SHARES, SHARES, SHARES)
def test_nothing_is_drawn_outside(value: float, low: float, high: float) -> None:
    page = Html(interval_line(value, low, high))
    assert harm_in(page) == []
    places = [
        float(each.attributes[name])
        for each in page.elements
        for name in ("x1", "x2", "cx")
        if name in each.attributes
    ]
    assert all(0 <= place <= WIDTH for place in places)


@settings(deadline=None)
@given(COUNTS, COUNTS, COUNTS)
def test_shares_fill_the_bar(a: int, b: int, tie: int) -> None:
    page = Html(share_bar([("A", a), ("B", b), ("tie", tie)]))
    widths = [float(each.attributes["width"]) for each in page.all("rect")]
    total = sum(widths)
    assert total == 0 if a + b + tie == 0 else abs(total - WIDTH) < 0.05
