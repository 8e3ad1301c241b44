"""What a file from outside may make of the memory: rows, values, pages, and layers of packing.

Limits are small here, so that a file a little above one stands for a file of gigabytes; the last
tests take real sizes, in a process whose memory the system limits.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

from evenhand.contract import Criterion
from evenhand.contract.json_text import RepeatedKey, TooManyValues, load_json
from evenhand.data.options import VARIABLE, ReadLimits, ReadOptions, default_limits
from evenhand.data.pairs import read_pairs
from evenhand.data.records import BadRow, Record
from evenhand.data.source import Source
from evenhand.errors import DataError, SettingsError, TooLarge

SMALL = ReadLimits(row_bytes=4096, page_bytes=8192, keys_every=1, delta_encoded=False)
ROW = b'{"prompt":"p","response_a":"a","response_b":"b"}\n'
HEADER = b"prompt,response_a,response_b\n"


@pytest.fixture
def bounded(tmp_path: Path) -> Any:
    def read(name: str, content: bytes, limits: ReadLimits = SMALL) -> Iterator[Record | BadRow]:
        path = tmp_path / name
        path.write_bytes(content)
        reading = ReadOptions(criteria=(Criterion(name="accuracy"),))
        return read_pairs([Source(path, name, limits=limits)], reading)

    return read


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out, **options)
    return out.getvalue()


def references(text: str, count: int) -> Any:
    places = pyarrow.array([0] * count, pyarrow.int32())
    return pyarrow.DictionaryArray.from_arrays(places, pyarrow.array([text]))


def test_a_line_that_is_too_long_is_a_bad_row_and_the_next_is_read(bounded: Any) -> None:
    long = b'{"prompt":"' + b"x" * 5000 + b'"}\n'
    first, second, third = bounded("x.jsonl", ROW + long + ROW)
    assert isinstance(first, Record)
    assert isinstance(third, Record)
    assert third.row == 3
    assert second.message == (
        "x.jsonl, row 2: the row is longer than 4,096 bytes; shorten it, or raise EVENHAND_MAX_ROW"
    )


def test_a_line_of_just_the_limit_is_read(bounded: Any) -> None:
    empty = b'{"prompt":"","response_a":"a","response_b":"b"}'
    text = b"x" * (4096 - len(empty))
    (row,) = bounded("x.jsonl", empty.replace(b'""', b'"' + text + b'"') + b"\n")
    assert row.pair.prompt == text.decode()


@pytest.mark.parametrize("name", ["x.json", "x.json.gz"])
def test_a_value_of_a_list_that_is_too_long_ends_the_reading_at_its_row(
    bounded: Any, name: str
) -> None:
    content = b"[" + ROW + b',{"prompt":"' + b"x" * 500_000 + b'"}]'
    rows = bounded(name, gzip.compress(content) if name.endswith(".gz") else content)
    assert isinstance(next(rows), Record)
    with pytest.raises(DataError, match=r", row 2: the row is longer than 4,096 bytes; shorten"):
        next(rows)


def test_a_single_object_that_is_too_long_is_refused(bounded: Any) -> None:
    with pytest.raises(DataError, match="row 1: the row is longer than 4,096 bytes"):
        list(bounded("x.json", b'{\n"prompt":\n"' + b"x" * 500_000 + b'"}'))


@pytest.mark.parametrize(
    "row",
    [
        b"p," + b"x" * 100_000 + b",b\n",
        b'p,"' + b"a line and another\n" * 6000,
    ],
)
def test_a_row_of_a_table_that_is_too_long_ends_the_reading_at_its_line(
    bounded: Any, row: bytes
) -> None:
    rows = bounded("x.csv", HEADER + b"p,a,b\n" + row, ReadLimits(row_bytes=1 << 17))
    assert isinstance(next(rows), Record)
    with pytest.raises(DataError, match=r"row 3: the row is longer than 65,536 bytes; close its"):
        list(rows)


def test_a_row_of_cells_alone_is_refused(bounded: Any) -> None:
    limits = ReadLimits(row_bytes=1 << 20)
    with pytest.raises(DataError, match="row 2: the row has more than 65,536 cells"):
        list(bounded("x.csv", HEADER + b"," * 300_000 + b"\n", limits))


def test_a_header_has_a_limit_of_columns_and_none_stands_twice(bounded: Any) -> None:
    names = [f"c{place}" for place in range(90_000)]
    wide = ",".join([*names, "prompt", "response_a", "response_b"]).encode()
    (row,) = bounded("x.csv", wide + b"\n" + b"," * 90_000 + b"p,a,b\n", ReadLimits())
    assert row.pair.response_a == "a"
    with pytest.raises(DataError, match="two columns named 'c89999'; rename one"):
        list(bounded("x.csv", wide + b",c89999\n", ReadLimits()))
    more = ",".join(f"c{place}" for place in range(100_001)).encode()
    with pytest.raises(DataError, match="has 100,001 columns; at most 100,000 are allowed"):
        list(bounded("x.csv", more + b"\n", ReadLimits()))


def test_gzip_inside_gzip_is_refused(bounded: Any) -> None:
    with pytest.raises(DataError, match=r"x\.jsonl\.gz is gzip inside gzip; unpack it once"):
        list(bounded("x.jsonl.gz", gzip.compress(gzip.compress(ROW))))


def test_gzip_with_empty_members_and_rubbish_after_its_end_delivers_its_rows(bounded: Any) -> None:
    packed = gzip.compress(b"") * 50 + gzip.compress(ROW) + gzip.compress(b"") * 50
    (row,) = bounded("x.jsonl.gz", packed)
    assert isinstance(row, Record)
    rows = bounded("x.jsonl.gz", packed + b"rubbish")
    assert isinstance(next(rows), Record)
    with pytest.raises(DataError, match="is damaged after row 1"):
        next(rows)


@pytest.mark.parametrize(
    "inside", [b"[]," * 400, b"[[[]]]," * 200, b'{"":1},' * 70, (b'{"":' * 70 + b"1" + b"}" * 70)]
)
def test_values_are_counted_before_they_are_parsed(inside: bytes) -> None:
    with pytest.raises(TooManyValues, match="more than 256 values"):
        load_json(b"[" + inside.rstrip(b",") + b"]", most_values=256)


def test_marks_inside_a_string_are_no_values() -> None:
    text = b'["' + b"[],{}," * 1000 + b'", 1]'
    assert load_json(text, most_values=256) == ["[],{}," * 1000, 1]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (b'{"a":1,"a":2}', "a"),
        (b'{"a":1,"a" :2}', "a"),
        (b'{"a":1,"\\u0061":2}', "a"),
        (b'{"a":"\\u0022\\u0022","t":1,"t":2}', "t"),
        (b'{"x":{"a":1},"y":[{"b":1,"b":2}]}', "b"),
        ('{"提示":1, "提示":2}'.encode(), "提示"),
    ],
)
def test_a_key_that_stands_twice_is_named(text: bytes, key: str) -> None:
    with pytest.raises(RepeatedKey, match=f"the key '{key}' appears twice in one object"):
        load_json(text, most_values=1000)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":"\\":","b" :2}',
        b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}',
        b'{"a\\"":1,"a":"{\\"a\\":1,\\"a\\":2}"}',
        b'"\\":"',
    ],
)
def test_keys_of_several_objects_and_inside_texts_are_not_twice(text: bytes) -> None:
    load_json(text, most_values=1000)


def test_a_row_with_a_key_twice_is_a_bad_row(bounded: Any) -> None:
    twice = ROW.replace(b'"prompt":"p"', b'"prompt":"p","prompt":"q"')
    for name, content in (("x.jsonl", twice), ("x.json", b"[" + twice + b"]")):
        (row,) = bounded(name, content)
        assert row.reason == "the key 'prompt' appears twice in one object; keep one"
    # The first thousand rows of a local file are searched, each.
    *_, row = bounded("x.jsonl", ROW * 999 + twice, ReadLimits())
    assert isinstance(row, BadRow)


def test_a_dictionary_of_parquet_is_not_written_out_for_many_rows(bounded: Any) -> None:
    long = references("x" * 2000, 500)
    content = parquet({"prompt": long, "response_a": long, "response_b": long})
    # A dictionary counts three times: 3 columns of 3 times 2,004 bytes are more than 8,192.
    with pytest.raises(DataError, match=r"of the columns read have 12,024 bytes \(limit 8,192"):
        list(bounded("x.parquet", content))
    rows = list(bounded("x.parquet", content, ReadLimits(row_bytes=4096, page_bytes=20_000)))
    assert len(rows) == 500
    # Three texts of 2,000 bytes each are more than the 4,096 of a row.
    assert {row.reason for row in rows} == {SMALL.row_too_long}
    fits = list(bounded("x.parquet", content, ReadLimits(row_bytes=6100, page_bytes=20_000)))
    assert [len(row.pair.prompt) for row in fits] == [2000] * 500


def test_a_page_of_parquet_that_unpacks_to_too_much_is_refused(bounded: Any) -> None:
    column = ["x" * 9000]
    content = parquet(
        {"prompt": column, "response_a": column, "response_b": column}, use_dictionary=False
    )
    # Its text, four bytes for its length, and six that say that it is not null.
    with pytest.raises(
        DataError,
        match=(
            r"a page has 9,010 bytes \(limit 8,192\); write it "
            r"with"
        ),
    ):
        list(bounded("x.parquet", content))


def test_a_list_of_parquet_that_is_too_long_is_refused(bounded: Any) -> None:
    texts = {"prompt": ["p"], "response_a": ["a"], "response_b": ["b"]}
    tags = pyarrow.ListArray.from_arrays(
        pyarrow.array([0, 250], pyarrow.int32()), references("t" * 100, 250)
    )
    (row,) = bounded("x.parquet", parquet({**texts, "tags": tags}))
    assert row.reason == SMALL.row_too_long
    tags = pyarrow.ListArray.from_arrays(
        pyarrow.array([0, 257], pyarrow.int32()), references("t", 257)
    )
    with pytest.raises(DataError, match=r"'tags\.list\.element' have 257 values in"):
        list(bounded("x.parquet", parquet({**texts, "tags": tags})))


def test_delta_encoded_parquet_is_refused_where_the_limits_say_so(bounded: Any) -> None:
    column = ["x" * 100]
    content = parquet(
        {"prompt": column, "response_a": column, "response_b": column},
        use_dictionary=False,
        column_encoding="DELTA_BYTE_ARRAY",
    )
    with pytest.raises(
        DataError, match="delta-encoded, so its size is unknown; write it with plain encoding"
    ):
        list(bounded("x.parquet", content))
    (row,) = bounded("x.parquet", content, ReadLimits())
    assert row.pair.prompt == column[0]


def test_a_parquet_column_that_stands_twice_is_an_error(bounded: Any) -> None:
    names = ["prompt", "response_a", "response_b", "prompt"]
    table = pyarrow.table([["p"], ["a"], ["b"], ["q"]], names=names)
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out)
    with pytest.raises(DataError, match="two columns named 'prompt'; rename one"):
        list(bounded("x.parquet", out.getvalue()))


def deep_schema(levels: int) -> bytes:
    """A footer of groups inside groups, in Thrift's compact protocol."""
    group = b"\x35\x00\x18\x01a\x15\x02\x00"  # required, named a, one child
    leaf = b"\x15\x0c\x25\x00\x18\x01a\x00"
    size = levels + 1
    length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    footer = b"\x15\x02\x19\xfc" + length + group * levels + leaf + b"\x16\x00\x19\x0c\x00"
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def test_a_schema_of_parquet_that_is_nested_too_deeply_is_refused(bounded: Any) -> None:
    with pytest.raises(DataError, match="its schema is nested more than 32 levels"):
        list(bounded("x.parquet", deep_schema(90_000), ReadLimits()))
    with pytest.raises(DataError, match=r"its schema has 120,001 columns \(limit 100,000\)"):
        list(bounded("x.parquet", deep_schema(120_000), ReadLimits()))
    with pytest.raises(DataError, match=r"its footer has .* bytes \(limit 65,536\)"):
        list(bounded("x.parquet", deep_schema(90_000)))


def test_many_tags_and_criteria_are_refused_before_they_are_made(bounded: Any) -> None:
    tags = ROW.replace(b"{", b'{"tags":"' + b"t;" * 10_000 + b'",', 1)
    criteria = ROW.replace(b"{", b'{"criteria":[' + b'"c",' * 1000 + b'"d"],', 1)
    first, second = bounded("x.jsonl", tags + criteria, ReadLimits())
    assert first.reason == "tags has 10,001 entries; give at most 10,000"
    assert second.reason == "criteria has 1,001 entries; give at most 1,000"


@pytest.mark.parametrize(
    ("given", "row_bytes"),
    [("512MB", 512 * 10**6), ("1GiB", 1 << 30), ("2048", 2048), ("", 1 << 27)],
)
def test_the_environment_raises_the_limit(
    monkeypatch: pytest.MonkeyPatch, given: str, row_bytes: int
) -> None:
    monkeypatch.setenv(VARIABLE, given)
    assert default_limits().row_bytes == row_bytes


@pytest.mark.parametrize("given", ["much", "-1", "12", "1.5GB", "9" * 40])
def test_a_limit_that_is_no_size_is_an_error(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(SettingsError, match=r"EVENHAND_MAX_ROW is .*; give a size of at least 1KB"):
        default_limits()


# How much a packed file may become


PACKED = ReadLimits(unpacked_spare=10_000)


def test_gzip_may_become_a_hundred_times_its_size_and_something_to_spare(bounded: Any) -> None:
    fits = gzip.compress(ROW * 200)  # 49 bytes each, 9,800 in all
    assert len(list(bounded("x.jsonl.gz", fits, PACKED))) == 200
    # 20,000 rows are 980 kB, and pack to less than a hundredth of it.
    bomb = gzip.compress(ROW * 20_000)
    most = 10_000 + 100 * len(bomb)
    assert most < 49 * 20_000
    with pytest.raises(TooLarge, match=f"{len(bomb):,} bytes and unpacks to more than {most:,}"):
        list(bounded("x.jsonl.gz", bomb, PACKED))
    assert len(list(bounded("x.jsonl", ROW * 20_000, PACKED))) == 20_000  # it is what it is


def test_parquet_has_the_same_budget(bounded: Any) -> None:
    """A dictionary makes any number of long texts of one: 20 MB here, of some kilobytes."""
    rows = 200
    texts = {"response_a": ["a"] * rows, "response_b": ["b"] * rows}
    content = parquet({"prompt": ["p" * 100_000] * rows, **texts})
    most = 10_000 + 100 * len(content)
    assert most < 100_000 * rows
    with pytest.raises(TooLarge, match=f"unpacks to more than {most:,};"):
        list(bounded("x.parquet", content, PACKED))
    assert len(list(bounded("x.parquet", content, ReadLimits()))) == rows


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", b"[" + b"0," * 20_000 + b"0]"),
        ("x.jsonl", b"0\n" * 20_000),
        ("x.json", b'{"rows": [{}, ' + b"0," * 20_000 + b"0]}"),
    ],
)
def test_a_file_of_mostly_no_objects_is_not_read_to_its_end(
    bounded: Any, name: str, content: bytes
) -> None:
    with pytest.raises(DataError, match="most rows are not objects"):
        list(bounded(name, content, ReadLimits()))


def test_a_list_that_holds_no_rows_is_not_passed_over_for_ever(bounded: Any) -> None:
    content = b'{"x": [' + b"0," * 1_000_000 + b'0], "data": [{"prompt": "p"}]}'
    with pytest.raises(DataError, match="more than 1,000,000 values"):
        list(bounded("x.json", content, ReadLimits()))


_READ = """
import dataclasses, resource, sys
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.source import Source
from evenhand.serve.config import ServerLimits
limits = dataclasses.replace(ServerLimits().of_data, unpacked_bytes=None, unpacked_spare=1 << 40)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for row in read_pairs([Source(__import__("pathlib").Path(sys.argv[1]), "x", limits=limits)],
                      ReadOptions(criteria_needed=False)):
    pass
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the system's limit of memory is Linux's")
@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("x.jsonl.gz", ((b'{"prompt":"', 1), (b"a", 600), (b'"}\n', 1))),
        ("x.json.gz", ((b'[{"prompt":"', 1), (b"a", 600), (b'"}]', 1))),
        ("x.csv.gz", ((b'prompt,response_a,response_b\np,"', 1), (b"a", 600), (b'",b\n', 1))),
    ],
)
def test_a_text_of_600_mb_never_takes_a_process_beyond_380_mb(
    tmp_path: Path, name: str, parts: tuple[tuple[bytes, int], ...]
) -> None:
    path = tmp_path / name
    mebibyte = gzip.compress(b"a" * (1 << 20), 1)
    path.write_bytes(
        b"".join(mebibyte * times if times > 1 else gzip.compress(text) for text, times in parts)
    )
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (380 << 20, 380 << 20))\n"
        + _READ
    )
    ended = subprocess.run(
        [sys.executable, "-c", limited, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert "MemoryError" not in ended.stderr
    assert ended.returncode == 0 or "the row is longer than" in ended.stderr


@pytest.mark.parametrize(
    ("name", "begin", "row"),
    [("x.jsonl", b"", ROW), ("x.csv", HEADER, b"p,a,b\n")],
)
def test_a_file_of_blank_lines_is_given_up_and_a_few_between_rows_are_not(
    bounded: Any, name: str, begin: bytes, row: bytes
) -> None:
    with pytest.raises(DataError, match="most lines are blank"):
        list(bounded(name, begin + row * 3 + b"\n" * 10_100 + row))
    assert len(list(bounded(name, begin + (row + b"\n" * 4) * 5_000))) == 5_000
