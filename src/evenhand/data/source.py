"""Where rows come from: files by name, gzipped or not, and streams spooled into a file."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO

from evenhand.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class Source:
    """A file, and the name that messages call it by. Close it where it came from `spool`."""

    path: Path
    name: str
    held: IO[bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def stem(self) -> str:
        """The name without folders and endings: `out/gpt.jsonl.gz` is `gpt`."""
        return Path(self.name.removesuffix(".gz")).stem or self.name

    def close(self) -> None:
        if self.held is not None:
            self.held.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def source_of(given: Source | Path | str) -> Source:
    if isinstance(given, Source):
        return given
    return Source(Path(given), str(given))


def open_source(given: Path | str) -> Source:
    """What a command line names: a file, `-`, or a pipe, which is spooled. Close it after use."""
    if str(given) == "-":
        return spool(sys.stdin)
    source = source_of(given)
    with _readable(source):
        mode = source.path.stat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return source
        with source.path.open("rb") as stream:
            return spool(stream, source.name)


def spool(stream: IO[Any], name: str = "standard input") -> Source:
    """Copy a stream into a temporary file, since rows are read more than once; never whole."""
    binary: IO[bytes] = getattr(stream, "buffer", stream)
    held = tempfile.NamedTemporaryFile(prefix="evenhand-", suffix=".data")  # noqa: SIM115 - closed by the source
    try:
        shutil.copyfileobj(binary, held, _BLOCK)
        held.flush()
    except BaseException:
        held.close()
        raise
    return Source(Path(held.name), name, held)


def file_digest(path: Source | Path | str) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    source = source_of(path)
    with _readable(source), source.path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def beginning(source: Source, *, size: int) -> bytes:
    """The first bytes of the content, unpacked where it is gzipped; fewer where it is cut."""
    with opened(source) as file:
        try:
            return file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return b""


def is_gzipped(source: Source) -> bool:
    with _readable(source), source.path.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """The content as bytes, unpacked where it is gzipped, whatever the file is called."""
    with _readable(source):
        file = source.path.open("rb", buffering=_BLOCK)
    with file:
        gzipped = file.read(2) == GZIP_MAGIC
        file.seek(0)
        if not gzipped:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as packed:
            yield io.BufferedReader(_Unpacked(packed), _BLOCK)


@contextmanager
def reading_faults(source: Source, *, after: list[int]) -> Iterator[None]:
    """Turn what goes wrong inside a file into a DataError that says after which row."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        fact = "is cut" if isinstance(error, EOFError) else "is damaged"
        raise DataError(
            f"{source.name} {fact} {after_row(after[0])} (gzip: {_plain(error)}); "
            "copy or compress the file anew"
        ) from None
    except OSError as error:
        raise DataError(_unreadable(source, error)) from None


def after_row(number: int) -> str:
    return f"after row {number}" if number else "before its first row"


class _Unpacked(io.RawIOBase):
    # GzipFile.read(n) throws away what it has unpacked when the file turns out to be cut;
    # read1 hands it over first, so that the rows before the cut are not lost.
    def __init__(self, packed: gzip.GzipFile) -> None:
        self._packed = packed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._packed.read1(len(buffer))
        buffer[: len(block)] = block
        return len(block)


@contextmanager
def _readable(source: Source) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(_unreadable(source, error)) from None


def _unreadable(source: Source, error: OSError) -> str:
    return f"{source.name} cannot be read: {_plain(error)}; check the path and its permissions"


def _plain(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.split()).rstrip(".")
