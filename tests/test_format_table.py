"""A data format is one row of a table and one module: a toy added so is found on every face."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.reference_tables import formats_table

from evenhand.contract import Criterion
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.records import BadRow, Record
from evenhand.errors import DataError
from evenhand.formats import FORMATS, Format, listed
from page_visits import serving
from run_data import adds_up

TOY = Format("Bars", (".bars",), "toy_bars", "a line between bars", "line")
MODULE = """
from evenhand.data.records import Table
from evenhand.data.source import opened

def fits(start, *, named):
    return start.startswith(b"|")

def open_table(source, *, wanted, after):
    return Table(rows(source))

def rows(source):
    with opened(source) as file:
        for number, line in enumerate(file, 1):
            cells = line.decode().strip().strip("|").split("|")
            yield number, dict(zip(("prompt", "response_a", "response_b"), cells))
"""
READING = ReadOptions(criteria=(Criterion(name="accuracy"),))


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder with the module."""
    (tmp_path / "toy_bars.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    FORMATS.append(TOY)
    yield tmp_path
    FORMATS.remove(TOY)


def responses(rows: Iterator[Record | BadRow]) -> list[tuple[str, str]]:
    return [(row.pair.response_a, row.pair.response_b) for row in rows if isinstance(row, Record)]


def test_a_format_of_its_own_module_is_recognised_by_its_content(toy: Path) -> None:
    file = toy / "data.txt"
    file.write_text("|2+2|4|5|\n|3+3|6|7|\n", encoding="utf-8")
    assert responses(read_pairs([file], READING)) == [("4", "5"), ("6", "7")]


def test_a_folder_holds_files_of_every_ending(toy: Path) -> None:
    (toy / "folder").mkdir()
    (toy / "folder" / "data.bars").write_text("|2+2|4|5|\n", encoding="utf-8")
    assert responses(read_pairs([f"file://{toy}/folder"], READING)) == [("4", "5")]


def test_an_unknown_file_is_refused_with_every_format(toy: Path) -> None:
    file = toy / "data.txt"
    file.write_text("neither", encoding="utf-8")
    expected = "is not JSON Lines, JSON, CSV, TSV, Parquet or Bars; convert it"
    with pytest.raises(DataError, match=expected):
        list(read_pairs([file], READING))


def test_the_upload_form_accepts_every_format(toy: Path) -> None:
    with serving(toy, adds_up) as visitor:
        page = visitor.ask("/new").text
    assert ",.parquet,.bars,.gz" in page
    assert "TSV, Parquet, Bars" in page


def test_the_docs_have_a_row_for_every_format(toy: Path) -> None:
    assert "| Bars | `.bars` | a line between bars | line |" in formats_table()


FACES = """
from typing import get_type_hints
from evenhand.formats import FORMATS, Format
FORMATS.append(Format("Bars", (".bars",), "toy_bars", ""))
from evenhand.cli import ab, analyses, run, votes
from evenhand.serve.http import runs
votes_file = get_type_hints(votes.import_file, include_extras=True)["file"]
for named in (run.PairFilesArgument, ab.PromptsFile, analyses._BATTLES, votes_file):
    assert "Parquet or Bars" in named.__metadata__[0].help, named
assert "Parquet or Bars" in str(runs._BODIES)
"""


@pytest.mark.slow
def test_help_and_the_http_description_name_every_format() -> None:
    subprocess.run([sys.executable, "-c", FACES], check=True)


def test_the_skill_names_every_format() -> None:
    told = Path(__file__).parent.parent / "src/evenhand/skill/evenhand/references/data.md"
    assert listed() in told.read_text(encoding="utf-8")
