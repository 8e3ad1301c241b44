"""The judge `openai:MODEL`: any server that speaks `/v1/chat/completions`.

Servers accept different parameters; a refused one is left out from then on (see `Dialect`).
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from traceback import clear_frames
from typing import Any

import orjson
from yarl import URL

from evenhand.contract import Usage
from evenhand.contract.json_text import TooManyValues
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
from evenhand.judges.chat_completions import (
    FORMATS,
    LIMITS,
    OPENAI_LIMITS,
    TOP_LOGPROBS,
    Dialect,
    Fault,
    SharedDialect,
    completion_of,
    fault_inside,
    fault_of,
    is_too_long,
    looks_like_html,
    refused_feature,
    uses,
    without_tags,
)
from evenhand.judges.protocol import ClosedOnExit, Completion, Judge, JudgeCall, Traits
from evenhand.judges.redaction import Redactor, secrets_in
from evenhand.judges.registry import JudgeName, JudgeOptions
from evenhand.judges.reply_limits import (
    MOST_ERROR_BYTES,
    decoded,
    name_or_none,
    read_off_the_loop,
)
from evenhand.judges.transport import JudgeEndpoint, Reply, open_transport, read_base_url
from evenhand.messages import Message

LETTER_TOKENS = 1


BASE_URL = "https://api.openai.com/v1"
MAX_TOKENS = 4096
TIMEOUT_S = 120.0
CONNECT_TIMEOUT_S = 10.0


def open_named(name: JudgeName, options: JudgeOptions) -> Judge:
    """Several servers make a fleet."""
    if len(options.base_urls) < 2:
        return OpenAIJudge(name.model, options)
    from evenhand.judges.fleet import FleetJudge

    learned = SharedDialect()
    return FleetJudge(
        [
            OpenAIJudge(name.model, replace(options, base_url=address), learned=learned)
            for address in options.base_urls
        ]
    )


def traits_of(name: JudgeName) -> Traits:
    return Traits()


_UNNAMED_REFUSALS = frozenset({400, 422})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_NO_CREDIT = re.compile(r"insufficient_quota|billing|insufficient_(?:balance|credit|fund)")
_NO_MODEL = re.compile(
    r"model_not_found|(?:invalid|unknown|no such) model\b"
    r"|\bmodel\b.{0,80}(?:not found|not exist|not a valid|unknown)",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content_filter|content_policy|responsibleaipolicy", re.IGNORECASE)


class OpenAIJudge(ClosedOnExit):
    """One model on one server. Open, ask and close it in one event loop."""

    def __init__(
        self,
        model: str,
        options: JudgeOptions | None = None,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        learned: SharedDialect | None = None,
    ) -> None:
        options = options or JudgeOptions()
        if not model.strip():
            raise SettingsError.of("judges.model_name_empty")
        _check_key(options.api_key)
        base_url = options.one_base_url(f"openai:{model}")
        given = read_base_url(BASE_URL if base_url is None else base_url)
        self._model = model
        self.api_key = options.api_key
        self.timeout_s = TIMEOUT_S if options.timeout_s is None else options.timeout_s
        self._max_tokens = options.max_tokens
        if options.max_tokens is None and not options.answers:
            self._max_tokens = MAX_TOKENS
        self._temperature = options.temperature
        if options.temperature is None and not options.answers:
            self._temperature = 0.0
        self._seed = options.seed
        self.query = given.query
        # Without credentials and query; prices depend on it.
        self.base_url = str(given.with_user(None).with_query(None))
        self._limits = OPENAI_LIMITS if given.host == "api.openai.com" else LIMITS
        authorization, secrets = _authorization(options.api_key, given)
        self.redact = Redactor(secrets, others=secrets_in(os.environ))
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers["User-Agent"] = "evenhand"
        if authorization is not None:
            headers["Authorization"] = authorization
        self.authorization = authorization
        self._endpoint = JudgeEndpoint(
            URL(f"{self.base_url}/chat/completions", encoded=True).with_query(given.query),
            timeout_s=self.timeout_s,
            connect_timeout_s=connect_timeout_s,
            redact=self.redact,
        )
        self._transport = open_transport(self._endpoint, headers, name=options.transport)
        self._learned = learned or SharedDialect()
        self._traits = Traits(api_url=self.base_url)

    def __repr__(self) -> str:
        return f"OpenAIJudge({self.name!r}, base_url={self.base_url!r})"

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    @property
    def traits(self) -> Traits:
        return self._traits

    @property
    def identity(self) -> Mapping[str, object]:
        return {
            "base_url": self.base_url,
            "temperature": self._temperature,
            "max_tokens": self._max_tokens,
            "seed": self._seed,
        }

    async def close(self) -> None:
        await self._transport.close()

    async def ask(self, call: JudgeCall) -> Completion:
        now = asyncio.get_running_loop().time
        deadline = now() + self.timeout_s
        dialect = self._learned.dialect
        first_refusals: dict[str, JudgeError] = {}
        requests = 0
        try:
            while True:
                request = self._request(call, dialect)
                # The first request has the endpoint's whole timeout.
                remaining_s = deadline - now() if requests else None
                if remaining_s is not None and remaining_s <= 0:
                    raise self._endpoint.too_late()
                requests += 1
                answer = await self._send(request, requests=requests, timeout_s=remaining_s)
                if isinstance(answer, Completion):
                    if dialect is not self._learned.dialect:
                        self._learned.join(dialect)
                    return answer
                dialect = self._next_dialect(answer, request, dialect, first_refusals)
        except JudgeError as error:
            error.requests = max(1, requests)
            error.host = self._endpoint.host
            # Who waits to ask again keeps the error; its frames would keep a reply of 32 MB.
            clear_frames(error.__traceback__)
            raise

    async def _send(
        self, request: Mapping[str, Any], *, requests: int, timeout_s: float | None
    ) -> Completion | Fault:
        reply = await self._transport.post(_encoded(request), timeout_s=timeout_s)
        read = partial(self._read, reply, requests=requests)
        return await read_off_the_loop(read, reply.body)

    # By the batch: the same requests and answers, while another way carries them.

    @property
    def dialect(self) -> Dialect:
        """What the server is known to accept."""
        return self._learned.dialect

    def written(self, call: JudgeCall, dialect: Dialect) -> bytes:
        return _encoded(self._request(call, dialect))

    def read(
        self, call: JudgeCall, reply: Reply, *, sent: Dialect, refusals: dict[str, JudgeError]
    ) -> Completion | Dialect:
        """The reply to a request in this dialect, or the dialect to retry in; raises what `ask`
        would. `refusals` are those of the same call so far."""
        answer = self._read(reply, requests=1)
        if isinstance(answer, Completion):
            self._learned.join(sent)
            return answer
        return self._next_dialect(answer, self._request(call, sent), sent, refusals)

    def _next_dialect(
        self,
        fault: Fault,
        request: Mapping[str, Any],
        sent: Dialect,
        first_refusals: dict[str, JudgeError],
    ) -> Dialect:
        """What to leave out after a refusal; raises if nothing is left."""
        error = self._error(fault)
        if is_too_long(fault):
            raise error
        named = refused_feature(fault, request, model=self._model)
        feature = named
        if named is None and fault.status in _UNNAMED_REFUSALS and fault.param != "model":
            feature = "response_format"
        if feature is None:
            raise error
        first = first_refusals.setdefault(feature, error)
        if not uses(request, feature):
            raise first
        stepped = sent.stepped(feature)
        # A server error that names a parameter may be an accident, and one that names none may be
        # about anything: such steps are kept only once a request with them succeeds.
        if named is not None and fault.status != 500:
            rung: int = getattr(stepped, feature)
            self._learned.join(Dialect()._replace(**{feature: rung}))
        return stepped.joined(self._learned.dialect)

    def _request(self, call: JudgeCall, dialect: Dialect) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.text} for m in call.messages],
        }
        limit = self._limits[dialect.limit]
        most = LETTER_TOKENS if call.letters else self._max_tokens
        if limit is not None and most is not None:
            request[limit] = most
        if self._temperature is not None and not dialect.temperature:
            request["temperature"] = self._temperature
        if self._seed is not None and not dialect.seed:
            # Otherwise the samples of a pass are identical requests.
            request["seed"] = self._seed + call.sample - 1
        top = TOP_LOGPROBS[dialect.logprobs]
        if top is not None and (call.letters or call.logprobs):
            request["logprobs"] = True
            request["top_logprobs"] = top
        if call.answer_schema is not None and not call.letters:
            kind = FORMATS[dialect.response_format]
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
        if reply.status == 200:
            body = self._decoded(reply.body)
            fault = fault_inside(body)
            if fault is None:
                # Some servers echo the request, including its key.
                return self.redact.clean(self._completion(body, reply, requests=requests))
        elif reply.status >= 400:
            fault = fault_of(reply)
        else:
            raise JudgeGarbled.of(
                "judges.not_a_completion", host=self._endpoint.host, status=reply.status
            )
        if fault.status in _UNNAMED_REFUSALS and _FILTERED.search(fault.code):
            # A content filter's objection is this pass's answer.
            return self.redact.clean(
                Completion(
                    text="",
                    finish="filter",
                    refusal=self.redact(fault.message),
                    usage=Usage(requests=requests),
                    request_id=name_or_none(reply.headers.get("x-request-id")),
                )
            )
        return fault

    def _decoded(self, body: bytes) -> Any:
        try:
            return decoded(body)
        except TooManyValues:
            pass  # raised outside of this, as the context of an error keeps its frames as well
        raise self._endpoint.too_many_values()

    def _completion(self, body: Any, reply: Reply, *, requests: int) -> Completion:
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(choices, list):
            raise JudgeGarbled.of(
                "judges.no_chat_completion",
                host=self._endpoint.host,
                body=self._shown(reply.body, is_json=body is not reply.body),
            )
        return completion_of(body, choices, reply, requests=requests)

    def _shown(self, body: bytes, *, is_json: bool) -> str:
        text = body[:MOST_ERROR_BYTES].decode("utf-8", "replace")
        if is_json:
            return f"JSON without choices: {self.redact(text)}"
        if looks_like_html(text):
            return f"a web page ({self.redact(without_tags(text), limit=80)!r})"
        return f"{self.redact(text)!r}" if text.strip() else "an empty body"

    def _redirected(self, reply: Reply) -> JudgeRejected:
        target = self.redact(reply.headers.get("location", "nowhere").partition("?")[0])
        return JudgeRejected.of(
            "judges.redirected", host=self._endpoint.host, target=target, status=reply.status
        )

    def _error(self, fault: Fault) -> JudgeError:
        status = fault.status
        quoted = self.redact(fault.message)
        values = {"host": self._endpoint.host, "status": status}
        message = (
            Message("judges.http_status", quoted=quoted, **values)
            if quoted
            else Message("judges.http_fault", **values)
        )
        if is_too_long(fault):
            return JudgeRejected.of("judges.context_too_short", reason=message)
        if status == 402 or (status in (403, 429) and _NO_CREDIT.search(fault.code)):
            return JudgeQuotaExceeded.of("judges.no_credit", reason=message)
        if status in (401, 403):
            if self.authorization is None:
                return JudgeAuthentication.of("judges.key_missing", reason=message)
            return JudgeAuthentication.of("judges.key_refused", reason=message)
        if status == 407:
            return JudgeAuthentication.of("judges.proxy_login", reason=message)
        if status == 429:
            return JudgeRateLimited(
                Message("judges.rate_limited", reason=message), retry_after_s=fault.retry_after_s
            )
        if status == 404 or (
            status in (400, 422) and _NO_MODEL.search(f"{fault.code} {fault.message[:500]}")
        ):
            rejected = JudgeRejected.of(
                "judges.model_unknown", reason=message, model=self._model, base_url=self.base_url
            )
            rejected.unknown_model = True
            return rejected
        if status in (408, 409, 425) or status >= 500:
            return JudgeServerError(
                Message("judges.server_failed", reason=message),
                retry_after_s=fault.retry_after_s,
            )
        if status == 200:
            return JudgeGarbled.of(
                "judges.error_as_answer", host=self._endpoint.host, quoted=quoted
            )
        return JudgeRejected.of("judges.request_refused", reason=message, model=self._model)


def _check_key(api_key: str | None) -> None:
    for position, character in enumerate(api_key or "", start=1):
        if not "!" <= character <= "~":
            raise SettingsError.of("judges.key_malformed", position=position)


def _authorization(api_key: str | None, base_url: URL) -> tuple[str | None, list[str]]:
    """The Authorization header, and all secrets to redact."""
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
    raise JudgeRejected.of("judges.request_not_json", reason=reason)


def _plain(value: object) -> dict[str, Any]:
    """A plain dict, the only mapping that orjson takes."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
