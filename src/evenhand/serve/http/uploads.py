"""A run's pairs as they come over the wire: to a file, piece by piece, never whole in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from evenhand.errors import InputError, TooLarge, WrongMediaType
from evenhand.messages import Message
from evenhand.serve.http.requests import refuse_encoded
from evenhand.serve.uploads import Upload

LINES = ("application/x-ndjson", "application/jsonl")
FORM = "multipart/form-data"
_FILES = ("file", "a", "b")

# Written in another thread at once: less often than the network brings pieces.
_BLOCK = 1 << 20
_MOST_PARTS = 100
_FIELDS_BYTES = 64 * 1024  # of all texts beside the files


async def spool_lines(request: Request, *, limit_bytes: int) -> Upload:
    """JSON lines as the body; gzipped where it says so."""
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding != "gzip":
        refuse_encoded(request)
    upload = Upload(
        "pairs.jsonl.gz" if encoding == "gzip" else "pairs.jsonl", limit_bytes=limit_bytes
    )
    try:
        await _pour(request, upload.write)
    except BaseException:
        upload.close()
        raise
    return upload


async def spool_form(
    request: Request, *, limit_bytes: int, fields: frozenset[str] = frozenset()
) -> tuple[Upload, dict[str, list[str]]]:
    """A form with one file, `file`, or with two models' outputs, `a` and `b`, which are read as
    their names' endings say; beside them only `fields`, which are given back too."""
    refuse_encoded(request)
    _, given = parse_options_header(request.headers["content-type"])
    if b"boundary" not in given:
        raise WrongMediaType(Message("serve.form_without_boundary"))
    form = _Form(given[b"boundary"], limit_bytes=limit_bytes, fields=fields)
    try:
        await _pour(request, form.write)
        return form.ended()
    except FormParserError as error:
        form.close()
        raise InputError(Message("serve.form_malformed", error=error)) from None
    except BaseException:
        form.close()
        raise


async def _pour(request: Request, write: Callable[[bytes], None]) -> None:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        pieces.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            await asyncio.to_thread(write, b"".join(pieces))
            pieces, size = [], 0
    if pieces:
        await asyncio.to_thread(write, b"".join(pieces))


class _Form:
    """Starlette's own would parse on the event loop, and takes a form that was cut off for a whole
    one. What is not expected is refused."""

    def __init__(self, boundary: bytes, *, limit_bytes: int, fields: frozenset[str]) -> None:
        self._limit = limit_bytes
        self._files: dict[str, Upload] = {}
        self._upload: Upload | None = None  # the one that is being read
        self._known = fields
        self._fields: dict[str, list[str]] = {}
        self._field: str | None = None  # the one that is being read; None: it is a file
        self._text = bytearray()
        self._texts = 0
        self._parts = 0
        self._header = bytearray()
        self._value = bytearray()
        self._disposition = b""
        self._ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._on_field,
                "on_header_value": self._on_value,
                "on_header_end": self._on_header,
                "on_headers_finished": self._on_headers,
                "on_part_data": self._on_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )

    def write(self, block: bytes) -> None:
        self._parser.write(block)

    def ended(self) -> tuple[Upload, dict[str, list[str]]]:
        if not self._ended:
            raise InputError(Message("serve.form_cut"))
        if not self._files:
            raise InputError(Message("serve.form_without_file"))
        upload = self._files.get("file")
        if upload is not None:
            return upload, self._fields
        if len(self._files) == 1:
            (given,) = self._files
            raise InputError(Message("serve.form_one_of_two", given=given))
        self._files["a"].join(self._files["b"])
        return self._files["a"], self._fields

    def close(self) -> None:
        for upload in self._files.values():
            upload.close()

    def _begin(self) -> None:
        self._disposition = b""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise TooLarge(Message("serve.form_parts", most_parts=_MOST_PARTS))

    def _on_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = bytes(self._value)
        self._header.clear()
        self._value.clear()

    def _on_headers(self) -> None:
        _, given = parse_options_header(self._disposition)
        field = given.get(b"name", b"").decode(errors="replace")
        self._field = field if field in self._known else None
        if self._field is not None:
            return
        if field not in _FILES:
            raise InputError(Message("serve.form_field_unknown", field=field[:40]))
        if b"filename" not in given:
            raise InputError(Message("serve.form_file_no_file", field=field))
        # One of pairs, or one of each model's outputs.
        if field in self._files or (self._files and "file" in {field, *self._files}):
            raise InputError(Message("serve.form_two_files"))
        name = given[b"filename"].decode(errors="replace")
        before = 0 if self._upload is None else self._upload.size
        self._upload = Upload(name, limit_bytes=self._limit, after_bytes=before)
        self._files[field] = self._upload

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is not None:
            self._text += data[start:end]
            self._texts += end - start
            if self._texts > _FIELDS_BYTES:
                raise TooLarge(Message("serve.form_too_long", fields_bytes=_FIELDS_BYTES))
        elif self._upload is not None:
            self._upload.write(data[start:end])

    def _on_part_end(self) -> None:
        if self._field is None:
            return
        try:
            text = self._text.decode()
        except UnicodeDecodeError:
            raise InputError(Message("serve.form_not_utf8", field=self._field)) from None
        self._fields.setdefault(self._field, []).append(text.replace("\r\n", "\n"))
        self._text.clear()

    def _on_end(self) -> None:
        self._ended = True
