"""A client's data in a temporary file of ours: it is read twice, and may not fit in memory."""

from __future__ import annotations

import contextlib
import gzip
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import orjson

from evenhand.data import Limits, Source
from evenhand.errors import DataError, ServiceError, TooLarge

_LONGEST_NAME = 100
_BLOCK = 1 << 20
_OPEN_FILES = Path("/proc/self/fd")  # Linux; elsewhere such a file shares its place
_GZIP = b"\x1f\x8b"
_NOT_IN_A_NAME = re.compile(r"[^\w.+ -]+")


class Upload:
    """Made by an edge, written to, and given to `Service.start_run`, which closes it."""

    def __init__(self, name: str = "pairs.jsonl") -> None:
        self.name = plain_name(name)
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
        with _making_room():
            self._file.write(block)

    def source(self, limits: Limits | None = None) -> Source:
        """What has been written, to be read; closing the upload closes it."""
        with _making_room():
            self._file.flush()
        return Source(_path_of(self._file), self.name, limits=limits or Limits())

    def unpack(self, *, limit_bytes: int) -> None:
        """Gzipped data becomes plain, so that a small file cannot be endless."""
        with _making_room():
            self._file.flush()
        self._file.seek(0)
        if self._file.read(2) != _GZIP:
            return
        self._file.seek(0)
        with _making_room():
            plain = _temporary()  # takes the place of ours
        try:
            _unpack(self._file, plain, limit_bytes=limit_bytes, name=self.name)
            plain.seek(0)
            if plain.read(2) == _GZIP:
                # Readers would unpack it again, to any size.
                raise DataError(f"{self.name} is gzip inside gzip; compress it once")
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
                    f"{self.name} has a line of more than {limit_bytes:,} bytes; send one pair a "
                    "line, as JSON"
                )
            if newline:
                length = len(rest) - rest.rfind(b"\n") - 1

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what a full disk did not take is of no use any more
            self._file.close()

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
        raise ServiceError(
            f"the server cannot keep the upload ({error.strerror or type(error).__name__}); its "
            "operator must make room in the folder for temporary files, then send it again"
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
        raise DataError(f"pairs, row {number}: it is not plain data ({error})") from None


def _unpack(packed: IO[bytes], plain: IO[bytes], *, limit_bytes: int, name: str) -> None:
    written = 0
    try:
        with gzip.GzipFile(fileobj=packed) as stream:
            while block := stream.read1(_BLOCK):
                written += len(block)
                if written > limit_bytes:
                    raise TooLarge(
                        f"{name} holds more than {limit_bytes:,} bytes when unpacked; "
                        "split it into several runs"
                    )
                with _making_room():
                    plain.write(block)
    except (EOFError, OSError, zlib.error) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{name} is cut or damaged (gzip: {said}); compress it anew") from None
