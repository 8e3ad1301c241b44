"""Charts as files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chart_values import HOSTILE_NAMES, REASON, conclusion, conclusions, league, ranked, side_rate
from evenhand.errors import InputError
from evenhand.present.charts import ranking_chart, write_ranking_chart, write_report_chart
from evenhand.present.labels import text_width
from evenhand.present.svg import colours
from parts import examples

SVG = "{http://www.w3.org/2000/svg}"


def texts(path: Path) -> list[str]:
    root = ElementTree.fromstring(path.read_bytes())  # noqa: S314 - our own file
    assert root.tag == f"{SVG}svg"
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_a_point_stands_at_its_share_of_the_width(tmp_path: Path) -> None:
    write_report_chart(conclusions(conclusion(side_rate(0.75))), tmp_path / "report.svg")
    line = (tmp_path / "report.svg").read_text().split('class="interval-line')[1]
    # its interval is six points to either side
    assert '<circle cx="75.00%"' in line
    assert 'class="range" x1="69.00%" x2="81.00%"' in line


def test_an_svg_holds_the_names_and_the_numbers(tmp_path: Path) -> None:
    found = conclusion(side_rate(0.573), criteria=["accuracy", "tone"], tags=["code", "maths"])
    write_report_chart(conclusions(found), tmp_path / "report.svg")
    drawn = texts(tmp_path / "report.svg")
    for text in (
        *("Win rate of new vs old", "gpt-x", "57.3%", "51.3 to 63.3", "805 pairs"),
        *("Win rate by criterion", "accuracy", "40.0%", "tone", REASON),
        *("Win rate by tag", "code", "60.0%", "maths"),
        *("Do longer responses win?", "win rate at equal length", "the longer response won"),
        *("Outcomes", "won", "inconsistent", "431", "50%"),
    ):
        assert text in drawn


def test_a_report_leaves_out_what_the_run_has_not(tmp_path: Path) -> None:
    write_report_chart(conclusions(conclusion()), tmp_path / "report.svg")
    drawn = texts(tmp_path / "report.svg")
    assert "Do longer responses win?" in drawn
    assert "Win rate by criterion" not in drawn
    assert "Win rate by tag" not in drawn


def test_a_report_of_nothing_says_so(tmp_path: Path) -> None:
    write_report_chart(conclusions(), tmp_path / "report.svg")
    assert "Nothing judged yet" in texts(tmp_path / "report.svg")


@pytest.mark.parametrize("count", [2, 7, 30])
def test_a_ranking_holds_every_model(count: int, tmp_path: Path) -> None:
    ranking = league([f"model {number}" for number in range(count)])
    write_ranking_chart(ranked(ranking), tmp_path / "rank.svg")
    drawn = texts(tmp_path / "rank.svg")
    for model in ranking.models:
        assert drawn.count(model.model) == 3  # the leaderboard, a row and a column
        assert f"{model.score:,.0f}" in drawn


@pytest.mark.parametrize("name", ["report.pdf", "report", "svg", "report.svg.gz"])
def test_another_ending_is_refused_with_those_it_takes(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"end the name in \.svg for a drawing .* or in \.csv"
    ) as error:
        write_report_chart(conclusions(), tmp_path / name)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_path_without_a_name_is_told_whole() -> None:
    with pytest.raises(InputError, match=r"^cannot tell the format of \.;"):
        write_report_chart(conclusions(), Path())


def test_an_unwritable_path_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^cannot write .*report.svg: no such file or dir"
    ) as error:
        write_report_chart(conclusions(), tmp_path / "nowhere" / "report.svg")
    assert "\n" not in str(error.value)
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(InputError, match="is a directory"):
        write_report_chart(conclusions(), tmp_path / "folder.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


def test_a_chart_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "report.svg"
    path.write_text("older")
    write_report_chart(conclusions(), path)
    assert texts(path)
    assert [each.name for each in tmp_path.iterdir()] == ["report.svg"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.svg").symlink_to(tmp_path / "report.svg")
    write_report_chart(conclusions(), tmp_path / "link.svg")
    assert os.readlink(tmp_path / "link.svg") == str(tmp_path / "report.svg")
    assert texts(tmp_path / "report.svg")


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    found = [
        conclusion(judge=name, model=name, criteria=HOSTILE_NAMES, tags=HOSTILE_NAMES)
        for name in HOSTILE_NAMES[:3]
    ]
    writers: list[Callable[[Path], None]] = [
        lambda path: write_report_chart(conclusions(*found), path),
        lambda path: write_ranking_chart(ranked(league(HOSTILE_NAMES)), path),
    ]
    for write in writers:
        write(tmp_path / "hostile.svg")
        drawn = texts(tmp_path / "hostile.svg")
        assert "<script>alert(1)</script>" in drawn
        assert "]]>" in drawn
        assert "two lines[31m" in drawn
        assert "中文模型" in drawn
        assert max(map(len, drawn)) < 200
        root = ElementTree.fromstring((tmp_path / "hostile.svg").read_bytes())  # noqa: S314 - our own picture
        assert not [each.tag for each in root.iter() if "script" in each.tag or "image" in each.tag]


@settings(
    max_examples=examples(60, few=20), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.text(max_size=50), min_size=2, max_size=5, unique=True))
def test_any_names_give_a_whole_svg(tmp_path: Path, names: list[str]) -> None:
    found = conclusion(judge=names[0], model=names[1], criteria=names, tags=names)
    write_report_chart(conclusions(found), tmp_path / "report.svg")
    assert "57.3%" in texts(tmp_path / "report.svg")


def test_two_hundred_long_names_make_a_picture_of_sensible_size(tmp_path: Path) -> None:
    names = [f"{number} {'long ' * 100}" for number in range(200)]
    one = conclusion(tags=names, criteria=names)
    found = [one.model_copy(update={"judge": name}) for name in names]
    write_report_chart(conclusions(*found), tmp_path / "report.svg")
    root = ElementTree.fromstring((tmp_path / "report.svg").read_bytes())  # noqa: S314 - our own picture
    assert int(root.attrib["width"]) < 1500
    assert int(root.attrib["height"]) < 25_000


def test_drawing_loads_no_array_library_and_no_server() -> None:
    code = (
        "import sys, evenhand.present.charts\n"
        "print([name for name in ('numpy', 'starlette') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_file_has_the_pages_colours_for_light_and_dark(tmp_path: Path) -> None:
    write_report_chart(conclusions(conclusion()), tmp_path / "report.svg")
    svg = (tmp_path / "report.svg").read_text()
    light, dark = re.findall(r"--b-fill: (#\w+)", colours())
    before, after = svg.split("@media (prefers-color-scheme: dark)")
    assert f".part-B {{ fill: {light}; }}" in before
    assert f".part-B {{ fill: {dark}; }}" in after
    assert "var(" not in svg


def test_who_cannot_see_a_picture_is_told_its_figures() -> None:
    root = ElementTree.fromstring(ranking_chart(league(["a", "b"])).svg())  # noqa: S314 - our own
    assert root.attrib["role"] == "img"
    named = {each.attrib["id"]: each.text or "" for each in root if "id" in each.attrib}
    assert root.attrib["aria-labelledby"].split() == ["title", "desc"]
    assert named["title"] == "Ranking · Expected win rate"
    for line in ("a: 1,", "b against a: "):
        assert line in named["desc"]


def test_no_text_ends_outside_of_its_picture(tmp_path: Path) -> None:
    """Every text is measured in a wide font; a turned one rises to its right at 45 degrees."""
    names = [f"{number} {'wide Ww 中文 ' * 20}" for number in range(5)]
    one = conclusion(judge=names[0], criteria=names, tags=names)
    write_report_chart(conclusions(one), tmp_path / "report.svg")
    write_ranking_chart(ranked(league(names)), tmp_path / "ranking.svg")
    for path in tmp_path.iterdir():
        root = ElementTree.fromstring(path.read_bytes())  # noqa: S314 - our own picture
        width = float(root.attrib["width"])
        for panel in root.iter(f"{SVG}g"):
            found = re.match(r"translate\(([\d.]+) ([\d.]+)\)", panel.get("transform", ""))
            if found is None:
                continue
            for each in panel.iter(f"{SVG}text"):
                wide = text_width(each.text or "", 12)
                turned = re.match(r"translate\(([\d.]+) ([\d.]+)\)", each.get("transform", ""))
                if turned:
                    right = float(turned[1]) + 0.7072 * wide
                    assert float(found[2]) + float(turned[2]) - 0.7072 * wide >= 0
                else:
                    share = {"middle": 0.5, "end": 0.0}.get(each.get("text-anchor", ""), 1.0)
                    right = float(each.attrib["x"]) + share * wide
                assert float(found[1]) + right <= width, each.text
