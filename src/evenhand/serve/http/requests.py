"""What a request may hold: a query in which nothing is repeated, and JSON whose values are counted
before they are parsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from fastapi import Request
from pydantic import ValidationError
from starlette.datastructures import QueryParams

from evenhand.contract.json_text import RepeatedKey, TooManyValues, load_json
from evenhand.contract.model import Model
from evenhand.errors import InputError, NotFound, TooLarge, WrongMediaType
from evenhand.messages import Message
from evenhand.serve.config import ServerLimits
from evenhand.serve.http.problems import body_complaint, query_complaint, shortened
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
_MOST_PARAMETERS = 256

M = TypeVar("M", bound=Model)


class BoundedQuery(QueryParams):
    """What has one value is given once."""

    def get(self, key: Any, default: Any = None) -> Any:
        values = self.getlist(key)
        if len(values) > 1:
            raise InputError(Message("serve.parameter_repeated", name=key, n=len(values)))
        return values[0] if values else default


class BoundedRequest(Request):
    """A request whose query and JSON body FastAPI reads through our limits."""

    def refuse_query(self) -> None:
        """Of an endpoint that takes none."""
        for name in self.query_params:
            raise InputError(Message("serve.no_query_parameters", name=shortened(name)))

    @property
    def query_params(self) -> QueryParams:
        if not hasattr(self, "_query_params"):
            query = BoundedQuery(self.scope["query_string"])
            if len(query.multi_items()) > _MOST_PARAMETERS:
                raise InputError(
                    Message(
                        "serve.too_many_parameters",
                        n=len(query.multi_items()),
                        most_parameters=_MOST_PARAMETERS,
                    )
                )
            self._query_params = query
        return self._query_params

    async def body(self) -> bytes:
        """Asked for where a body is to be parsed, so it must say that it is JSON."""
        refuse_no_json(self)
        content = (await super().body()).removeprefix(BOM)
        if not content.strip():
            raise InputError(Message("serve.body_empty"))
        return content

    async def json(self) -> Any:
        service: Service = self.app.state.service
        limits = service.config.limits
        most_values = values_of_a_pair(limits)
        given = await service.read_in(await self.body(), partial(parsed, most_values=most_values))
        if isinstance(given, dict):
            refuse_wide(given, limits)
        return given


def run_id_of(request: Request) -> str:
    run_id: str = request.path_params["id"]
    if len(run_id) > LONGEST_ID or not run_id.isprintable():
        raise NotFound(Message("serve.run_unknown", wanted=run_id[:40]))
    return run_id


def token_of(request: Request) -> str | None:
    """The name of the token that asked, which the guard has made out."""
    name: str | None = getattr(request.state, "token", None)
    return name


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A request for a page, as far as it asks the service for something."""

    request: Request

    @property
    def service(self) -> Service:
        service: Service = self.request.app.state.service
        return service

    @property
    def token(self) -> str | None:
        return token_of(self.request)

    @property
    def run_id(self) -> str:
        return run_id_of(self.request)


def media_type_of(request: Request) -> tuple[str, dict[str, str]]:
    """The content type in lower case, and its parameters."""
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    parameters = {}
    for parameter in rest.split(";"):
        name, equals, value = parameter.partition("=")
        if equals:
            parameters[name.strip().lower()] = value.strip().strip('"')
    return kind.strip().lower(), parameters


def refuse_no_json(request: Request) -> None:
    kind, given = media_type_of(request)
    if kind != "application/json" and not (
        kind.startswith("application/") and kind.endswith("+json")
    ):
        raise WrongMediaType(Message("serve.body_no_json", kind=kind[:60] or "missing"))
    if given.get("charset", "").lower() not in _UTF_8:
        raise WrongMediaType(Message("serve.body_charset", charset=given["charset"][:40]))
    refuse_encoded(request)


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
    try:
        return load_json(body, most_values=most_values, object_cost=1)
    except RepeatedKey as error:
        raise InputError(Message("serve.body_ambiguous", error=error)) from None
    except TooManyValues:
        raise many_values(most_values) from None
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(Message("serve.body_not_json", msg=error.msg, place=place)) from None


def read_pairs(body: bytes, model: type[M], limits: ServerLimits, *, rows: str) -> M:
    """A body whose field `rows` holds a run's pairs, and may be long."""
    given = parsed(body, most_values=PAIRS_VALUES)
    if not isinstance(given, dict):
        raise InputError(Message("serve.body_no_object"))
    refuse_wide(given, limits, rows=rows)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise InputError(body_complaint(error.errors(include_url=False), model)) from None


def read_query(given: QueryParams, model: type[M]) -> M:
    """A page's query, without what its form left empty; held to the same rules."""
    query, lists = BoundedQuery(given), _lists(model)
    values = {name: query.getlist(name) if name in lists else query.get(name) for name in query}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InputError(query_complaint(error.errors(include_url=False), model)) from None


@cache
def _lists(model: type[Model]) -> frozenset[str]:
    """Fields that are given by repeating their name."""
    properties = model.model_json_schema(by_alias=True).get("properties", {})
    names = ((name, str(field.alias)) for name, field in model.model_fields.items())
    return frozenset(
        spelling
        for each in names
        if properties[each[1]].get("type") == "array"
        for spelling in each
    )
