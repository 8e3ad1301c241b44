"""Texts as both engines can hold them.

PostgreSQL's text cannot hold U+0000, and SQLite's functions stop at one. So U+0000 is written as
U+001A "0", and U+001A, which no text needs, as U+001A "1". JSON needs none of it: it spells both.
"""

from __future__ import annotations

import unicodedata
from hashlib import blake2b
from typing import Any

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator, UserDefinedType

_INDEXED_LENGTH = 200
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = frozenset("\u200c\u200d")  # they build letters and emoji


def escape(text: str) -> str:
    if "\x00" in text or "\x1a" in text:
        return text.replace("\x1a", "\x1a1").replace("\x00", "\x1a0")
    return text


def unescape(text: str) -> str:
    if "\x1a" in text:
        return text.replace("\x1a0", "\x00").replace("\x1a1", "\x1a")
    return text


def escape_or_none(text: str | None) -> str | None:
    return None if text is None else escape(text)


def unprintable(name: str) -> str | None:
    """The first character of a name that no reader would see, or that would move others."""
    for character in name:
        if unicodedata.category(character) in _UNSEEN and character not in _JOINERS:
            return f"U+{ord(character):04X}"
    return None


def shorten(key: str) -> str:
    """A key as it is indexed: itself, unless it is longer than an index can hold."""
    if len(key) <= _INDEXED_LENGTH:
        return key
    return f"{key[: _INDEXED_LENGTH // 2]}…{blake2b(key.encode(), digest_size=16).hexdigest()}"


class SafeText(TypeDecorator[str]):
    """A text column that may be given any text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return escape(value) if isinstance(value, str) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return unescape(value) if isinstance(value, str) else value


class WordPositions(UserDefinedType[str]):
    """PostgreSQL's tsvector; SQLAlchemy's own comes with all of its PostgreSQL, a tenth of a
    second of every command."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "TSVECTOR"
