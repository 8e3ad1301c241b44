"""Whatever a text holds, it comes out of every format as it went in."""

from __future__ import annotations

import csv
import gzip
import io
import json
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.conftest import Write
from evenhand.contract import Criterion
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.records import Record
from parts import examples

READING = ReadOptions(criteria=(Criterion(name="accuracy"),))
FIELDS = ("prompt", "response_a", "response_b")
TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(list("\"'\\,;\t\r\n{}[]\0\x85\u2028\ufeff")),
    ),
    max_size=20,
)
ROWS = st.lists(st.fixed_dictionaries(dict.fromkeys(FIELDS, TEXT)), min_size=1, max_size=4)


def lines(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def raw_lines(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows).encode()


def listed(rows: list[dict[str, str]]) -> bytes:
    return json.dumps(rows, ensure_ascii=False, indent=1).encode()


def held(rows: list[dict[str, str]]) -> bytes:
    return json.dumps({"note": "]}", "pairs": rows}).encode()


def table(rows: list[dict[str, str]], delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, FIELDS, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def tabs(rows: list[dict[str, str]]) -> bytes:
    return table(rows, "\t")


def parquet(rows: list[dict[str, str]]) -> bytes:
    arrow: Any = import_module("pyarrow")
    sink = io.BytesIO()
    import_module("pyarrow.parquet").write_table(
        arrow.Table.from_pylist(rows), sink, row_group_size=2
    )
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("x.jsonl", lines),
        ("x.jsonl", raw_lines),
        ("x.json", listed),
        ("x.json", held),
        ("x.csv", table),
        ("x.tsv", tabs),
        ("x.parquet", parquet),
    ],
)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, packed=st.booleans())
def test_any_text_survives(
    write: Write, name: str, written: Any, rows: list[dict[str, str]], packed: bool
) -> None:
    content = written(rows)
    if packed and name != "x.parquet":
        content = gzip.compress(content)
    records = list(read_pairs([write(name, content)], READING))
    assert [
        {field: getattr(record.pair, field) for field in FIELDS}
        for record in records
        if isinstance(record, Record)
    ] == rows
