"""Request bodies in a file, each after its length, so that they can be sent again byte by byte."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from typing import BinaryIO

LENGTH = struct.Struct("<I")


def write_body(file: BinaryIO, body: bytes) -> None:
    file.write(LENGTH.pack(len(body)) + body)


def read_bodies(file: mmap.mmap) -> Iterator[bytes]:
    at = 0
    while at < len(file):
        (length,) = LENGTH.unpack_from(file, at)
        at += LENGTH.size + length
        yield file[at - length : at]
