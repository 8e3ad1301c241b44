"""Guards for JSON from outside: its size in memory, and repeated keys.

Parsers check neither: three bytes of `[],` become a 64-byte list, and of two members with one name
only the last survives.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from evenhand.messages import Message

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
# An unclosed string runs to the end; otherwise the search would restart at each of its quotes.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_KEYS = re.compile(_STRING + rb"(?:[ \t\r\n]*+(:))?", re.DOTALL)
_KEYS_AND_BRACES = re.compile(_STRING + rb"(?:[ \t\r\n]*+(:))?|[{}]", re.DOTALL)
_OBJECT_COST = 4  # an object with one member takes four times what an empty list does


class RepeatedKey(ValueError):
    """An object has two members with one name."""

    def __init__(self, key: str) -> None:
        shown = key if len(key) <= 40 else key[:39] + "…"
        super().__init__(Message("data.key_twice", key=shown))


class TooManyValues(ValueError):
    """The text is small enough, but not what it parses into."""

    def __init__(self, most: int) -> None:
        super().__init__(Message("data.too_many_values", most=most))


def load_json(text: bytes, *, most_values: int, object_cost: int = _OBJECT_COST) -> Any:
    """The parsed value. Raises orjson.JSONDecodeError, RepeatedKey or TooManyValues."""
    refuse_many_values(text, most_values, object_cost=object_cost)
    value = orjson.loads(text)
    refuse_repeated_key(text, value)
    return value


def refuse_many_values(text: bytes, most: int, *, object_cost: int = _OBJECT_COST) -> None:
    """Call before parsing: a value follows a comma, or opens a list or an object.

    `object_cost` is 1 where the limit is on time, not memory.
    """
    if len(text) <= most:
        return
    cost = 1 + _cost(text, 0, len(text), object_cost)
    if cost <= most:
        return
    # Most of it may be inside strings. A loop, not one call, so that other threads get a turn.
    cost, at = 1, 0
    for match in _STRINGS.finditer(text):
        cost += _cost(text, at, match.start(), object_cost)
        at = match.end()
        if cost > most:
            raise TooManyValues(most)
    if cost + _cost(text, at, len(text), object_cost) > most:
        raise TooManyValues(most)


def _cost(text: bytes, start: int, end: int, object_cost: int) -> int:
    single = text.count(b",", start, end) + text.count(b"[", start, end)
    return single + object_cost * text.count(b"{", start, end)


def refuse_repeated_key(text: bytes, value: Any) -> None:
    """`value` is the parsed text, in which a dropped key leaves no trace."""
    keys, quotes = _count_keys(value)
    # A string has two quotes plus those inside it, so a key with an escaped quote only makes the
    # count too low, which is checked in full; only a quote written as \u0022 escapes notice.
    if text.count(b'"') == quotes and b"u0022" not in text:
        return
    if sum(map(bool, _KEYS.findall(text))) != keys:
        raise RepeatedKey(_first_repeated(text))


def _count_keys(value: Any) -> tuple[int, int]:
    """The number of keys at all depths, and of quotes in the text."""
    keys, quotes = 0, 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        kind = type(each)
        if kind is str:
            quotes += 2 + each.count('"')
        elif kind is list:
            waiting += each
        elif kind is dict:
            keys += len(each)
            waiting += each.values()
    return keys, quotes + 2 * keys


def _first_repeated(text: bytes) -> str:
    seen: list[set[str]] = []
    for match in _KEYS_AND_BRACES.finditer(text):
        token = match[0]
        if token == b"{":
            seen.append(set())
        elif token == b"}":
            seen.pop()
        elif match[1]:
            key = _read_key(token)
            if key in seen[-1]:
                return key
            seen[-1].add(key)
    return "?"


def _read_key(token: bytes) -> str:
    quoted = token[: token.rindex(b'"') + 1]
    try:
        return str(orjson.loads(quoted))
    except orjson.JSONDecodeError:  # a lone surrogate
        return quoted[1:-1].decode(errors="replace")
