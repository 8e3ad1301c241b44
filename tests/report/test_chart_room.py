"""Every text of a picture has room in it, in a font wider than the one that it was drawn with."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any
from xml.etree import ElementTree

import pytest

from chart_values import HOSTILE_NAMES, conclusion, conclusions, league, side_rate
from evenhand.report.charts import drawing as charts
from evenhand.report.charts.drawing import with_room
from evenhand.stats.estimates import EstimatedShare

SVG = "{http://www.w3.org/2000/svg}"
# The widths of DejaVu Sans in thousandths of its height (its own table, rounded): no usual font is
# wider. Capitals have 600 to 860 without M, Q and W; signs of CJK are as wide as high.
WIDTHS = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz0123456789 .,:;()%-",
        [613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411]
        + [521, 392, 634, 592, 818, 592, 592, 525]
        + 10 * [636]
        + [318, 318, 318, 337, 337, 390, 390, 950, 361],
        strict=True,
    )
)
N_WIDTH = WIDTHS["n"] / 1000
LONG = "people among themselves, in a sentence"
MODELS = ("mozi-14b", "borealis", "atlas-7b", "cobalt-mini")
REASON = "not enough data: 2 prompts; at least 5 are needed"


def drawn(chart: Any) -> ElementTree.Element:
    svg = charts.draw(charts.specification(chart), "svg")
    return ElementTree.fromstring(svg)  # noqa: S314 - our own picture


def beyond(root: ElementTree.Element) -> list[str]:
    """Texts that end outside of the picture; those that are turned are not looked at."""
    left, top, wide, high = (float(each) for each in root.get("viewBox", "").split())
    assert (float(root.get("width", "")), float(root.get("height", ""))) == (wide, high)
    ground = root.find(f"{SVG}rect")
    assert ground is not None
    edges = [float(ground.get(name, "0")) for name in ("x", "y", "width", "height")]
    assert edges == [left, top, wide, high]
    found = []

    def walk(element: ElementTree.Element, x: float) -> None:
        transform = element.get("transform", "")
        moved = re.match(r"translate\(([-\d.e]+)", transform)
        x += float(moved[1]) if moved else 0.0
        if element.tag == f"{SVG}text" and "rotate" not in transform:
            size = float(element.get("font-size", "11px").removesuffix("px"))
            text = "".join(element.itertext())
            long = size * sum(map(_width, text)) / 1000
            begins = x - {"middle": long / 2, "end": long}.get(element.get("text-anchor", ""), 0)
            if begins < left or begins + long > left + wide:
                found.append(text)
        for each in element:
            walk(each, x)

    walk(root, 0.0)
    return found


def _width(char: str) -> int:
    if char in WIDTHS:
        return WIDTHS[char]
    wide = unicodedata.east_asian_width(char) in "WF"
    return 1000 if wide else 700 if char.isupper() else 0 if ord(char) > 0x2000 else 600


def shares(language: Any = "en") -> Any:
    known = EstimatedShare(part=20, of=32, value=0.625, low=0.468, high=0.759, reason=None)
    unknown = EstimatedShare(part=0, of=2, value=None, low=None, high=None, reason=REASON)
    named = [("openai:careful", known), (LONG, unknown)]
    return charts.share_chart(named, title="Accuracy beside yardsticks", language=language)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "chart",
    [
        shares,
        lambda language: charts.win_matrix_chart(league(MODELS), language=language),
        lambda language: charts.leaderboard_chart(league(MODELS), language=language),
        lambda language: charts.outcome_chart(_run(), language=language),
        lambda language: charts.criterion_chart(_run(), language=language),
        lambda language: charts.tag_chart(_run(), language=language),
        lambda language: charts.length_chart(_run(), language=language),
        lambda language: charts.win_rate_chart(_run(), language=language),
    ],
    ids=["shares", "matrix", "board", "outcomes", "criteria", "tags", "length", "rate"],
)
def test_no_text_ends_outside_of_its_picture(chart: Any, language: Any) -> None:
    assert beyond(drawn(chart(language))) == []


def _run() -> Any:
    found = conclusion(side_rate(0.573, invalid=3), criteria=["accuracy", LONG], tags=["code"])
    return conclusions(found)


def test_a_text_that_would_be_cut_moves_the_edges_and_nothing_else() -> None:
    cut = (
        '<svg xmlns="http://www.w3.org/2000/svg" class="marks" width="50" height="20" '
        'viewBox="0 0 50 20"><rect width="50" height="20" fill="white"/>'
        '<g transform="translate(40,10)"><text text-anchor="end" font-size="10px">'
        f"{'n' * 10}</text></g></svg>"
    )
    root = ElementTree.fromstring(with_room(cut))  # noqa: S314 - our own picture
    left, top, wide, high = (float(each) for each in root.get("viewBox", "").split())
    assert left <= 40 - N_WIDTH * 10 * 10
    assert left + wide == 50  # to the right there was room
    assert (top, high) == (-4, 24)  # the letters' height above 10, and a little more
    assert with_room(cut).endswith(cut[cut.index("<g ") :])


def test_a_turned_text_has_room_where_it_goes_to() -> None:
    turned = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="20" viewBox="0 0 100 20">'
        '<text transform="translate(50,10) rotate(90)" font-size="10px">'
        f"{'n' * 20}</text></svg>"
    )
    root = ElementTree.fromstring(with_room(turned))  # noqa: S314 - our own picture
    *_, wide, high = (float(each) for each in root.get("viewBox", "").split())
    assert high >= 10 + N_WIDTH * 10 * 20
    assert math.isclose(wide, 100)


def test_a_picture_with_room_stays_as_it_is() -> None:
    roomy = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="40" viewBox="0 0 100 40">'
        '<text transform="translate(20,20)" font-size="10px">abc</text></svg>'
    )
    assert with_room(roomy) == roomy


def test_names_of_any_kind_are_measured() -> None:
    root = drawn(charts.leaderboard_chart(league(HOSTILE_NAMES)))
    assert beyond(root) == []
