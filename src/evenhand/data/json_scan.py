"""Cuts a stream of JSON into the texts of its values, without reading any of them.

A parser would end at the first value it does not take, and the streaming ones look at a long
string anew with each block. Here a value is found by its brackets and quotes alone, in time
linear in its length, so that what cannot be parsed is one row and the next is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_TO_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+", re.DOTALL)
_TO_COMMA = re.compile(rb'(?:[^"{}\[\],]++|' + _STRING + rb")*+", re.DOTALL)
_WHOLE_STRING = re.compile(_STRING, re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*+")

_BLOCK = 1 << 18


class Cut(Exception):
    """The stream ended where a value, or more of it, had to come."""


class Malformed(Exception):
    """Something else stands there; what, and what had to come."""


class TooLong(Exception):
    """A value is longer than may be; a quote that is never closed takes in all that follows."""


class JsonScan:
    def __init__(self, stream: BinaryIO, *, longest: int) -> None:
        self._stream = stream
        self._longest = longest
        self._text = stream.read(_BLOCK)
        self._at = 3 if self._text.startswith(b"\xef\xbb\xbf") else 0

    def peek(self) -> bytes:
        """The next byte that is no space; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at : self._at + 1]
            if not self._more():
                return b""

    def take(self, expected: bytes) -> None:
        found = self.peek()
        if found != expected:
            raise _unexpected(found, expected)
        self._at += 1

    def key(self) -> bytes:
        """The text of a member's name, with the colon after it taken."""
        if self.peek() != b'"':
            raise _unexpected(self.peek(), b'"')
        while True:
            match = _WHOLE_STRING.match(self._text, self._at)
            if match:
                break
            if not self._more():
                raise Cut
        self._at = match.end()
        self.take(b":")
        return match[0]

    def value(self) -> bytes:
        """The text of the next value, up to the comma or the bracket that ends it."""
        depth, at = 0, self._at
        while True:
            match = (_TO_BRACKET if depth else _TO_COMMA).match(self._text, at)
            at = match.end() if match else at
            if at >= len(self._text) or self._text[at] == 0x22:  # inside a string, or at the end
                at -= self._at
                if not self._more():
                    raise Cut
                at += self._at
                continue
            byte = self._text[at]
            if byte in b"{[":
                depth += 1
            elif depth == 0:
                if at - self._at > self._longest:
                    raise TooLong
                text = self._text[self._at : at]
                self._at = at
                return text
            else:
                depth -= 1
            at += 1

    def elements(self) -> Iterator[bytes]:
        """The texts of a list's elements; its opening bracket has been taken."""
        if self.peek() == b"]":
            self.take(b"]")
            return
        while True:
            yield self.value()
            end = self.peek()
            if end not in (b",", b"]"):
                raise _unexpected(end, b"]")
            self.take(end)
            if end == b"]":
                return

    def _more(self) -> bool:
        """Read on; twice as far each time within one value, so that the work stays linear."""
        left = self._text[self._at :]
        room = self._longest - len(left)
        if room < 0:
            raise TooLong
        block = self._stream.read(min(max(_BLOCK, len(left)), room + _BLOCK))
        self._text = left + block
        self._at = 0
        return bool(block)


def _unexpected(found: bytes, expected: bytes) -> Exception:
    if not found:
        return Cut()
    return Malformed(
        f"{found.decode(errors='replace')!r} stands where {expected.decode()!r} had to come"
    )
