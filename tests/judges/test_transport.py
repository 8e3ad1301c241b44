"""Which transport is taken, and what both keep to on the wire."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from yarl import URL

from authority import Authority
from evenhand.contract import Criterion, Pair
from evenhand.errors import (
    JudgeError,
    JudgeGarbled,
    JudgeRejected,
    JudgeUnreachable,
    MissingExtra,
    SettingsError,
)
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.protocol import ChatMessage, JudgeCall, Segment
from evenhand.judges.redaction import Redactor
from evenhand.judges.registry import JudgeOptions, TransportName
from evenhand.judges.reply_limits import MAX_REPLY_BYTES
from evenhand.judges.transport import JudgeEndpoint, Transport, open_transport
from servers import (
    JudgeServer,
    RawBytes,
    Slow,
    StartServer,
    chat_reply,
    forget_proxies,
    in_turn,
)

CALL = JudgeCall(
    pair=Pair(prompt="p", response_a="a", response_b="b", criteria=(Criterion(name="c"),)),
    order="original",
    sample=1,
    messages=(ChatMessage("user", (Segment("Which?"),)),),
)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_proxies(monkeypatch)
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(variable, raising=False)


def judge_at(url: str, *, api_key: str | None = None) -> OpenAIJudge:
    return OpenAIJudge("m", JudgeOptions(base_url=url, timeout_s=20.0, api_key=api_key))


# Which one


def opened(url: str = "http://127.0.0.1:9/v1", *, name: TransportName | None = None) -> Transport:
    endpoint = JudgeEndpoint(URL(url), timeout_s=1.0, connect_timeout_s=1.0, redact=Redactor())
    return open_transport(endpoint, {"Authorization": "Bearer k"}, name=name)


def kind(transport: Transport) -> str:
    return type(transport).__name__


def test_the_one_that_is_named_is_taken() -> None:
    pytest.importorskip("httptools")
    assert kind(opened(name="aiohttp")) == "AiohttpTransport"
    assert kind(opened(name="httptools")) == "HttptoolsTransport"


def test_httptools_is_taken_where_none_is_named() -> None:
    pytest.importorskip("httptools")
    assert kind(opened("http://h/v1")) == kind(opened("https://h/v1")) == "HttptoolsTransport"


def test_a_proxy_is_left_to_aiohttp(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httptools")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert kind(opened("http://h/v1")) == "AiohttpTransport"
    assert kind(opened("https://h/v1")) == "HttptoolsTransport"
    with pytest.raises(SettingsError, match="does not support proxies; set EVENHAND_TR"):
        opened("http://h/v1", name="httptools")


def test_without_the_extra_aiohttp_is_taken_and_httptools_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "evenhand.judges.httptools_transport", raising=False)
    monkeypatch.setitem(sys.modules, "httptools", None)
    assert kind(opened()) == "AiohttpTransport"
    with pytest.raises(MissingExtra, match=r"httptools is not installed.*\[speed\]'"):
        opened(name="httptools")


def test_a_transport_of_another_name_is_refused() -> None:
    with pytest.raises(SettingsError, match="is 'curl'; give aiohttp, httptools, or leave it out"):
        JudgeOptions(transport="curl")  # type: ignore[arg-type]


def test_no_repr_shows_what_an_address_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://ann:hunter22@127.0.0.1:1")
    url = URL("http://h/v1?api-key=SECRETQ")
    endpoint = JudgeEndpoint(url, timeout_s=1.0, connect_timeout_s=1.0, redact=Redactor())
    assert "hunter22" not in repr(endpoint)
    assert "SECRETQ" not in repr(endpoint)


# What both keep to


def raw(head: str, body: bytes) -> RawBytes:
    return RawBytes(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)


@pytest.mark.usefixtures("transport")
class TestOnTheWire:
    async def test_a_compressed_answer_is_read(self, start_server: StartServer) -> None:
        packed = gzip.compress(chat_reply("A" * 5000).encoded())
        head = f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}"
        server = start_server(in_turn(raw(head, packed)))
        async with judge_at(server.url) as judge:
            assert (await judge.ask(CALL)).text == "A" * 5000

    async def test_a_compressed_answer_is_cut_short_by_what_it_unfolds_to(
        self, start_server: StartServer
    ) -> None:
        packed = gzip.compress(b" " * (MAX_REPLY_BYTES + 1))
        assert len(packed) < 100_000
        head = f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}"
        server = start_server(in_turn(raw(head, packed)))
        async with judge_at(server.url) as judge:
            with pytest.raises(JudgeGarbled, match="32 MiB"):
                await judge.ask(CALL)
        assert server.wait_until_idle()

    async def test_a_length_that_lies_lets_no_more_in(self, start_server: StartServer) -> None:
        size = MAX_REPLY_BYTES + 1
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (size, b" " * size)
        head = "Content-Length: 10\r\nTransfer-Encoding: chunked"
        server = start_server(in_turn(raw(head, chunk)))
        async with judge_at(server.url) as judge:
            # Refused as no HTTP, or cut short: either way it is not read whole.
            with pytest.raises(JudgeGarbled, match=r"32 MiB|does not speak HTTP"):
                await judge.ask(CALL)

    async def test_an_answer_of_many_pieces_is_read_whole(self, start_server: StartServer) -> None:
        text = "长" * 500_000
        server = start_server(in_turn(chat_reply(text)))
        async with judge_at(server.url) as judge:
            assert (await judge.ask(CALL)).text == text

    async def test_headers_that_are_no_text_break_nothing(self, start_server: StartServer) -> None:
        head = b"HTTP/1.1 302 Found\r\nLocation: http://h/\xe9\xff\r\nContent-Length: 0\r\n\r\n"
        server = start_server(in_turn(RawBytes(head)))
        async with judge_at(server.url) as judge:
            with pytest.raises(JudgeRejected, match="redirects to"):
                await judge.ask(CALL)

    async def test_no_cookie_is_kept(self, start_server: StartServer) -> None:
        server = start_server(in_turn(chat_reply("A", headers={"Set-Cookie": "seen=1; Path=/"})))
        async with judge_at(server.url) as judge:
            await judge.ask(CALL)
            await judge.ask(CALL)
        assert [request.headers.get("cookie") for request in server.requests] == [None, None]

    async def test_calls_one_after_the_other_share_a_connection(
        self, start_server: StartServer
    ) -> None:
        server = start_server(in_turn(chat_reply("A")))
        async with judge_at(server.url) as judge:
            for _ in range(5):
                await judge.ask(CALL)
        assert len({request.client_port for request in server.requests}) == 1

    async def test_a_connection_that_the_server_ends_is_not_used_again(
        self, start_server: StartServer
    ) -> None:
        server = start_server(in_turn(chat_reply("A", headers={"Connection": "close"})))
        async with judge_at(server.url) as judge:
            for _ in range(3):
                await judge.ask(CALL)
        assert len({request.client_port for request in server.requests}) == 3

    async def test_a_body_may_end_with_its_connection(self, start_server: StartServer) -> None:
        body = chat_reply("A").encoded()
        server = start_server(in_turn(raw("Content-Type: application/json", body)))
        async with judge_at(server.url) as judge:
            assert (await judge.ask(CALL)).text == "A"

    async def test_a_body_in_chunks_is_read(self, start_server: StartServer) -> None:
        body = chat_reply("A").encoded()
        halves = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:9], body[9:]))
        server = start_server(in_turn(raw("Transfer-Encoding: chunked", halves + b"0\r\n\r\n")))
        async with judge_at(server.url) as judge:
            assert (await judge.ask(CALL)).text == "A"

    async def test_a_server_that_says_go_on_first_is_waited_for(
        self, start_server: StartServer
    ) -> None:
        body = chat_reply("A").encoded()
        final = raw(f"Content-Length: {len(body)}", body)
        server = start_server(in_turn(RawBytes(b"HTTP/1.1 100 Continue\r\n\r\n" + final.data)))
        async with judge_at(server.url) as judge:
            assert (await judge.ask(CALL)).text == "A"

    async def test_what_follows_an_answer_is_nobodys(self, start_server: StartServer) -> None:
        """A second answer on the same connection must not become the next question's."""
        first, forged = chat_reply("A").encoded(), chat_reply("B").encoded()
        both = raw(f"Content-Length: {len(first)}", first).data
        both += raw(f"Content-Length: {len(forged)}", forged).data
        server = start_server(in_turn(RawBytes(both), chat_reply("A")))
        async with judge_at(server.url) as judge:
            for _ in range(3):
                with contextlib.suppress(JudgeError):  # whatever else it is, it is not B
                    assert (await judge.ask(CALL)).text == "A"

    @pytest.mark.slow
    async def test_hundreds_are_in_flight_at_once(self, start_server: StartServer) -> None:
        # Long enough for the second try of a handshake that the server's backlog had no room for.
        server = start_server(in_turn(Slow(2.5, chat_reply("A"))))
        async with judge_at(server.url) as judge:
            asking = [asyncio.create_task(judge.ask(CALL)) for _ in range(512)]
            waiting = asyncio.to_thread(
                server.wait_until, lambda: server.open_connections == 512, within_s=120.0
            )
            assert await waiting
            answers = await asyncio.gather(*asking)
        assert len(answers) == 512
        assert server.wait_until_idle()

    async def test_no_secret_is_logged(
        self,
        start_server: StartServer,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        proxy = start_server(in_turn(chat_reply("A")))
        monkeypatch.setenv("HTTP_PROXY", f"http://ann:hunter22@127.0.0.1:{proxy.port}")
        async with judge_at("http://judge.invalid/v1?token=SECRETQ", api_key="SECRETKEY") as judge:
            await judge.ask(CALL)
        for secret in ("hunter22", "SECRETQ", "SECRETKEY"):
            assert secret not in caplog.text

    async def test_a_certificate_of_an_unknown_authority_is_not_trusted(
        self, tmp_path: Path
    ) -> None:
        tls = Authority(tmp_path).tls_of_a_server()
        with JudgeServer(in_turn(chat_reply("A")), tls=tls) as server:
            async with judge_at(server.url) as judge:
                with pytest.raises(JudgeUnreachable, match=r"is not trusted \(.+SSL_CERT") as told:
                    await judge.ask(CALL)
            assert server.requests == []
        assert not told.value.retryable


def test_an_authority_of_the_users_own_is_trusted(tmp_path: Path) -> None:
    """In a process of its own: OpenSSL's variables are read when aiohttp is imported."""
    authority = Authority(tmp_path)
    pair = {"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["c"]}
    asking = f"import evenhand; evenhand.compare_sync({pair!r}, 'openai:m')"
    with JudgeServer(in_turn(chat_reply("Winner: A")), tls=authority.tls_of_a_server()) as server:
        environment = {"OPENAI_BASE_URL": server.url, "SSL_CERT_FILE": str(authority.certificate)}
        subprocess.run([sys.executable, "-c", asking], env=environment, cwd=tmp_path, check=False)
        assert len(server.requests) == 2
