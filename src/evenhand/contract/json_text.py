"""JSON from outside: how much a text would become in memory, and which key stands twice.

Parsers give no hold on either. Three bytes of `[],` become a list of 64, and of two members with
one name all but the last are dropped in silence.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from evenhand.messages import Message

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
# One that is never closed goes to the end: a search that failed there would begin anew at each of
# its quotes.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_KEYS = re.compile(_STRING + rb"(?:[ \t\r\n]*+(:))?", re.DOTALL)
_KEYS_AND_BRACES = re.compile(_STRING + rb"(?:[ \t\r\n]*+(:))?|[{}]", re.DOTALL)
_OBJECT_COST = 4  # an object with one member takes four times what an empty list does


class RepeatedKey(ValueError):
    """An object has two members of one name, and nobody can say which is meant."""

    def __init__(self, key: str) -> None:
        shown = key if len(key) <= 40 else key[:39] + "…"
        super().__init__(Message("data.key_twice", key=shown))


class TooManyValues(ValueError):
    """The text is small enough, but what it would become is not."""

    def __init__(self, most: int) -> None:
        super().__init__(Message("data.too_many_values", most=most))


def load_json(text: bytes, *, most_values: int, object_cost: int = _OBJECT_COST) -> Any:
    """What the text says. Raises orjson.JSONDecodeError, RepeatedKey or TooManyValues."""
    refuse_many_values(text, most_values, object_cost=object_cost)
    value = orjson.loads(text)
    refuse_repeated_key(text, value)
    return value


def refuse_many_values(text: bytes, most: int, *, object_cost: int = _OBJECT_COST) -> None:
    """To be asked before the text is parsed: a value follows a comma, or opens a list or an object.

    `object_cost` is 1 where values are bounded for the time that they take, and not for memory.
    """
    if len(text) <= most:
        return
    cost = 1 + _cost(text, 0, len(text), object_cost)
    if cost <= most:
        return
    # Much of it may stand inside strings. A loop, and no single call: others get their turn.
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
    """`value` is what the text was parsed into; that has no trace of what was dropped."""
    keys, quotes = _count_keys(value)
    # Each string has two quotes and those inside it. A key with a quote in it makes for a count
    # that is too low, which is looked into; only a quote that is written as a number hides one.
    if text.count(b'"') == quotes and b"u0022" not in text:
        return
    if sum(map(bool, _KEYS.findall(text))) != keys:
        raise RepeatedKey(_first_repeated(text))


def _count_keys(value: Any) -> tuple[int, int]:
    """How many keys there are at all depths, and how many quotes the text of it has."""
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
