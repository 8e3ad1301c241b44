from __future__ import annotations

import csv
import io
import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.records import Record
from evenhand.data.source import Source
from evenhand.errors import InputError, MissingExtra
from evenhand.report.export import FORMATS, Exported, Format, export_run, format_for
from evenhand.report.records import COLUMNS, read_run
from evenhand.store import Store
from stored_runs import ROWS, SKIPPED, Row, follows_place, make_run, mumbles, says


@pytest.fixture
def judged(store: Store) -> Store:
    make_run(store, "first", ROWS, skipped=SKIPPED)
    return store


def test_export_says_what_it_holds_and_what_is_missing(judged: Store, tmp_path: Path) -> None:
    exported = export_run(judged, "first", tmp_path / "out.jsonl")
    beside = tmp_path / "out.jsonl.manifest.json"
    assert exported == Exported("first", rows=7, pending=1, skipped_rows=2, manifest=beside)
    lines = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["q1", "q2", "q3", "q4", "q5", "q6", "q7"]


def test_line_holds_the_whole_verdict_with_its_passes(judged: Store) -> None:
    stream = io.BytesIO()
    export_run(judged, "first", stream)
    first = json.loads(stream.getvalue().splitlines()[0])
    assert first["verdict"]["winner"] == first["winner"] == "A"
    orders = [made["order"] for made in first["verdict"]["metadata"]["passes"]]
    assert orders == ["original", "swapped"]
    assert "winner" in first["verdict"]["metadata"]["passes"][0]["ballot"]["raw"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x.jsonl", "jsonl"),
        ("x.NDJSON", "jsonl"),
        ("x.json", "json"),
        ("x.csv", "csv"),
        ("x.parquet", "parquet"),
    ],
)
def test_format_is_told_by_the_ending(name: str, expected: str) -> None:
    assert format_for(Path(name)) == expected


@pytest.mark.parametrize("name", ["x.xlsx", "x.txt", "x.jsonl.gz"])
def test_ending_that_says_nothing_needs_a_format(judged: Store, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="format jsonl, json, csv, excel-csv, parquet"):
        export_run(judged, "first", tmp_path / name)
    assert export_run(judged, "first", tmp_path / name, format="csv").rows == 7
    assert (tmp_path / name).read_bytes().startswith(b"run,id,")


def test_unknown_format_names_the_known_ones(judged: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'xlsx'; give jsonl, json, csv, excel-csv, parquet"):
        export_run(judged, "first", tmp_path / "x", format=cast("Any", "xlsx"))
    assert not (tmp_path / "x").exists()


def test_file_is_not_written_over_unless_asked(judged: Store, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        export_run(judged, "first", target)
    assert target.read_text() == "mine"
    export_run(judged, "first", target, overwrite=True)
    assert target.read_bytes().startswith(b"run,id,")


def test_link_stays_a_link(judged: Store, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "out.csv"
    link.symlink_to(tmp_path / "elsewhere" / "real.csv")
    export_run(judged, "first", link)
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "real.csv").read_bytes().startswith(b"run,id,")


def test_directory_or_a_missing_one_is_refused_in_one_line(judged: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory; name a file in it"):
        export_run(judged, "first", tmp_path)
    with pytest.raises(InputError, match=r": no such file or directory; "):
        export_run(judged, "first", tmp_path / "nowhere" / "out.csv")


def test_device_is_written_to_and_not_replaced(judged: Store) -> None:
    before = os.stat(os.devnull)
    assert export_run(judged, "first", os.devnull, overwrite=True).rows == 7
    assert os.path.samestat(before, os.stat(os.devnull))
    with pytest.raises(InputError, match=r"cannot write /dev/full: no space left on device"):
        export_run(judged, "first", "/dev/full")


@contextmanager
def small_disk() -> Iterator[None]:
    """No file may grow beyond 20,000 bytes, as on a disk that is full then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_half_an_export_never_has_the_name(tmp_path: Path, store: Store, ending: str) -> None:
    noise = os.urandom(30_000).hex()  # so that it stays long when Parquet has packed it
    make_run(store, "long", [Row("x", says("A"), pair={"response_a": noise})])
    folder = tmp_path / "exports"
    folder.mkdir()
    target = folder / f"out.{ending}"
    refused = pytest.raises(InputError, match=": file too large; nothing was left")
    with small_disk(), refused:
        export_run(store, "long", target)
    assert list(folder.iterdir()) == []
    target.write_text("the one before")
    with small_disk(), refused:
        export_run(store, "long", target, overwrite=True)
    assert [path.name for path in folder.iterdir()] == [target.name]
    assert target.read_text() == "the one before"


def test_parquet_without_pyarrow_names_the_extra(
    judged: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[parquet\]'"):
        export_run(judged, "first", tmp_path / "out.parquet")
    assert not list(tmp_path.glob("*out.parquet*"))


def test_stream_of_the_caller_stays_open(judged: Store) -> None:
    for form in FORMATS:
        stream = io.BytesIO()
        assert export_run(judged, "first", stream, format=cast("Any", form)).rows == 7
        assert not stream.closed


def exported(store: Store, name: str, form: Format) -> bytes:
    stream = io.BytesIO()
    export_run(store, name, stream, format=form)
    return stream.getvalue()


def test_json_is_one_array_of_the_same_rows(judged: Store) -> None:
    lines = [json.loads(line) for line in exported(judged, "first", "jsonl").splitlines()]
    assert json.loads(exported(judged, "first", "json")) == lines
    make_run(judged, "empty", [])
    assert json.loads(exported(judged, "empty", "json")) == []


def test_excel_opens_every_letter_and_no_cell_flows_over(store: Store) -> None:
    long, wide = "=" + "x" * 40_000, "😀" * 20_000  # 40,000 units of UTF-16
    row = Row("x", says("A"), pair={"prompt": "谁更好？", "response_a": long, "response_b": wide})
    make_run(store, "long", [row])
    written = exported(store, "long", "excel-csv")
    assert written.startswith(b"\xef\xbb\xbfrun,id,")
    [cells] = csv.DictReader(io.StringIO(written.decode("utf-8-sig")))
    assert cells["prompt"] == "谁更好？"
    for side, whole in (("responseA", long), ("responseB", wide)):
        units = len(cells[side].encode("utf-16-le")) // 2
        assert 32_000 < units <= 32_767
        assert cells[side].endswith(f"… (cut: {len(whole):,} characters in all)")
    assert cells["responseA"].startswith("'=x")
    # But for that it is the CSV that everybody else reads.
    make_run(store, "short", [Row("x", says("A"))])
    assert exported(store, "short", "excel-csv")[3:] == exported(store, "short", "csv")


def comparator(store: Store, name: str) -> Any:
    stream = io.BytesIO()
    export_run(store, name, stream, format="llm-comparator")
    return json.loads(stream.getvalue())


def test_llm_comparator_has_a_score_for_each_outcome(judged: Store) -> None:
    examples = {
        each["custom_fields"]["id"]: each for each in comparator(judged, "first")["examples"]
    }
    scores = {key: example["score"] for key, example in examples.items()}
    assert scores == {"q1": 1, "q2": 1, "q3": -1, "q4": 0, "q5": 0, "q6": None, "q7": None}
    # What an inconsistent pair is must not be lost in its score.
    assert examples["q5"]["custom_fields"]["outcome"] == "inconsistent"
    ratings = examples["q5"]["individual_rater_scores"]
    assert [(each["is_flipped"], each["score"]) for each in ratings] == [(False, 1), (True, -1)]
    unread = examples["q6"]["individual_rater_scores"]
    assert [(each["score"], each["rating_label"]) for each in unread] == [(None, "unread")] * 2
    assert examples["q7"]["individual_rater_scores"] == []


def test_llm_comparator_names_the_models_where_all_pairs_have_the_same_two(store: Store) -> None:
    both: dict[str, Any] = {"model_a": "old", "model_b": "new"}
    make_run(store, "same", [Row("x", says("A"), **both), Row("y", mumbles, **both)])
    make_run(store, "mixed", [Row("x", says("A"), **both), Row("y", follows_place, model_a="old")])
    assert comparator(store, "same")["models"] == [{"name": "old"}, {"name": "new"}]
    unnamed = [{"name": "Response A"}, {"name": "Response B"}]
    assert comparator(store, "mixed")["models"] == unnamed


def test_llm_comparator_export_can_be_read_as_pairs_again(judged: Store, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    export_run(judged, "first", path, format="llm-comparator")
    reading = ReadOptions(criteria_needed=False)
    records = list(read_pairs([Source(path, "out.json")], reading))
    assert all(isinstance(each, Record) for each in records)
    texts = [(r.key, r.pair.prompt, r.pair.response_b) for r in records if isinstance(r, Record)]
    assert texts == [(row.id, row.prompt, row.response_b) for row in read_run(judged, "first")]


def test_every_column_and_format_is_documented() -> None:
    written = (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")
    for name in (*COLUMNS.values(), "context", "reference", "verdict", *FORMATS):
        assert f"`{name}`" in written
