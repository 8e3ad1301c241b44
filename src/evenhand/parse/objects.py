"""Finding JSON objects in a text, with work that stays linear whatever the text holds."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenhand.parse.words import field_name


class Conflict(NamedTuple):
    """A key that an object holds more than once, with different values."""

    values: tuple[Any, ...]


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    return held if len(held) == len(pairs) else _with_conflicts(pairs)


def _with_conflicts(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {
        key: said[0] if all(value == said[0] for value in said) else Conflict(tuple(said))
        for key, said in values.items()
    }


# strict=False: raw newlines inside strings are what models write.
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)
_OPENS = re.compile(r'\{(?=\s{0,200}["}])')
_FIRST_KEY = re.compile(r'\{\s{0,200}"([^"\\]{1,40})"\s{0,200}:')
_BLANK = " \t\r\n"
# More objects than any answer holds; each is looked at with what stands before it.
_MOST_OBJECTS = 500


@dataclass(frozen=True, slots=True)
class Found:
    """An object and where it stands; `value` is None for one that began as an answer and broke."""

    start: int
    end: int
    value: dict[str, Any] | None
    unclosed: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    found: list[Found]
    gave_up: bool = False


def whole(text: str) -> dict[str, Any] | None:
    """The text, without blanks around it, as one JSON object and nothing else; or None."""
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and end == len(text) else None


def find(text: str) -> Search:
    """Every outermost JSON object. Objects inside another one, or in its strings, are its own."""
    found: list[Found] = []
    # What a failed attempt has scanned is scanned again by the next: bounded, so that nested
    # unclosed braces cannot make it quadratic.
    budget = 8 * len(text) + 200_000
    at = _next(text, 0)
    while at >= 0:
        budget -= 64
        opens_answer = _opens_answer(text, at)
        try:
            value, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # An unterminated string is reported where it starts.
            unclosed = error.pos >= len(text.rstrip(_BLANK)) or error.msg.startswith("Unterminated")
            # The error itself counts the lines before it.
            budget -= (len(text) if unclosed else error.pos) - at + error.pos // 16
            if opens_answer:
                found.append(Found(at, at + 1, None, unclosed))
            at = _next(text, at + 1)
        except (RecursionError, ValueError):
            budget -= 50_000
            if opens_answer:
                found.append(Found(at, at + 1, None))
            at = _next(text, at + 1)
        else:
            found.append(Found(at, end, value))
            at = _next(text, end)
        if budget < 0 or len(found) > _MOST_OBJECTS:
            return Search(found, gave_up=True)
    return Search(found)


def _next(text: str, start: int) -> int:
    match = _OPENS.search(text, start)
    return -1 if match is None else match.start()


def _opens_answer(text: str, at: int) -> bool:
    key = _FIRST_KEY.match(text, at)
    return key is not None and field_name(key[1]) in (
        "analysis",
        "comparison",
        "result",
        "winner",
        "verdict",
    )
