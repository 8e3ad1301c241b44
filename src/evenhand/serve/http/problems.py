"""Every error of the server in one shape: problem+json (RFC 9457) around the contract's failure."""

from __future__ import annotations

import logging
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette import types as asgi
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from evenhand.contract import ErrorBody, Metadata
from evenhand.contract.model import Model
from evenhand.errors import (
    EvenhandError,
    InputError,
    NotFound,
    ServiceError,
    WrongMethod,
    http_status,
)
from evenhand.judging.explanation import failure_of
from evenhand.messages import FOR_CLIENTS, Message, Sentence
from evenhand.serve.logs import route_of, shown_path
from evenhand.serve.values import for_clients, presentable

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:evenhand:problem:"

_log = logging.getLogger("evenhand.serve")


class Problem(Model):
    """What went wrong and what to do about it; no winner and no confidence are made up."""

    type: str = Field(description=f"{TYPE_PREFIX} and the error's kind")
    title: str = Field(description="The error's kind, in words")
    status: int = Field(description="The HTTP status", ge=400, le=599)
    detail: Sentence = Field(description="The fact, then the remedy; the same as error.message")
    success: Literal[False] = False
    error: ErrorBody
    metadata: Metadata


def problem_of(error: EvenhandError) -> Problem:
    return as_problem(for_clients(error))


def as_problem(error: EvenhandError) -> Problem:
    failure = failure_of(error)
    kind, message = failure.error.kind, presentable(failure.error.message)
    return Problem(
        type=TYPE_PREFIX + kind,
        title=kind.replace("_", " ").capitalize(),
        status=http_status(error),
        detail=message,
        error=failure.error.model_copy(update={"message": message}),
        metadata=failure.metadata,
    )


def problem_response(error: EvenhandError, *, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request that failed; also an ASGI app, for those who answer without one."""
    problem = problem_of(error)
    return Response(
        problem.model_dump_json(context=FOR_CLIENTS),
        status_code=problem.status,
        headers={**_headers_of(error, problem.status), **(headers or {})},
        media_type=MEDIA_TYPE,
    )


def _headers_of(error: EvenhandError, status: int) -> dict[str, str]:
    headers = {"Cache-Control": "no-store"}
    if status in (429, 503):
        wait_s = getattr(error, "retry_after_s", None)
        headers["Retry-After"] = str(max(1, math.ceil(1 if wait_s is None else wait_s)))
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="evenhand"'
    return headers


# The answer to whoever asked: this shape for programs, a page for people.
RespondTo = Callable[[Scope, EvenhandError], Response]


def add_handlers(app: FastAPI, *, respond: RespondTo) -> None:
    """Whatever FastAPI and Starlette refuse comes out in the same shape."""

    async def of_ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, EvenhandError)  # noqa: S101 - registered for these alone
        return problem_response(error)

    async def of_fastapi(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError | HTTPException)  # noqa: S101
        refusal = refusal_behind(error, request)
        if isinstance(refusal, EvenhandError):
            return problem_response(refusal)
        raise refusal

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101
        if error.status_code == 405:
            return _wrong_method(request, respond)
        if error.status_code != 404:
            return await of_fastapi(request, error)
        path = _shown(request.url.path)
        return respond(request.scope, NotFound(Message("serve.path_unknown", path=path)))

    app.add_exception_handler(EvenhandError, of_ours)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_fastapi)


def refusal_behind(error: RequestValidationError | HTTPException, request: Request) -> Exception:
    """An error of ours for what FastAPI complains of; it hides those of reading a body."""
    if isinstance(error, RequestValidationError):
        place = error.errors()[0]["loc"][0]
        details = [
            {**each, "loc": each["loc"][1:]} for each in error.errors() if each["loc"][0] == place
        ]
        route = request.scope["route"]
        if place == "query":
            model = route.dependant.query_params[0].field_info.annotation
            return InputError(query_complaint(details, model))
        return InputError(body_complaint(details, route.body_field.field_info.annotation))
    cause = error.__cause__
    if isinstance(cause, EvenhandError | ClientDisconnect):
        return cause
    return ServiceError(str(error.detail))


def _wrong_method(request: Request, respond: RespondTo) -> Response:
    allowed = allowed_methods(request)
    if request.method == "OPTIONS":
        return Response(status_code=204, headers={"Allow": allowed})
    message = f"{request.url.path} takes {allowed}, not {request.method}; use one of those"
    response = respond(request.scope, WrongMethod(message))
    if request.method == "GET" and (response.media_type or "").startswith("text/html"):
        # A browser at the address of a form, typed or reloaded: the list of runs has the forms.
        return RedirectResponse("/", status_code=303)
    response.headers["Allow"] = allowed
    return response


def allowed_methods(request: Request) -> str:
    """Of all routes at this path: a framework's own answer names those of the first alone."""
    methods = {"OPTIONS"}
    for route in request.app.routes:
        match, _ = route.matches(request.scope)
        if match.value:
            methods |= getattr(route, "methods", None) or set()
    if "GET" in methods:
        methods.add("HEAD")
    return ", ".join(sorted(methods))


def query_complaint(details: Sequence[Mapping[str, Any]], model: type[Model]) -> Message:
    unknown = next((each for each in details if each["type"] == "extra_forbidden"), None)
    if unknown is not None:
        name = shortened(str(unknown["loc"][0]))
        known = [str(field.alias) for field in model.model_fields.values()]
        return Message("serve.query_parameter_unknown", name=name, known=known)
    return Message("serve.parameter_refused", complaints=complaint(details))


def body_complaint(details: Sequence[Mapping[str, Any]], model: type[Model]) -> Message:
    if not details[0]["loc"]:
        return Message("serve.body_no_object")
    return complaint(details, known=[str(field.alias) for field in model.model_fields.values()])


def complaint(details: Sequence[Mapping[str, Any]], *, known: Sequence[str] = ()) -> Message:
    """The first of pydantic's complaints on one line: the field, its value, what it takes."""
    first = details[0]
    kind, where, message = first["type"], _path(first["loc"]), str(first["msg"])
    if kind == "missing":
        return Message("complaint.missing", where=where)
    if kind == "extra_forbidden":
        if known and len(first["loc"]) == 1:
            return Message("complaint.unknown_field", where=where, known=list(known))
        return Message("complaint.unknown_inner_field", where=where)
    value = _kind_of(first.get("input"))
    limit = _LIMITS.get(kind)
    if limit is not None:
        wanted = Message(f"complaint.{kind}", limit=first["ctx"][limit])
        return Message("complaint.should_be", where=where, value=value, wanted=wanted)
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if not message.startswith("Input should be "):
        return Message("complaint.refused", where=where, reason=message)
    wanted_text = message.removeprefix("Input should be ")
    return Message("complaint.should_be", where=where, value=value, wanted=wanted_text)


_LIMITS = {
    "greater_than": "gt",
    "greater_than_equal": "ge",
    "less_than": "lt",
    "less_than_equal": "le",
}


def _path(location: Sequence[Any]) -> str:
    path = ""
    for step in location:
        name = step if isinstance(step, int) else shortened(str(step))
        path += f"[{name}]" if isinstance(step, int) else f".{name}" if path else str(name)
    return path or "the body"


def shortened(field: str) -> str:
    """The name of a field, which may be one that nobody knows."""
    return field if len(field) <= 40 else field[:37] + "…"


def _kind_of(value: object) -> str:
    """Enough to find the mistake, too little to repeat a text that somebody sent."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, (int, float)):
        return str(value) if abs(value) < 10**40 else "a number of more than 40 digits"
    return "an object" if isinstance(value, Mapping) else "a list"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")


class UnexpectedErrors:
    """Around the routes: what nobody foresaw is a 500 without details, logged without texts.

    The message of a foreign exception may hold what a client sent, so the log tells its type and
    where it was raised; Starlette's own handler would hand it on to the server, message and all.
    """

    def __init__(self, app: ASGIApp, *, respond: RespondTo) -> None:
        self._app = app
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: asgi.Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            return  # it left before it had said all; there is nobody to tell
        except Exception as error:  # the last resort of the whole server
            path = shown_path(route_of(scope), scope.get("path_params"))
            _log.error("%s %s failed: %s", scope["method"], path, trail_of(error))
            if not started:
                fault = EvenhandError(Message("serve.server_error"))
                try:
                    response = self._respond(scope, fault)
                except Exception:  # the page of it fails too
                    response = problem_response(fault)
                await response(scope, receive, send)


def trail_of(error: BaseException) -> str:
    """An exception's type and where it came from, without its message."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    places = (f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in reversed(frames))
    cause = error.__cause__ or error.__context__
    behind = f", because of {type(cause).__name__}" if cause is not None else ""
    return f"{type(error).__name__}{behind} in {' < '.join(places)}"
