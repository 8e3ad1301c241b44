"""Uploads go to a file piece by piece, however the network cuts them up."""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from evenhand.data.options import ReadLimits
from evenhand.errors import EvenhandError, InputError, TooLarge, WrongMediaType
from evenhand.serve.http.uploads import spool_form, spool_lines
from evenhand.serve.uploads import Upload


def request_of(pieces: list[bytes], **headers: str) -> Request:
    messages: Iterator[Message] = iter(
        [
            *({"type": "http.request", "body": piece, "more_body": True} for piece in pieces),
            {"type": "http.request", "body": b"", "more_body": False},
        ]
    )

    async def receive() -> Message:
        return next(messages)

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "headers": named}, receive)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[begin:end] for begin, end in pairwise(bounds)]


def content_of(upload: Upload) -> bytes:
    with upload:
        return upload.source().path.read_bytes()


def form(content: bytes, *, name: str = "file", filename: str | None = "pairs.csv") -> bytes:
    told = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename else "")
    head = f"--edge\r\nContent-Disposition: {told}\r\nContent-Type: text/csv\r\n\r\n"
    return head.encode() + content + b"\r\n--edge--\r\n"


FORM = {"content_type": "multipart/form-data; boundary=edge"}
# What a parser of forms stumbles over, beside any bytes.
HOSTILE = st.lists(
    st.sampled_from([b"\r\n", b"--edge", b"\r\n--edg", b"--", b"\n", b"\r", b"a", b"\0", b"\xff"])
).map(b"".join)


@given(content=st.binary() | HOSTILE, places=st.lists(st.integers(0, 500)))
def test_form_gives_its_file_to_the_byte(content: bytes, places: list[int]) -> None:
    if b"\r\n--edge" in b"\r\n" + content:
        return
    pieces = cut(form(content), places)
    upload, _ = asyncio.run(spool_form(request_of(pieces, **FORM), limit_bytes=10**6))
    assert upload.name == "pairs.csv"
    assert content_of(upload) == content


@given(content=st.binary(), places=st.lists(st.integers(0, 500)))
def test_lines_come_to_the_byte_and_their_digest_knows_no_pieces(
    content: bytes, places: list[int]
) -> None:
    kind = {"content_type": "application/x-ndjson"}
    cut_up = asyncio.run(spool_lines(request_of(cut(content, places), **kind), limit_bytes=10**6))
    whole = asyncio.run(spool_lines(request_of([content], **kind), limit_bytes=10**6))
    assert cut_up.digest == whole.digest
    assert content_of(cut_up) == content_of(whole) == content


@given(data=st.binary() | HOSTILE | HOSTILE.map(form))
def test_broken_forms_are_refused_by_an_error_of_ours(data: bytes) -> None:
    try:
        upload, _ = asyncio.run(spool_form(request_of([data], **FORM), limit_bytes=10**6))
    except EvenhandError:
        return
    upload.close()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (form(b"x", name="judge"), "unknown form field 'judge'; send one file"),
        (form(b"x", filename=None), "the form field file is not a file"),
        (form(b"x")[:-10], "the form is truncated"),
        (b"--edge--\r\n", "the form"),
        (
            form(b"x").removesuffix(b"--edge--\r\n") + form(b"y"),
            "the form's two files do not go together; send one in the field file",
        ),
        (b"", "the form is truncated"),
    ],
)
async def test_form_that_is_no_file_is_refused_with_a_reason(body: bytes, message: str) -> None:
    with pytest.raises(InputError) as raised:
        await spool_form(request_of([body], **FORM), limit_bytes=100)
    assert message in raised.value.message


async def test_upload_beyond_the_limit_is_refused() -> None:
    kind = {"content_type": "application/x-ndjson"}
    with pytest.raises(TooLarge, match="more than 10 bytes; split them into several runs"):
        await spool_lines(request_of([b"x" * 11], **kind), limit_bytes=10)
    with pytest.raises(TooLarge):
        await spool_form(request_of([form(b"x" * 11)], **FORM), limit_bytes=10)


async def test_name_of_a_file_names_no_folder() -> None:
    request = request_of([form(b"x", filename="../../etc/passwd.csv")], **FORM)
    upload, _ = await spool_form(request, limit_bytes=100)
    assert upload.name == "passwd.csv"
    upload.close()


async def test_form_without_a_boundary_and_odd_encodings_are_refused() -> None:
    with pytest.raises(WrongMediaType, match="no boundary"):
        await spool_form(request_of([], content_type="multipart/form-data"), limit_bytes=1)
    with pytest.raises(WrongMediaType, match="content encoding is br"):
        await spool_lines(request_of([], content_encoding="br"), limit_bytes=1)
    with pytest.raises(WrongMediaType, match="content encoding is gzip"):
        await spool_form(request_of([], content_encoding="gzip", **FORM), limit_bytes=1)


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name can be opened on Linux")
def test_an_upload_has_no_name_that_could_outlive_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Upload("pairs.jsonl.gz") as upload:
        upload.write(gzip.compress(b"plain"))
        assert list(tmp_path.iterdir()) == []
        upload.unpack(ReadLimits())
        assert upload.source().path.read_bytes() == b"plain"
        assert list(tmp_path.iterdir()) == []
