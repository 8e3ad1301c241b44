"""The OpenAPI document: what endpoints say of themselves, the schemas of our own types, and
examples recorded from a real server.
"""

from __future__ import annotations

import asyncio
import http
import threading
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evenhand import errors
from evenhand.messages import FOR_CLIENTS, Message
from evenhand.serve.http import problems
from evenhand.serve.http.endpoint import HEADER, BodySpec, Endpoint, ResponseSpec
from evenhand.serve.http.problems import as_problem
from evenhand.serve.http.requests import parameters
from evenhand.serve.values import LONGEST_ID

if TYPE_CHECKING:
    from pydantic import BaseModel


@cache
def _typical() -> dict[int, errors.EvenhandError]:
    busy = Message("serve.too_many_comparisons", in_flight=64, n=128)
    no_connection = Message("judges.connect_timeout", host="judge.example", connect_timeout_s=10)
    return {
        401: errors.Unauthorized(Message("serve.token_missing")),
        402: errors.CapReached(Message("runs.reached_max_cost", max_cost=5.0)),
        403: errors.Forbidden(Message("serve.origin_not_allowed", origin="https://example.org")),
        404: errors.NotFound(Message("serve.run_unknown", wanted="7")),
        408: errors.TooSlow(Message("serve.body_stopped", size=512, timeout_s=60)),
        409: errors.Conflict(Message("serve.key_in_flight", header=HEADER, key="night-7")),
        413: errors.TooLarge(Message("serve.body_too_large", size="32 MiB")),
        415: errors.WrongMediaType(Message("serve.body_no_json", kind="text/xml")),
        422: errors.InputError(Message("serve.criteria_empty")),
        429: errors.ServerBusy(busy, retry_after_s=3),
        500: errors.EvenhandError(Message("serve.server_error")),
        501: errors.MissingExtra("pyarrow", "parquet"),
        502: errors.JudgeUnreachable(no_connection),
        503: errors.Interrupted(Message("serve.shutting_down")),
        504: errors.JudgeTimeout(Message("serve.comparison_timeout", compare_timeout_s=60)),
        507: errors.NoRoom(Message("serve.upload_no_room", strerror="No space left on device")),
    }


def problem_example(status: int) -> Any:
    problem = as_problem(_typical()[status]).model_dump(mode="json", context=FOR_CLIENTS)
    return {**problem, "metadata": {"outcome": None, "usage": {"requests": 0}}}


def example(name: str) -> Any:
    """JSON as a value, anything else as its text."""
    folder = files(__package__).joinpath("examples")
    text = folder.joinpath(f"{name}.txt")
    if text.is_file():
        return text.read_text("utf-8")
    return orjson.loads(folder.joinpath(f"{name}.json").read_bytes())


_SCHEMAS = "#/components/schemas/"
# What the guard, and the server itself, may answer to any request.
_ALWAYS = (401, 403, 422, 429, 500, 503)
_OF_BODIES = (408, 409, 413, 415)
_ABOUT = (
    "An even-handed LLM judge: which of two responses to a prompt is better, judged in both "
    "orders. A win, a tie, an inconsistent pair and no verdict are four different things, and "
    "nothing is made up. Every error has one shape (application/problem+json) and says what to do "
    "about it. Unknown fields and unknown query parameters are errors."
)


def _request(endpoint: Endpoint[Any]) -> dict[str, Any]:
    """What FastAPI cannot know: queries and bodies are read by us."""
    operation: dict[str, Any] = {
        "parameters": [*_in_path(endpoint), *_headers(endpoint), *parameters(endpoint.query)]
    }
    if endpoint.bodies:
        content = {kind: _content(body) for kind, body in endpoint.bodies.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _answers(endpoint: Endpoint[Any]) -> dict[str, Any]:
    refusals = {*_ALWAYS, *endpoint.refusals}
    if endpoint.method == "POST":
        refusals |= set(_OF_BODIES)
    if "{id}" in endpoint.path:
        refusals.add(404)
    answers = {status: _answer(answer) for status, answer in endpoint.answers.items()}
    answers |= {status: _refusal(status) for status in sorted(refusals - set(answers))}
    return {str(status): answer for status, answer in answers.items()}


def _in_path(endpoint: Endpoint[Any]) -> list[dict[str, Any]]:
    if "{id}" not in endpoint.path:
        return []
    return [
        {
            "name": "id",
            "in": "path",
            "required": True,
            "description": "The run's id, or its name",
            "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_ID},
            "example": "1",
        }
    ]


def _headers(endpoint: Endpoint[Any]) -> list[dict[str, Any]]:
    if endpoint.method == "POST":
        return [
            _header(
                HEADER,
                "A name for this request: sent again within a day, it gets the first one's answer",
                {"type": "string", "minLength": 1, "maxLength": 255},
            )
        ]
    if endpoint.path.endswith("/events"):
        return [_header("Last-Event-ID", "The id of the last event that came", {"type": "string"})]
    return []


def _header(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": dict(schema),
    }


def _content(body: BodySpec) -> dict[str, Any]:
    schema = dict(body.schema) if body.schema else {"$ref": _SCHEMAS + _name(body.model)}
    content: dict[str, Any] = {"schema": schema}
    if body.examples:
        content["examples"] = {name: {"value": example(name)} for name in body.examples}
    return content


def _answer(answer: ResponseSpec) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.description}
    if answer.example is not None:
        schema = answer.schema or {"$ref": _SCHEMAS + _name(answer.load_model())}
        content = {"schema": dict(schema), "example": example(answer.example)}
        described["content"] = {answer.media_type: content}
    if answer.headers:
        described["headers"] = {
            name: {"description": description, "schema": {"type": "string"}}
            for name, description in answer.headers.items()
        }
    return described


def _refusal(status: int) -> dict[str, Any]:
    content = {"schema": {"$ref": _SCHEMAS + "Problem"}, "example": problem_example(status)}
    described: dict[str, Any] = {
        "description": http.HTTPStatus(status).phrase,
        "content": {problems.MEDIA_TYPE: content},
    }
    if status in (429, 503):
        description = "Seconds after which to ask again"
        described["headers"] = {
            "Retry-After": {"description": description, "schema": {"type": "integer"}}
        }
    return described


def add_document(app: FastAPI, endpoints: tuple[Endpoint[Any], ...], *, needs_token: bool) -> None:
    """`/openapi.json` of these endpoints, made when it is first asked for."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app, endpoints, needs_token=needs_token)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's own way to extend it
    written: list[bytes] = []
    writing = threading.Lock()

    def write() -> bytes:
        with writing:
            if not written:
                written.append(orjson.dumps(app.openapi()))
            return written[0]

    async def show(request: Request) -> Response:
        # It takes as long as a hundred answers, so it is made aside.
        return Response(await asyncio.to_thread(write), media_type="application/json")

    app.router.routes.append(Route("/openapi.json", show))


def _document(
    app: FastAPI, endpoints: tuple[Endpoint[Any], ...], *, needs_token: bool
) -> dict[str, Any]:
    document = get_openapi(
        title="evenhand", version=app.version, description=_ABOUT, routes=app.routes
    )
    for endpoint in endpoints:
        operation = document["paths"][endpoint.path][endpoint.method.lower()]
        operation |= {**_request(endpoint), "responses": _answers(endpoint)}
    components: dict[str, Any] = {"schemas": _schemas(endpoints)}
    if needs_token:
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "EVENHAND_TOKEN's"}
        }
        document["security"] = [{"token": []}]
        document["paths"]["/healthz"]["get"]["security"] = []
    document["components"] = components
    return document


def _schemas(endpoints: tuple[Endpoint[Any], ...]) -> dict[str, Any]:
    """Of what is sent by what may be sent, of what comes back by what may come."""
    sent = [body.model for each in endpoints for body in each.bodies.values()]
    come = [answer.load_model() for each in endpoints for answer in each.answers.values()]
    both: dict[tuple[type[BaseModel], Any], None] = {(problems.Problem, "serialization"): None}
    both |= {(model, "validation"): None for model in sent if model is not None}
    both |= {(model, "serialization"): None for model in come if model is not None}
    _, whole = models_json_schema(list(both), by_alias=True, ref_template=_SCHEMAS + "{model}")
    return {name: _untitled(schema) for name, schema in whole["$defs"].items()}


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """A property's title repeats its name, and worse: Badrows."""
    properties = schema.get("properties", {})
    kept = {
        name: {key: value for key, value in described.items() if key != "title"}
        for name, described in properties.items()
    }
    return {**schema, "properties": kept} if properties else schema


def _name(model: type[BaseModel] | None) -> str:
    return model.__name__ if model is not None else ""
