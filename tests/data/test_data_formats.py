"""Every format gives the same pairs, told by content before name."""

from __future__ import annotations

import gzip
import io
import json
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest

from data.conftest import Read, Write
from evenhand.contract import Criterion, Pair
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.records import BadRow, Record
from evenhand.data.source import file_digest, open_source, spool
from evenhand.errors import DataError, MissingExtra
from evenhand.runs import given_pairs

READING = ReadOptions(criteria=(Criterion(name="accuracy"),))
ROWS: list[dict[str, Any]] = [
    {"id": "one", "prompt": "Why?", "response_a": "Because.", "response_b": "", "label": "A"},
    {
        "id": "two",
        "prompt": "你好\n",
        "response_a": 'say "x", y',
        "response_b": "z",
        "label": "TIE",
    },
]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
CSV = (
    "id,prompt,response_a,response_b,label\n"
    "one,Why?,Because.,,A\n"
    'two,"你好\n","say ""x"", y",z,TIE\n'
)


def parquet(rows: list[dict[str, Any]]) -> bytes:
    arrow: Any = import_module("pyarrow")
    sink = io.BytesIO()
    import_module("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows), sink)
    return sink.getvalue()


CONTENTS: dict[str, str | bytes] = {
    "pairs.jsonl": LINES,
    "pairs.ndjson": LINES.replace("\n", "\r\n\r\n"),
    "bom.jsonl": "\ufeff" + LINES,
    "unfinished.jsonl": LINES.rstrip("\n"),
    "lines.json": LINES,
    "lines": LINES,
    "list.json": json.dumps(ROWS),
    "list.jsonl": json.dumps(ROWS, indent=2),
    "bom.json": "\ufeff" + json.dumps(ROWS),
    "data.json": json.dumps({"version": 1, "data": ROWS, "after": [1, {"a": "]"}]}),
    "examples.json": json.dumps({"data": ["no rows"], "examples": ROWS}, indent=1),
    "pairs": json.dumps({"pairs": ROWS}),
    "rows.txt": json.dumps({"rows": ROWS}),
    "pairs.csv": CSV,
    "bom.csv": "\ufeff" + CSV,
    "windows.csv": CSV.replace("\n", "\r\n").replace("你好\r\n", "你好\n"),
    "unnamed": CSV,
    "pairs.tsv": CSV.replace(",", "\t").replace('""x""\t', '""x"",'),
    "excel.csv": CSV.replace(",", ";").replace('""x"";', '""x"",'),
    "pairs.parquet": parquet(ROWS),
    "columnar": parquet(ROWS),
}
GZIPPED = {name: raw for name, raw in CONTENTS.items() if not isinstance(raw, bytes)}


def check(records: list[Record | BadRow]) -> None:
    assert [record for record in records if isinstance(record, BadRow)] == []
    whole = [record for record in records if isinstance(record, Record)]
    assert [record.key for record in whole] == ["one", "two"]
    assert [record.label for record in whole] == ["A", "TIE"]
    assert [
        (record.pair.prompt, record.pair.response_a, record.pair.response_b) for record in whole
    ] == [(row["prompt"], row["response_a"], row["response_b"]) for row in ROWS]


@pytest.mark.parametrize("name", CONTENTS)
def test_each_format_gives_the_same_pairs(read: Read, name: str) -> None:
    check(read(name, CONTENTS[name]))


@pytest.mark.parametrize("name", GZIPPED)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_gzip_is_told_by_its_bytes(read: Read, name: str, ending: str) -> None:
    raw = GZIPPED[name]
    check(read(name + ending, gzip.compress(raw.encode() if isinstance(raw, str) else raw)))


def test_gzip_in_several_members_is_one_file(read: Read) -> None:
    check(
        read(
            "pairs.jsonl.gz", b"".join(gzip.compress(f"{x}\n".encode()) for x in LINES.split("\n"))
        )
    )


def test_one_object_is_one_row(read: Read) -> None:
    [record] = read("one.json", json.dumps(ROWS[0], indent=2))
    assert isinstance(record, Record)
    assert (record.key, record.row) == ("one", 1)


def test_rows_are_numbered_by_the_lines_they_begin_at(read: Read) -> None:
    content = 'prompt,response_a,response_b\n"a\nb",x,y\n\nc,x,y\n'
    assert [record.row for record in read("pairs.csv", content)] == [2, 5]
    lines = '{"prompt":"","response_a":"","response_b":""}\n'
    assert [record.row for record in read("pairs.jsonl", lines + "\n \n" + lines)] == [1, 4]


def test_rows_without_id_are_named_by_their_number(write: Write) -> None:
    row = '{"prompt":"p","response_a":"a","response_b":"b"}\n'
    one, two = write("one.jsonl", row), write("two.jsonl", row * 2)
    records = [record for record in read_pairs([two], READING) if isinstance(record, Record)]
    assert [(record.key, record.pair.id) for record in records] == [("#1", "#1"), ("#2", "#2")]
    several = [record for record in read_pairs([one, two], READING) if isinstance(record, Record)]
    assert [record.key for record in several] == ["one#1", "two#1", "two#2"]


def test_files_with_the_same_stem_keep_their_rows_apart(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "x.jsonl" for folder in ("m", "n")]
    for path in paths:
        path.parent.mkdir()
        path.write_text('{"prompt":"p","response_a":"a","response_b":"b"}\n')
    records = [record for record in read_pairs(paths, READING) if isinstance(record, Record)]
    assert [record.key for record in records] == [f"{path}#1" for path in paths]


def test_a_spooled_stream_is_read_and_gone_when_closed() -> None:
    with spool(io.BytesIO(LINES.encode())) as source:
        check(list(read_pairs([source], READING)))
        assert {record.source for record in read_pairs([source], READING)} == {"standard input"}
        assert source.path.exists()
    assert not source.path.exists()


def test_standard_input_is_spooled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(CSV.encode()))))
    with open_source("-") as source:
        check(list(read_pairs([source], READING)))


def test_a_pipe_is_spooled(tmp_path: Path) -> None:
    import os
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(LINES,))
    writer.start()
    with open_source(pipe) as source:
        writer.join()
        check(list(read_pairs([source], READING)))
        assert source.name == str(pipe)


def test_python_pairs_are_read_like_rows() -> None:
    pair = Pair.model_validate(
        {"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["depth"]}
    )
    given: list[Any] = [ROWS[0], pair, {"question": "q", "answer_a": "a", "answer_b": "b"}]
    with closing(given_pairs(given, READING)) as pairs:
        first, second, third = pairs.records()
    assert isinstance(first, Record)
    assert (first.key, first.source, first.row) == ("one", "pairs", 1)
    assert isinstance(second, Record)
    assert (second.key, second.pair.criteria[0].name) == ("#2", "depth")
    assert isinstance(third, Record)
    assert third.pair.prompt == "q"
    with pytest.raises(DataError, match="pairs, row 2"):
        given_pairs([given[0], cast("Any", 5)], READING)


def test_no_python_pairs_are_an_error() -> None:
    with (
        closing(given_pairs([], READING)) as pairs,
        pytest.raises(DataError, match="pairs has no rows"),
    ):
        list(pairs.records())


def test_the_digest_is_that_of_the_bytes(write: Write) -> None:
    # The well-known SHA-256 of "abc".
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_digest(write("x", "abc")) == known


def test_parquet_without_pyarrow_names_the_extra(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("evenhand.data.parquet.import_module", absent)
    with pytest.raises(MissingExtra, match=r"\[parquet\]'"):
        read("pairs.parquet", parquet(ROWS))


@pytest.mark.slow
def test_a_response_of_50_mb_is_read_from_every_format(read: Read) -> None:
    row = {"prompt": "p", "response_a": "line\\n" * 8_000_000 + '"', "response_b": "b"}
    text = json.dumps(row)
    assert len(text) > 50_000_000
    quoted = '"' + row["response_a"].replace('"', '""') + '"'
    for name, content in (
        ("big.jsonl", text),
        ("big.json", f"[{text}]"),
        ("big.csv", f"prompt,response_a,response_b\np,{quoted},b\n"),
        ("big.parquet", parquet([row])),
    ):
        [record] = read(name, content)
        assert isinstance(record, Record)
        assert record.pair.response_a == row["response_a"]
