"""Arguments become a pair: texts given as they are or as @file, or one JSON document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.contract import Pair

_OPTION_FOR = {
    "prompt": "--prompt",
    "responseA": "--a",
    "responseB": "--b",
    "criteria": "-c NAME",
}


def gather_pair(
    document: str | None,
    *,
    prompt: str | None,
    a: str | None,
    b: str | None,
    context: str | None,
    reference: str | None,
    identifier: str | None,
    criteria: list[str] | None,
    no_tie: bool,
    no_swap: bool,
    criteria_needed: bool = True,
) -> Pair:
    """A pair from a document, from options, or from both where they do not overlap."""
    options = {"--prompt": prompt, "--a": a, "--b": b}
    options |= {"--context": context, "--reference": reference}
    _refuse_second_reader(document, options)
    texts = {
        option: None if value is None else read_text(value, option)
        for option, value in options.items()
    }
    given = {
        "prompt": texts["--prompt"],
        "response_a": texts["--a"],
        "response_b": texts["--b"],
        "context": texts["--context"],
        "reference": texts["--reference"],
        "id": identifier,
        "criteria": [read_criterion(value) for value in criteria] if criteria else None,
        "allow_tie": False if no_tie else None,
        "swap_positions": False if no_swap else None,
    }
    return _merged(
        read_document(document) if document is not None else {},
        {name: value for name, value in given.items() if value is not None},
        criteria_needed=criteria_needed,
    )


def read_text(value: str, option: str) -> str:
    """A text, or with @ the file that holds it (@- is standard input, @@ a text that begins so)."""
    if value.startswith("@@"):
        return value[1:]
    if not value.startswith("@"):
        return value
    return _decode(_read_bytes(value[1:], option), value[1:])


def read_document(name: str) -> dict[str, Any]:
    """One JSON document from a file, or from standard input with -."""
    import json

    from evenhand.contract.json_text import RepeatedKey, refuse_repeated_key

    text = _decode(_read_bytes(name, "the document"), name)
    if not text.strip():
        raise InputError(f"{_shown(name)} is empty; it takes one JSON object")
    try:
        document = json.loads(text)
        refuse_repeated_key(text.encode("utf-8", "surrogatepass"), document)
    except RecursionError:
        raise InputError(
            f"{_shown(name)} is nested too deeply; it takes one pair, a flat JSON object"
        ) from None
    except RepeatedKey as error:
        raise InputError(f"{_shown(name)}: {error}") from None
    except ValueError as error:
        raise InputError(f"{_shown(name)} is not JSON: {error}; it takes one object") from None
    if not isinstance(document, dict):
        raise InputError(f"{_shown(name)} holds no JSON object; it takes one pair")
    return document


def read_criterion(value: str) -> str | dict[str, str]:
    """`name`, or `name: description`."""
    name, colon, description = value.replace("：", ":", 1).partition(":")
    if not colon or not description.strip():
        return value
    return {"name": name.strip(), "description": description.strip()}


def _merged(document: dict[str, Any], given: dict[str, Any], *, criteria_needed: bool) -> Pair:
    from evenhand.contract import Pair, read_pair
    from evenhand.contract.pair import spellings

    for name in given:
        field = Pair.model_fields[name]
        for spelling in spellings(name, field.validation_alias):
            if spelling in document:
                raise InputError(f"{spelling} is in the document and given as an option; keep one")
    values = {**document, **given}
    if not values:
        raise InputError(
            "nothing to compare; give --prompt, --a, --b and -c, or a JSON document (- for stdin)"
        )
    try:
        return read_pair(values, criteria_needed=criteria_needed)
    except InputError as error:
        for field_name, option in _OPTION_FOR.items():
            if error.message.startswith(f"{field_name} is missing;"):
                raise InputError(f"{field_name} is missing; give {option}") from None
        raise


def _refuse_second_reader(document: str | None, options: dict[str, str | None]) -> None:
    readers = ["the document"] if document == "-" else []
    readers += [option for option, value in options.items() if value == "@-"]
    if len(readers) > 1:
        raise InputError(
            f"{' and '.join(readers)} would both read standard input; give one of them as a file"
        )


def _read_bytes(name: str, option: str) -> bytes:
    if name == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed; give a file instead")
        return sys.stdin.buffer.read()
    if not name:
        raise InputError(f"{option} names no file; write @FILE, or @@ for a text that begins so")
    try:
        return Path(name).expanduser().read_bytes()
    except OSError as error:
        raise InputError(
            f"{option}: {name} cannot be read ({error.strerror or error}); check the path"
        ) from None
    except (RuntimeError, ValueError):  # no such user's home; a NUL in the name
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
