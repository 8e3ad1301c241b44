"""The judge `openai:MODEL`: any server that speaks `/v1/chat/completions`.

Servers differ in what they take. What one refuses is left out from then on (see `Dialect`).
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import orjson
from yarl import URL

from evenhand.contract import Metadata, Usage
from evenhand.errors import (
    JudgeAuthentication,
    JudgeError,
    JudgeGarbled,
    JudgeQuotaExceeded,
    JudgeRateLimited,
    JudgeRejected,
    JudgeServerError,
    SettingsError,
)
from evenhand.judges.http import (
    Redactor,
    Reply,
    Transport,
    read_base_url,
    retry_after_s,
    shown_url,
)
from evenhand.judges.protocol import Completion, JudgeCall, TokenLogprob, Traits

if TYPE_CHECKING:
    from evenhand.judges import JudgeOptions

LETTER_TOKENS = 1

_Finish = Literal["stop", "length", "refusal", "filter", "other"]


@dataclass(frozen=True, slots=True)
class OpenAIOptions:
    model: str
    base_url: str = "https://api.openai.com/v1"
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 120.0
    connect_timeout_s: float = 10.0
    max_tokens: int | None = 4096  # None: the server decides
    temperature: float | None = 0.0  # None: the server decides
    seed: int | None = None  # of the first sample; the next ones count up from it

    @classmethod
    def from_judge_options(cls, model: str, options: JudgeOptions) -> Self:
        """What every judge can be told; where it says nothing, the defaults above."""
        told = {
            "base_url": options.base_url,
            "api_key": options.api_key,
            "timeout_s": options.timeout_s,
            "max_tokens": options.max_tokens,
            "temperature": options.temperature,
            "seed": options.seed,
        }
        given: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
        return cls(model, **given)

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise SettingsError("the model's name is empty; give e.g. openai:gpt-4.1-mini")
        for name, value in (
            ("timeout_s", self.timeout_s),
            ("connect_timeout_s", self.connect_timeout_s),
        ):
            if not (math.isfinite(value) and value > 0):
                raise SettingsError(f"{name} is {value}; give a number of seconds above 0")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise SettingsError(f"max_tokens is {self.max_tokens}; give at least 1, or none")
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise SettingsError(f"temperature is {self.temperature}; give 0 or more")
        for position, character in enumerate(self.api_key or "", start=1):
            if not "!" <= character <= "~":
                raise SettingsError(
                    f"the API key has a space, a line break or a foreign character at place "
                    f"{position}; set OPENAI_API_KEY to the key alone"
                )

    def __repr__(self) -> str:
        shown = (
            (f.name, shown_url(self.base_url) if f.name == "base_url" else getattr(self, f.name))
            for f in fields(self)
            if f.repr
        )
        return f"OpenAIOptions({', '.join(f'{name}={value!r}' for name, value in shown)})"


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


_FORMATS = ("json_schema", "json_object", None)
_LIMITS = ("max_tokens", "max_completion_tokens", None)
_OPENAI_LIMITS = ("max_completion_tokens", "max_tokens", None)  # its newer models refuse the old
_TOP_LOGPROBS = (20, 5, None)

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
_UNNAMED_REFUSALS = frozenset({400, 422})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_TOO_LONG = re.compile(
    r"maximum context length|context[_ -]?(?:window|length|size)|too many (?:input )?tokens"
    r"|prompt is too long",
    re.IGNORECASE,
)
_TOO_LONG_STATUSES = frozenset({400, 404, 422, 500})
_NO_CREDIT = re.compile(r"insufficient_quota|billing|insufficient_(?:balance|credit|fund)")
_FILTERED = re.compile(r"content_filter|content_policy|responsibleaipolicy", re.IGNORECASE)

# What an error that comes without a status of its own (HTTP 200) stands for, by its code.
_STATUS_OF_CODE = (
    (re.compile(r"rate_?limit|too_many_requests|insufficient_quota|billing"), 429),
    (re.compile(r"api_key|authentication|unauthorized"), 401),
    (re.compile(r"permission|forbidden"), 403),
    (re.compile(r"not_found"), 404),
    (re.compile(r"invalid_request|badrequest|bad_request|context_length|content_filter"), 400),
    (re.compile(r"server_error|internal|overloaded|unavailable|timeout"), 503),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """An error as the server tells it, whatever shape it has."""

    status: int
    message: str
    code: str = ""
    param: str = ""
    retry_after_s: float | None = None

    def refused(self, request: Mapping[str, Any], *, model: str) -> str | None:
        """The feature of this request that the error names first, if it names one."""
        if self.status not in _NAMED_REFUSALS or self.param == "model":
            return None
        if "model_not_found" in self.code:
            return None
        for text in (self.param, self.message.replace(model, "")):
            found = [
                (match.start(), feature)
                for feature, name in _NAMES.items()
                if _uses(request, feature) and (match := name.search(text))
            ]
            if found:
                return min(found)[1]
        return None


def _uses(request: Mapping[str, Any], feature: str) -> bool:
    if feature == "limit":
        return "max_tokens" in request or "max_completion_tokens" in request
    return feature in request


class OpenAIJudge:
    """Asks one model on one server. Open it, ask it, and close it in the same event loop."""

    def __init__(self, options: OpenAIOptions) -> None:
        self._options = options
        given = read_base_url(options.base_url)
        self._base_url = str(given.with_user(None).with_query(None))
        self._limits = _OPENAI_LIMITS if given.host == "api.openai.com" else _LIMITS
        authorization, secrets = _authorization(options.api_key, given)
        self._redact = Redactor(secrets)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers["User-Agent"] = "evenhand"
        if authorization is not None:
            headers["Authorization"] = authorization
        self._has_credentials = authorization is not None
        self._transport = Transport(
            URL(f"{self._base_url}/chat/completions", encoded=True).with_query(given.query),
            headers=headers,
            timeout_s=options.timeout_s,
            connect_timeout_s=options.connect_timeout_s,
            redact=self._redact,
        )
        self._dialect = Dialect()
        self._traits = Traits(api_url=self._base_url)

    def __repr__(self) -> str:
        return f"OpenAIJudge({self.name!r}, base_url={self._base_url!r})"

    @property
    def name(self) -> str:
        return f"openai:{self._options.model}"

    @property
    def traits(self) -> Traits:
        return self._traits

    @property
    def base_url(self) -> str:
        """Where the server is, without credentials and query; prices depend on it."""
        return self._base_url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def ask(self, call: JudgeCall) -> Completion:
        now = asyncio.get_running_loop().time
        deadline = now() + self._options.timeout_s
        dialect = self._dialect
        first_refusals: dict[str, JudgeError] = {}
        requests = 0
        try:
            while True:
                request = self._request(call, dialect)
                remaining_s = deadline - now()
                if remaining_s <= 0:
                    raise self._transport.too_late()
                requests += 1
                reply = await self._transport.post(_encoded(request), timeout_s=remaining_s)
                answer = self._read(reply, requests=requests)
                if isinstance(answer, Completion):
                    if dialect is not self._dialect:
                        self._dialect = self._dialect.joined(dialect)
                    return answer
                dialect = self._next_dialect(answer, request, dialect, first_refusals)
        except JudgeError as error:
            if requests > 1:
                error.metadata = Metadata(usage=Usage(requests=requests))
            raise

    def _next_dialect(
        self,
        fault: Fault,
        request: Mapping[str, Any],
        sent: Dialect,
        first_refusals: dict[str, JudgeError],
    ) -> Dialect:
        """What to try after a refusal; raises where there is nothing left to leave out."""
        error = self._error(fault)
        if _is_too_long(fault):
            raise error
        named = fault.refused(request, model=self._options.model)
        feature = named
        if named is None and fault.status in _UNNAMED_REFUSALS and fault.param != "model":
            feature = "response_format"
        if feature is None:
            raise error
        first = first_refusals.setdefault(feature, error)
        if not _uses(request, feature):
            raise first
        stepped = sent.stepped(feature)
        # A server error that names a parameter may be an accident, and an error without a name
        # may be about anything: those steps are kept only once a request with them succeeds.
        if named is not None and fault.status != 500:
            rung: int = getattr(stepped, feature)
            self._dialect = self._dialect.joined(Dialect()._replace(**{feature: rung}))
        return stepped.joined(self._dialect)

    def _request(self, call: JudgeCall, dialect: Dialect) -> dict[str, Any]:
        options = self._options
        request: dict[str, Any] = {
            "model": options.model,
            "messages": [{"role": m.role, "content": m.text} for m in call.messages],
        }
        limit = self._limits[dialect.limit]
        max_tokens = LETTER_TOKENS if call.letters else options.max_tokens
        if limit is not None and max_tokens is not None:
            request[limit] = max_tokens
        if options.temperature is not None and not dialect.temperature:
            request["temperature"] = options.temperature
        if options.seed is not None and not dialect.seed:
            # Samples of one pass are the same request but for this.
            request["seed"] = options.seed + call.sample - 1
        top = _TOP_LOGPROBS[dialect.logprobs]
        if top is not None and (call.letters or call.logprobs):
            request["logprobs"] = True
            request["top_logprobs"] = top
        if call.answer_schema is not None and not call.letters:
            kind = _FORMATS[dialect.response_format]
            if kind == "json_schema":
                request["response_format"] = {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "verdict",
                        "strict": True,
                        "schema": call.answer_schema,
                    },
                }
            elif kind is not None:
                request["response_format"] = {"type": kind}
        return request

    def _read(self, reply: Reply, *, requests: int) -> Completion | Fault:
        if reply.status in _REDIRECTS:
            raise self._redirected(reply)
        body = _decoded(reply.body)
        if reply.status == 200:
            fault = _fault_inside(body)
            if fault is None:
                return self._completion(body, reply, requests=requests)
        elif reply.status >= 400:
            fault = _fault(reply.status, body, reply)
        else:
            raise JudgeGarbled(
                f"{self._transport.host} answered HTTP {reply.status} instead of a completion; "
                "check the base URL"
            )
        if fault.status in _UNNAMED_REFUSALS and _FILTERED.search(fault.code):
            # The filter objects to this pair's text, so it is this pass's answer.
            return Completion(
                text="",
                finish="filter",
                refusal=self._redact(fault.message),
                usage=Usage(requests=requests),
                request_id=reply.headers.get("x-request-id"),
            )
        return fault

    def _completion(self, body: Any, reply: Reply, *, requests: int) -> Completion:
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(choices, list):
            raise JudgeGarbled(
                f"{self._transport.host} sent no chat completion but {self._shown(body)}; "
                "check that the base URL is the API and ends in /v1"
            )
        choice = choices[0] if choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        finish: _Finish = "other"
        if isinstance(message, dict):
            finish = _finish(choice.get("finish_reason"))
        else:
            message = {}
        refusal = message.get("refusal")
        refused = isinstance(refusal, str) and refusal != ""
        content = message.get("content")
        usage = body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Completion(
            text=content if isinstance(content, str) else _joined_parts(content),
            finish="refusal" if refused else finish,
            refusal=refusal if refused else None,
            thought=_thought(message, content, usage),
            logprobs=_logprobs(choice.get("logprobs")),
            usage=_usage(usage, requests=requests),
            model=_text_or_none(body.get("model")),
            request_id=_text_or_none(body.get("id")) or reply.headers.get("x-request-id"),
        )

    def _shown(self, body: Any) -> str:
        if isinstance(body, bytes):
            text = body.decode("utf-8", "replace")
            if _looks_like_html(text):
                return f"a web page ({self._redact(_without_tags(text), limit=80)!r})"
            return f"{self._redact(text)!r}" if text.strip() else "an empty body"
        return f"JSON without choices: {self._redact(orjson.dumps(body).decode())}"

    def _redirected(self, reply: Reply) -> JudgeRejected:
        target = self._redact(reply.headers.get("location", "nowhere").partition("?")[0])
        return JudgeRejected(
            f"{self._transport.host} redirects to {target} (HTTP {reply.status}), which is not "
            "followed so that no key goes astray; set the base URL to where the API really is"
        )

    def _error(self, fault: Fault) -> JudgeError:
        status = fault.status
        quoted = self._redact(fault.message)
        said = f"{self._transport.host} answered HTTP {status}" + (f": {quoted}" if quoted else "")
        if _is_too_long(fault):
            return JudgeRejected(
                f"{said}; shorten the prompt or the responses, lower max_tokens, "
                "or take a model with a longer context"
            )
        if status == 402 or (status in (403, 429) and _NO_CREDIT.search(fault.code)):
            return JudgeQuotaExceeded(f"{said}; add credit to the account, or use another key")
        if status in (401, 403):
            if not self._has_credentials:
                return JudgeAuthentication(f"{said}; no API key was given: set OPENAI_API_KEY")
            return JudgeAuthentication(
                f"{said}; check the key in OPENAI_API_KEY and what it is allowed to do"
            )
        if status == 407:
            return JudgeAuthentication(f"{said}; put the proxy's user and password into its URL")
        if status == 429:
            return JudgeRateLimited(
                f"{said}; ask less at a time, or wait", retry_after_s=fault.retry_after_s
            )
        if status == 404:
            return JudgeRejected(
                f"{said}; check the model's name {self._options.model!r}, and whether the base "
                f"URL {self._base_url} should end in /v1"
            )
        if status in (408, 409, 425) or status >= 500:
            return JudgeServerError(
                f"{said}; try again later, or check the server's log",
                retry_after_s=fault.retry_after_s,
            )
        if status == 200:
            return JudgeGarbled(f"{self._transport.host} sent an error as an answer: {quoted}")
        return JudgeRejected(f"{said}; check the model {self._options.model!r} and its settings")


def _authorization(api_key: str | None, base_url: URL) -> tuple[str | None, list[str]]:
    """The Authorization header, and every secret that no text may show."""
    secrets = [value for value in base_url.query.values() if len(value) >= 8]
    login = None
    if base_url.user is not None or base_url.password is not None:
        login = f"{base_url.user or ''}:{base_url.password or ''}"
        encoded = base64.b64encode(login.encode()).decode()
        secrets += [encoded, base_url.password or base_url.user or ""]
        login = f"Basic {encoded}"
    if api_key:
        return f"Bearer {api_key}", [*secrets, api_key]
    return login, secrets


def _encoded(request: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(request, default=_plain)
    except orjson.JSONEncodeError as error:
        reason = str(error)
    raise JudgeRejected(f"the request cannot be written as JSON ({reason}); check its texts")


def _plain(value: object) -> dict[str, Any]:
    """A schema may be any mapping; orjson only knows dict."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def _decoded(body: bytes) -> Any:
    """The JSON in a body, or the body itself where it is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _decoded_leniently(body)


def _decoded_leniently(body: bytes) -> Any:
    """Some servers write -Infinity, or half of a surrogate pair where a token ends inside it."""
    try:
        told = json.dumps(json.loads(body.decode("utf-8", "replace")), ensure_ascii=False)
        return json.loads(told.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        return body


def _fault_inside(body: Any) -> Fault | None:
    """The error in a reply that calls itself a success, with the status that its code means."""
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    choices = body.get("choices")
    if not error and isinstance(choices, list) and choices and isinstance(choices[0], dict):
        error = choices[0].get("error")
    if not error:
        return None
    fault = _told({"error": error})
    number = error.get("code") if isinstance(error, dict) else None
    if isinstance(number, int) and 400 <= number <= 599:
        return Fault(number, fault.message, fault.code, fault.param)
    code = fault.code
    status = next((status for name, status in _STATUS_OF_CODE if name.search(code)), 200)
    return Fault(status, fault.message, code, fault.param)


def _fault(status: int, body: Any, reply: Reply) -> Fault:
    told = _told(body)
    return Fault(
        status, told.message, told.code, told.param, retry_after_s=retry_after_s(reply.headers)
    )


def _told(body: Any, *, depth: int = 0) -> Fault:
    """Message, code and parameter out of the shapes that servers use for their errors."""
    if depth > 8:
        return Fault(0, "")
    if isinstance(body, bytes):
        text = body.decode("utf-8", "replace")
        return Fault(0, _without_tags(text) if _looks_like_html(text) else text)
    if isinstance(body, str):
        return Fault(0, body)
    if isinstance(body, list):
        told = [_told(item, depth=depth + 1) for item in body if isinstance(item, dict | str)]
        return Fault(
            0,
            "; ".join(t.message for t in told if t.message),
            " ".join(t.code for t in told if t.code),
            " ".join(t.param for t in told if t.param),
        )
    if not isinstance(body, dict):
        return Fault(0, "")
    for wrapper in ("error", "detail", "message", "errors"):
        inner = body.get(wrapper)
        # A plain string under "error" next to a message is a title; the message says more.
        if isinstance(inner, dict | list) or (wrapper != "message" and _is_alone(body, wrapper)):
            return _told(inner, depth=depth + 1)
    location = body.get("loc")
    parts = [
        _text_or_none(body.get("message")) or _text_or_none(body.get("msg")) or "",
        _text_or_none(body.get("error")) or "",
        _upstream(body.get("metadata")),
    ]
    codes = (body.get("code"), body.get("type"), body.get("innererror"))
    return Fault(
        0,
        ": ".join(part for part in parts if part),
        " ".join(str(c) for c in codes if c is not None).lower(),
        ".".join(map(str, location))
        if isinstance(location, list)
        else _text_or_none(body.get("param")) or "",
    )


def _is_alone(body: Mapping[str, Any], wrapper: str) -> bool:
    return isinstance(body.get(wrapper), str) and not body.get("message") and not body.get("msg")


def _upstream(metadata: Any) -> str:
    """What the provider behind a router said; the router's own message only says that it did."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return raw if isinstance(raw, str) else ""


def _is_too_long(fault: Fault) -> bool:
    if fault.status not in _TOO_LONG_STATUSES:
        return fault.status == 413
    return "context_length" in fault.code or bool(_TOO_LONG.search(fault.message))


def _looks_like_html(text: str) -> bool:
    return text.lstrip()[:64].lower().startswith(("<!doctype", "<html", "<head", "<body"))


def _without_tags(html: str) -> str:
    titled = re.search(r"<title[^>]*>([^<]+)", html[:20_000], re.IGNORECASE)
    return titled[1] if titled else re.sub(r"<[^>]*>", " ", html[:20_000])


_FINISHES: dict[str, _Finish] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
}


def _finish(reason: Any) -> _Finish:
    return _FINISHES.get(reason.lower(), "other") if isinstance(reason, str) else "other"


def _joined_parts(content: Any) -> str:
    if not isinstance(content, list):
        return ""
    texts = (part if isinstance(part, str) else _part_text(part) for part in content)
    return "".join(texts)


def _part_text(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def _thought(message: Mapping[str, Any], content: Any, usage: Mapping[str, Any]) -> bool:
    if message.get("reasoning_content") or message.get("reasoning"):
        return True
    if isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "thinking" for part in content
    ):
        return True
    return bool(_count(_details(usage, "completion_tokens_details").get("reasoning_tokens")))


def _usage(usage: Mapping[str, Any], *, requests: int) -> Usage:
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_input_tokens=_count(_details(usage, "prompt_tokens_details").get("cached_tokens")),
        requests=requests,
    )


def _details(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    details = usage.get(name)
    return details if isinstance(details, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 and value is not True else None


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _logprobs(logprobs: Any) -> tuple[TokenLogprob, ...]:
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list):
        return ()
    read = []
    for entry in tokens:
        chosen = _token_and_logprob(entry)
        if chosen is None:
            return ()
        top = entry.get("top_logprobs")
        likeliest = map(_token_and_logprob, top if isinstance(top, list) else ())
        read.append(TokenLogprob(*chosen, top=tuple(t for t in likeliest if t is not None)))
    return tuple(read)


def _token_and_logprob(entry: Any) -> tuple[str, float] | None:
    if not isinstance(entry, dict):
        return None
    token, logprob = entry.get("token"), entry.get("logprob")
    if not isinstance(token, str) or isinstance(logprob, bool):
        return None
    if not isinstance(logprob, int | float) or not math.isfinite(logprob):
        return None
    return token, float(logprob)
