"""What a client sends for a run: one file or two, in temporary files, never whole in memory."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import orjson

from evenhand.data.options import ReadLimits
from evenhand.data.source import Source, unpacked_too_long
from evenhand.errors import DataError, NoRoom, ServiceError, TooLarge
from evenhand.messages import Message

_LONGEST_NAME = 100
_BLOCK = 1 << 20
_OPEN_FILES = Path("/proc/self/fd")  # Linux; elsewhere such a file shares its place
# A quota and a limit of one file's size are as much the operator's as the disk.
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_GZIP = b"\x1f\x8b"
_NOT_IN_A_NAME = re.compile(r"[^\w.+ -]+")


class Upload:
    """Made by an edge, written to, and given to `Service.start_run`, which closes it.

    `other` has B's outputs, where this one has A's: they are one upload, under one limit.
    """

    def __init__(
        self, name: str = "pairs.jsonl", *, limit_bytes: int | None = None, after_bytes: int = 0
    ) -> None:
        self.name = plain_name(name)
        self.other: Upload | None = None
        self._limit = limit_bytes
        self._size = after_bytes
        self._digest = hashlib.sha256(name.encode(errors="replace") + b"\0")
        # Without its name's ending: what clients call it names no file here.
        with _making_room():
            self._file = _temporary()

    @classmethod
    def of_pairs(cls, pairs: Iterable[Mapping[str, Any]]) -> Upload:
        upload = cls()
        try:
            for number, pair in enumerate(pairs, start=1):
                upload.write(_line(pair, number))
        except BaseException:
            upload.close()
            raise
        return upload

    def write(self, block: bytes) -> None:
        self._size += len(block)
        if self._limit is not None and self._size > self._limit:
            raise TooLarge(Message("serve.pairs_too_long", limit=self._limit))
        self._digest.update(block)
        with _making_room():
            self._file.write(block)

    def join(self, other: Upload) -> None:
        """The other is B's. Models that no row names are called after their files."""
        if self.name == other.name:
            self.name, other.name = f"A-{self.name}", f"B-{other.name}"
        self.other = other

    @property
    def files(self) -> tuple[Upload, ...]:
        return (self,) if self.other is None else (self, self.other)

    @property
    def size(self) -> int:
        """In bytes, with those of the files that came before it."""
        return self._size

    @property
    def digest(self) -> bytes:
        """Of its name and all that was written."""
        own = self._digest.digest()
        return own if self.other is None else own + self.other.digest

    def source(self, limits: ReadLimits | None = None) -> Source:
        """What has been written, to be read; closing the upload closes it."""
        with _making_room():
            self._file.flush()
        return Source(_path_of(self._file), self.name, limits=limits or ReadLimits())

    def content(self, *, limit_bytes: int) -> bytes:
        """Whole, for what has to be in memory."""
        size = self._file.seek(0, io.SEEK_END)
        if size > limit_bytes:
            raise TooLarge(Message("serve.prompts_too_long", limit=limit_bytes))
        self._file.seek(0)
        return self._file.read()

    def unpack(self, limits: ReadLimits, *, after_bytes: int = 0) -> None:
        """Gzipped data becomes plain, so that a small file cannot be endless. Two files share the
        limit: `after_bytes` is what the one before it became."""
        with _making_room():
            self._file.flush()
        self._file.seek(0)
        if self._file.read(2) == _GZIP:
            self._become_plain(limits, after_bytes)
        if self.other is not None:
            plain_bytes = self._file.seek(0, io.SEEK_END)
            self.other.unpack(limits, after_bytes=after_bytes + plain_bytes)

    def _become_plain(self, limits: ReadLimits, after_bytes: int) -> None:
        packed_bytes = self._file.seek(0, io.SEEK_END)
        self._file.seek(0)
        with _making_room():
            plain = _temporary()  # takes the place of ours
        try:
            most = limits.unpacked_most(packed_bytes)
            if limits.unpacked_bytes is not None:
                most = min(most, limits.unpacked_bytes - after_bytes)
            _unpack(self._file, plain, most, packed_bytes, name=self.name)
            plain.seek(0)
            if plain.read(2) == _GZIP:
                # Readers would unpack it again, to any size.
                raise DataError(Message("serve.gzip_twice", name=self.name))
        except BaseException:
            plain.close()
            raise
        self._file.close()
        self._file = plain
        self.name = self.name.removesuffix(".gz")

    def refuse_long_lines(self, *, limit_bytes: int) -> None:
        """A line is in memory whole; no pair within the limits of its texts is as long as this."""
        with _making_room():
            self._file.flush()
        self._file.seek(0)
        start = self._file.read(4).lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith((b"[", b"PAR1")) or self.name.lower().endswith(".json"):
            return  # these are not read by lines
        self._file.seek(0)
        length = 0
        while block := self._file.read(_BLOCK):
            first, newline, rest = block.partition(b"\n")
            length += len(first)
            if length > limit_bytes:
                raise TooLarge(
                    Message("serve.line_too_long", name=self.name, limit_bytes=limit_bytes)
                )
            if newline:
                length = len(rest) - rest.rfind(b"\n") - 1

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what a full disk did not take is of no use any more
            self._file.close()
        if self.other is not None:
            self.other.close()

    def __enter__(self) -> Upload:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _temporary() -> IO[bytes]:
    """Without a name, where it can be opened by its number: then even a kill leaves nothing."""
    if _OPEN_FILES.is_dir():
        return tempfile.TemporaryFile(prefix="evenhand-", suffix=".data")
    return tempfile.NamedTemporaryFile(prefix="evenhand-", suffix=".data")


def _path_of(file: IO[bytes]) -> Path:
    return _OPEN_FILES / str(file.fileno()) if _OPEN_FILES.is_dir() else Path(file.name)


@contextlib.contextmanager
def _making_room() -> Iterator[None]:
    """A full disk is no mistake of the program, nor of the client."""
    try:
        yield
    except OSError as error:
        kind = NoRoom if error.errno in _DISK_FULL else ServiceError
        raise kind(
            Message("serve.upload_no_room", strerror=error.strerror or type(error).__name__)
        ) from None


def plain_name(given: str) -> str:
    """A file's name without folders and without what terminals and pages act upon."""
    last = re.split(r"[/\\]", given)[-1]
    name = _NOT_IN_A_NAME.sub("-", last).strip(" .-")
    return name[-_LONGEST_NAME:] or "pairs"


def _line(pair: Mapping[str, Any], number: int) -> bytes:
    try:
        return orjson.dumps(dict(pair), option=orjson.OPT_APPEND_NEWLINE)
    except (TypeError, ValueError) as error:
        raise DataError(Message("serve.row_no_plain_data", number=number, error=error)) from None


def _unpack(
    packed: IO[bytes], plain: IO[bytes], limit_bytes: int, packed_bytes: int, *, name: str
) -> None:
    written = 0
    try:
        with gzip.GzipFile(fileobj=packed) as stream:
            while block := stream.read1(_BLOCK):
                written += len(block)
                if written > limit_bytes:
                    raise unpacked_too_long(name, limit_bytes, packed_bytes)
                with _making_room():
                    plain.write(block)
    except (EOFError, OSError, zlib.error) as error:
        reason = " ".join(str(error).split())
        raise DataError(Message("serve.gzip_damaged", name=name, reason=reason)) from None
