"""The same data in Google Cloud Storage: objects, folders, patterns, versions, faults."""

from __future__ import annotations

import pytest

from data.test_remote import keys, lines, named, parquet, rows
from evenhand.data.source import file_digest, open_source
from evenhand.errors import DataError
from google_store import GoogleBucket, google

__all__ = ["google"]


@pytest.mark.slow
def test_objects_folders_and_patterns_are_read(google: GoogleBucket) -> None:
    google.put("set/a b.parquet", parquet(rows(3)))
    google.put("set/deep/c.jsonl", lines(rows(2, 4)))
    google.put("set/_SUCCESS", b"")
    assert keys(google.url("set/a b.parquet")) == named(rows(3))
    assert keys(google.url("set")) == named(rows(5))
    assert keys(google.url("set/**/*.jsonl")) == named(rows(2, 4))


def test_a_changed_object_has_another_digest(google: GoogleBucket) -> None:
    url = google.put("x.jsonl", lines(rows(3)))
    before = file_digest(url)
    assert file_digest(url) == before
    google.put("x.jsonl", lines(rows(3, 2)))
    assert file_digest(url) != before


def test_what_is_absent_or_denied_is_said_in_a_line(google: GoogleBucket) -> None:
    with pytest.raises(DataError, match=r"gs://bucket/absent.jsonl does not exist"):
        open_source(google.url("absent.jsonl"))
    google.deny()
    with pytest.raises(DataError) as raised:
        open_source(google.url("x.jsonl"))
    assert "GOOGLE_APPLICATION_CREDENTIALS" in raised.value.message
    assert "127.0.0.1" not in raised.value.message
