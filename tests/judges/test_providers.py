import asyncio
import gzip
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiohttp.test_utils import unused_port

from evenhand.contract import read_pair
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
from evenhand.judges.protocol import ChatMessage, Completion, JudgeCall, Segment
from evenhand.judges.providers import ProviderJudge, redacted
from evenhand.judges.registry import JudgeOptions

pytestmark = pytest.mark.agents

KEY = "sk-ant-secret-0123456789"
# Families are known by their prefix; a name of our own is never on an SDK's list of old models.
CLAUDE = "anthropic:claude-sonnet-4-5-loopback"
PLAIN_CLAUDE = "anthropic:claude-loopback"
CLAUDE_OF_FIXED_TEMPERATURE = "anthropic:claude-opus-4-8-loopback"
GEMINI = "google:gemini-2.5-flash"
PAIR = read_pair({"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["accuracy"]})
SCHEMA = {
    "type": "object",
    "properties": {"winner": {"type": "string", "enum": ["A", "B", "TIE"]}},
    "required": ["winner"],
    "additionalProperties": False,
}


def said(role: Any, text: str) -> ChatMessage:
    return ChatMessage(role=role, segments=(Segment(text),))


def a_call(*messages: ChatMessage, schema: Mapping[str, Any] | None = None) -> JudgeCall:
    turns = messages or (said("system", "Judge."), said("user", "Which?"))
    return JudgeCall(pair=PAIR, order="original", sample=1, messages=turns, answer_schema=schema)


def claude_says(*content: dict[str, Any], stop_reason: str = "end_turn") -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 30, "output_tokens": 7, "cache_read_input_tokens": 12},
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def claude_fails(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


class Loopback:
    """Answers every request with one reply, and keeps what was sent.

    On the standard library's server: Gemini's SDK sends User-Agent twice, and aiohttp's server
    does not take that.
    """

    def __init__(
        self,
        reply: Any,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        delay_s: float = 0,
        hang_up: bool = False,
    ) -> None:
        self.body = (reply if isinstance(reply, str) else json.dumps(reply)).encode()
        self.status, self.headers = status, dict(headers or {})
        self.delay_s, self.hang_up = delay_s, hang_up
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.asked, self.released = threading.Event(), threading.Event()

    @property
    def sent(self) -> dict[str, Any]:
        return self.requests[-1][2]

    @contextmanager
    def listening(self) -> Iterator[str]:
        loopback = self
        self.released.clear()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                loopback.answer(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as inherited
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            self.released.set()
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        sent = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        names = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append((request.path, names, sent))
        self.asked.set()
        if self.delay_s:
            self.released.wait(self.delay_s)
        if self.hang_up or self.released.is_set():
            request.close_connection = True
            return
        request.send_response(self.status)
        for name, value in self.headers.items():
            request.send_header(name, value)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(self.body)))
        request.end_headers()
        request.wfile.write(self.body)


async def ask(
    loopback: Loopback,
    call: JudgeCall | None = None,
    *,
    spec: str = CLAUDE,
    timeout_s: float = 10.0,
    temperature: float | None = None,
) -> Completion:
    with loopback.listening() as address:
        options = JudgeOptions(
            base_url=address, api_key=KEY, timeout_s=timeout_s, temperature=temperature
        )
        judge = ProviderJudge(spec, options)
        try:
            async with asyncio.timeout(20):
                return await judge.ask(call or a_call())
        finally:
            await judge.close()


async def test_an_answer_of_claude_comes_back_with_its_usage_and_its_model() -> None:
    loopback = Loopback(claude_says(text('{"winner": '), text('"A"}')))
    answer = await ask(loopback, a_call(schema=SCHEMA))
    assert answer.text == '{"winner": "A"}'
    assert (answer.finish, answer.thought) == ("stop", False)
    assert answer.model == "claude-sonnet-4-5-20250929"
    assert answer.request_id == "msg_1"
    # pydantic-ai counts what was read from the cache as input too: 30 + 12.
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (42, 7)
    assert (answer.usage.cached_input_tokens, answer.usage.requests) == (12, 1)


async def test_system_user_and_repair_turns_are_sent_as_what_they_are() -> None:
    loopback = Loopback(claude_says(text("A")))
    await ask(
        loopback,
        a_call(
            said("system", "Judge."),
            said("user", "Which?"),
            said("assistant", "Hm."),
            said("user", "As JSON, please."),
        ),
    )
    path, headers, sent = loopback.requests[0]
    assert path == "/v1/messages"
    # One version of the SDK sends the key as x-api-key, another as a bearer token.
    assert KEY in (
        headers.get("x-api-key"),
        headers.get("authorization", "").removeprefix("Bearer "),
    )
    assert "Judge." in json.dumps(sent["system"])
    turns = [(turn["role"], turn["content"]) for turn in sent["messages"]]
    assert [role for role, _ in turns] == ["user", "assistant", "user"]
    for (_, content), words in zip(turns, ("Which?", "Hm.", "As JSON, please."), strict=True):
        assert words in json.dumps(content)
    assert (sent["temperature"], sent["max_tokens"]) == (0.0, 4096)


async def test_the_schema_binds_a_model_that_takes_one_and_is_left_out_for_another() -> None:
    loopback = Loopback(claude_says(text("A")))
    await ask(loopback, a_call(schema=SCHEMA))
    assert '"winner"' in json.dumps(loopback.sent)
    await ask(loopback, a_call(schema=SCHEMA), spec=PLAIN_CLAUDE)
    assert '"winner"' not in json.dumps(loopback.sent)


async def test_a_model_that_takes_no_temperature_is_sent_none() -> None:
    loopback = Loopback(claude_says(text("A")))
    await ask(loopback, spec=CLAUDE_OF_FIXED_TEMPERATURE)
    assert "temperature" not in loopback.sent


async def test_thinking_is_noted_and_kept_out_of_the_text() -> None:
    thinking = {"type": "thinking", "thinking": "Let me see.", "signature": "s"}
    answer = await ask(Loopback(claude_says(thinking, text("B"))))
    assert (answer.text, answer.thought) == ("B", True)
    alone = await ask(Loopback(claude_says(thinking, stop_reason="max_tokens")))
    assert (alone.text, alone.thought, alone.finish) == ("", True, "length")


async def test_a_key_that_the_provider_echoes_is_in_no_completion() -> None:
    reply = claude_says(text(f"A, and x-api-key was {KEY}")) | {"model": KEY, "id": KEY}
    answer = await ask(Loopback(reply))
    assert answer.text == "A, and x-api-key was ***"
    assert KEY not in repr(answer)


async def test_a_refusal_and_an_empty_answer_are_completions_and_not_errors() -> None:
    refused = await ask(Loopback(claude_says(stop_reason="refusal")))
    assert (refused.text, refused.finish) == ("", "refusal")
    empty = await ask(Loopback(claude_says()))
    assert (empty.text, empty.finish) == ("", "stop")


# What a provider's server sends is counted by our HTTP client, before its SDK parses it.

MANY = json.dumps([[]] * 20_000)  # with what stands around it more than 20,000 values


@pytest.mark.parametrize("spec", [CLAUDE, GEMINI])
async def test_a_reply_of_too_many_values_is_refused_before_an_sdk_parses_it(spec: str) -> None:
    content = f'{{"content": {MANY}, "candidates": {MANY}}}'
    with pytest.raises(
        JudgeGarbled, match=r"^127\.0\.0\.1:\d+ sent a reply with more than 20,000 v"
    ):
        await ask(Loopback(content), spec=spec)


@pytest.mark.parametrize("spec", [CLAUDE, GEMINI])
async def test_a_reply_that_inflates_beyond_the_limit_is_refused(spec: str) -> None:
    loopback = Loopback("", headers={"Content-Encoding": "gzip"})
    loopback.body = gzip.compress(b" " * (32 * 2**20 + 1))
    with pytest.raises(JudgeGarbled, match="more than 32 MiB"):
        await ask(loopback, spec=spec)


async def test_a_reply_in_an_encoding_that_cannot_be_bounded_is_refused() -> None:
    with pytest.raises(JudgeGarbled, match="its reply is encoded as br"):
        await ask(Loopback("{}", headers={"Content-Encoding": "br"}))


async def test_a_compressed_reply_and_its_headers_arrive() -> None:
    loopback = Loopback("", headers={"Content-Encoding": "gzip"})
    loopback.body = gzip.compress(json.dumps(claude_says(text("A"))).encode())
    assert (await ask(loopback)).text == "A"
    limited = Loopback(claude_fails("rate_limit_error", "no"), status=429)
    limited.headers["retry-after"] = "7"
    with pytest.raises(JudgeRateLimited) as caught:
        await ask(limited)
    assert caught.value.retry_after_s == 7


async def test_an_error_of_many_values_is_still_the_error_that_it_is() -> None:
    body = f'{{"error": {{"message": "key unknown"}}, "more": {MANY}}}'
    with pytest.raises(JudgeAuthentication, match="key unknown"):
        await ask(Loopback(body, status=401))


async def test_a_provider_is_reached_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Loopback(claude_says(text("A")))
    with proxy.listening() as address:
        monkeypatch.setenv("http_proxy", address)
        options = JudgeOptions(base_url="http://provider.example", api_key=KEY, timeout_s=10)
        async with ProviderJudge(CLAUDE, options) as judge:
            assert (await judge.ask(a_call())).text == "A"
    assert proxy.requests[0][0].startswith("http://provider.example/")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "http://127.0.0.1:port"])
def test_a_proxy_that_cannot_be_used_is_no_bug(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", proxy)
    with pytest.raises(InputError, match=r"proxy cannot be used .+ unset HTTP_PROXY"):
        ProviderJudge(CLAUDE, JudgeOptions(api_key=KEY))


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, "invalid_request_error", JudgeRejected),
        (401, "authentication_error", JudgeAuthentication),
        (403, "permission_error", JudgeAuthentication),
        (404, "not_found_error", JudgeRejected),
        (429, "rate_limit_error", JudgeRateLimited),
        (500, "api_error", JudgeServerError),
        (529, "overloaded_error", JudgeServerError),
    ],
)
async def test_each_status_is_its_own_error_asked_once_and_shows_no_key(
    status: int, kind: str, error: type[JudgeError]
) -> None:
    loopback = Loopback(claude_fails(kind, f"not with {KEY}\nplease"), status=status)
    with pytest.raises(error) as caught:
        await ask(loopback)
    assert len(loopback.requests) == 1
    message = str(caught.value)
    assert KEY not in message
    assert f"answered {status} (not with (key) please)" in message
    assert "\n" not in message


async def test_an_account_without_credit_is_not_asked_again() -> None:
    loopback = Loopback(claude_fails("billing_error", "Your credit balance is too low"), status=402)
    with pytest.raises(JudgeQuotaExceeded) as caught:
        await ask(loopback)
    assert not caught.value.retryable


async def test_the_wait_that_a_rate_limit_asks_for_is_passed_on() -> None:
    loopback = Loopback(
        claude_fails("rate_limit_error", "slow down"), status=429, headers={"retry-after": "7"}
    )
    with pytest.raises(JudgeRateLimited) as caught:
        await ask(loopback)
    assert caught.value.retry_after_s == 7.0


async def test_no_answer_in_time_a_broken_connection_and_a_closed_port_are_told_apart() -> None:
    with pytest.raises(JudgeTimeout):
        await ask(Loopback({}, delay_s=2), timeout_s=0.3)
    with pytest.raises((JudgeConnectionLost, JudgeUnreachable)):
        await ask(Loopback({}, hang_up=True))
    nobody = JudgeOptions(base_url=f"http://127.0.0.1:{unused_port()}", api_key=KEY)
    judge = ProviderJudge(CLAUDE, nobody)
    with pytest.raises(JudgeUnreachable):
        await judge.ask(a_call())
    await judge.close()


async def test_a_reply_that_is_no_message_is_garbled_and_may_be_asked_again() -> None:
    for body in ("<html>", {"hello": 1}):
        with pytest.raises(JudgeGarbled) as caught:
            await ask(Loopback(body))
        assert caught.value.retryable


async def test_a_cancelled_question_ends_at_once() -> None:
    loopback = Loopback({}, delay_s=5)
    task = asyncio.create_task(ask(loopback))
    assert await asyncio.to_thread(loopback.asked.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def gemini_says(*parts: dict[str, Any], finish: str = "STOP") -> dict[str, Any]:
    return {
        "candidates": [
            {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
        ],
        "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 4, "totalTokenCount": 24},
        "modelVersion": "gemini-2.5-flash",
        "responseId": "r1",
    }


async def test_gemini_is_asked_by_its_own_api() -> None:
    loopback = Loopback(gemini_says({"text": "A"}))
    answer = await ask(loopback, a_call(schema=SCHEMA), spec=GEMINI)
    path, headers, sent = loopback.requests[0]
    assert path.endswith("models/gemini-2.5-flash:generateContent")
    assert headers["x-goog-api-key"] == KEY
    assert "Judge." in json.dumps(sent["systemInstruction"])
    assert sent["generationConfig"]["responseMimeType"] == "application/json"
    assert (answer.text, answer.finish, answer.model) == ("A", "stop", "gemini-2.5-flash")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (20, 4)


async def test_what_geminis_filter_stops_is_a_filtered_completion() -> None:
    answer = await ask(Loopback(gemini_says(finish="SAFETY")), spec=GEMINI)
    assert (answer.text, answer.finish) == ("", "filter")


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, JudgeAuthentication), (429, JudgeRateLimited), (503, JudgeServerError)],
)
async def test_geminis_errors_are_told_apart_by_status_too(
    status: int, error: type[JudgeError]
) -> None:
    loopback = Loopback({"error": {"code": status, "message": "no", "status": "X"}}, status=status)
    with pytest.raises(error):
        await ask(loopback, spec=GEMINI)
    assert len(loopback.requests) == 1


@pytest.mark.parametrize(
    ("spec", "variable"), [(CLAUDE, "ANTHROPIC_API_KEY"), (GEMINI, "GOOGLE_API_KEY")]
)
def test_a_missing_key_is_told_with_the_variable_to_set(
    monkeypatch: pytest.MonkeyPatch, spec: str, variable: str
) -> None:
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(JudgeAuthentication, match=f"set the environment variable {variable}"):
        ProviderJudge(spec)


async def test_the_environment_alone_is_enough_to_reach_a_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loopback = Loopback(claude_says(text("A")))
    with loopback.listening() as address:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        judge = ProviderJudge(CLAUDE)
        assert (await judge.ask(a_call())).text == "A"
        await judge.close()


def test_an_unknown_provider_and_a_spec_without_a_model_are_input_errors() -> None:
    with pytest.raises(InputError, match="'nosuch' in nosuch:model"):
        ProviderJudge("nosuch:model")
    for spec in ("anthropic", "anthropic:", ":model"):
        with pytest.raises(InputError, match="write provider:model"):
            ProviderJudge(spec)


def test_a_missing_sdk_and_a_missing_pydantic_ai_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.providers.groq", None)
    with pytest.raises(InputError, match=r"pip install .*'pydantic-ai-slim\[groq\]'"):
        ProviderJudge("groq:model")
    monkeypatch.setitem(sys.modules, "pydantic_ai.models", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[providers\]'"):
        ProviderJudge(CLAUDE)


async def test_a_judge_closes_twice_and_answers_no_more() -> None:
    with Loopback(claude_says(text("A"))).listening() as address:
        judge = ProviderJudge(CLAUDE, JudgeOptions(base_url=address, api_key=KEY))
        await judge.ask(a_call())
        await judge.close()
        await judge.close()
        with pytest.raises(JudgeRejected, match="is closed"):
            await judge.ask(a_call())


def test_anything_that_looks_like_a_key_is_left_out() -> None:
    assert redacted("bad key sk-abcdefghij and AIzaSyAbcdefgh.") == "bad key (key) and (key)"
    assert redacted("hunter2 is wrong", "hunter2") == "(key) is wrong"
    assert KEY not in repr(JudgeOptions(api_key=KEY))


def test_only_reasoned_answers_are_offered() -> None:
    judge = ProviderJudge(CLAUDE, JudgeOptions(api_key=KEY))
    assert judge.traits.modes == ("reasoned",)
