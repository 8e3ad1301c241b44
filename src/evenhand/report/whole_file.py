"""A file that gets its name only when it is whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from evenhand.errors import InputError


@contextlib.contextmanager
def written_whole(path: Path, *, overwrite: bool, make_folder: bool = False) -> Iterator[BinaryIO]:
    """A stream into a file of another name, which takes the right one once all is written."""
    with _said_plainly(path):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        path = Path(os.path.realpath(path))  # a link stays a link, to the new file
        if _is_stream(path):
            with path.open("wb") as stream:
                yield stream
            return
        _refuse(path, overwrite=overwrite)
        part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
        try:
            with part.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            _refuse(path, overwrite=overwrite)
            part.replace(path)
        finally:
            with contextlib.suppress(OSError):
                part.unlink()


@contextlib.contextmanager
def _said_plainly(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {(error.strerror or str(error)).lower()}; "
            "nothing was left behind; check the disk, the path and its permissions"
        ) from None


def _is_stream(path: Path) -> bool:
    """A pipe or a device is written as it is; a file in its place would be no pipe any more."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _refuse(path: Path, *, overwrite: bool) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a directory; name a file in it")
    if path.exists() and not overwrite:
        raise InputError(f"{path} is there already; name another file, or give --force")
