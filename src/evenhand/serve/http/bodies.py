"""Bodies of JSON: what may be sent, and how it becomes a value."""

from __future__ import annotations

from typing import Any, TypeVar

import orjson
from pydantic import ValidationError
from starlette.requests import Request

from evenhand.contract.json_text import RepeatedKey, TooManyValues, load_json
from evenhand.contract.model import Model
from evenhand.errors import InputError, TooLarge, WrongMediaType
from evenhand.serve.bounds import (
    PAIRS_VALUES,
    refuse_many_values,
    refuse_wide,
    values_of_a_pair,
)
from evenhand.serve.config import Limits
from evenhand.serve.problems import complaint

BOM = b"\xef\xbb\xbf"
_VALUES_MAX = 1_000_000  # each takes up to a hundred bytes of memory
_UTF_8 = frozenset({"", "utf-8", "utf8", "us-ascii"})

M = TypeVar("M", bound=Model)


def media_type_of(request: Request) -> tuple[str, dict[str, str]]:
    """The content type in lower case, and its parameters."""
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    found = {}
    for parameter in rest.split(";"):
        name, equals, value = parameter.partition("=")
        if equals:
            found[name.strip().lower()] = value.strip().strip('"')
    return kind.strip().lower(), found


async def json_body(request: Request, *, limit_bytes: int) -> bytes:
    """The bytes of a body that says it is JSON, without its byte order mark."""
    kind, given = media_type_of(request)
    if kind != "application/json" and not (kind.startswith("application/") and "+json" in kind):
        raise WrongMediaType(
            f"the body's content type is {kind[:60] or 'missing'}; "
            "send JSON with Content-Type: application/json"
        )
    if given.get("charset", "").lower() not in _UTF_8:
        raise WrongMediaType(f"the body's charset is {given['charset'][:40]}; send UTF-8")
    refuse_encoded(request)
    body = await whole_body(request, limit_bytes=limit_bytes)
    return body.removeprefix(BOM)


async def whole_body(request: Request, *, limit_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit_bytes:
            raise TooLarge(f"the body has more than {limit_bytes:,} bytes; send less at once")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def refuse_encoded(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise WrongMediaType(
            f"the body's content encoding is {encoding[:40]}; send it as it is, uncompressed"
        )


def parsed(body: bytes, *, most_values: int) -> Any:
    if not body.strip():
        raise InputError("the body is empty; send one JSON object")
    refuse_many_values(body, most_values)
    try:
        return load_json(body, most_values=_VALUES_MAX)
    except RepeatedKey as error:
        raise InputError(f"the body is ambiguous: {error}") from None
    except TooManyValues as error:
        raise TooLarge(f"the body is too much at once: {error}") from None
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(
            f"the body is not JSON in UTF-8 ({error.msg}, {place}); send one JSON object"
        ) from None


def read_body(body: bytes, model: type[M], limits: Limits, *, rows: str | None = None) -> M:
    """`rows` is the field that holds a run's pairs, and may be long."""
    given = parsed(body, most_values=PAIRS_VALUES if rows else values_of_a_pair(limits))
    if not isinstance(given, dict):
        raise InputError("the body is JSON, but not an object; send one JSON object")
    refuse_wide(given, limits, rows=rows)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        known = [str(field.alias) for field in model.model_fields.values()]
        raise InputError(complaint(error.errors(include_url=False), known=known)) from None
