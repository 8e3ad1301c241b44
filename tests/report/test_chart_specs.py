"""What the charts hold: their data and scales, as Vega-Lite has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import altair as alt
import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st

from chart_values import HOSTILE_NAMES, REASON, conclusion, conclusions, league, side_rate
from evenhand.report.charts import drawing as charts
from evenhand.report.charts.rates import MOST_ROWS
from evenhand.stats.ranking.leaderboard import rank_battles
from parts import examples

CRITERIA = ["accuracy", "clarity", "tone"]
TAGS = ["code", "maths"]


def rows_of(chart: Any, field: str) -> list[dict[str, Any]]:
    """The rows of the chart's data that have this field."""
    found = [
        row
        for data in chart.to_dict()["datasets"].values()
        for row in data
        if row.get(field) is not None
    ]
    assert found
    return found


def encodings(chart: Any, channel: str) -> list[dict[str, Any]]:
    layers = chart.to_dict()["layer"]
    return [each["encoding"][channel] for each in layers if channel in each["encoding"]]


def test_a_win_rate_is_drawn_where_it_is() -> None:
    chart = charts.win_rate_chart(conclusions(conclusion(side_rate(0.573, half_width=0.06))))
    (row,) = rows_of(chart, "value")
    assert row["value"] == 0.573
    assert (row["low"], row["high"]) == (pytest.approx(0.513), pytest.approx(0.633))
    assert (row["value_text"], row["interval_text"]) == ("57.3 %", "51.3 to 63.3")
    assert row["count_text"] == "805 pairs"
    fields = {each["field"]: each for each in encodings(chart, "x") if "field" in each}
    for field in ("value", "low", "outer_low"):
        assert fields[field]["scale"] == {"domain": [0.0, 1.0], "nice": False}
    assert {"field": "high"} in encodings(chart, "x2")
    assert rows_of(chart, "middle") == [{"middle": 0.5}]


def test_too_little_data_is_a_sentence_and_not_a_point() -> None:
    chart = charts.win_rate_chart(conclusions(conclusion(side_rate(None))))
    (row,) = rows_of(chart, "reason")
    assert row["reason"] == REASON
    assert [row[field] for field in ("value", "low", "high", "outer_low", "outer_high")] == [
        None
    ] * 5
    assert (row["value_text"], row["interval_text"], row["count_text"]) == ("", "", "")


def test_an_always_valid_rate_counts_the_prompts_that_it_is_a_mean_of() -> None:
    chart = charts.win_rate_chart(conclusions(conclusion(side_rate(0.6, always_valid=True))))
    (row,) = rows_of(chart, "value")
    assert row["count_text"] == "805 prompts"
    assert "hold whenever one looks" in json.dumps(chart.to_dict()["title"])


def test_invalid_pairs_show_their_worst_case() -> None:
    chart = charts.win_rate_chart(conclusions(conclusion(side_rate(0.5, invalid=12))))
    (row,) = rows_of(chart, "outer_low")
    assert (row["outer_low"], row["outer_high"]) == (0.4, 0.6)
    assert "worst case" in json.dumps(chart.to_dict()["title"])


def test_comparisons_are_named_by_what_tells_them_apart() -> None:
    def names(*found: Any) -> list[str]:
        return [row["name"] for row in rows_of(charts.win_rate_chart(conclusions(*found)), "value")]

    assert names(conclusion(judge="j"), conclusion(judge="k")) == ["j", "k"]
    assert names(conclusion(model="m"), conclusion(model="n")) == ["m against old", "n against old"]
    two = conclusion(judge="j", model="m"), conclusion(judge="k", model=None, against=None)
    assert names(*two) == ["m against old, by j", "B against A, by k"]
    assert names(conclusion(judge="j"), conclusion(judge="j")) == ["j", "j (2)"]


def test_outcomes_are_parts_of_a_whole_and_never_folded() -> None:
    # 805 pairs at 0.573: round(461.3) = 461 less 30 won, 30 ties, 25 inconsistent,
    # 805 - 461 - 25 = 319 lost, and 12 invalid beside them
    chart = charts.outcome_chart(conclusions(conclusion(side_rate(0.573, invalid=12))))
    parts = {row["outcome"]: row for row in rows_of(chart, "outcome")}
    texts = {kind: row["text"] for kind, row in parts.items()}
    assert texts == {
        "won": "431",
        "tie": "30",
        "inconsistent": "25",
        "lost": "319",
        "invalid": "12",
    }
    assert parts["won"]["start"] == 0
    assert parts["tie"]["start"] == parts["won"]["end"] == 431 / 817
    assert parts["invalid"]["end"] == 1


def test_criteria_have_a_row_for_each_comparison() -> None:
    found = [conclusion(judge=judge, criteria=CRITERIA) for judge in ("j", "k")]
    chart = charts.criterion_chart(conclusions(*found))
    rows = rows_of(chart, "series")
    assert [(row["name"], row["series"]) for row in rows] == [
        (name, judge) for name in CRITERIA for judge in ("j", "k")
    ]
    assert [row["value"] for row in rows] == [0.4, 0.4, 0.4 + 0.02, 0.4 + 0.02, None, None]
    assert encodings(chart, "y")[0]["scale"]["domain"] == CRITERIA
    assert encodings(chart, "shape")[0]["scale"]["domain"] == ["j", "k"]


def test_many_tags_leave_those_with_the_most_pairs() -> None:
    tags = [f"tag {number:03}" for number in range(200)]
    chart = charts.tag_chart(conclusions(conclusion(tags=tags)))
    # the number of pairs climbs with the tag's, save that the last has but 3
    drawn = [row["name"] for row in rows_of(chart, "series")]
    assert drawn == tags[199 - MOST_ROWS : 199]
    assert f"the {MOST_ROWS} tags with the most pairs, of 200" in json.dumps(chart.to_dict())


def test_length_shows_the_rate_with_and_without_it() -> None:
    found = conclusion(side_rate(0.573))
    rows = {row["name"]: row for row in rows_of(charts.length_chart(conclusions(found)), "series")}
    assert list(rows) == ["win rate", "win rate at equal length", "the longer answer won"]
    assert rows["win rate"]["value"] == 0.573
    assert rows["win rate at equal length"]["value"] == found.length.controlled[0].rate
    longer = found.length.longer_wins
    assert rows["the longer answer won"]["value"] == longer.value
    assert rows["the longer answer won"]["count_text"] == f"of {longer.of} decided pairs"


def test_length_says_where_its_figures_are_made_another_way() -> None:
    found = conclusion(side_rate(0.573, always_valid=True))
    chart = charts.length_chart(conclusions(found).model_copy(update={"ties": "wins"}))
    names = [row["name"] for row in rows_of(chart, "series")]
    assert names == ["win rate", "at equal length, ties as half", "the longer answer won"]
    (line,) = chart.to_dict()["title"]["subtitle"]
    assert line == (
        "wins only · the win rate's interval holds whenever one looks, the others for one look"
    )


@pytest.mark.parametrize(
    ("chart", "sentence"),
    [
        (charts.win_rate_chart, "nothing was judged yet"),
        (charts.outcome_chart, "nothing was judged yet"),
        (charts.length_chart, "nothing was judged yet"),
        (charts.criterion_chart, "there are no criteria in this run"),
        (charts.tag_chart, "there are no tags in this run"),
    ],
)
def test_nothing_to_draw_is_said(chart: Callable[[Any], Any], sentence: str) -> None:
    assert rows_of(chart(conclusions()), "sentence") == [{"sentence": sentence}]


def test_a_leaderboard_is_the_ranking_best_first() -> None:
    ranking = league(["strong", "middling", "weak"], games=200)
    chart = charts.leaderboard_chart(ranking)
    rows = rows_of(chart, "value")
    assert [row["name"] for row in rows] == ["strong", "middling", "weak"]
    assert encodings(chart, "y")[0]["scale"]["domain"] == ["strong", "middling", "weak"]
    for row, model in zip(rows, ranking.models, strict=True):
        assert (row["value"], row["low"], row["high"]) == (model.score, model.low, model.high)
        assert row["value_text"] == f"{model.score:,.0f}"
    low, high = encodings(chart, "x")[0]["scale"]["domain"]
    least = min(model.low for model in ranking.models if model.low is not None)
    greatest = max(model.high for model in ranking.models if model.high is not None)
    assert low == pytest.approx(least - 0.06 * (greatest - least))
    assert high == pytest.approx(greatest + 0.06 * (greatest - least))


def test_an_open_limit_goes_on_to_the_edge() -> None:
    ranking = rank_battles(["best"] * 9 + ["b", "c"] * 9, ["b"] * 9 + ["c", "b"] * 9, ["A"] * 27)
    best = ranking.models[0]
    assert (best.model, best.high) == ("best", None)
    chart = charts.leaderboard_chart(ranking)
    row = rows_of(chart, "value")[0]
    assert (row["low"], row["high"]) == (best.low, best.score)
    assert (row["outer_low"], row["outer_high"]) == (
        best.score,
        encodings(chart, "x")[0]["scale"]["domain"][1],
    )
    assert row["interval_text"].endswith(" or more")
    assert "undefeated" in row["count_text"]


def test_scores_without_intervals_are_hollow_points() -> None:
    ranking = rank_battles(["a", "b"] * 5, ["b", "a"] * 5, ["A"] * 10, intervals=None)
    rows = rows_of(charts.leaderboard_chart(ranking), "value")
    assert [row["filled"] for row in rows] == [0, 0]
    assert [row["interval_text"] for row in rows] == ["no interval", "no interval"]


def test_the_matrix_has_each_ordered_pair_once() -> None:
    ranking = league(["strong", "middling", "weak"], games=200)
    cells = rows_of(charts.win_matrix_chart(ranking), "rate")
    names = [model.model for model in ranking.models]
    assert {(cell["row"], cell["column"]): cell["rate"] for cell in cells} == {
        (names[i], names[j]): ranking.win_matrix[i][j] for i in range(3) for j in range(3) if i != j
    }
    for cell in cells:
        assert cell["text"] == f"{100 * cell['rate']:.0f}"


@pytest.mark.slow
def test_the_rows_of_leaderboard_and_matrix_stand_side_by_side() -> None:
    for count in (2, 24, 25, 30):
        board, matrix = charts.ranking_chart(league([f"m{i}" for i in range(count)])).to_dict()[
            "hconcat"
        ]
        assert board["height"] == matrix["height"]


@pytest.mark.slow
def test_no_name_gets_into_an_expression() -> None:
    names = [f"zq{name}" for name in HOSTILE_NAMES]
    found = [conclusion(judge=name, model=name, criteria=names, tags=names) for name in names[:4]]
    for chart in (
        charts.report_chart(conclusions(*found)),
        charts.report_chart(conclusions(found[0])),
        charts.ranking_chart(league(names)),
    ):
        vega = vl_convert.vegalite_to_vega(
            charts.specification(chart), vl_version=alt.SCHEMA_VERSION[:4]
        )
        spoken = list(expressions(vega))
        assert spoken
        assert not [text for text in spoken if "zq" in text]


def expressions(vega: Any) -> Iterator[str]:
    """Every string that Vega would evaluate."""
    if isinstance(vega, list):
        for each in vega:
            yield from expressions(each)
    elif isinstance(vega, dict):
        for key, each in vega.items():
            if key in ("signal", "expr", "update", "init", "test") and isinstance(each, str):
                yield each
            if key != "values":
                yield from expressions(each)


@pytest.mark.slow
@settings(max_examples=examples(10, few=3))
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6), st.text(max_size=60))
def test_any_names_make_charts_that_the_schema_knows(names: list[str], judge: str) -> None:
    found = conclusions(
        *(conclusion(judge=judge, model=name, criteria=names, tags=names) for name in names[:2])
    )
    spec = charts.report_chart(found).to_dict(validate=True)
    json.dumps(spec).encode()
    rows = rows_of(charts.tag_chart(found), "series")
    assert len({row["name"] for row in rows}) == len(set(names))


def test_charts_go_together_in_a_notebook() -> None:
    found = conclusions(conclusion(tags=TAGS, criteria=CRITERIA))
    both = charts.win_rate_chart(found) & charts.tag_chart(found)
    assert len(both.to_dict()["vconcat"]) == 2
