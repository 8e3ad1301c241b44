"""Broken files: what is whole is delivered, what is not is named, and nothing else is raised."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.conftest import Read, Write
from evenhand.contract import Criterion
from evenhand.data.options import ReadOptions
from evenhand.data.outputs import OutputFile, read_outputs
from evenhand.data.pairs import read_pairs
from evenhand.data.records import BadRow, Record
from evenhand.errors import DataError
from parts import examples

READING = ReadOptions(criteria=(Criterion(name="accuracy"),))
ROWS: list[dict[str, Any]] = [
    {"prompt": f"p{number} é", "response_a": 'a"\n', "response_b": "b\\"} for number in range(3)
]
LINES = [json.dumps(row, ensure_ascii=False).encode() for row in ROWS]
OK = LINES[0] + b"\n"


Drained: TypeAlias = tuple[list[Record], list[BadRow], DataError | None]


def drain(path: Path) -> Drained:
    return drained(read_pairs([path], READING))


def drained(rows: Iterator[Record | BadRow]) -> Drained:
    records: list[Record] = []
    bad: list[BadRow] = []
    try:
        for row in rows:
            if isinstance(row, Record):
                records.append(row)
            else:
                bad.append(row)
    except DataError as error:
        return records, bad, error
    return records, bad, None


@pytest.mark.parametrize(
    "name", ["x.jsonl", "x.json", "x.csv", "x.tsv", "x", "x.jsonl.gz", "x.parquet"]
)
@pytest.mark.parametrize("content", [b"", b"\n \r\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(read: Read, name: str, content: bytes) -> None:
    fact = "truncated or damaged" if name == "x.parquet" else "has no rows"
    with pytest.raises(DataError, match=fact):
        read(name, content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", "[]"),
        ("x.json", '{"data": []}'),
        ("x.csv", "prompt,response_a,response_b\n"),
        ("x.gz", gzip.compress(b"", mtime=0)),
    ],
)
def test_a_file_without_rows_is_an_error(read: Read, name: str, content: str | bytes) -> None:
    with pytest.raises(DataError, match="has no rows"):
        read(name, content)


def test_an_absent_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(DataError, match=f"cannot read {path}: .*; check the path"):
            list(read_pairs([path], READING))


def test_reading_goes_on_after_a_bad_line(read: Read) -> None:
    broken = b'{"prompt": \n[1]\nnull\n{"prompt":"\xff"}\n' + b"[" * 100_000 + b"\n"
    rows = read("x.jsonl", OK + broken + OK)
    assert [row.row for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    reasons = [row.reason for row in rows if isinstance(row, BadRow)]
    assert [reason.split(";")[0].split(" (")[0] for reason in reasons] == [
        "the line is not JSON",
        "the row is a list, not an object with columns",
        "the row is null, not an object with columns",
        "the line is not valid UTF-8",
        "the line is not JSON",
    ]
    assert isinstance(rows[6], Record)


def test_a_bad_row_says_where_and_why(read: Read) -> None:
    [bad] = read("x.jsonl", '{"prompt": "p", "response_a": null, "response_b": ""}\n')
    assert isinstance(bad, BadRow)
    assert bad.message.endswith("x.jsonl, row 1: response_a must be a string, not null")


def test_nan_in_a_column_that_is_not_used_does_no_harm(read: Read) -> None:
    row = '{"prompt": "p", "response_a": "", "response_b": "", "score": NaN}'
    assert isinstance(read("x.jsonl", row + "\n")[0], Record)
    assert isinstance(read("x.json", f"[{row}]")[0], Record)


def test_reading_goes_on_after_a_bad_element(read: Read) -> None:
    one = LINES[0].decode()
    rows = read("x.json", f'[{one}, 5, {{"prompt": nope}}, {one}{one}, , "]", {one}]')
    assert [type(row) for row in rows] == [Record, BadRow, BadRow, BadRow, BadRow, BadRow, Record]
    assert [row.row for row in rows] == [1, 2, 3, 4, 5, 6, 7]


def test_what_follows_a_list_is_an_error_after_its_rows(write: Write) -> None:
    records, _, error = drain(write("x.json", b"[" + LINES[0] + b"] []"))
    assert len(records) == 1
    assert error is not None
    assert "is not valid JSON after row 1" in error.message


def test_bytes_that_are_not_utf_8_are_bad_rows_of_a_table(read: Read) -> None:
    content = b"prompt,response_a,response_b,other\np,\xff,b,\np,a,b,\xff\n"
    first, second = read("x.csv", content)
    assert isinstance(first, BadRow)
    assert isinstance(second, Record)


def test_utf_16_is_named(read: Read) -> None:
    with pytest.raises(DataError, match="is UTF-16; save it as UTF-8"):
        read("x.csv", "prompt,response_a,response_b\n".encode("utf-16"))


def test_a_row_with_too_many_or_too_few_cells_is_bad(read: Read) -> None:
    rows = read("x.csv", "prompt,response_a,response_b\np,a\np,a,b,c\np,a,b\n")
    assert [row.reason for row in rows if isinstance(row, BadRow)] == [
        "the row is truncated: it has 2 cells, the header 3; write the row again",
        "the row has 4 cells, the header 3; quote cells that contain the delimiter",
    ]
    assert isinstance(rows[2], Record)


def test_a_stray_quote_costs_one_row(read: Read) -> None:
    rows = read("x.csv", 'prompt,response_a,response_b\np,"a"x,b\np,a,b\n')
    assert [type(row) for row in rows] == [BadRow, Record]


def test_a_column_that_stands_twice_is_an_error(read: Read) -> None:
    with pytest.raises(DataError, match="two columns named 'prompt'"):
        read("x.csv", "prompt,prompt,response_a,response_b\n1,2,3,4\n")


def test_a_file_of_another_kind_is_refused(read: Read) -> None:
    for name, content in (("x.md", "# Title"), ("x.json", "prompt"), ("x.bin", b"\0,\1")):
        with pytest.raises(DataError, match="is not JSON Lines, JSON, CSV, TSV or Parquet"):
            read(name, content)


def test_parquet_inside_gzip_is_named(read: Read) -> None:
    with pytest.raises(DataError, match="is Parquet inside gzip; unpack it first"):
        read("x.parquet.gz", gzip.compress(b"PAR1"))


def test_a_parquet_text_that_is_not_utf_8_is_a_bad_row(read: Read) -> None:
    arrow: Any = import_module("pyarrow")
    texts = arrow.array([b"good", b"\xff", b"good"], arrow.binary()).view(arrow.string())
    table = arrow.table({"prompt": texts, "response_a": ["a"] * 3, "response_b": ["b"] * 3})
    sink = io.BytesIO()
    import_module("pyarrow.parquet").write_table(table, sink)
    rows = read("x.parquet", sink.getvalue())
    assert [type(row) for row in rows] == [Record, BadRow, Record]


def complete(cut: int, ends: list[int]) -> int:
    return sum(end <= cut for end in ends)


def ends_of(whole: bytes, parts: list[bytes]) -> list[int]:
    ends, at = [], 0
    for part in parts:
        at = whole.index(part, at) + len(part)
        ends.append(at)
    return ends


def test_json_lines_cut_at_any_byte_lose_one_row_at_most(write: Write) -> None:
    whole = b"\n".join(LINES) + b"\n"
    ends = ends_of(whole, LINES)
    for cut in range(1, len(whole)):
        records, bad, error = drain(write("x.jsonl", whole[:cut]))
        assert len(records) == complete(cut, ends)
        assert error is None
        on_the_edge = cut in ends or cut - 1 in ends
        assert len(bad) == (0 if on_the_edge else 1)
        assert all("truncated" in row.reason or "UTF-8" in row.reason for row in bad)


@pytest.mark.parametrize(
    ("head", "tail"), [(b"[", b"]"), (b'{"data": [', b'], "more": {"a": [1, "]"]}}')]
)
def test_json_cut_at_any_byte_delivers_what_is_whole(
    write: Write, head: bytes, tail: bytes
) -> None:
    whole = head + b",\n".join(LINES) + tail
    ends = ends_of(whole, LINES)
    for cut in range(1, len(whole)):
        records, bad, error = drain(write("x.json", whole[:cut]))
        # The byte after a row says that the row is over.
        assert len(records) == complete(cut - 1, ends)
        assert bad == []
        assert error is not None
        assert f"is truncated {'after row' if records else 'before the first row'}" in error.message


def test_a_table_cut_at_any_byte_delivers_what_is_whole(write: Write) -> None:
    parts = [b'"p0","a\n""","b"', b'"p1","a","b"', b'"p2","a","b"']
    whole = b"prompt,response_a,response_b\n" + b"\r\n".join(parts) + b"\r\n"
    ends = ends_of(whole, parts)
    for cut in range(whole.index(b"\n") + 2, len(whole)):
        records, bad, error = drain(write("x.csv", whole[:cut]))
        # Cut behind the last delimiter it is a whole row whose last cell is empty: nobody can tell.
        empty_at_the_end = whole[:cut].endswith(b'",') and whole[cut : cut + 4] == b'"b"\r'
        assert (len(records), error) == (complete(cut, ends) + empty_at_the_end, None)
        inside = not empty_at_the_end and not any(end <= cut <= end + 2 for end in ends)
        assert [("truncated" in row.reason) for row in bad] == ([True] if inside else [])


def test_gzip_cut_at_any_byte_delivers_what_was_unpacked(write: Write) -> None:
    members = [gzip.compress(line + b"\n", mtime=0) for line in LINES]
    whole = b"".join(members)
    ends = ends_of(whole, members)
    for cut in range(3, len(whole)):
        records, bad, error = drain(write("x.jsonl.gz", whole[:cut]))
        # A row may be unpacked before its member's checksum is there.
        assert len(records) in (complete(cut, ends), complete(cut, ends) + 1)
        assert bad == []
        if cut in ends:
            assert error is None
        else:
            assert error is not None
            assert "is truncated" in error.message or "is damaged" in error.message


def test_parquet_cut_at_any_byte_is_an_error(write: Write) -> None:
    arrow: Any = import_module("pyarrow")
    sink = io.BytesIO()
    import_module("pyarrow.parquet").write_table(arrow.Table.from_pylist(ROWS), sink)
    whole = sink.getvalue()
    for cut in range(4, len(whole), 7):
        records, bad, error = drain(write("x.parquet", whole[:cut]))
        assert (records, bad) == ([], [])
        assert error is not None
        assert "is truncated or damaged before the first row" in error.message


NAMES = ["x", "x.jsonl", "x.json", "x.csv", "x.tsv", "x.parquet", "x.gz"]
MARKS = st.sampled_from(
    (
        *(bytes([byte]) for byte in b'{}[]"\\,:;\t\n\r\0001'),
        *(b"PAR1", b"\x1f\x8b\x08\0", b"\xef\xbb\xbf", b"\xff\xfe", b"NaN"),
        *(b'"data":[', b'"examples":[{', b'"models":', b"prompt,response_a,response_b\n"),
        b'{"prompt":"p","response_a":"a","response_b":"b"}',
    )
)
NOISE = st.lists(st.one_of(MARKS, st.binary(max_size=8)), max_size=30).map(b"".join)


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=NOISE, name=st.sampled_from(NAMES), packed=st.booleans())
def test_noise_raises_nothing_but_a_data_error(
    write: Write, content: bytes, name: str, packed: bool
) -> None:
    path = write(name, gzip.compress(content) if packed else content)
    for rows in (
        read_pairs([path], READING),
        read_outputs([OutputFile(path, "a"), OutputFile(path, "b")], READING, questions=path),
    ):
        _, bad, error = drained(rows)
        assert not any("\n" in row.message for row in bad)
        assert error is None or "\n" not in error.message


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_inside_parquet_or_gzip_raises_nothing_but_a_data_error(
    write: Write, data: st.DataObject
) -> None:
    arrow: Any = import_module("pyarrow")
    sink = io.BytesIO()
    import_module("pyarrow.parquet").write_table(arrow.Table.from_pylist(ROWS), sink)
    packed = gzip.compress(b"\n".join(LINES))
    name, whole = data.draw(st.sampled_from([("x.parquet", sink.getvalue()), ("x.gz", packed)]))
    damaged = bytearray(whole)
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=5)):
        damaged[at] = data.draw(st.integers(0, 255))
    drain(write(name, bytes(damaged)))
