"""A client's data in a temporary file of ours: it is read twice, and may not fit in memory."""

from __future__ import annotations

import contextlib
import gzip
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import orjson

from evenhand.data import Source
from evenhand.errors import DataError, ServiceError, TooLarge

_LONGEST_NAME = 100
_BLOCK = 1 << 20
_NOT_IN_A_NAME = re.compile(r"[^\w.+ -]+")


class Upload:
    """Made by an edge, written to, and given to `Service.start_run`, which closes it."""

    def __init__(self, name: str = "pairs.jsonl") -> None:
        self.name = plain_name(name)
        # Without its name's ending: what clients call it names no file here.
        with _making_room():
            self._file: IO[bytes] = tempfile.NamedTemporaryFile(  # noqa: SIM115 - `close` does
                prefix="evenhand-", suffix=".data"
            )

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

    def source(self) -> Source:
        """What has been written, to be read; closing the upload closes it."""
        with _making_room():
            self._file.flush()
        return Source(Path(self._file.name), self.name)

    def unpack(self, *, limit_bytes: int) -> None:
        """Gzipped data becomes plain, so that a small file cannot be endless."""
        with _making_room():
            self._file.flush()
        self._file.seek(0)
        if self._file.read(2) != b"\x1f\x8b":
            return
        self._file.seek(0)
        plain: IO[bytes] = tempfile.NamedTemporaryFile(  # noqa: SIM115 - takes the place of ours
            prefix="evenhand-", suffix=".data"
        )
        try:
            _unpack(self._file, plain, limit_bytes=limit_bytes, name=self.name)
        except BaseException:
            plain.close()
            raise
        self._file.close()
        self._file = plain
        self.name = self.name.removesuffix(".gz")

    def refuse_long_lines(self, *, limit_bytes: int) -> None:
        """A line is in memory whole; no pair within the limits of its texts is as long as this."""
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
    except (EOFError, OSError) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{name} is cut or damaged (gzip: {said}); compress it anew") from None
