"""A run's table of pairs: filters, words, order, pages, and the same as files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from importlib import import_module
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from evenhand.serve.pages.pairs import _gathered
from html_reading import Html
from page_visits import Visitor, count_of, rows_of, serving
from run_data import adds_up, sums

COUNT = 60
ROWS = [
    row
    | {
        "tags": [f"t{n % 4}", *(["even"] if n % 2 == 0 else [])],
        # The judge is right: it comes to B in every third pair.
        "label": "A" if n % 5 else "B",
        "modelA": "old",
        "modelB": "new",
        "response_b": row["response_b"] + " Surely." * (n % 7),
    }
    for n, row in enumerate(sums(COUNT), start=1)
]
ALL = list(range(1, COUNT + 1))


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("pages"), adds_up) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def run(visitor: Visitor) -> str:
    return visitor.start(ROWS)


def all_rows(visitor: Visitor, path: str) -> list[int]:
    """From page to page, as the links lead."""
    found: list[int] = []
    while True:
        page = visitor.see(path)
        numbers = rows_of(page)
        assert len(numbers) <= 50
        found += numbers
        following = page.all("a", rel="next")
        if not following:
            return found
        path = following[0].attributes["href"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", ALL),
        ("outcome=win", ALL),
        ("outcome=tie", []),
        ("winner=B", [n for n in ALL if n % 3 == 0]),
        ("outcome=win&winner=A", [n for n in ALL if n % 3]),
        ("tag=t1", [n for n in ALL if n % 4 == 1]),
        ("tag=even&winner=B", [n for n in ALL if n % 6 == 0]),
        ("tag=none", []),
        ("criterion=accuracy&criterionEnd=B", [n for n in ALL if n % 3 == 0]),
        ("disagrees=true", [n for n in ALL if (n % 5 == 0) != (n % 3 == 0)]),
        ("disagrees=false", [n for n in ALL if (n % 5 == 0) == (n % 3 == 0)]),
        ("judge=good", ALL),
        ("minConfidence=0.95", []),
        ("maxConfidence=0.95", ALL),
        ("unread=true", []),
        ("query=What+is+17+plus", [8, 17]),  # 8 and 8 is not 17, as somebody says
        ("query=surely", [n for n in ALL if n % 7]),
        ("query=nowhere", []),
        ("sort=number&descending=true", ALL[::-1]),
        ("outcome=&winner=&tag=&query=", ALL),  # a form that was left empty
    ],
)
def test_filters_show_what_meets_them_and_nothing_else(
    query: str, numbers: list[int], visitor: Visitor, run: str
) -> None:
    assert all_rows(visitor, f"{run}/pairs?{query}") == numbers
    page = visitor.see(f"{run}/pairs?{query}")
    assert count_of(page) == str(len(numbers))
    if not numbers:
        assert "No verdicts match these filters" in page.text


def test_the_longest_difference_comes_first_when_sorted_by_length(
    visitor: Visitor, run: str
) -> None:
    found = all_rows(visitor, f"{run}/pairs?sort=length&descending=true")
    assert sorted(found) == ALL
    # Each " Surely." makes B longer by as much.
    assert [n % 7 for n in found] == sorted((n % 7 for n in ALL), reverse=True)


def test_pages_lead_forth_and_back(visitor: Visitor, run: str) -> None:
    first = visitor.see(f"{run}/pairs")
    assert first.all("a", rel="prev") == []
    second = visitor.see(first.one("a", rel="next").attributes["href"])
    assert rows_of(second) == ALL[50:]
    back = visitor.see(second.one("a", rel="prev").attributes["href"])
    assert rows_of(back) == rows_of(first)


def test_filters_are_in_the_form_and_in_every_link(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs?tag=even&outcome=win&query=plus")
    chosen = {each.attributes["value"] for each in page.all("option", selected="")}
    assert {"even", "win"} <= chosen
    assert page.one("input", name="query").attributes["value"] == "plus"
    pair = next(each for each in page.links if "/pairs/" in each)
    assert dict(parse_qsl(urlsplit(pair).query)) == {
        "tag": "even",
        "outcome": "win",
        "query": "plus",
    }


@pytest.mark.parametrize("query", ["outcome=C", "cursor=x", "sort=loud", "judge=nobody", "x=1"])
def test_what_a_table_does_not_know_is_told_as_a_page(
    query: str, visitor: Visitor, run: str
) -> None:
    assert visitor.see(f"{run}/pairs?{query}", status=422).one("h1", class_="error").text


@pytest.mark.parametrize(("given", "count"), [("90%", 60), ("0,9", 60), ("0.91", 0), ("91%", 0)])
def test_a_confidence_is_read_as_people_write_it(
    given: str, count: int, visitor: Visitor, run: str
) -> None:
    """The judge says 0.9 each time."""
    page = visitor.see(f"{run}/pairs?minConfidence={quote(given)}")
    assert count_of(page) == str(count)


@pytest.mark.parametrize("given", ["much", "-1", "90", "nan", "1e9"])
def test_a_number_that_is_none_is_told_beside_its_field(
    given: str, visitor: Visitor, run: str
) -> None:
    page = visitor.see(f"{run}/pairs?minConfidence={given}&winner=B", status=422)
    assert f"“{given}” is not a confidence" in page.one("p", class_="error").text
    field = page.one("input", name="minConfidence")
    assert (field.attributes["value"], field.attributes["aria-invalid"]) == (given, "true")
    assert count_of(page) == "20"  # what the other filters ask for


def test_chips_count_what_they_show(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs")
    chips = [each for each in page.all("a") if each.within[-2].attributes.get("class") == "chips"]
    told = {each.text.rpartition(" ")[0]: each for each in chips}
    assert list(told) == ["all", "A won", "tie", "inconsistent", "B won", "invalid"]
    for chip in chips:
        count = chip.text.rpartition(" ")[2]
        assert count_of(visitor.see(chip.attributes["href"])) == count
    filtered = visitor.see(f"{run}/pairs?tag=even")
    assert [each.text for each in filtered.all("span", class_="count")] == []


def test_each_row_has_the_first_sentence_of_its_reason(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs")
    reasons = [each.text for each in page.all("span", class_="why")]
    assert len(reasons) == 50
    assert all(reason.endswith(".") and reason.count(".") == 1 for reason in reasons)


def test_the_filtered_table_is_to_be_had_as_csv(visitor: Visitor, run: str) -> None:
    answer = visitor.ask(f"{run}/pairs.csv?winner=B&tag=even")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["id"] for row in rows] == [f"sum-{n}" for n in ALL if n % 6 == 0]
    assert {row["winner"] for row in rows} == {"B"}
    assert rows[0]["prompt"] == "What is 6 plus 6?"


def test_the_whole_table_is_to_be_had_as_json_lines(visitor: Visitor, run: str) -> None:
    answer = visitor.ask(f"{run}/pairs.jsonl")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["id"] for row in rows] == [f"sum-{n}" for n in ALL]
    assert {row["judge"] for row in rows} == {"good"}
    assert rows[0]["verdict"]["winner"] == "A"


def test_the_table_is_to_be_had_as_parquet_in_its_order(visitor: Visitor, run: str) -> None:
    answer = visitor.ask(f"{run}/pairs.parquet?sort=number&descending=true")
    table = import_module("pyarrow.parquet").read_table(io.BytesIO(answer.content))
    assert table.column("id").to_pylist() == [f"sum-{n}" for n in ALL[::-1]]


def test_the_table_is_to_be_had_for_llm_comparator(visitor: Visitor, run: str) -> None:
    told = json.loads(visitor.ask(f"{run}/pairs.llm-comparator.json?winner=B").content)
    assert [model["name"] for model in told["models"]] == ["old", "new"]
    assert len(told["examples"]) == COUNT // 3


def test_an_empty_table_is_a_file_too(visitor: Visitor, run: str) -> None:
    assert len(visitor.ask(f"{run}/pairs.csv?outcome=tie").text.splitlines()) == 1
    assert visitor.ask(f"{run}/pairs.jsonl?outcome=tie").content == b""


def test_a_download_reads_no_further_than_its_reader() -> None:
    taken = 0
    ended = False

    def endless() -> Iterator[bytes]:
        nonlocal taken, ended
        try:
            while True:
                taken += 1
                yield b"x" * 1000
        finally:
            ended = True

    blocks = _gathered(endless())
    assert len(next(blocks)) == taken * 1000 < 70_000
    del blocks  # the reader has left
    assert ended


def test_a_file_of_unknown_filters_is_a_page_that_says_so(visitor: Visitor, run: str) -> None:
    assert "loud" in visitor.see(f"{run}/pairs.csv?sort=loud", status=422).text


def test_a_cell_that_a_spreadsheet_would_act_upon_is_harmless(visitor: Visitor) -> None:
    rows = sums(1, tags=["=cmd|' /C calc'!A0"])
    rows[0]["prompt"] += ' =HYPERLINK("http://x")'
    rows[0]["id"] = "=1+1"
    run = visitor.start(rows)
    (row,) = csv.DictReader(io.StringIO(visitor.ask(f"{run}/pairs.csv").text))
    assert row["id"] == "'=1+1"


def test_a_table_reads_without_javascript(visitor: Visitor, run: str) -> None:
    page: Html = visitor.see(f"{run}/pairs")
    (form,) = page.all("form", role="search")
    assert (form.attributes["method"], form.attributes["action"]) == ("get", f"{run}/pairs")
    assert [each.attributes["src"] for each in page.all("script")] == ["/static/evenhand.js"]


def test_style_sheets_are_packed_for_those_who_take_it(visitor: Visitor) -> None:
    plain = visitor.ask("/static/evenhand.css", **{"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    for given, packed in (
        ("gzip, br", True),
        ("br;q=1.0, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip;q=0.0, br", False),
        ("", False),
    ):
        answer = visitor.ask("/static/evenhand.css", **{"Accept-Encoding": given})
        assert (answer.headers.get("content-encoding") == "gzip") is packed, given
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.text == plain.text
    page = visitor.ask("/", **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in page.headers  # it holds a secret beside texts of others
