"""What the charts show: rows, places and texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from chart_values import REASON, conclusion, conclusions, league, side_rate
from evenhand.present import charts
from evenhand.present.chart_rows import conclusion_rows
from evenhand.present.charts import MOST_IN_MATRIX, MOST_ROWS
from evenhand.present.svg import Chart
from evenhand.stats.ranking.leaderboard import rank_battles

SVG = "{http://www.w3.org/2000/svg}"
CRITERIA = ["accuracy", "clarity", "tone"]


def texts(chart: Chart) -> list[str]:
    root = ElementTree.fromstring(chart.svg())  # noqa: S314 - our own picture
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def lines(chart: Chart, kind: str) -> list[tuple[str, ...]]:
    """Where each line of that class begins and ends."""
    found = re.findall(rf'class="{kind}" x1="([^"]*)" x2="([^"]*)"', chart.svg())
    return [tuple(each) for each in found]


def test_a_win_rate_is_drawn_where_it_is() -> None:
    chart = charts.win_rate_chart(conclusions(conclusion(side_rate(0.573, half_width=0.06))))
    assert '<circle cx="57.30%"' in chart.svg()
    assert lines(chart, "range") == [("51.30%", "63.30%")]
    assert lines(chart, "even") == [("50.00%", "50.00%")]
    drawn = texts(chart)
    for text in ("57.3%", "51.3 to 63.3", "805 pairs", "95% CI"):
        assert text in drawn


def test_a_side_has_its_colour_where_it_is_clearly_better() -> None:
    found = [side_rate(0.573), side_rate(0.51), side_rate(0.42)]
    svg = charts.win_rate_chart(conclusions(*map(conclusion, found))).svg()
    classes = re.findall(r'class="(interval-line[^"]*)"', svg)
    assert classes == ["interval-line for-B", "interval-line", "interval-line for-A"]


def test_a_rate_near_one_half_is_not_rounded_to_it() -> None:
    chart = charts.win_rate_chart(conclusions(conclusion(side_rate(0.5001, half_width=0.0003))))
    assert "50.01%" in texts(chart)
    assert "49.98 to 50.04" in texts(chart)


def test_too_little_data_is_a_sentence_and_not_a_point() -> None:
    chart = charts.win_rate_chart(conclusions(conclusion(side_rate(None))))
    assert REASON in texts(chart)
    assert "<circle" not in chart.svg()
    assert not [text for text in texts(chart) if text.endswith("pairs")]


def test_an_always_valid_rate_counts_the_prompts_that_it_is_a_mean_of() -> None:
    chart = charts.win_rate_chart(conclusions(conclusion(side_rate(0.6, always_valid=True))))
    assert "805 prompts" in texts(chart)
    assert "always-valid intervals" in chart.described


def test_invalid_pairs_show_their_worst_case() -> None:
    chart = charts.win_rate_chart(conclusions(conclusion(side_rate(0.5, invalid=12))))
    assert lines(chart, "worst") == [("40.00%", "60.00%")]
    assert "worst case" in chart.described


def test_the_win_rate_is_the_one_that_the_sentence_claims() -> None:
    found = conclusion(side_rate(0.573))
    corrected = {"estimator": "corrected", "rate": 0.3, "low": 0.2, "high": 0.4, "n": 90}
    people = found.model_copy(update={"claimed": found.claimed.model_copy(update=corrected)})
    chart = charts.win_rate_chart(conclusions(people))
    assert "gpt-x: 30.0%, 20.0 to 40.0, 90 pairs · corrected by labels" in chart.described
    assert "interval-line for-A" in chart.svg()
    (row,) = conclusion_rows(conclusions(people), "win-rate")
    assert (row.value, row.low, row.high, row.n) == (0.3, 0.2, 0.4, 90)


def test_comparisons_are_named_by_what_differs() -> None:
    def names(*found: Any) -> list[str]:
        described = charts.win_rate_chart(conclusions(*found)).described.splitlines()
        return [line.rpartition(": 57.3%")[0] for line in described if "57.3%" in line]

    assert names(conclusion(judge="j"), conclusion(judge="k")) == ["j", "k"]
    assert names(conclusion(model="m"), conclusion(model="n")) == ["m vs old", "n vs old"]
    two = conclusion(judge="j", model="m"), conclusion(judge="k", model=None, against=None)
    assert names(*two) == ["m vs old, by j", "B vs A, by k"]
    assert names(conclusion(judge="j"), conclusion(judge="j")) == ["j", "j (2)"]


def test_outcomes_are_parts_of_a_whole_and_never_folded() -> None:
    # 805 pairs at 0.573: round(461.3) = 461 less 30 won, 30 ties, 25 inconsistent,
    # 805 - 461 - 25 = 319 lost, and 12 invalid beside them
    chart = charts.outcome_chart(conclusions(conclusion(side_rate(0.573, invalid=12))))
    assert "gpt-x: won 431, tie 30, inconsistent 25, lost 319, invalid 12" in chart.described
    bar = chart.svg().split('class="outcome-bar"')[1].split("</svg>")[0]
    parts = re.findall(r'<rect (\S+) x="([\d.]+)%" width="([\d.]+)%"', bar)
    assert [kind for kind, _, _ in parts] == [
        'class="part-B"',
        'class="part-tie"',
        'fill="url(#hatch)"',
        'class="part-A"',
        'class="part-invalid"',
    ]
    whole = 431 + 30 + 25 + 319 + 12
    assert [float(width) for _, _, width in parts] == [
        pytest.approx(100 * count / whole, abs=0.005) for count in (431, 30, 25, 319, 12)
    ]


def test_criteria_have_a_row_for_each_comparison() -> None:
    found = [conclusion(judge=judge, criteria=CRITERIA) for judge in ("j", "k")]
    described = charts.criterion_chart(conclusions(*found)).described.splitlines()
    rows = [line.split(",")[0] for line in described if line.split(":")[0] in CRITERIA]
    assert rows == [f"{name}: {judge}" for name in CRITERIA for judge in ("j", "k")]


def test_many_tags_leave_those_with_the_most_pairs() -> None:
    tags = [f"tag {number:03}" for number in range(200)]
    chart = charts.tag_chart(conclusions(conclusion(tags=tags)))
    # the number of pairs climbs with the tag's, save that the last has but 3
    assert [text for text in texts(chart) if text in tags] == tags[199 - MOST_ROWS : 199]
    assert f"the {MOST_ROWS} tags with the most pairs, of 200" in chart.described


def test_length_shows_the_rate_with_and_without_it() -> None:
    found = conclusion(side_rate(0.573))
    chart = charts.length_chart(conclusions(found))
    rows = ["win rate", "win rate at equal length", "the longer response won"]
    assert [text for text in texts(chart) if text in rows[1:]] == rows[1:]
    centres = re.findall(r'<circle cx="([\d.]+)%"', chart.svg())
    longer = found.length.longer_wins
    values = (0.573, found.length.controlled[0].rate, longer.value)
    assert centres == [f"{100 * (value or 0):.2f}" for value in values]
    assert f"of {longer.of} decided pairs" in texts(chart)


def test_length_says_where_its_figures_are_made_another_way() -> None:
    found = conclusion(side_rate(0.573, always_valid=True))
    chart = charts.length_chart(conclusions(found).model_copy(update={"ties": "wins"}))
    assert "at equal length, ties count as half" in texts(chart)
    assert (
        "wins only · the win rate's interval is always valid, the others assume one look"
        in chart.described
    )


@pytest.mark.parametrize(
    ("chart", "sentence"),
    [
        (charts.win_rate_chart, "Nothing judged yet"),
        (charts.outcome_chart, "Nothing judged yet"),
        (charts.length_chart, "Nothing judged yet"),
        (charts.criterion_chart, "This run has no criteria"),
        (charts.tag_chart, "This run has no tags"),
    ],
)
def test_nothing_to_draw_is_said(chart: Callable[[Any], Chart], sentence: str) -> None:
    assert texts(chart(conclusions()))[1:] == [sentence]


def test_a_leaderboard_is_the_ranking_best_first_on_one_scale() -> None:
    ranking = league(["strong", "middling", "weak"], games=200)
    chart = charts.leaderboard_chart(ranking)
    names = ["strong", "middling", "weak"]
    assert [text for text in texts(chart) if text in names] == names
    lows = [model.low for model in ranking.models if model.low is not None]
    highs = [model.high for model in ranking.models if model.high is not None]
    least, greatest = min(lows), max(highs)
    wanted = [
        tuple(f"{100 * (end - least) / (greatest - least):.2f}%" for end in (model.low, model.high))
        for model in ranking.models
        if model.low is not None and model.high is not None
    ]
    assert lines(chart, "range") == wanted


def test_an_open_limit_goes_on_to_the_edge() -> None:
    ranking = rank_battles(["a"] * 10 + ["b"] * 10, ["b"] * 10 + ["c"] * 10, ["A"] * 15 + ["B"] * 5)
    (best,) = [model for model in ranking.models if model.model == "a"]
    assert best.high is None
    chart = charts.leaderboard_chart(ranking)
    assert lines(chart, "range")[0][1] == "100.00%"
    assert f"{best.low:,.0f} or more" in texts(chart)


def test_the_matrix_has_each_ordered_pair_once() -> None:
    chart = charts.win_matrix_chart(league(["a", "b", "c"]))
    cells = dict(
        line.rsplit(": ", 1) for line in chart.described.splitlines() if " against " in line[:11]
    )
    assert sorted(cells) == sorted(
        f"{one} against {other}" for one in "abc" for other in "abc" if one != other
    )
    shares = {name: int(share.rstrip("%")) for name, share in cells.items()}
    for one, other in ("ab", "ac", "bc"):
        both = shares[f"{one} against {other}"] + shares[f"{other} against {one}"]
        assert both == pytest.approx(100, abs=1)


def test_a_matrix_of_many_says_how_many_it_shows() -> None:
    chart = charts.win_matrix_chart(league([f"m{number}" for number in range(50)]))
    assert f"the best {MOST_IN_MATRIX} of 50 models" in chart.described
    assert chart.svg().count('class="cell ') == MOST_IN_MATRIX**2


def test_a_chart_in_a_notebook_is_a_picture_with_its_figures_as_text() -> None:
    html = charts.win_rate_chart(conclusions(conclusion(judge="<b>")))._repr_html_()
    assert html.startswith('<img alt="')
    assert "&lt;b&gt;: 57.3%, 51.3 to 63.3, 805 pairs" in html
    assert html.count("<") == 1
