"""The OpenAPI document: FastAPI's own, with every refusal as a problem, and examples recorded from
a real server. An endpoint names its examples; they are read when the document is asked for.
"""

from __future__ import annotations

import http
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from evenhand import errors
from evenhand.messages import FOR_CLIENTS, Message
from evenhand.serve.http import problems
from evenhand.serve.values import StartRunWithPairs

SCHEMAS = "#/components/schemas/"
IDEMPOTENCY_KEY = "Idempotency-Key"
LONGEST_KEY = 255
_ABOUT = (
    "An even-handed LLM judge: which of two responses to a prompt is better, judged in both "
    "orders. A win, a tie, an inconsistent pair and an invalid one are four different outcomes. "
    "Every error is application/problem+json and says what to do about it. Unknown fields and "
    "unknown query parameters are errors."
)
# What the guard, and the server itself, may answer to any request.
_ALWAYS = (401, 403, 422, 429, 500, 503)
_OF_BODIES = (408, 409, 413, 415)

Responses = dict[int | str, dict[str, Any]]


def shows(status: int, example: str, *, kind: str = "application/json") -> Responses:
    """For `responses`: an example of it, by its name."""
    return {status: {"content": {kind: {"example": example}}}}


def refuses(*statuses: int) -> Responses:
    """For `responses`: problems beyond those that any request may meet."""
    return {status: {} for status in statuses}


def document(app: FastAPI, *, needs_token: bool) -> dict[str, Any]:
    whole = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
    for path, item in whole["paths"].items():
        for method, operation in item.items():
            _complete(operation, posts=method == "post", of_run="{id}" in path)
    components = whole["components"]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    _, ours = models_json_schema(
        [(problems.Problem, "serialization"), (StartRunWithPairs, "validation")],
        ref_template=SCHEMAS + "{model}",
    )
    components["schemas"] |= ours["$defs"]
    if needs_token:
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "EVENHAND_TOKEN's"}
        }
        whole["security"] = [{"token": []}]
        whole["paths"]["/healthz"]["get"]["security"] = []
    return whole


def _complete(operation: dict[str, Any], *, posts: bool, of_run: bool) -> None:
    parameters = operation.setdefault("parameters", [])
    for parameter in parameters:
        parameter["schema"] = _without_null(parameter["schema"])
    responses = operation["responses"]
    refusals = {*_ALWAYS, *(_OF_BODIES if posts else ()), *((404,) if of_run else ())}
    for status in refusals | {int(each) for each in responses if each >= "400"}:
        has_own = status != 422 and "content" in responses.get(str(status), {})
        if not has_own:
            responses[str(status)] = _refusal(status)
    if posts:
        parameters.append(
            {
                "name": IDEMPOTENCY_KEY,
                "in": "header",
                "required": False,
                "description": "Identifies this request: repeated within a day, it gets the first "
                "response again",
                "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
            }
        )
    for content in _contents(operation):
        if isinstance(content.get("example"), str):
            content["example"] = example(content["example"])
        for name, shown in content.get("examples", {}).items():
            shown["value"] = example(name)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """What stands in a query is there or is not."""
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) != 1:
        return schema
    kept = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**kept, **options[0]}


def _contents(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of what is sent and what comes back."""
    yield from operation.get("requestBody", {}).get("content", {}).values()
    for response in operation["responses"].values():
        yield from response.get("content", {}).values()


def _refusal(status: int) -> dict[str, Any]:
    content = {"schema": {"$ref": SCHEMAS + "Problem"}, "example": problem_example(status)}
    described: dict[str, Any] = {
        "description": http.HTTPStatus(status).phrase,
        "content": {problems.MEDIA_TYPE: content},
    }
    if status in (429, 503):
        description = "Seconds to wait before retrying"
        described["headers"] = {
            "Retry-After": {"description": description, "schema": {"type": "integer"}}
        }
    return described


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
        409: errors.Conflict(Message("serve.key_in_flight", header=IDEMPOTENCY_KEY, key="night-7")),
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
    problem = problems.as_problem(_typical()[status]).model_dump(mode="json", context=FOR_CLIENTS)
    return {**problem, "metadata": {"outcome": None, "usage": {"requests": 0}}}


def has_example(name: str) -> bool:
    """An analysis of another package has none."""
    return files(__package__).joinpath("examples", f"{name}.json").is_file()


def example(name: str) -> Any:
    """JSON as a value, anything else as its text."""
    folder = files(__package__).joinpath("examples")
    text = folder.joinpath(f"{name}.txt")
    if text.is_file():
        return text.read_text("utf-8")
    return orjson.loads(folder.joinpath(f"{name}.json").read_bytes())
