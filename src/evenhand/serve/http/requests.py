"""JSON bodies and query parameters: what may be sent, and how it becomes a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import Request

from evenhand.contract.json_text import RepeatedKey, TooManyValues, load_json
from evenhand.contract.model import Model
from evenhand.errors import InputError, NotFound, TooLarge, WrongMediaType
from evenhand.messages import Message
from evenhand.serve.config import ServerLimits
from evenhand.serve.http.problems import complaint
from evenhand.serve.security.limits import (
    PAIRS_VALUES,
    many_values,
    refuse_wide,
    values_of_a_pair,
)
from evenhand.serve.values import LONGEST_ID

if TYPE_CHECKING:
    from evenhand.serve.service import Service


BOM = b"\xef\xbb\xbf"
_UTF_8 = frozenset({"", "utf-8", "utf8", "us-ascii"})

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A request of a program or a page, as far as both are alike."""

    request: Request

    @property
    def service(self) -> Service:
        service: Service = self.request.app.state.service
        return service

    @property
    def token(self) -> str | None:
        """The name of the token that asked, which the guard has made out."""
        name: str | None = getattr(self.request.state, "token", None)
        return name

    @property
    def run_id(self) -> str:
        run_id: str = self.request.path_params["id"]
        if len(run_id) > LONGEST_ID or not run_id.isprintable():
            raise NotFound(Message("serve.run_unknown", wanted=run_id[:40]))
        return run_id


def media_type_of(request: Request) -> tuple[str, dict[str, str]]:
    """The content type in lower case, and its parameters."""
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    parameters = {}
    for parameter in rest.split(";"):
        name, equals, value = parameter.partition("=")
        if equals:
            parameters[name.strip().lower()] = value.strip().strip('"')
    return kind.strip().lower(), parameters


async def json_body(request: Request, *, limit_bytes: int) -> bytes:
    """The bytes of a body that says it is JSON, without its byte order mark."""
    kind, given = media_type_of(request)
    if kind != "application/json" and not (kind.startswith("application/") and "+json" in kind):
        raise WrongMediaType(Message("serve.body_no_json", kind=kind[:60] or "missing"))
    if given.get("charset", "").lower() not in _UTF_8:
        raise WrongMediaType(Message("serve.body_charset", charset=given["charset"][:40]))
    refuse_encoded(request)
    body = await whole_body(request, limit_bytes=limit_bytes)
    return body.removeprefix(BOM)


async def whole_body(request: Request, *, limit_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit_bytes:
            raise TooLarge(Message("serve.body_too_long", limit_bytes=limit_bytes))
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def refuse_encoded(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise WrongMediaType(Message("serve.body_encoded", encoding=encoding[:40]))


def parsed(body: bytes, *, most_values: int) -> Any:
    if not body.strip():
        raise InputError(Message("serve.body_empty"))
    try:
        return load_json(body, most_values=most_values, object_cost=1)
    except RepeatedKey as error:
        raise InputError(Message("serve.body_ambiguous", error=error)) from None
    except TooManyValues:
        raise many_values(most_values) from None
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(Message("serve.body_not_json", msg=error.msg, place=place)) from None


def read_body(body: bytes, model: type[M], limits: ServerLimits, *, rows: str | None = None) -> M:
    """`rows` is the field that holds a run's pairs, and may be long."""
    given = parsed(body, most_values=PAIRS_VALUES if rows else values_of_a_pair(limits))
    if not isinstance(given, dict):
        raise InputError(Message("serve.body_no_object"))
    refuse_wide(given, limits, rows=rows)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        known = [str(field.alias) for field in model.model_fields.values()]
        raise InputError(complaint(error.errors(include_url=False), known=known)) from None


Q = TypeVar("Q", bound=Model)


_MOST_PARAMETERS = 256


class NoQuery(Model):
    """An endpoint that takes none."""


def read_query(given: QueryParams, model: type[Q]) -> Q:
    """An InputError names the parameter that is unknown, given twice or not as it should be."""
    if not given:
        return _validated({}, model)
    if len(given.multi_items()) > _MOST_PARAMETERS:
        raise InputError(
            Message(
                "serve.too_many_parameters",
                n=len(given.multi_items()),
                most_parameters=_MOST_PARAMETERS,
            )
        )
    kinds, known = _kinds(model), _spellings(model)
    values: dict[str, Any] = {}
    for spelling in given:
        name = known.get(spelling)
        if name is None:
            raise InputError(_unknown(spelling, kinds))
        each = given.getlist(spelling)
        if name in values:
            raise InputError(Message("serve.parameter_two_spellings", name=name))
        if kinds[name] == "single" and len(each) > 1:
            raise InputError(Message("serve.parameter_repeated", name=name, n=len(each)))
        values[name] = (
            each[0]
            if kinds[name] == "single"
            else each
            if kinds[name] == "list"
            else dict(_entry(name, entry) for entry in each)
        )
    return _validated(values, model)


def _validated(values: Mapping[str, Any], model: type[Q]) -> Q:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        complaints = complaint(error.errors(include_url=False), known=_names(model))
        raise InputError(Message("serve.parameter_refused", complaints=complaints)) from None


def _entry(name: str, given: str) -> tuple[str, str]:
    field, equals, column = given.partition("=")
    if not equals:
        raise InputError(Message("serve.parameter_malformed", name=name, given=given[:40]))
    return field.strip(), column.strip()


def _unknown(spelling: str, known: Mapping[str, str]) -> str:
    shown = spelling if len(spelling) <= 40 else spelling[:37] + "…"
    if not known:
        return Message("serve.no_query_parameters", name=shown)
    return Message("serve.query_parameter_unknown", name=shown, known=list(known))


@cache
def _spellings(model: type[Model]) -> dict[str, str]:
    """Either case, as in bodies; to the name in JSON."""
    spellings = {}
    for name, field in model.model_fields.items():
        spellings[name] = spellings[str(field.alias)] = str(field.alias)
    return spellings


@cache
def _kinds(model: type[Model]) -> dict[str, str]:
    kinds = {"array": "list", "object": "map"}
    properties = model.model_json_schema(by_alias=True).get("properties", {})
    return {
        name: kinds.get(schema.get("type", ""), "single") for name, schema in properties.items()
    }


def _names(model: type[Model]) -> list[str]:
    return list(_kinds(model))


def parameters(model: type[Model]) -> list[dict[str, Any]]:
    """The same for OpenAPI's document."""
    schema = model.model_json_schema(by_alias=True)
    required, definitions = schema.get("required", ()), schema.get("$defs", {})
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": schema_of.get("description", _NAMES.get(name, name)),
            "schema": _plain(schema_of, definitions),
        }
        for name, schema_of in schema.get("properties", {}).items()
    ]


_NAMES = {
    "level": "Of the intervals",
    "prior": "Of the ranking's fit",
    "seed": "Of what is drawn at random",
}


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of what stands in a query: no null, no objects, no references."""
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in schema:
        first = next(option for option in schema["anyOf"] if option.get("type") != "null")
        return _plain(first, definitions)
    kept = {key: value for key, value in schema.items() if key not in ("title", "description")}
    if kept.get("default", 0) is None:
        del kept["default"]
    if kept.get("type") == "array":
        return {**kept, "items": _plain(kept["items"], definitions)}
    if kept.get("type") == "object":
        return {"type": "array", "items": {"type": "string", "pattern": "^[^=]+=.*$"}}
    return kept
