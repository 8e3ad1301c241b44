"""What a `/v1/chat/completions` server sends back, in the shapes that servers use for it, and which
request features it accepts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from evenhand.contract import Usage
from evenhand.judges import reply_limits
from evenhand.judges.protocol import Completion, Finish, TokenLogprob
from evenhand.judges.reply_limits import (
    MOST_ALTERNATIVES,
    MOST_ERROR_BYTES,
    MOST_ERROR_ENTRIES,
    MOST_PLACES,
    decoded_error,
    kept_text,
    log_probability,
    name_or_none,
    token_count,
)
from evenhand.judges.retry import retry_after_s, used_up_s
from evenhand.judges.transport import Reply

# What an error that comes without a status of its own (HTTP 200) stands for, by its code.
_STATUS_OF_CODE = (
    (re.compile(r"rate_?limit|too_many_requests|insufficient_quota|billing"), 429),
    (re.compile(r"api_key|authentication|unauthorized"), 401),
    (re.compile(r"permission|forbidden"), 403),
    (re.compile(r"not_found"), 404),
    (re.compile(r"invalid_request|badrequest|bad_request|context_length|content_filter"), 400),
    (re.compile(r"server_error|internal|overloaded|unavailable|timeout"), 503),
)

_TOO_LONG = re.compile(
    r"maximum context length|context[_ -]?(?:window|length|size)|too many (?:input )?tokens"
    r"|prompt is too long",
    re.IGNORECASE,
)
_TOO_LONG_STATUSES = frozenset({400, 404, 422, 500})


@dataclass(frozen=True, slots=True)
class Fault:
    """An error as the server tells it, whatever shape it has."""

    status: int
    message: str
    code: str = ""
    param: str = ""
    retry_after_s: float | None = None


def fault_inside(body: Any) -> Fault | None:
    """The error in a reply that calls itself a success, with the status that its code means."""
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    choices = body.get("choices")
    if not error and isinstance(choices, list) and choices and isinstance(choices[0], dict):
        error = choices[0].get("error")
    if not error:
        return None
    fault = _error_parts({"error": error})
    number = error.get("code") if isinstance(error, dict) else None
    if isinstance(number, int) and 400 <= number <= 599:
        return Fault(number, fault.message, fault.code, fault.param)
    code = fault.code
    status = next((status for name, status in _STATUS_OF_CODE if name.search(code)), 200)
    return Fault(status, fault.message, code, fault.param)


def fault_of(reply: Reply) -> Fault:
    parts = _error_parts(decoded_error(reply.body))
    return Fault(
        reply.status,
        parts.message,
        parts.code,
        parts.param,
        retry_after_s=retry_after_s(reply.headers),
    )


def _error_parts(body: Any, *, depth: int = 0) -> Fault:
    """Message, code and parameter out of the shapes that servers use for their errors."""
    if depth > 8:
        return Fault(0, "")
    if isinstance(body, bytes):
        text = body.decode("utf-8", "replace")
        return Fault(0, without_tags(text) if looks_like_html(text) else text)
    if isinstance(body, str):
        return _fault(body)
    if isinstance(body, list):
        entries = [item for item in body if isinstance(item, dict | str)][:MOST_ERROR_ENTRIES]
        messages = [_error_parts(item, depth=depth + 1) for item in entries]
        return _fault(
            "; ".join(t.message for t in messages if t.message),
            " ".join(t.code for t in messages if t.code),
            " ".join(t.param for t in messages if t.param),
        )
    if not isinstance(body, dict):
        return Fault(0, "")
    for wrapper in ("error", "detail", "message", "errors"):
        inner = body.get(wrapper)
        # A plain string under "error" next to a message is a title; the message says more.
        if isinstance(inner, dict | list) or (wrapper != "message" and _is_alone(body, wrapper)):
            return _error_parts(inner, depth=depth + 1)
    location = body.get("loc")
    parts = [
        text_or_none(body.get("message")) or text_or_none(body.get("msg")) or "",
        text_or_none(body.get("error")) or "",
        _upstream(body.get("metadata")),
    ]
    codes = (body.get("code"), body.get("type"), body.get("innererror"))
    return _fault(
        ": ".join(part for part in parts if part),
        " ".join(map(_code, codes)).strip().lower(),
        ".".join(map(_code, location[:MOST_ERROR_ENTRIES]))
        if isinstance(location, list)
        else text_or_none(body.get("param")) or "",
    )


def _fault(message: str, code: str = "", param: str = "") -> Fault:
    """Without a status. What follows the limit is neither shown nor searched."""
    return Fault(0, message[:MOST_ERROR_BYTES], code[:MOST_ERROR_BYTES], param[:MOST_ERROR_BYTES])


def _code(value: Any) -> str:
    """A code may be a number; one with thousands of digits cannot even be shown."""
    if isinstance(value, int) and abs(value) >= 10**18:
        return ""
    return "" if value is None else str(value)


def _is_alone(body: Mapping[str, Any], wrapper: str) -> bool:
    return isinstance(body.get(wrapper), str) and not body.get("message") and not body.get("msg")


def _upstream(metadata: Any) -> str:
    """What the provider behind a router said; the router's own message only says that it did."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return raw if isinstance(raw, str) else ""


def is_too_long(fault: Fault) -> bool:
    if fault.status not in _TOO_LONG_STATUSES:
        return fault.status == 413
    return "context_length" in fault.code or bool(_TOO_LONG.search(fault.message))


def looks_like_html(text: str) -> bool:
    return text.lstrip()[:64].lower().startswith(("<!doctype", "<html", "<head", "<body"))


def without_tags(html: str) -> str:
    titled = re.search(r"<title[^>]*>([^<]+)", html[:20_000], re.IGNORECASE)
    return titled[1] if titled else re.sub(r"<[^>]*>", " ", html[:20_000])


def completion_of(
    body: Mapping[str, Any], choices: list[Any], reply: Reply, *, requests: int
) -> Completion:
    choice = choices[0] if choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    finish: Finish = "other"
    if isinstance(message, dict):
        finish = finish_of(choice.get("finish_reason"))
    else:
        message = {}
    refusal = text_or_none(message.get("refusal"))
    content = message.get("content")
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    logprobs = choice.get("logprobs")
    text, finish = kept_text(content if isinstance(content, str) else joined_parts(content), finish)
    return Completion(
        text=text,
        finish="refusal" if refusal else finish,
        tool_arguments=tool_arguments_of(message),
        refusal=refusal[:MOST_ERROR_BYTES] if refusal else None,
        thought=has_thought(message, content, usage),
        logprobs=logprobs_of(logprobs) if logprobs else (),
        usage=usage_of(usage, requests=requests),
        model=name_or_none(body.get("model")),
        request_id=name_or_none(body.get("id")) or name_or_none(reply.headers.get("x-request-id")),
        pause_s=used_up_s(reply.headers),
    )


def tool_arguments_of(message: Mapping[str, Any]) -> str | None:
    """What tools were called with, a line each: two answers are for the reader to compare."""
    calls = message.get("tool_calls")
    functions = (
        [call.get("function") for call in calls[:MOST_ERROR_ENTRIES] if isinstance(call, dict)]
        if isinstance(calls, list)
        else []
    )
    functions.append(message.get("function_call"))
    given = [each.get("arguments") for each in functions if isinstance(each, dict)]
    texts = [
        each if isinstance(each, str) else orjson.dumps(each).decode()
        for each in given
        if isinstance(each, str | dict)
    ]
    return kept_text("\n".join(texts), "stop")[0] or None


_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
}


def finish_of(reason: Any) -> Finish:
    return _FINISHES.get(reason.lower(), "other") if isinstance(reason, str) else "other"


def joined_parts(content: Any) -> str:
    if not isinstance(content, list):
        return ""
    texts = (part if isinstance(part, str) else _part_text(part) for part in content)
    return "".join(texts)


def _part_text(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def has_thought(message: Mapping[str, Any], content: Any, usage: Mapping[str, Any]) -> bool:
    if message.get("reasoning_content") or message.get("reasoning"):
        return True
    if isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "thinking" for part in content
    ):
        return True
    return bool(token_count(_details(usage, "completion_tokens_details").get("reasoning_tokens")))


def usage_of(usage: Mapping[str, Any], *, requests: int) -> Usage:
    return reply_limits.usage_of(
        input=usage.get("prompt_tokens"),
        output=usage.get("completion_tokens"),
        cached=_details(usage, "prompt_tokens_details").get("cached_tokens"),
        requests=requests,
    )


def _details(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    details = usage.get(name)
    return details if isinstance(details, dict) else {}


def text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def logprobs_of(logprobs: Any) -> tuple[TokenLogprob, ...]:
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list) or len(tokens) > MOST_PLACES:
        return ()
    read = []
    for entry in tokens:
        chosen = _token_and_logprob(entry)
        if chosen is None:
            return ()
        top = entry.get("top_logprobs")
        likeliest = map(
            _token_and_logprob, top[:MOST_ALTERNATIVES] if isinstance(top, list) else ()
        )
        read.append(TokenLogprob(*chosen, top=tuple(t for t in likeliest if t is not None)))
    return tuple(read)


def _token_and_logprob(entry: Any) -> tuple[str, float] | None:
    if not isinstance(entry, dict):
        return None
    token, logprob = entry.get("token"), log_probability(entry.get("logprob"))
    if not isinstance(token, str) or logprob is None:
        return None
    return token, logprob


# What a chat-completions server takes: every feature we ask for is a ladder to climb down.


class Dialect(NamedTuple):
    """How many rungs down each ladder below a server has pushed us; it only ever goes down.

    Calls in flight learn at the same time, so a step counts from what that call sent, and what
    two calls learned is joined by the larger number.
    """

    response_format: int = 0
    limit: int = 0
    temperature: int = 0
    seed: int = 0
    logprobs: int = 0

    def stepped(self, feature: str) -> Dialect:
        return self._replace(**{feature: getattr(self, feature) + 1})

    def joined(self, other: Dialect) -> Dialect:
        return Dialect(*map(max, self, other))


class SharedDialect:
    """What servers have taught so far. Those of a fleet share it: both orders of a pair are to be
    asked alike, whichever server gets them."""

    __slots__ = ("dialect",)

    def __init__(self) -> None:
        self.dialect = Dialect()

    def join(self, other: Dialect) -> None:
        self.dialect = self.dialect.joined(other)


FORMATS = ("json_schema", "json_object", None)
LIMITS = ("max_tokens", "max_completion_tokens", None)
OPENAI_LIMITS = ("max_completion_tokens", "max_tokens", None)  # its newer models refuse the old
TOP_LOGPROBS = (20, 5, None)

_NAMES = {
    "response_format": re.compile(
        r"response_?format|json[_ ](?:schema|object|mode)|structured[_ ]output|\bgrammar\b|guided_",
        re.IGNORECASE,
    ),
    "limit": re.compile(r"\bmax_(?:completion_)?tokens\b"),
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE),
    "seed": re.compile(r"\bseed\b", re.IGNORECASE),
    "logprobs": re.compile(r"\b(?:top_)?logprobs\b|\blog[_ ]?prob", re.IGNORECASE),
}
_NAMED_REFUSALS = frozenset({400, 404, 422, 500, 501})


def refused_feature(fault: Fault, request: Mapping[str, Any], *, model: str) -> str | None:
    """The feature of this request that the error names first, if it names one."""
    if fault.status not in _NAMED_REFUSALS or fault.param == "model":
        return None
    if "model_not_found" in fault.code:
        return None
    for text in (fault.param, fault.message.replace(model, "")):
        features = [
            (match.start(), feature)
            for feature, name in _NAMES.items()
            if uses(request, feature) and (match := name.search(text))
        ]
        if features:
            return min(features)[1]
    return None


def uses(request: Mapping[str, Any], feature: str) -> bool:
    if feature == "limit":
        return "max_tokens" in request or "max_completion_tokens" in request
    return feature in request
