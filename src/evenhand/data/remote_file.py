"""One object of a store as a file that is read at any place, and that outlives a cut connection."""

from __future__ import annotations

import hashlib
import io
import time
from typing import Any, BinaryIO, cast

from evenhand.data.remote_faults import is_final, told
from evenhand.errors import DataError

# Every read is a request of some 30 ms, so that few large ones are faster than many small ones.
READ_AHEAD = 1 << 22
# The store's own client has tried several times before each of these.
_WAITS_S = (0.25, 1.0, 4.0)


class RemoteObject:
    """An object, and the stamp by which a change of it is noticed."""

    def __init__(self, filesystem: Any, path: str, *, name: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self._stamp: str | None = None
        self.name = name

    def open(self) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(RemoteFile(self), READ_AHEAD))

    def open_anywhere(self) -> RemoteFile:
        """Without a buffer, for whoever jumps and has one of its own."""
        return RemoteFile(self)

    def digest(self) -> str:
        """From the name, the size and the version that the store keeps: nothing is downloaded."""
        if self._stamp is None:
            try:
                self.connect().close()
            except DataError:
                raise
            except Exception as error:  # each file system raises its own kinds
                raise told(self.name, error) from None
        return hashlib.sha256(f"{self.name}\n{self._stamp}".encode()).hexdigest()

    def connect(self) -> Any:
        """The object as the file system opens it; one that has changed is not opened again."""
        native = self._filesystem.open_input_file(self._path)
        stamp = self._stamp_of(native)
        if self._stamp is None:
            self._stamp = stamp
        elif stamp != self._stamp:
            native.close()
            raise DataError(
                f"{self.name} was changed while it was read; restore it, or start another run"
            )
        return native

    def _stamp_of(self, native: Any) -> str:
        told_by_store = {
            str(key).lower(): value for key, value in (native.metadata() or {}).items()
        }
        tag = told_by_store.get("etag")
        if tag:
            return f"{native.size()} etag {bytes(tag).decode('utf-8', 'replace')}"
        info = self._filesystem.get_file_info(self._path)
        return f"{native.size()} time {info.mtime_ns}"


class RemoteFile(io.RawIOBase):
    """A read that fails is tried again from where it was, on a new connection."""

    def __init__(self, content: RemoteObject) -> None:
        self._content = content
        self._native: Any = None
        self._size: int | None = None
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        if self._size is None:
            self._again(lambda native: native.size())
        return self._size or 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence)
        self._at = max(0, offset + (self.size() if start is None else start))
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self.size() - self._at)
        if wanted <= 0:
            return 0
        at = self._at

        def read(native: Any) -> bytes:
            block = bytes(native.read_at(wanted, at))
            if len(block) < wanted:
                raise OSError(f"{len(block):,} of {wanted:,} bytes came")
            return block

        buffer[:wanted] = self._again(read)
        self._at += wanted
        return wanted

    def close(self) -> None:
        self._let_go()
        super().close()

    def _again(self, work: Any) -> Any:
        for wait_s in (*_WAITS_S, None):
            try:
                if self._native is None:
                    self._native = self._content.connect()
                    self._size = self._native.size()
                return work(self._native)
            except DataError:
                raise
            except Exception as error:  # each file system raises its own kinds
                self._let_go()
                if wait_s is None or is_final(error):
                    raise told(self._content.name, error) from None
            time.sleep(wait_s)
        raise AssertionError("the last try returns or raises")

    def _let_go(self) -> None:
        native, self._native = self._native, None
        if native is not None:
            native.close()
