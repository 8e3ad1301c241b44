"""Data in object stores: what a URL means, how it is read, and what is said when it cannot be."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.contract import Criterion
from evenhand.data.battles import read_battles
from evenhand.data.options import ReadOptions
from evenhand.data.outputs import OutputFile, read_outputs
from evenhand.data.pairs import ReadPosition, read_files, read_pairs
from evenhand.data.records import BadRow, Record
from evenhand.data.remote import RemoteObject, data_error, url_in
from evenhand.data.source import Source, file_digest, open_source
from evenhand.data.votes import read_drawn, read_votes
from evenhand.errors import DataError, DataUnreachable, MissingExtra
from object_store import SECRET, Bucket, bucket, s3_port

__all__ = ["bucket", "s3_port"]

READING = ReadOptions(criteria=(Criterion(name="accuracy"),))


def rows(count: int, begin: int = 1, length: int = 20) -> list[dict[str, Any]]:
    return [
        {"id": f"r{n}", "prompt": f"p{n}", "response_a": "a" * length, "response_b": f"b{n}"}
        for n in range(begin, begin + count)
    ]


def lines(given: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in given)


def parquet(given: Sequence[dict[str, Any]], **options: Any) -> bytes:
    stream = io.BytesIO()
    table = import_module("pyarrow").Table.from_pylist(list(given))
    import_module("pyarrow.parquet").write_table(table, stream, **options)
    return stream.getvalue()


def keys(url: str | Path) -> list[str]:
    found = list(read_pairs([url], READING))
    assert all(isinstance(row, Record) for row in found), found
    return [row.key for row in found if isinstance(row, Record)]


def named(given: Sequence[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in given]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.jsonl", lines(rows(5))),
        ("with space [1] %41.jsonl", lines(rows(5))),
        ("x.jsonl.gz", gzip.compress(lines(rows(5)), mtime=0)),
        ("x.parquet", parquet(rows(5))),
        ("x.json", json.dumps(rows(5)).encode()),
        (
            "x.csv",
            b"id,prompt,response_a,response_b\n"
            + b"".join(b"r%d,p,a,b\n" % n for n in range(1, 6)),
        ),
    ],
)
def test_an_object_is_read_as_a_file_is(bucket: Bucket, name: str, content: bytes) -> None:
    url = bucket.put(f"a/{name}", content)
    assert keys(url) == named(rows(5))
    assert keys(Path(url)) == named(rows(5))  # a Path has lost one of the slashes
    assert {row.source for row in read_pairs([url], READING) if isinstance(row, Record)} == {url}


def test_a_folder_is_its_data_files_in_the_order_of_their_names(bucket: Bucket) -> None:
    bucket.put("set/b.parquet", parquet(rows(3, 3)))
    bucket.put("set/a.jsonl.gz", gzip.compress(lines(rows(2, 1))))
    bucket.put("set/day=2/c.jsonl", lines(rows(1, 6)))
    bucket.put("set/empty.jsonl", b"")
    for left_out in ("_SUCCESS", "README.md", ".hidden.jsonl", "_temporary/x.jsonl"):
        bucket.put(f"set/{left_out}", b"no pairs")
    bucket.put("set-aside.jsonl", lines(rows(1, 9)))
    for url in (bucket.url("set"), bucket.url("set/")):
        assert keys(url) == named(rows(6))
    everything = f"s3://{bucket.name}"
    assert keys(everything) == [*named(rows(1, 9)), *named(rows(6))]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.jsonl", ["top"]),
        ("set/*.jsonl", ["one", "two"]),
        ("set/t*o.jsonl", ["two"]),
        ("*/one.jsonl", ["one"]),
        ("**/*.jsonl", ["one", "deep", "two", "top"]),
        ("set/**/*.jsonl", ["one", "deep", "two"]),
        ("set/*/*.jsonl", ["deep"]),
        ("set/_*.jsonl", ["marked"]),
        ("set/**", ["one", "deep", "two"]),
    ],
)
def test_a_pattern_takes_what_it_says(bucket: Bucket, pattern: str, found: list[str]) -> None:
    for key in ("set/one", "set/two", "set/sub/deep", "set/_marked", "top"):
        bucket.put(f"{key}.jsonl", lines([{**rows(1)[0], "id": key.rpartition("/")[2].strip("_")}]))
    assert keys(bucket.url(pattern)) == found


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=4), st.integers(1, 5), st.booleans())
def test_reading_goes_on_after_any_row_of_any_file(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], group: int, columns: bool
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    begin = 1
    for number, size in enumerate(sizes):
        content = rows(size, begin)
        path = folder / f"{number}.{'parquet' if columns and size else 'jsonl'}"
        written = parquet(content, row_group_size=group) if columns and size else lines(content)
        path.write_bytes(written)
        begin += size
    url = folder.as_uri()
    if begin == 1:
        with pytest.raises(DataError, match=r"no data in the folder|has no rows"):
            keys(url)
        return
    whole = [(number, row) for number, some in read_files([url], READING) for row in some]
    assert [row.key for _, row in whole if isinstance(row, Record)] == named(rows(begin - 1))
    for at, (file, row) in enumerate(whole):
        rest = read_files([url], READING, after=ReadPosition(file, row.row))
        assert [(number, row) for number, some in rest for row in some] == whole[at + 1 :]


def test_rows_without_an_id_are_told_apart_by_their_object(bucket: Bucket) -> None:
    bare = [{key: row[key] for key in ("prompt", "response_a", "response_b")} for row in rows(2)]
    bucket.put("set/a.jsonl", lines(bare))
    bucket.put("set/b.jsonl", lines(bare[:1]))
    assert keys(bucket.url("set")) == ["a#1", "a#2", "b#1"]


def test_a_bad_row_names_its_object_and_the_row_in_it(bucket: Bucket) -> None:
    bucket.put("set/a.jsonl", lines(rows(3)))
    url = bucket.put("set/b.jsonl", lines(rows(1, 4)) + b"[1]\n")
    (bad,) = [row for row in read_pairs([bucket.url("set")], READING) if isinstance(row, BadRow)]
    assert bad.message.startswith(f"{url}, row 2: ")


def test_models_whose_outputs_are_in_several_objects_are_joined(bucket: Bucket) -> None:
    def answers(model: str, begin: int, count: int) -> bytes:
        return lines(
            [
                {"id": n, "prompt": f"p{n}", "response": f"{model} {n}"}
                for n in range(begin, begin + count)
            ]
        )

    bucket.put("old/part-0.jsonl", answers("old", 1, 2))
    bucket.put("old/part-1.jsonl", answers("old", 3, 2))
    bucket.put("new-0.jsonl", answers("new", 3, 2))
    twice = bucket.put("new-1.jsonl", answers("new", 1, 3))
    found = list(
        read_outputs(
            [OutputFile(bucket.url("old/")), OutputFile(bucket.url("new-*.jsonl"))], READING
        )
    )
    pairs = [row for row in found if isinstance(row, Record)]
    assert [(p.key, p.model_a, p.model_b) for p in pairs] == [
        (str(n), "old", "new") for n in (1, 2, 3, 4)
    ]
    assert [(p.source, p.row) for p in pairs][2:] == [
        (bucket.url("old/part-1.jsonl"), 1),
        (bucket.url("old/part-1.jsonl"), 2),
    ]
    (bad,) = [row for row in found if isinstance(row, BadRow)]
    first = bucket.url("new-0.jsonl")
    assert bad.message == (
        f"{twice}, row 3: the answer to '3' appears twice, first in {first}, row 1; keep one"
    )


def test_votes_battles_and_draws_come_by_url_too(bucket: Bucket) -> None:
    bucket.put("votes/a.csv", b"pair,who,verdict\n1,ann,A\n")
    bucket.put("votes/b.jsonl", lines([{"pair": "2", "who": "bob", "verdict": "TIE"}]))
    votes = list(read_votes(bucket.url("votes")))
    assert [getattr(vote, "who", None) for vote in votes] == ["ann", "bob"]
    bucket.put("battles/a.csv", b"model_a,model_b,winner\nx,y,A\nx,x,A\n")
    bad = bucket.put("battles/b.csv", b"model_a,model_b,winner\ny,z,B\nz,z,A\n")
    battles = read_battles(bucket.url("battles"))
    assert battles.models == ("x", "y", "z")
    assert list(battles.preference) == [1.0, 0.0]
    assert [row.source for row in battles.bad_rows][1:] == [bad]
    drawn = read_drawn(bucket.put("drawn.csv", b"pair,draw\n7,random\n"))
    assert [row.pair for row in drawn] == ["7"]


@pytest.mark.parametrize(
    ("url", "stem"),
    [
        ("s3://b/gpt.jsonl.gz", "gpt"),
        ("s3://b/v1.5/", "v1.5"),
        ("s3://b/gpt/*.jsonl", "gpt"),
        ("s3://b/gpt-*.snappy.parquet", "gpt-.snappy"),
        ("s3://b/gpt-*.jsonl.gz", "gpt"),
        ("s3://b/**/*.jsonl", "b"),
    ],
)
def test_what_a_data_set_is_called(url: str, stem: str) -> None:
    parts = () if "gpt.jsonl" in url else (Source(Path("x"), "x"),)
    assert Source(Path("x"), url, parts=parts).stem == stem


def test_a_digest_changes_with_the_data_and_downloads_none_of_it(bucket: Bucket) -> None:
    url = bucket.put("set/a.jsonl", lines(rows(9000)))
    bucket.put("set/b.jsonl", lines(rows(10)))
    folder = bucket.url("set")
    one, whole = file_digest(url), file_digest(folder)
    assert not [
        asked for asked in bucket.wire.asked if asked.startswith("GET") and ".jsonl" in asked
    ]
    assert (file_digest(url), file_digest(folder)) == (one, whole)
    bucket.put("set/b.jsonl", lines(rows(10)))  # the same again
    assert file_digest(folder) == whole
    bucket.put("set/b.jsonl", lines(rows(9) + rows(1, 11)))  # as long, another row
    changed = file_digest(folder)
    assert changed != whole
    assert file_digest(url) == one
    bucket.put("set/c.jsonl", b"")
    assert file_digest(folder) not in (whole, changed)


def test_a_version_is_told_by_size_and_time_where_the_store_has_no_other() -> None:
    def digest(size: int, seconds: float) -> str:
        when = datetime.fromtimestamp(seconds, UTC)
        info = {"name": "bucket/x.jsonl", "size": size, "ETag": "", "LastModified": when}
        return RemoteObject(None, info, name="s3://bucket/x.jsonl").digest()

    one = digest(2, 10**9)
    assert digest(2, 10**9 + 0.5) == one  # a listing is more exact than the object's own headers
    assert len({one, digest(2, 10**9 + 1), digest(3, 10**9)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.parquet"])
def test_a_cut_connection_costs_nothing(bucket: Bucket, name: str) -> None:
    # Random letters, since what packs well is over before it can be cut.
    given = [{**row, "response_a": os.urandom(200).hex()} for row in rows(3000)]
    written = {"x.jsonl": lines(given), "x.parquet": parquet(given)}
    url = bucket.put(name, written.get(name) or gzip.compress(lines(given)))
    bucket.wire.cut_after, bucket.wire.cuts_left = 100_000, 7
    assert keys(url) == named(given)
    assert bucket.wire.cuts_left < 7


@pytest.mark.slow
def test_a_store_that_has_gone_is_told_and_may_be_tried_again(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.data.remote._WAITS_S", ())
    given = [{**row, "response_a": os.urandom(500).hex()} for row in rows(500)]
    url = bucket.put("x.parquet", parquet(given))
    source = open_source(url)
    bucket.wire.cut_after, bucket.wire.cuts_left = 50_000, 10**6
    with pytest.raises(DataUnreachable) as raised:
        list(read_pairs([source], READING))
    assert raised.value.message.startswith(f"cannot read {url} (")
    assert raised.value.retryable
    assert "\n" not in raised.value.message


def test_an_object_that_changes_while_it_is_read_is_refused(bucket: Bucket) -> None:
    url = bucket.put("x.jsonl", lines(rows(10)))
    source = open_source(url)
    assert len(list(read_pairs([source], READING))) == 10
    bucket.put("x.jsonl", lines(rows(10, 2)))
    with pytest.raises(DataError, match=r"changed while it was being read; restore it"):
        list(read_pairs([source], READING))


def test_what_is_not_there_is_said_with_its_name(bucket: Bucket) -> None:
    bucket.put("set/a.txt", b"")
    told = {
        bucket.url("absent.jsonl"): "does not exist; check the bucket and the name",
        "s3://no-such-bucket-at-all/x/*.jsonl": "does not exist: no such bucket",
        bucket.url("*.jsonl"): "no object matches",
        bucket.url("set"): "no data in the folder",
    }
    for url, fact in told.items():
        with pytest.raises(DataError) as raised:
            open_source(url)
        assert fact in raised.value.message
        assert url in raised.value.message


def test_denied_access_says_where_credentials_come_from_and_shows_none(bucket: Bucket) -> None:
    url = bucket.put("x.jsonl", lines(rows(1)))
    bucket.wire.denies = True
    for asked in (url, bucket.url("*.jsonl")):
        with pytest.raises(DataError) as raised:
            open_source(asked)
        message = raised.value.message
        assert message.startswith(f"access to {asked} was denied (")
        assert "AWS_ACCESS_KEY_ID" in message
        assert SECRET not in message
        assert "somebody" not in message


@pytest.mark.parametrize(
    ("url", "fact"),
    [
        (f"s3://AKIA:{SECRET}@bucket/x.jsonl", "s3://bucket/x.jsonl contains a key"),
        (
            f"abfss://:{SECRET}@account.dfs.core.windows.net/x",
            "cannot read data from abfss://account.dfs.core.windows.net; ",
        ),
        ("hdfs://host/x.jsonl", "cannot read data from hdfs://host; "),
        (f"https://me:{SECRET}@example.org/x.jsonl", "cannot read data from https://example.org; "),
        ("ftp://host/x", "s3://, gs:// and file://"),
        ("s3://", "has no bucket name"),
        ("file://host/x.jsonl", "on another machine"),
        (f"gs://me@bucket/{SECRET[:3]}.jsonl", "gs://bucket/pla.jsonl contains a key"),
        (f"s3://bucket/x?nonsense={SECRET}", "the URL s3://bucket/x has options after '?'"),
    ],
)
def test_a_url_that_cannot_be_meant_is_refused(url: str, fact: str) -> None:
    with pytest.raises(DataError) as raised:
        open_source(url)
    assert fact in raised.value.message
    assert SECRET not in raised.value.message
    assert "\n" not in raised.value.message


@pytest.mark.parametrize(
    ("error", "kind", "first", "fact"),
    [
        (
            OSError("Could not connect to the endpoint URL"),
            DataUnreachable,
            "cannot read {} (",
            "check the network",
        ),
        (
            FileNotFoundError("The specified bucket does not exist"),
            DataError,
            "{} does not exist: ",
            "no such bucket",
        ),
        (PermissionError("Access Denied"), DataError, "access to {} was denied (", "GOOGLE_"),
        (OSError("Forbidden: path"), DataError, "access to {} was denied (", "GOOGLE_"),
        (OSError(22, "Bad Request"), DataError, "access to {} was denied (", "GOOGLE_"),
        (
            LookupError("Unable to locate credentials"),
            DataError,
            "access to {} was denied (",
            "GOOGLE_",
        ),
        (
            FileNotFoundError(2, "gone"),
            DataError,
            "{} ",
            "does not exist; check the bucket and the name",
        ),
        (ValueError("bad option"), DataError, "cannot open {} (", "check the URL"),
    ],
)
def test_what_a_store_says_becomes_one_line_with_a_remedy(
    error: Exception, kind: type[DataError], first: str, fact: str
) -> None:
    message = data_error("gs://b/x.jsonl", error)
    assert type(message) is kind
    assert message.message.startswith(first.format("gs://b/x.jsonl"))
    assert fact in message.message


@pytest.mark.parametrize(("scheme", "package"), [("s3", "s3fs"), ("gs", "gcsfs.core")])
def test_without_a_file_system_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, scheme: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"reads data from {scheme}://.*\[remote\]'"):
        open_source(f"{scheme}://bucket/x.jsonl")


@pytest.mark.parametrize("name", ["x.jsonl", "with space é%.jsonl"])
def test_a_file_by_its_url_is_the_same_data_as_by_its_path(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(lines(rows(3)))
    assert keys(path.as_uri()) == named(rows(3))
    assert keys(Path(path.as_uri())) == named(rows(3))
    assert file_digest(path.as_uri()) == file_digest(path)
    with pytest.raises(DataError, match=r"^cannot read file:///.*absent\.jsonl: "):
        open_source((tmp_path / "absent.jsonl").as_uri())


@pytest.mark.parametrize("given", ["pairs.jsonl", "-", "C:\\x.jsonl", "a/b:c//d.jsonl", "s3:x"])
def test_paths_are_no_urls(given: str) -> None:
    assert url_in(given) is None
    assert url_in(Path(given)) is None
