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
# Every read of a remote file is a request of some 30 ms: few large ones are faster than many small.
REMOTE_READ_AHEAD = 1 << 22
_EMPTY, _EMPTY_EACH = 10_000, 4  # blank lines in any file, and further ones for each row
_BLOCK = 1 << 18


class Content(Protocol):
    """What stands in for a file of this machine."""

    def open(self) -> BinaryIO: ...

    def open_anywhere(self) -> io.RawIOBase:
        """For a reader that jumps, and has buffers of its own."""

    def digest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Source:
    """A file, and the name that messages call it by. Close it where it came from `spool`.

    `content` is where it is no file of this machine. `parts` are the files of a data set that is
    in several: rows come from one after another. `limits` hold for each reader of it. `tabular`:
    its cells may spell lists as text, which its format does not tell.
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
        """The name without folders and endings: `out/gpt.jsonl.gz` is `gpt`, and so are
        `out/gpt/*.jsonl` and `out/gpt-*.jsonl`."""
        if not self.parts:
            return Path(self.name.removesuffix(".gz")).stem or self.name
        steps = self.name.partition("://")[2].split("/")
        known = "|".join(map(re.escape, endings()))
        data_ending = re.compile(rf"(?:{known})?(?:\.gz)?$", re.IGNORECASE)
        stems = (data_ending.sub("", step).replace("*", "").strip("-_.") for step in steps[::-1])
        return next((step for step in stems if step), self.name)

    @property
    def files(self) -> tuple[Source, ...]:
        """The files that it is read from, in their order."""
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
    """What a command line names: a file, a URL, `-`, or a pipe, which is spooled. Close it."""
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
    """The SHA-256 of a file's bytes, in hexadecimal; of what is in a store, of what names it and
    its version. It changes with the data, and downloads nothing."""
    source = source_of(path)
    if source.parts:
        described = "".join(f"{part.name}\n{file_digest(part)}\n" for part in source.parts)
        return hashlib.sha256(described.encode()).hexdigest()
    if source.content is not None:
        return source.content.digest()
    with _readable(source), source.path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def beginning(source: Source, *, size: int) -> bytes:
    """The first bytes of the content, unpacked where it is gzipped; fewer where it is cut."""
    with opened(source) as file:
        try:
            return file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return b""


def first_byte(start: bytes) -> bytes:
    """The first that is no space; empty where there is none."""
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def is_gzipped(source: Source) -> bool:
    with _readable(source), _open(source) as file:
        return file.read(2) == GZIP_MAGIC


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """The content as bytes, unpacked where it is gzipped, whatever the file is called."""
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
    """Turn what goes wrong inside a file into a DataError that says after which row."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        fact = "is truncated" if isinstance(error, EOFError) else "is damaged"
        raise DataError(
            Message(
                "data.gzip_damaged",
                name=source.name,
                fact=fact,
                after=after_row(after[0]),
                error=_plain(error),
            )
        ) from None
    except OSError as error:
        raise DataError(_unreadable(source, error)) from None


class UnpackedBudget:
    """How much a packed file may still become, in whichever format."""

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
    return TooLarge(Message("data.unpacked_too_long", name=name, most=most, packed=packed))


def count_empty(empty: int, number: int, source: Source, code: str = "data.blank_lines") -> int:
    """One more line that is blank, or row that is no object; a gigabyte of them is a megabyte of
    gzip, and would take an hour."""
    if empty > _EMPTY + _EMPTY_EACH * (number - empty):
        raise DataError(Message(code, name=source.name, number=number))
    return empty + 1


def _open(source: Source) -> BinaryIO:
    if source.content is not None:
        return source.content.open()
    return source.path.open("rb", buffering=_BLOCK)


def after_row(number: int) -> str:
    return Message("data.after_row", number=number) if number else Message("data.before_first_row")


class _Unpacked(io.RawIOBase):
    # GzipFile.read(n) throws away what it has unpacked when the file turns out to be cut;
    # read1 hands it over first, so that the rows before the cut are not lost.
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
