"""Judges behind a provider's own API (Anthropic, Gemini, …), through pydantic-ai, which is imported
only when one is opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from evenhand.errors import (
    InputError,
    JudgeAuthentication,
    JudgeConnectionLost,
    JudgeError,
    JudgeGarbled,
    JudgeQuotaExceeded,
    JudgeRateLimited,
    JudgeRejected,
    JudgeServerError,
    JudgeTimeout,
    JudgeUnreachable,
    MissingExtra,
)
from evenhand.installation import pip_command
from evenhand.judges.protocol import ChatMessage, ClosedOnExit, Completion, JudgeCall, Traits
from evenhand.judges.redaction import Redactor, secrets_in, shown_url
from evenhand.judges.registry import JudgeName, JudgeOptions
from evenhand.judges.reply_limits import kept_text, name_or_none, usage_of, wait_s
from evenhand.messages import Message

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.models.batch import BatchRequest, BatchResult
    from pydantic_ai.providers import Provider
    from pydantic_ai.settings import ModelSettings

    from evenhand.judges.bounded_client import BoundedClient


MAX_TOKENS = 4096
TIMEOUT_S = 120.0


def open_named(name: JudgeName, options: JudgeOptions) -> ProviderJudge:
    return ProviderJudge(str(name), options)


def traits_of(name: JudgeName) -> Traits:
    return ProviderJudge.traits


class ProviderJudge(ClosedOnExit):
    """`provider:model`, as in pydantic-ai. Without token probabilities; the temperature defaults to
    0 if the model accepts one."""

    traits = Traits(modes=("reasoned",))

    def __init__(self, spec: str, options: JudgeOptions | None = None) -> None:
        options = options or JudgeOptions()
        self.name = spec
        self._base_url = options.one_base_url(spec)
        self._temperature = options.temperature
        self._answers = options.answers
        self._seed = options.seed
        self._max_tokens = options.max_tokens
        if options.max_tokens is None and not options.answers:
            self._max_tokens = MAX_TOKENS
        self._timeout_s = TIMEOUT_S if options.timeout_s is None else options.timeout_s
        self._http = _http_client(spec, timeout_s=self._timeout_s)
        self._model = _open_model(
            spec, api_key=options.api_key, base_url=self._base_url, http_client=self._http
        )
        given = (options.api_key or "", *_secrets_of(self._model))
        self._secrets = [secret for secret in dict.fromkeys(given) if secret]
        self._redact = Redactor(self._secrets, others=secrets_in(os.environ))
        self._entered = False
        self._closed = False

    @property
    def identity(self) -> Mapping[str, object]:
        return {
            "base_url": None if self._base_url is None else shown_url(self._base_url),
            "temperature": self._temperature,
            "max_tokens": self._max_tokens,
            "seed": self._seed,
        }

    async def ask(self, call: JudgeCall) -> Completion:
        from pydantic_ai.direct import model_request
        from pydantic_ai.exceptions import (
            ContentFilterError,
            ModelAPIError,
            UnexpectedModelBehavior,
            UserError,
        )

        await self._enter()
        try:
            response = await model_request(
                self._model,
                _history(call.messages),
                model_settings=self._settings(),
                model_request_parameters=_parameters(self._model, call.answer_schema),
            )
        except ModelAPIError as error:
            self._refuse(error)
        except ContentFilterError as error:
            return Completion(text="", finish="filter", refusal=self._safe(str(error)))
        except UnexpectedModelBehavior as error:
            raise JudgeGarbled.of(
                "judges.provider_reply_unreadable", name=self.name, error=self._safe(str(error))
            ) from None
        except UserError as error:
            raise JudgeRejected.of(
                "judges.provider_call_unsupported", name=self.name, error=self._safe(str(error))
            ) from None
        except _UNREADABLE as error:
            raise JudgeGarbled.of(
                "judges.provider_reply_malformed", name=self.name, name2=type(error).__name__
            ) from None
        return self._redact.clean(_completion(response))

    # For batches: the same requests and answers over another channel.

    async def opened_model(self) -> Model[Any]:
        """pydantic-ai's model; `close` closes its client."""
        await self._enter()
        return self._model

    def batch_request(self, call: JudgeCall) -> BatchRequest:
        from pydantic_ai.models.batch import BatchRequest

        settings = self._settings()
        for of_one_call in ("timeout", "max_retries", "request_timeout"):
            # A TypedDict's keys are not known to be these.
            settings.pop(of_one_call, None)  # type: ignore[misc]
        return BatchRequest(
            custom_id="-",
            messages=_history(call.messages),
            model_settings=settings,
            model_request_parameters=_parameters(self._model, call.answer_schema),
        )

    def batch_completion(self, call: JudgeCall, result: BatchResult) -> Completion:
        """A batch's reply; raises what `ask` would."""
        from pydantic_ai.exceptions import ModelAPIError

        try:
            response = self._model.batch_decode(result, self.batch_request(call))
            return self._redact.clean(_completion(response))
        except ModelAPIError as error:
            self._refuse(error)
        except _UNREADABLE as error:
            raise JudgeGarbled.of(
                "judges.provider_reply_malformed", name=self.name, name2=type(error).__name__
            ) from None

    async def close(self) -> None:
        self._closed = True
        if self._entered:
            self._entered = False
            await self._model.__aexit__(None, None, None)
            if self._http is not None:
                await self._http.aclose()

    async def _enter(self) -> None:
        """Take over an HTTP client that a provider made itself, to close it."""
        if self._closed:
            raise JudgeRejected.of("judges.closed", name=self.name)
        if not self._entered:
            self._entered = True
            await self._model.__aenter__()

    def _settings(self) -> ModelSettings:
        from pydantic_ai.settings import ModelSettings

        # evenhand counts and paces retries itself.
        settings = ModelSettings(
            request_timeout=self._timeout_s,
            timeout=self._timeout_s,
            max_retries=0,
        )
        if self._max_tokens is not None:
            settings["max_tokens"] = self._max_tokens
        if self._temperature is not None:
            settings["temperature"] = self._temperature
        elif not self._answers and not any(
            self._model.profile.get(fact) for fact in _FIXED_SAMPLING
        ):
            settings["temperature"] = 0.0
        if self._seed is not None:
            settings["seed"] = self._seed
        return settings

    def _refuse(self, error: ModelAPIError) -> NoReturn:
        from pydantic_ai.exceptions import (
            ModelConnectionError,
            ModelHTTPError,
            ModelQuotaExceededError,
            ModelRequestTimeout,
            ModelTimeoutError,
        )

        refused = own_error(error)
        if refused is not None:  # by our HTTP client, before the SDK had parsed the reply
            raise refused from None
        reason = self._safe(_reason(error))
        if isinstance(error, (ModelTimeoutError, ModelRequestTimeout)):
            raise JudgeTimeout.of(
                "judges.provider_timeout", name=self.name, timeout_s=self._timeout_s
            ) from None
        if isinstance(error, ModelQuotaExceededError):
            raise JudgeQuotaExceeded.of(
                "judges.provider_no_credit", name=self.name, reason=reason
            ) from None
        if isinstance(error, ModelHTTPError):
            self._refuse_status(error, reason)
        if isinstance(error, ModelConnectionError):
            if error.phase in ("write", "read"):
                raise JudgeConnectionLost.of(
                    "judges.provider_connection_lost", name=self.name, reason=reason
                ) from None
            raise JudgeUnreachable.of(
                "judges.provider_unreachable", name=self.name, reason=reason
            ) from None
        raise JudgeGarbled.of(
            "judges.provider_failed_without_status", name=self.name, reason=reason
        ) from None

    def _refuse_status(self, error: ModelHTTPError, reason: str) -> NoReturn:
        status = error.status_code
        fact = f"{self.name} answered {status} ({reason})"
        if status in (401, 403):
            raise JudgeAuthentication.of(
                "judges.provider_key_refused", fact=fact, name=_key_variable(self.name)
            ) from None
        if status == 429:
            raise JudgeRateLimited(
                Message("judges.provider_rate_limited", fact=fact),
                retry_after_s=wait_s(error.retry_after),
            ) from None
        if status == 408:
            raise JudgeTimeout.of("judges.provider_failed", fact=fact) from None
        if status >= 500:
            raise JudgeServerError(
                Message("judges.provider_failed", fact=fact),
                retry_after_s=wait_s(error.retry_after),
            ) from None
        if status == 404:
            rejected = JudgeRejected.of("judges.provider_model_unknown", fact=fact)
            rejected.unknown_model = True
            raise rejected from None
        raise JudgeRejected.of("judges.provider_refused", fact=fact) from None

    def _safe(self, text: str) -> str:
        return redacted(text, *self._secrets, redact=self._redact)


# What the SDKs and pydantic-ai raise on malformed replies.
_UNREADABLE = (AssertionError, AttributeError, LookupError, TypeError, ValueError)

# Models that refuse a temperature, according to pydantic-ai.
_FIXED_SAMPLING = ("anthropic_disallows_sampling_settings", "openai_supports_reasoning")


# Providers whose SDK takes our HTTP client; others read replies without its limits.
_BOUNDED = ("anthropic", "google")


def _http_client(spec: str, *, timeout_s: float) -> BoundedClient | None:
    if spec.partition(":")[0] not in _BOUNDED:
        return None
    try:
        from evenhand.judges.bounded_client import open_bounded_client
    except ImportError:
        raise MissingExtra("pydantic-ai", "providers") from None
    return open_bounded_client(timeout_s=timeout_s)


def _open_model(
    spec: str,
    *,
    api_key: str | None,
    base_url: str | None,
    http_client: BoundedClient | None,
) -> Model[Any]:
    provider, colon, model = spec.partition(":")
    if not (colon and provider and model):
        raise InputError.of("judges.spec_malformed", spec=spec)
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider_class
    except ImportError:
        raise MissingExtra("pydantic-ai", "providers") from None
    try:
        infer_provider_class(provider)
    except ValueError:
        raise InputError.of("judges.provider_unknown", provider=provider, spec=spec) from None
    except ImportError:
        raise _without_sdk(provider) from None
    try:
        given = {"api_key": api_key, "base_url": base_url, "http_client": http_client}
        given = {option: value for option, value in given.items() if value is not None}
        return (
            infer_model(spec, lambda name: _provider(name, given)) if given else infer_model(spec)
        )
    except ImportError:
        raise _without_sdk(provider) from None
    except UserError as error:
        if variable := _VARIABLE.search(str(error)):
            raise JudgeAuthentication.of(
                "judges.provider_key_missing", spec=spec, variable=variable[0]
            ) from None
        raise InputError.of(
            "judges.provider_not_opened", spec=spec, error=redacted(str(error))
        ) from None


def _without_sdk(provider: str) -> InputError:
    command = pip_command(f"pydantic-ai-slim[{provider}]")
    return InputError.of("judges.provider_sdk_missing", provider=provider, command=command)


def _provider(name: str, given: Mapping[str, Any]) -> Provider[Any]:
    from pydantic_ai.providers import infer_provider_class

    try:
        return infer_provider_class(name)(**given)
    except TypeError:
        raise InputError.of(
            "judges.provider_configured_otherwise", name=name, given=list(given)
        ) from None


def own_error(error: BaseException | None) -> JudgeError | None:
    """The error of our HTTP client, which an SDK may have wrapped as a lost connection."""
    while error is not None and not isinstance(error, JudgeError):
        error = error.__cause__ or error.__context__
    return error


_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|CREDENTIALS)\b")


def _key_variable(spec: str) -> str:
    return {"anthropic": "ANTHROPIC_API_KEY", "google": "GOOGLE_API_KEY"}.get(
        spec.partition(":")[0], "the key"
    )


def _secrets_of(model: Model[Any]) -> Iterator[str]:
    client = getattr(getattr(model, "provider", None), "client", None)
    inner = getattr(client, "_api_client", client)
    for name in ("api_key", "auth_token"):
        secret = getattr(inner, name, None)
        if isinstance(secret, str) and secret:
            yield secret


_KEY_LIKE = re.compile(r"\b(?:sk-[\w-]{8,}|AIza[\w-]{8,}|Bearer\s+\S+)")


def redacted(text: str, *secrets: str, redact: Redactor | None = None) -> str:
    """One line without keys, neither ours nor anything that looks like one."""
    for secret in secrets:
        text = text.replace(secret, "(key)")
    text = text if redact is None else redact.cut(text)
    return _KEY_LIKE.sub("(key)", " ".join(text.split()))[:300].rstrip(".;")


def _reason(error: ModelAPIError) -> str:
    """The provider's own words, else pydantic-ai's."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    message = inner.get("message") if isinstance(inner, Mapping) else None
    return message if isinstance(message, str) and message else error.message


def _history(messages: tuple[ChatMessage, ...]) -> list[ModelMessage]:
    """The messages as pydantic-ai's requests and responses."""
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    history: list[ModelMessage] = []
    request: list[ModelRequestPart] = []
    for message in messages:
        if message.role == "system":
            request.append(SystemPromptPart(content=message.text))
        elif message.role == "user":
            request.append(UserPromptPart(content=message.text))
        else:
            history.append(ModelRequest(parts=request))
            history.append(ModelResponse(parts=[TextPart(content=message.text)]))
            request = []
    if request:
        history.append(ModelRequest(parts=request))
    return history


def _parameters(model: Model[Any], schema: Mapping[str, Any] | None) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    if schema is None or not model.profile.get("supports_json_schema_output", False):
        # Plain text mode: the prompt itself asks for JSON.
        return ModelRequestParameters()
    return ModelRequestParameters(
        output_mode="native",
        output_object=OutputObjectDefinition(json_schema=dict(schema), name="verdict"),
    )


_FINISH: dict[str | None, Literal["stop", "length", "filter"]] = {
    None: "stop",
    "stop": "stop",
    "length": "length",
    "content_filter": "filter",
}


def _completion(response: ModelResponse) -> Completion:
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    details = response.provider_details or {}
    declined = details.get("finish_reason") == "refusal"
    refusal = details.get("refusal")
    text, finish = kept_text(
        "".join(part.content for part in response.parts if isinstance(part, TextPart)),
        _FINISH.get(response.finish_reason, "other"),
    )
    called = [part.args_as_json_str() for part in response.parts if isinstance(part, ToolCallPart)]
    return Completion(
        text=text,
        finish="refusal" if declined else finish,
        tool_arguments=kept_text("\n".join(called), "stop")[0] or None,
        refusal=refusal if isinstance(refusal, str) else None,
        thought=any(isinstance(part, ThinkingPart) for part in response.parts),
        usage=usage_of(
            input=response.usage.input_tokens or None,
            output=response.usage.output_tokens or None,
            cached=response.usage.cache_read_tokens,
            requests=1,
        ),
        model=name_or_none(response.model_name),
        request_id=name_or_none(response.provider_response_id),
    )
