"""Published pairs, read in place: none is lost, every label arrives."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from evenhand.contract import Criterion
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.records import Record
from parts import missing

READING = ReadOptions(criteria=(Criterion(name="accuracy"),))


@pytest.fixture(scope="session")
def published() -> list[Path]:
    folder = Path(__file__).resolve().parents[3] / "shared" / "data" / "pairs"
    files = sorted(folder.glob("*.jsonl*"))
    if not files:
        message = f"no published pairs beside the project in {'/'.join(folder.parts[-3:])}"
        missing(message)
    return files


@pytest.mark.recorded
def test_every_published_pair_is_read_with_its_label(published: list[Path]) -> None:
    for path in published:
        content = path.read_bytes()
        text = gzip.decompress(content) if path.suffix == ".gz" else content
        rows = [json.loads(line) for line in text.splitlines()]
        records = list(read_pairs([path], READING))
        whole = [record for record in records if isinstance(record, Record)]
        assert len(whole) == len(records) == len(rows), path.name
        assert [record.key for record in whole] == [row["id"] for row in rows]
        assert [
            (record.pair.prompt, record.pair.response_a, record.pair.response_b, record.label)
            for record in whole
        ] == [
            (row["prompt"], row["response_a"], row["response_b"], row.get("label")) for row in rows
        ]


@pytest.mark.recorded
def test_pandalm_has_999_labelled_pairs(published: list[Path]) -> None:
    [path] = [path for path in published if path.stem == "pandalm"]
    labels = Counter(
        record.label for record in read_pairs([path], READING) if isinstance(record, Record)
    )
    assert sum(labels.values()) == 999
    assert set(labels) == {"A", "B", "TIE"}
