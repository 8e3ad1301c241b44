"""Whatever a text is, it comes back from every format; and no cell of a CSV file is a formula."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.contract import ErrorBody, Failure, Metadata, Outcome
from evenhand.report.export import json_lines, parquet_blocks
from evenhand.report.files import csv_lines, escape, unescape
from evenhand.report.records import CriterionResult, RunRow

# They come without types.
pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
# Texts that begin as formulas do, or hide it.
FORMULAS = st.builds(
    "".join,
    st.tuples(
        st.text("'\" \u00a0\ufeff\u200b\x00\x1f\u2028", max_size=3),
        st.sampled_from([*"=+-@\t\r\n＝＋－＠﹢﹣﹦﹫", ""]),
        st.sampled_from(["", "1+1", "cmd|' /C calc'!A0", 'HYPERLINK("http://x","y")', "-\n=1"]),
    ),
)
ANY = TEXTS | FORMULAS
WINNERS = st.sampled_from(["A", "B", "TIE", None])
FINITE = st.floats(allow_nan=False, allow_infinity=False)
CRITERIA = st.builds(
    CriterionResult, criterion=ANY, winner=WINNERS, outcome=st.sampled_from(Outcome)
)
TOKENS = st.none() | st.integers(0, 2**63 - 1)


def _failure(message: str) -> Failure:
    return Failure(
        error=ErrorBody(kind="invalid", message=message, retryable=False), metadata=Metadata()
    )


ROWS = st.fixed_dictionaries(
    {
        "run": ANY,
        "id": ANY,
        "row": st.integers(1, 2**63 - 1),
        "source": ANY,
        "judge": ANY,
        "prompt": ANY,
        "response_a": ANY,
        "response_b": ANY,
        "label": WINNERS,
        "model_a": st.none() | ANY,
        "model_b": st.none() | ANY,
        "tags": st.lists(ANY, max_size=3).map(tuple),
        "outcome": st.sampled_from(Outcome),
        "winner": WINNERS,
        "confidence": st.none() | st.floats(0, 1),
        "confidence_source": st.sampled_from(["stated", "logprobs", "votes", "rule", "none"]),
        "first_pass_winner": WINNERS,
        "second_pass_winner": WINNERS,
        "abstained": st.booleans(),
        "consistent": st.sampled_from([True, False, None]),
        "criteria": st.lists(CRITERIA, max_size=2).map(tuple),
        "reasoning": ANY,
        "error_kind": st.none() | ANY,
        "error_message": st.none() | ANY,
        "input_tokens": TOKENS,
        "output_tokens": TOKENS,
        "cost_usd": st.none() | FINITE,
        "time_ms": FINITE,
        "flagged": st.booleans(),
        "comment": st.none() | ANY,
        "context": st.none() | ANY,
        "reference": st.none() | ANY,
        "verdict": st.builds(_failure, TEXTS),
    }
).map(lambda values: RunRow(**values))

NUMBERS = ("row", "confidence", "inputTokens", "outputTokens", "costUsd", "timeMs")
LISTS = ("tags", "criteria")
SOME = st.lists(ROWS, max_size=3)


def table_of(rows: list[RunRow]) -> list[dict[str, Any]]:
    left_out = {"context", "reference", "verdict"}
    return [row.model_dump(mode="json", exclude=left_out) for row in rows]


@given(SOME)
def test_jsonl_gives_every_row_back(rows: list[RunRow]) -> None:
    written = b"".join(json_lines(rows))
    lines = written.splitlines(keepends=True)
    assert [RunRow.model_validate_json(line) for line in lines] == rows


@settings(deadline=None)  # the first one loads pyarrow
@given(SOME)
def test_parquet_gives_every_row_back(rows: list[RunRow]) -> None:
    written = b"".join(parquet_blocks(rows))
    assert pq.read_table(pa.BufferReader(written)).to_pylist() == table_of(rows)


def read_csv(written: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written.decode(), newline=""), strict=True))


@given(SOME)
def test_csv_gives_every_row_back_once_unescaped(rows: list[RunRow]) -> None:
    written = b"".join(csv_lines(rows))
    for cells, expected in zip(read_csv(written), table_of(rows), strict=True):
        assert list(cells) == list(expected)
        for column, value in expected.items():
            cell = cells[column]
            if value is None:
                assert cell == ""
            elif column in NUMBERS:
                assert type(value)(cell) == value
            elif column in LISTS:
                assert json.loads(cell) == value
            elif column in ("abstained", "consistent", "flagged"):
                assert cell == str(value).lower()
            else:
                assert unescape(cell) == value


@given(SOME)
def test_no_text_cell_of_a_csv_file_is_taken_for_a_formula(rows: list[RunRow]) -> None:
    written = b"".join(csv_lines(rows))
    for cells in read_csv(written):
        assert all(is_harmless(cell) for column, cell in cells.items() if column not in NUMBERS)


def is_harmless(cell: str) -> bool:
    """Written without looking at the code: what a spreadsheet sees once it has cleaned a cell."""
    if cell.startswith("'"):
        return True
    if any(cell.startswith(sign) for sign in "\t\r\n"):
        return False
    seen = "".join(c for c in cell if unicodedata.category(c)[0] not in "ZC")
    return not unicodedata.normalize("NFKC", seen).startswith(("=", "+", "-", "@"))


@given(ANY)
def test_unescaping_undoes_escaping_and_nothing_else(text: str) -> None:
    assert unescape(escape(text)) == text
    assert escape(text) in (text, f"'{text}")


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", "＝1", "＋1", "－1", "＠x", "﹦1"),
        *(" =1", "\u00a0=1", "\ufeff=1", " \ufeff\u200b+1", "\x00=1", "'=1", "''@x", "' -1"),
    ],
)
def test_what_a_spreadsheet_would_act_upon_gets_an_apostrophe(text: str) -> None:
    assert escape(text) == f"'{text}"


@pytest.mark.parametrize(
    "text", ["", "'", "it's", "'quoted'", "a=b", "1-2", " plain", "#N/A", "“=1”", "'\"=1"]
)
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    assert escape(text) == text
    assert unescape(text) == text


def test_empty_text_and_nothing_are_told_apart_in_csv(one_row: RunRow) -> None:
    row = one_row.model_copy(update={"model_a": "", "model_b": None, "label": None})
    written = b"".join(csv_lines([row]))
    assert b',,"",,' in written  # label, modelA, modelB


def test_parquet_is_written_in_groups_of_bounded_size(one_row: RunRow) -> None:
    long = one_row.model_copy(update={"response_a": "x" * 6_000_000})
    # two short rows and three long ones make 18 million characters, and the rest a group of its own
    written = b"".join(parquet_blocks([one_row, one_row, long, long, long, one_row]))
    file = pq.ParquetFile(pa.BufferReader(written))
    groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert groups == [5, 1]


def test_parquet_has_a_type_for_every_column() -> None:
    written = b"".join(parquet_blocks([]))
    schema = pq.read_schema(pa.BufferReader(written))
    told = {name: str(schema.field(name).type) for name in schema.names}
    assert told["prompt"] == told["outcome"] == "string"
    assert told["row"] == told["inputTokens"] == "int64"
    assert told["confidence"] == told["costUsd"] == told["timeMs"] == "double"
    assert told["consistent"] == "bool"
    assert told["tags"] == "list<element: string>"
    criterion = "struct<criterion: string, winner: string, outcome: string>"
    assert told["criteria"] == f"list<element: {criterion}>"


def test_csv_of_no_rows_still_names_its_columns() -> None:
    written = b"".join(csv_lines([]))
    assert written.startswith(b"run,id,row,source,judge,prompt,responseA,responseB,")
    assert written.endswith(b",costUsd,timeMs,flagged,comment\n")
