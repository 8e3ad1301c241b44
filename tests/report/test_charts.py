"""Charts as files."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chart_values import HOSTILE_NAMES, REASON, conclusion, conclusions, league, side_rate
from evenhand.errors import InputError, MissingExtra
from evenhand.report.charts import drawing as charts
from evenhand.report.charts.drawing import write_ranking_chart, write_report_chart
from parts import examples

SVG = "{http://www.w3.org/2000/svg}"


def texts(path: Path) -> list[str]:
    root = ElementTree.fromstring(path.read_bytes())  # noqa: S314 - our own file
    assert root.tag == f"{SVG}svg"
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@pytest.mark.slow
def test_an_svg_holds_the_names_and_the_numbers(tmp_path: Path) -> None:
    found = conclusion(side_rate(0.573), criteria=["accuracy", "tone"], tags=["code", "maths"])
    write_report_chart(conclusions(found), tmp_path / "report.svg")
    drawn = texts(tmp_path / "report.svg")
    for text in (
        *("Win rate of new against old", "gpt-x", "57.3 %", "51.3 to 63.3", "805 pairs"),
        *("Win rate by criterion", "accuracy", "40.0 %", "tone", REASON),
        *("Win rate by tag", "code", "60.0 %", "maths"),
        *("Do longer answers win?", "win rate at equal length", "the longer answer won"),
        *("Outcomes", "won", "inconsistent", "431", "50%"),
    ):
        assert text in drawn


def test_a_report_leaves_out_what_the_run_has_not(tmp_path: Path) -> None:
    write_report_chart(conclusions(conclusion()), tmp_path / "report.svg")
    drawn = texts(tmp_path / "report.svg")
    assert "Do longer answers win?" in drawn
    assert "Win rate by criterion" not in drawn
    assert "Win rate by tag" not in drawn


def test_a_report_of_nothing_says_so(tmp_path: Path) -> None:
    write_report_chart(conclusions(), tmp_path / "report.svg")
    assert "nothing was judged yet" in texts(tmp_path / "report.svg")


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 7, 100])
def test_a_ranking_holds_every_model(count: int, tmp_path: Path) -> None:
    ranking = league([f"model {number}" for number in range(count)])
    write_ranking_chart(ranking, tmp_path / "rank.svg")
    drawn = texts(tmp_path / "rank.svg")
    for model in ranking.models:
        assert drawn.count(model.model) == 3  # the leaderboard, a row and a column
        assert f"{model.score:,.0f}" in drawn


@pytest.mark.slow
def test_a_png_is_a_picture_of_twice_its_points(tmp_path: Path) -> None:
    found = conclusions(conclusion(tags=["code", "maths"]))
    write_report_chart(found, tmp_path / "report.PNG")
    write_report_chart(found, tmp_path / "report.svg")
    data = (tmp_path / "report.PNG").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    root = ElementTree.fromstring((tmp_path / "report.svg").read_bytes())  # noqa: S314 - our own picture
    points = int(root.attrib["width"]), int(root.attrib["height"])
    assert struct.unpack(">II", data[16:24]) == (2 * points[0], 2 * points[1])


def test_the_specification_is_a_file_too(tmp_path: Path) -> None:
    write_ranking_chart(league(["a", "b"]), tmp_path / "rank.json")
    spec = json.loads((tmp_path / "rank.json").read_text())
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert len(spec["hconcat"]) == 2


def test_a_point_stands_at_its_share_of_the_width(tmp_path: Path) -> None:
    write_report_chart(conclusions(conclusion(side_rate(0.75))), tmp_path / "report.svg")
    svg = (tmp_path / "report.svg").read_text()
    # the plot is 400 wide and a row 28 high: 0.75 x 400, and the middle of the first row
    assert 'transform="translate(300,14)"' in svg


@pytest.mark.parametrize("name", ["report.pdf", "report", "svg", "report.svg.gz"])
def test_another_ending_is_refused_with_those_it_takes(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"end it in \.svg or \.png") as error:
        write_report_chart(conclusions(), tmp_path / name)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_path_without_a_name_is_told_whole() -> None:
    with pytest.raises(InputError, match=r"^\. does not say what kind of chart"):
        write_report_chart(conclusions(), Path())


def test_an_unwritable_path_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: no such file") as error:
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


@pytest.mark.slow
def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    found = [
        conclusion(judge=name, model=name, criteria=HOSTILE_NAMES, tags=HOSTILE_NAMES)
        for name in HOSTILE_NAMES[:3]
    ]
    writers: list[Callable[[Path], None]] = [
        lambda path: write_report_chart(conclusions(*found), path),
        lambda path: write_ranking_chart(league(HOSTILE_NAMES), path),
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
        write(tmp_path / "hostile.png")
        assert (tmp_path / "hostile.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
@settings(
    max_examples=examples(6, few=2), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.text(max_size=50), min_size=2, max_size=5, unique=True))
def test_any_names_give_a_whole_svg(tmp_path: Path, names: list[str]) -> None:
    found = conclusion(judge=names[0], model=names[1], criteria=names, tags=names)
    write_report_chart(conclusions(found), tmp_path / "report.svg")
    assert "57.3 %" in texts(tmp_path / "report.svg")


@pytest.mark.slow
def test_two_hundred_long_names_make_a_picture_of_sensible_size(tmp_path: Path) -> None:
    names = [f"{number} {'long ' * 100}" for number in range(200)]
    one = conclusion(tags=names, criteria=names)
    found = [one.model_copy(update={"judge": name}) for name in names]
    write_report_chart(conclusions(*found), tmp_path / "report.svg")
    root = ElementTree.fromstring((tmp_path / "report.svg").read_bytes())  # noqa: S314 - our own picture
    assert int(root.attrib["width"]) < 1500
    assert int(root.attrib["height"]) < 25_000


def test_without_the_extra_the_command_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtra, match=r"altair is not installed .*pip install") as error:
        write_report_chart(conclusions(), tmp_path / "report.svg")
    assert "[plot]'" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_without_the_renderer_the_command_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtra, match=r"vl-convert.*pip install .*\[plot\]'"):
        write_ranking_chart(league(["a", "b"]), tmp_path / "rank.png")


def test_nothing_is_fetched_while_it_is_drawn() -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        spec = {
            "data": {"url": f"http://127.0.0.1:{server.server_port}/data.csv"},
            "mark": "point",
            "encoding": {"x": {"field": "x", "type": "quantitative"}},
        }
        with pytest.raises(ValueError, match="not allowed"):
            charts.draw(spec, "svg")
        server.shutdown()
    assert asked == []


def test_altair_is_loaded_only_to_draw() -> None:
    code = (
        "import sys, evenhand.report, evenhand.report.charts.drawing\n"
        "print([name for name in ('altair', 'vl_convert', 'numpy') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
