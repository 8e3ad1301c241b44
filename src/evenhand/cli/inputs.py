"""Arguments become a pair: texts given as they are or as @file, or one JSON document."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from evenhand.contract import Pair, read_pair
from evenhand.contract.pair import spellings
from evenhand.errors import InputError


def read_text(value: str, option: str) -> str:
    """A text, or with @ the file that holds it (@- is standard input, @@ a text that begins so)."""
    if value.startswith("@@"):
        return value[1:]
    if not value.startswith("@"):
        return value
    return _decode(_read_bytes(value[1:], option), value[1:])


def read_document(name: str) -> dict[str, Any]:
    """One JSON document from a file, or from standard input with -."""
    text = _decode(_read_bytes(name, "the document"), name)
    if not text.strip():
        raise InputError(f"{_shown(name)} is empty; it takes one JSON object")
    try:
        document = json.loads(text)
    except RecursionError:
        raise InputError(f"{_shown(name)} is nested too deeply to be a pair") from None
    except ValueError as error:
        raise InputError(f"{_shown(name)} is not JSON: {error}; it takes one object") from None
    if not isinstance(document, dict):
        raise InputError(f"{_shown(name)} holds no JSON object; it takes one pair")
    return document


def read_criterion(value: str) -> str | dict[str, str]:
    """`name`, or `name: description`."""
    name, colon, description = value.partition(":")
    if not colon or not description.strip():
        return value
    return {"name": name.strip(), "description": description.strip()}


def build_pair(document: str | None, given: dict[str, Any], criteria: list[str]) -> Pair:
    """A pair from a document, from options, or from both where they do not overlap."""
    values = read_document(document) if document is not None else {}
    if criteria:
        given = {**given, "criteria": [read_criterion(value) for value in criteria]}
    for name, value in given.items():
        if value is None:
            continue
        field = Pair.model_fields[name]
        also = [
            spelling for spelling in spellings(name, field.validation_alias) if spelling in values
        ]
        if also:
            raise InputError(f"{also[0]} is in the document and given as an option; keep one")
        values[name] = value
    if not values:
        raise InputError(
            "nothing to compare; give --prompt, --a, --b and -c, or a JSON document (- for stdin)"
        )
    return read_pair(values)


def _read_bytes(name: str, option: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    if not name:
        raise InputError(f"{option} is @ without a file name; write @FILE, or @@ for a text")
    try:
        return Path(name).expanduser().read_bytes()
    except OSError as error:
        raise InputError(
            f"{option}: {name} cannot be read ({error.strerror or error}); check the path"
        ) from None
    except ValueError:
        raise InputError(f"{option}: {name!r} is no file name; check it") from None


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{_shown(name)} is not UTF-8 (byte {error.start + 1}); save it as UTF-8"
        ) from None


def _shown(name: str) -> str:
    return "standard input" if name == "-" else name
