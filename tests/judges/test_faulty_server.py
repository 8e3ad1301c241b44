"""Whatever a server does, asking it ends in time with a named error, and nothing leaks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.contract import Criterion, Pair
from evenhand.errors import (
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
    SettingsError,
)
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.protocol import ChatMessage, JudgeCall, Segment
from evenhand.judges.registry import JudgeOptions, TransportName
from evenhand.judges.reply_limits import MAX_REPLY_BYTES, MOST_VALUES
from servers import (
    CLOSE,
    RESET,
    Drip,
    HalfBody,
    JudgeServer,
    RawBytes,
    Reply,
    Scripted,
    Slow,
    StartServer,
    chat_reply,
    error_reply,
    forget_proxies,
    in_turn,
    text_reply,
)

KEY = "sk-test-0123456789abcdef"
CALL = JudgeCall(
    pair=Pair(prompt="p", response_a="a", response_b="b", criteria=(Criterion(name="c"),)),
    order="original",
    sample=1,
    messages=(ChatMessage("user", (Segment("Which?"),)),),
)
TIMEOUT_S = 0.5


@pytest.fixture(autouse=True)
def _by_each_transport(transport: TransportName) -> None:
    """Every fault of this module meets both."""


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_proxies(monkeypatch)


@pytest.fixture(autouse=True)
def _key_is_never_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert KEY not in caplog.text


async def error_from(
    base_url: str, *, connect_timeout_s: float = 10.0, **options: Any
) -> JudgeError:
    """The error that one question ends in; it must come in time, leave nothing and show no key."""
    defaults: dict[str, Any] = {"base_url": base_url, "api_key": KEY, "timeout_s": TIMEOUT_S}
    judge = OpenAIJudge(
        "m", JudgeOptions(**{**defaults, **options}), connect_timeout_s=connect_timeout_s
    )
    began = time.monotonic()
    with pytest.raises(JudgeError) as caught:
        await judge.ask(CALL)
    assert time.monotonic() - began < TIMEOUT_S + 2.0
    await judge.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    error = caught.value
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(error.__dict__)
    assert KEY not in shown
    assert "\n" not in error.message
    assert error.__context__ is None
    assert error.__cause__ is None
    return error


async def error_of(start_server: StartServer, scripted: Scripted, **options: Any) -> JudgeError:
    server = start_server(in_turn(scripted))
    error = await error_from(server.url, **options)
    assert len(server.requests) == 1
    assert server.wait_until_idle()
    return error


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_nobody_listening_is_unreachable() -> None:
    error = await error_from(f"http://127.0.0.1:{free_port()}/v1")
    assert type(error) is JudgeUnreachable
    assert error.retryable
    assert "check that the server is running" in error.message


@pytest.mark.parametrize("host", ["judge.invalid", "a..b"])
async def test_an_unknown_host_is_unreachable(host: str) -> None:
    error = await error_from(f"http://{host}/v1", timeout_s=10.0)
    assert type(error) is JudgeUnreachable
    assert host in error.message


async def test_a_host_that_never_accepts_is_unreachable_in_the_connect_time_out() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        try:
            for client in waiting:  # the backlog is full: the next handshake gets no answer
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", port))
            error = await error_from(
                f"http://127.0.0.1:{port}/v1", timeout_s=5.0, connect_timeout_s=0.2
            )
        finally:
            for client in waiting:
                client.close()
    assert type(error) is JudgeUnreachable
    assert "in 0.2 s" in error.message


async def test_tls_to_a_plain_server_is_unreachable_and_not_worth_a_retry(
    start_server: StartServer,
) -> None:
    server = start_server(in_turn(chat_reply("A")))
    error = await error_from(server.url.replace("http:", "https:"), timeout_s=5.0)
    assert type(error) is JudgeUnreachable
    assert not error.retryable
    assert "http://" in error.message


@pytest.mark.parametrize("fault", [RESET, CLOSE, HalfBody(chat_reply("A" * 400))])
async def test_a_broken_connection_is_lost(start_server: StartServer, fault: Scripted) -> None:
    error = await error_of(start_server, fault)
    assert type(error) is JudgeConnectionLost
    assert error.retryable


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Slow(30, chat_reply("A")), Drip(chat_reply("A" * 400))])
async def test_a_late_answer_is_a_time_out_that_names_the_seconds(
    start_server: StartServer, fault: Scripted
) -> None:
    error = await error_of(start_server, fault)
    assert type(error) is JudgeTimeout
    assert "in 0.5 s" in error.message
    assert "raise timeout" in error.message


async def test_the_time_out_covers_the_refused_requests_too(start_server: StartServer) -> None:
    refusal = error_reply(400, "temperature", param="temperature")
    server = start_server(in_turn(Slow(0.3, refusal), Slow(0.4, chat_reply("A"))))
    error = await error_from(server.url)
    assert type(error) is JudgeTimeout
    assert error.requests == 2


async def test_something_that_is_no_http_is_garbled(start_server: StartServer) -> None:
    error = await error_of(start_server, RawBytes(b"220 mail.example ESMTP\r\n"))
    assert type(error) is JudgeGarbled


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"[1, 2]",
        b'"A"',
        b"{}",
        b'{"choices": null}',
        b'{"choices": {"message": "A"}}',
        b"\xff\xfe\x00",
        b"[" * 5000,
    ],
)
async def test_a_success_that_is_no_completion_is_garbled(
    start_server: StartServer, body: bytes
) -> None:
    error = await error_of(start_server, Reply(body))
    assert type(error) is JudgeGarbled
    assert "/v1" in error.message


async def test_a_web_page_is_garbled_and_told_by_its_title(start_server: StartServer) -> None:
    page = "<!DOCTYPE html><html><title>Sign in</title><body>\n" + "x" * 5000 + "</body></html>"
    error = await error_of(start_server, text_reply(page))
    assert type(error) is JudgeGarbled
    assert "'Sign in'" in error.message
    assert len(error.message) < 300


@pytest.mark.parametrize("told", [True, False])
async def test_a_huge_reply_is_cut_short(start_server: StartServer, told: bool) -> None:
    size = MAX_REPLY_BYTES + 1
    server = start_server(in_turn(Reply(b" " * size)))
    if not told:
        chunk = b"%x\r\n%s\r\n" % (size, b" " * size)
        server = start_server(
            in_turn(RawBytes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk))
        )
    error = await error_from(server.url, timeout_s=20.0)
    assert type(error) is JudgeGarbled
    assert "32 MiB" in error.message
    assert server.wait_until_idle()


_MANY_VALUES = b'{"choices":[' + b"[]," * MOST_VALUES + b"[]]}"


async def test_an_error_that_waits_for_a_retry_does_not_keep_the_reply(
    start_server: StartServer,
) -> None:
    error = await error_of(start_server, Reply(_MANY_VALUES), timeout_s=20.0)
    assert type(error) is JudgeGarbled
    kept = [frame.f_locals.values() for frame, _ in traceback.walk_tb(error.__traceback__)]
    assert [value for values in kept for value in values if _size(value) == len(_MANY_VALUES)] == []


def _size(value: object) -> int:
    body = getattr(value, "body", value)  # of a reply
    return len(body) if isinstance(body, bytes) else 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(start_server: StartServer, status: int) -> None:
    elsewhere = start_server(in_turn(chat_reply("A")))
    target = f"{elsewhere.url}/chat/completions"
    error = await error_of(start_server, Reply({}, status=status, headers={"Location": target}))
    assert type(error) is JudgeRejected
    assert target in error.message
    assert "set the base URL" in error.message
    assert elsewhere.requests == []


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_names_the_variable(start_server: StartServer, status: int) -> None:
    error = await error_of(start_server, error_reply(status, f"Incorrect API key: {KEY}"))
    assert type(error) is JudgeAuthentication
    assert "check the key in OPENAI_API_KEY" in error.message
    assert "Incorrect API key: ***" in error.message
    without = await error_of(start_server, error_reply(status, "Unauthorized"), api_key=None)
    assert "no API key was given: set OPENAI_API_KEY" in without.message


async def test_too_many_requests_say_how_long_to_wait(start_server: StartServer) -> None:
    error = await error_of(
        start_server, error_reply(429, "slow down", headers={"Retry-After": "7"})
    )
    assert isinstance(error, JudgeRateLimited)
    assert error.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, "insufficient_quota"), (429, "billing_hard_limit_reached"), (402, "payment_required")],
)
async def test_an_empty_account_is_not_a_rate_limit(
    start_server: StartServer, status: int, code: str
) -> None:
    error = await error_of(start_server, error_reply(status, "no credit", code=code))
    assert type(error) is JudgeQuotaExceeded
    assert not error.retryable


async def test_an_unknown_path_or_model_asks_for_both_to_be_checked(
    start_server: StartServer,
) -> None:
    error = await error_of(start_server, error_reply(404, "model 'm' not found"))
    assert type(error) is JudgeRejected
    assert "check the model name 'm', and whether the base URL" in error.message
    assert "should end in /v1" in error.message


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 529])
async def test_a_failing_server_is_worth_a_retry(start_server: StartServer, status: int) -> None:
    error = await error_of(
        start_server,
        text_reply("<html><title>Bad Gateway</title></html>", status=status),
    )
    assert isinstance(error, JudgeServerError)
    assert error.retryable
    assert f"HTTP {status}: Bad Gateway" in error.message


@pytest.mark.parametrize("status", [402, 405, 410, 413, 415, 418, 451])
async def test_other_refusals_are_not_worth_a_retry(start_server: StartServer, status: int) -> None:
    error = await error_of(start_server, error_reply(status, "no"))
    assert not error.retryable


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ({"message": "slow", "code": 429}, JudgeRateLimited),
        ({"message": "slow", "code": "rate_limit_exceeded"}, JudgeRateLimited),
        ({"message": "poor", "code": "insufficient_quota"}, JudgeQuotaExceeded),
        ({"message": "who", "code": "invalid_api_key"}, JudgeAuthentication),
        ({"message": "down", "code": 502}, JudgeServerError),
        ({"message": "down", "type": "server_error"}, JudgeServerError),
        ({"message": "odd", "code": "E42"}, JudgeGarbled),
        ("odd", JudgeGarbled),
    ],
)
async def test_an_error_inside_a_success_is_the_error_it_is(
    start_server: StartServer, inner: Any, kind: type[JudgeError]
) -> None:
    assert type(await error_of(start_server, Reply({"error": inner}))) is kind


async def test_an_error_body_nested_without_end_is_survived(start_server: StartServer) -> None:
    body = b'{"error":' * 900 + b"1" + b"}" * 900
    error = await error_of(start_server, Reply(body, status=503))
    assert type(error) is JudgeServerError


async def test_a_quoted_error_is_one_short_line_without_secrets(start_server: StartServer) -> None:
    message = (
        f"line\r\none\x00\x1b[31m {KEY} and Authorization: Bearer abc.def, key sk-proj-ABCDEFGH123 "
        f"at https://ann:hunter22@host/ " + "x" * 1000
    )
    error = await error_of(start_server, error_reply(503, message))
    assert "line one [31m *** and" in error.message
    for hidden in (KEY, "abc.def", "sk-proj", "hunter22"):
        assert hidden not in error.message
    assert len(error.message) < 330


# Closing, cancelling, and event loops


async def test_a_cancelled_question_closes_its_connection(
    start_server: StartServer, transport: TransportName
) -> None:
    server = start_server(in_turn(Slow(30, chat_reply("A"))))
    judge = OpenAIJudge("m", JudgeOptions(base_url=server.url, timeout_s=120.0))
    asking = asyncio.create_task(judge.ask(CALL))
    await asyncio.to_thread(server.wait_until, lambda: len(server.requests) == 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(server.wait_until_idle)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await judge.close()


async def test_an_answer_cancelled_half_way_closes_its_connection() -> None:
    begun = b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n" + b" " * 100_000
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        async with OpenAIJudge("m", JudgeOptions(base_url=url)) as judge:
            asking = asyncio.create_task(judge.ask(CALL))
            connection, _ = await asyncio.to_thread(listening.accept)
            with connection:
                connection.settimeout(5.0)
                await asyncio.to_thread(connection.recv, 65_536)
                await asyncio.to_thread(connection.sendall, begun)
                await asyncio.sleep(0.1)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
                with contextlib.suppress(ConnectionError):  # closed, by whichever of the two ways
                    assert await asyncio.to_thread(connection.recv, 1) == b""


async def test_a_cancelled_task_ends_even_where_its_answer_has_just_come(
    start_server: StartServer,
) -> None:
    server = start_server(in_turn(chat_reply("A")))
    async with OpenAIJudge("m", JudgeOptions(base_url=server.url)) as judge:

        async def ask_for_ever() -> None:
            while True:
                await judge.ask(CALL)

        asking = [asyncio.create_task(ask_for_ever()) for _ in range(50)]
        await asyncio.to_thread(server.wait_until, lambda: len(server.requests) > 200)
        for task in asking:
            task.cancel()
        _, left = await asyncio.wait(asking, timeout=10.0)
        for task in left:
            task.cancel()
        assert not left
    assert server.wait_until_idle()


async def test_closing_twice_is_fine_and_asking_afterwards_is_an_error(
    start_server: StartServer,
) -> None:
    server = start_server(in_turn(chat_reply("A")))
    judge = OpenAIJudge("m", JudgeOptions(base_url=server.url))
    await judge.ask(CALL)
    await judge.close()
    await judge.close()
    with pytest.raises(JudgeError, match="is closed; open it again"):
        await judge.ask(CALL)
    assert server.wait_until_idle()


async def test_a_judge_that_was_never_asked_closes_too() -> None:
    judge = OpenAIJudge("m")
    await judge.close()
    with pytest.raises(JudgeError, match="is closed"):
        await judge.ask(CALL)


async def test_closing_while_asking_ends_the_question(
    start_server: StartServer, transport: TransportName
) -> None:
    server = start_server(in_turn(Slow(30, chat_reply("A"))))
    judge = OpenAIJudge("m", JudgeOptions(base_url=server.url, timeout_s=120.0))
    asking = asyncio.create_task(judge.ask(CALL))
    await asyncio.to_thread(server.wait_until, lambda: len(server.requests) == 1)
    await judge.close()
    with pytest.raises(JudgeError, match="was closed during the request") as caught:
        await asking
    assert not caught.value.retryable
    assert await asyncio.to_thread(server.wait_until_idle)


async def test_a_judge_serves_one_event_loop(start_server: StartServer) -> None:
    server = start_server(in_turn(chat_reply("A")))
    judge = OpenAIJudge("m", JudgeOptions(base_url=server.url))
    await judge.ask(CALL)

    def ask_elsewhere() -> None:
        asyncio.run(_ask_and_close(judge))

    with pytest.raises(JudgeError, match="open one judge per event loop"):
        await asyncio.to_thread(ask_elsewhere)
    await judge.close()
    assert server.wait_until_idle()


async def _ask_and_close(judge: OpenAIJudge) -> None:
    try:
        await judge.ask(CALL)
    finally:
        await judge.close()


# Proxies and .netrc


async def _ask_through(base_url: str) -> None:
    async with OpenAIJudge("m", JudgeOptions(base_url=base_url, api_key=KEY)) as judge:
        await judge.ask(CALL)


@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_the_proxy_of_the_environment_is_used(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    proxy = start_server(in_turn(chat_reply("A")))
    monkeypatch.setenv("HTTP_PROXY", f"{scheme}ann:hunter22@127.0.0.1:{proxy.port}")
    await _ask_through("http://judge.invalid/v1")
    (request,) = proxy.requests
    assert request.target == "http://judge.invalid/v1/chat/completions"
    assert request.headers["proxy-authorization"] == "Basic YW5uOmh1bnRlcjIy"  # ann:hunter22
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("exempt", ["127.0.0.1", "*", "127.0.0.1:{port}"])
async def test_no_proxy_is_honoured(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, exempt: str
) -> None:
    proxy = start_server(in_turn(chat_reply("A")))
    server = start_server(in_turn(chat_reply("A")))
    monkeypatch.setenv("HTTP_PROXY", proxy.origin)
    monkeypatch.setenv("NO_PROXY", exempt.format(port=server.port))
    await _ask_through(server.url)
    assert (len(proxy.requests), len(server.requests)) == (0, 1)


@pytest.mark.parametrize(("status", "kind"), [(407, JudgeAuthentication), (502, JudgeUnreachable)])
async def test_a_tunnel_never_shows_the_key_to_the_proxy(
    start_server: StartServer,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    kind: type[JudgeError],
) -> None:
    proxy = start_server(in_turn(error_reply(status, "no")))
    monkeypatch.setenv("HTTPS_PROXY", f"http://ann:hunter22@127.0.0.1:{proxy.port}")
    error = await error_from("https://judge.invalid/v1")
    assert type(error) is kind
    assert f"127.0.0.1:{proxy.port}" in error.message
    assert "hunter22" not in error.message
    (request,) = proxy.requests
    assert (request.method, request.target) == ("CONNECT", "judge.invalid:443")
    assert KEY not in str(request)


async def test_a_dead_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("HTTP_PROXY", f"http://ann:hunter22@127.0.0.1:{port}")
    error = await error_from("http://judge.invalid/v1")
    assert type(error) is JudgeUnreachable
    assert f"the proxy 127.0.0.1:{port}" in error.message
    assert "correct or unset HTTP_PROXY" in error.message
    assert "hunter22" not in error.message


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["proxy.invalid", "a..b"])
async def test_a_proxy_that_cannot_be_resolved_is_named_and_not_the_judge(
    monkeypatch: pytest.MonkeyPatch, scheme: str, host: str
) -> None:
    variable = f"{scheme.upper()}_PROXY"
    monkeypatch.setenv(variable, f"http://ann:hunter22@{host}:3128")
    error = await error_from(f"{scheme}://127.0.0.1:9/v1", timeout_s=10.0)
    assert type(error) is JudgeUnreachable
    assert error.message.startswith(f"cannot resolve the proxy {host}:3128; ")
    assert f"correct or unset {variable}" in error.message
    assert "hunter22" not in error.message


def test_a_proxy_that_is_no_http_proxy_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://ann:hunter22@127.0.0.1:1080")
    with pytest.raises(SettingsError, match=r"HTTPS_PROXY 'socks5://127\.0\.0\.1:1080'"):
        OpenAIJudge("m")


async def test_netrc_does_not_replace_the_key(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password hunter22\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server = start_server(in_turn(chat_reply("A")))
    await _ask_through(server.url)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_many_failures_at_once_leave_nothing_open(start_server: StartServer) -> None:
    faults: list[Scripted] = [RESET, CLOSE, HalfBody(chat_reply("A")), error_reply(503, "no")]
    server: JudgeServer = start_server(lambda request: faults[request.count % len(faults)])
    async with OpenAIJudge("m", JudgeOptions(base_url=server.url, timeout_s=10.0)) as judge:
        asked = await asyncio.gather(*(judge.ask(CALL) for _ in range(80)), return_exceptions=True)
    assert {type(error) for error in asked} == {JudgeConnectionLost, JudgeServerError}
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert server.wait_until_idle()


async def test_a_prompt_that_is_too_long_names_the_option_that_helps(
    start_server: StartServer,
) -> None:
    fault = error_reply(
        400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"
    )
    error = await error_of(start_server, fault)
    assert type(error) is JudgeRejected
    assert "lower max_tokens" in error.message
