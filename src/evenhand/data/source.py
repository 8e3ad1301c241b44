"""Where rows come from: files by name, gzipped or not, streams spooled into a file, and URLs."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
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
from typing import IO, Any, BinaryIO, Protocol

from evenhand.data.options import ReadLimits, default_limits
from evenhand.errors import DataError, TooLarge
from evenhand.formats import endings
from evenhand.messages import Message

GZIP_MAGIC = b"\x1f\x8b"
# Every remote read is a request of some 30 ms: few large ones beat many small ones.
REMOTE_READ_AHEAD = 1 << 22
_EMPTY, _EMPTY_EACH = 10_000, 4  # blank lines in any file, and further ones for each row
_BLOCK = 1 << 18


class Content(Protocol):
    """A file's content, if it is not local."""

    def open(self) -> BinaryIO: ...

    def open_anywhere(self) -> io.RawIOBase:
        """Unbuffered, for readers with random access."""

    def digest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Source:
    """A file, and the name that messages call it by. Close it if it came from `spool`.

    `content` is set if it is not a local file; `parts` are the files of a data set in several;
    `limits` hold for each reader; `tabular`: cells may spell lists as text.
    """

    path: Path
    name: str
    held: IO[bytes] | None = field(default=None, repr=False, compare=False)
    content: Content | None = field(default=None, repr=False, compare=False)
    parts: tuple[Source, ...] = ()
    limits: ReadLimits = field(default_factory=default_limits, repr=False, compare=False)
    tabular: bool = False

    @property
    def stem(self) -> str:
        """The name without folders and endings: `gpt` for `out/gpt.jsonl.gz`, `out/gpt/*.jsonl` and
        `out/gpt-*.jsonl`."""
        if not self.parts:
            return Path(self.name.removesuffix(".gz")).stem or self.name
        steps = self.name.partition("://")[2].split("/")
        known = "|".join(map(re.escape, endings()))
        data_ending = re.compile(rf"(?:{known})?(?:\.gz)?$", re.IGNORECASE)
        stems = (data_ending.sub("", step).replace("*", "").strip("-_.") for step in steps[::-1])
        return next((step for step in stems if step), self.name)

    @property
    def files(self) -> tuple[Source, ...]:
        return self.parts or (self,)

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
    from evenhand.data.remote import open_url, url_in

    if isinstance(given, Source):
        return given
    url = url_in(given)
    if url is not None:
        return open_url(url)
    return Source(Path(given), str(given))


def open_source(given: Path | str) -> Source:
    """A file, a URL, `-`, or a pipe, which is spooled. Close it."""
    if str(given) == "-":
        return spool(sys.stdin)
    source = source_of(given)
    if source.content is not None or source.parts:
        return source
    with _readable(source):
        mode = source.path.stat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return source
        with source.path.open("rb") as stream:
            return spool(stream, source.name)


def spool(stream: IO[Any], name: str = "standard input") -> Source:
    """Copy a stream to a temporary file, since rows are read more than once."""
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
    """The SHA-256 of a file's bytes, or of an object's name and version, in hexadecimal."""
    source = source_of(path)
    if source.parts:
        described = "".join(f"{part.name}\n{file_digest(part)}\n" for part in source.parts)
        return hashlib.sha256(described.encode()).hexdigest()
    if source.content is not None:
        return source.content.digest()
    with _readable(source), source.path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def beginning(source: Source, *, size: int) -> bytes:
    """The first bytes of the unpacked content; fewer if it is truncated."""
    with opened(source) as file:
        try:
            return file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return b""


def first_byte(start: bytes) -> bytes:
    """The first byte that is not white space."""
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def is_gzipped(source: Source) -> bool:
    with _readable(source), _open(source) as file:
        return file.read(2) == GZIP_MAGIC


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """The content as bytes, unpacked if gzipped, whatever its name."""
    with _readable(source):
        file = _open(source)
    with file:
        gzipped = file.read(2) == GZIP_MAGIC
        file.seek(0)
        if not gzipped:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as packed:
            yield io.BufferedReader(_Unpacked(packed, UnpackedBudget(source)), _BLOCK)


@contextmanager
def reading_faults(source: Source, *, after: list[int]) -> Iterator[None]:
    """Turn read errors into a DataError that names the last good row."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        fact = "is truncated" if isinstance(error, EOFError) else "is damaged"
        raise DataError.of(
            "data.gzip_damaged",
            name=source.name,
            fact=fact,
            after=after_row(after[0]),
            error=_plain(error),
        ) from None
    except OSError as error:
        raise DataError(_unreadable(source, error)) from None


class UnpackedBudget:
    """How much more a packed file may unpack to."""

    def __init__(self, source: Source) -> None:
        self._name = source.name
        self._most: int | None = None
        if source.content is None:
            self._packed = source.path.stat().st_size
            self._most = source.limits.unpacked_most(self._packed)
        self._unpacked = 0

    def take(self, size: int) -> None:
        self._unpacked += size
        if self._most is not None and self._unpacked > self._most:
            raise unpacked_too_long(self._name, self._most, self._packed)


def unpacked_too_long(name: str, most: int, packed: int) -> TooLarge:
    return TooLarge.of("data.unpacked_too_long", name=name, most=most, packed=packed)


def count_empty(empty: int, number: int, source: Source, code: str = "data.blank_lines") -> int:
    """Count a blank line or a row that is not an object; a gigabyte of them packs to a megabyte and
    would take an hour."""
    if empty > _EMPTY + _EMPTY_EACH * (number - empty):
        raise DataError.of(code, name=source.name, number=number)
    return empty + 1


def _open(source: Source) -> BinaryIO:
    if source.content is not None:
        return source.content.open()
    return source.path.open("rb", buffering=_BLOCK)


def after_row(number: int) -> str:
    return Message("data.after_row", number=number) if number else Message("data.before_first_row")


class _Unpacked(io.RawIOBase):
    # GzipFile.read(n) discards what it unpacked from a truncated file; read1 returns it first, so
    # that the rows before the cut are not lost.
    def __init__(self, packed: gzip.GzipFile, budget: UnpackedBudget) -> None:
        self._packed = packed
        self._budget = budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._packed.read1(len(buffer))
        self._budget.take(len(block))
        buffer[: len(block)] = block
        return len(block)


@contextmanager
def _readable(source: Source) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(_unreadable(source, error)) from None


def _unreadable(source: Source, error: OSError) -> Message:
    return Message("data.file_unreadable", name=source.name, reason=_plain(error))


def _plain(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.split()).rstrip(".")
