"""Logging in: a token once, a cookie from then on, and what others would make of either."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import SettingsError
from evenhand.serve.config import ServerConfig, ServerLimits, Token, read_tokens
from evenhand.serve.security.access import (
    LASTS_S,
    SESSION_COOKIE,
    Sessions,
    is_page,
    way_back,
)
from http_service import HttpService, problem

SECRET, OTHER, VOTERS = "full+0123456789/abc==", "anna-0123456789abcdef", "vera-0123456789abcdef"
FULL = (Token("ci", SECRET), Token("anna", OTHER))
VOTER = Token("vera", VOTERS, votes_only=True)
HTML = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    config = ServerConfig(
        store=str(tmp_path_factory.mktemp("login") / "service.db"),
        port=0,
        tokens=FULL,
        voters=(VOTER,),
        limits=ServerLimits(failures_per_minute=1_000_000),
    )
    made = HttpService(config)
    made.start()
    yield made
    made.close()


@pytest.fixture
def browser(service: HttpService) -> Iterator[httpx.Client]:
    with browsing(service) as client:
        yield client


def browsing(service: HttpService) -> httpx.Client:
    origin = {"Origin": service.url, "Sec-Fetch-Site": "same-origin"}
    return httpx.Client(base_url=service.url, trust_env=False, headers=HTML | origin)


def log_in(browser: httpx.Client, secret: str = SECRET, **more: str) -> httpx.Response:
    return browser.post("/login", data={"token": secret, **more})


def csrf_of(page: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page.text)
    assert found, page.text
    return found[1]


def test_a_token_is_sent_once_and_a_cookie_keeps_the_door_open(browser: httpx.Client) -> None:
    answer = log_in(browser)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert f"Max-Age={LASTS_S}" in cookie
    assert "Secure" not in cookie  # over plain HTTP a browser would throw it away
    assert SECRET not in cookie
    assert browser.get("/").status_code == 200


def test_over_tls_the_cookie_stays_there(service: HttpService) -> None:
    """Behind a proxy that ends TLS: the browser says which page the form was on."""
    host = "127.0.0.1"
    with httpx.Client(base_url=service.url, trust_env=False, headers=HTML) as client:
        headers = {"Origin": f"https://{host}", "Host": host}
        answer = client.post("/login", data={"token": SECRET}, headers=headers)
        assert "Secure" in answer.headers["set-cookie"]


def test_a_page_sends_a_browser_to_the_login_and_back(browser: httpx.Client) -> None:
    sent = browser.get("/rank?run=1&tag=a b")
    assert sent.status_code == 303
    where = urlsplit(sent.headers["location"])
    assert where.path == "/login"
    back = parse_qs(where.query)["next"][0]
    assert back == "/rank?run=1&tag=a%20b"
    page = browser.get(sent.headers["location"])
    assert page.status_code == 200
    assert 'value="/rank?run=1&amp;tag=a%20b"' in page.text
    assert log_in(browser, next=back).headers["location"] == back
    # Who is logged in already is sent on.
    assert browser.get("/login?next=/rank").headers["location"] == "/rank"


@pytest.mark.parametrize("path", ["/v1/runs", "/mcp", "/metrics", "/openapi.json", "/v1/judges"])
def test_the_api_answers_browsers_without_a_token_as_it_answers_programs(
    browser: httpx.Client, path: str
) -> None:
    problem(browser.get(path), 401, "unauthorized")


def test_programs_are_told_of_the_token_also_on_pages(service: HttpService) -> None:
    problem(service.client.get("/"), 401, "unauthorized")


def test_wrong_tokens_are_slowed_down_and_the_right_one_with_them(
    tmp_path: Any,
) -> None:
    config = ServerConfig(
        store=str(tmp_path / "service.db"),
        port=0,
        tokens=FULL,
        limits=ServerLimits(failures_per_minute=3),
    )
    made = HttpService(config)
    made.start()
    try:
        with browsing(made) as inside, browsing(made) as browser:
            assert log_in(inside).status_code == 303
            statuses = [log_in(browser, f"guess-{n:020}").status_code for n in range(5)]
            assert statuses == [401, 401, 401, 429, 429]
            late = log_in(browser)
            assert late.status_code == 429
            assert SESSION_COOKIE not in late.headers.get("set-cookie", "")
            # Guessing by one way is guessing by the other.
            bearer = {"Authorization": f"Bearer {SECRET}"}
            assert browser.get("/v1/runs", headers=bearer).status_code == 429
            # Who is logged in does not pay for others at the same address.
            assert inside.get("/").status_code == 200
    finally:
        made.close()


def test_a_wrong_token_gets_the_form_again_and_nothing_of_itself(browser: httpx.Client) -> None:
    answer = log_in(browser, "<script>wrong</script>", next="/rank")
    assert answer.status_code == 401
    assert "Unknown token" in answer.text
    assert "wrong&lt;" not in answer.text
    assert "<script>wrong" not in answer.text
    assert 'name="next" value="/rank"' in answer.text
    zh = browser.post("/login", data={"token": "no"}, headers={"Accept-Language": "zh"})
    assert "令牌" in zh.text


@pytest.mark.parametrize(
    "next_",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "/x\\..",
        "javascript:alert(1)",
        "evil.example",
        "/\t/evil.example",
        "/\r\nSet-Cookie: x=y",
        "/v1/runs",
        "/mcp",
        "/login",
        "/logout",
        "",
    ],
)
def test_nobody_is_sent_elsewhere_after_the_login(browser: httpx.Client, next_: str) -> None:
    answer = log_in(browser, next=next_)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@given(st.text() | st.from_regex(r"[/\\]{1,3}[a-z./\\]{0,10}"))
def test_the_way_back_never_leaves_the_server(wanted: str) -> None:
    back = way_back(wanted)
    if back is None:
        return
    parts = urlsplit(back)
    assert (parts.scheme, parts.netloc) == ("", "")
    assert back.startswith("/")
    assert back[1:2] not in ("/", "\\")
    assert is_page(parts.path)


def test_a_path_that_looks_like_another_server_is_no_way_back(service: HttpService) -> None:
    headers = HTML | {"Host": "localhost"}
    answer = service.client.get(f"{service.url}//evil.example/x", headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


def test_a_link_from_another_site_finds_who_is_logged_in_by_asking_again(
    service: HttpService,
) -> None:
    """A strict cookie does not come along with it, nor with where it is sent from there."""
    with httpx.Client(base_url=service.url, trust_env=False, headers=HTML) as client:
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        sent = client.get("/runs/1/vote", headers=headers)
        page = client.get(sent.headers["location"], headers=headers)
        assert '<meta http-equiv="refresh" content="0; url=/login?next=/runs/1/vote">' in page.text
        own = client.get(sent.headers["location"], headers={"Sec-Fetch-Site": "same-origin"})
        assert "refresh" not in own.text


def test_what_is_sent_to_log_in_is_in_no_log(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even where the operator wants texts: a form writes a secret in another spelling."""
    config = ServerConfig(
        store=str(tmp_path / "service.db"), port=0, tokens=FULL, voters=(VOTER,), log_texts=True
    )
    made = HttpService(config)
    with caplog.at_level("INFO", logger="evenhand.serve"):
        made.start()
        try:
            with browsing(made) as browser:
                assert log_in(browser).status_code == 303
                assert log_in(browser, "wrong+secret/wrong==").status_code == 403
                browser.cookies.clear()
                assert log_in(browser, "wrong+secret/wrong==").status_code == 401
                assert browser.get("/login?lang=zh").status_code == 200
        finally:
            made.close()
    lines = [line for line in caplog.messages if "/login" in line]
    assert len(lines) == 4
    assert all("token=" not in line and "0123456789" not in line for line in lines)


# -- Forged and stale cookies ----------------------------------------------------------------


def test_no_cookie_but_our_own_opens_anything(browser: httpx.Client) -> None:
    log_in(browser)
    cookie = browser.cookies[SESSION_COOKIE]
    assert SECRET not in cookie
    name, ends, nonce, mac = cookie.split(":")
    forged = [
        "",
        ":::",
        f"anna:{ends}:{nonce}:{mac}",
        f"vera:{ends}:{nonce}:{mac}",
        f"{name}:{int(ends) + 1}:{nonce}:{mac}",
        f"{name}:{ends}:{nonce}x:{mac}",
        f"{name}:{ends}:{nonce}:{mac[:-1]}",
        f"{name}:{ends}:{nonce}:{mac.upper()}",
        f"{name}:{ends}:{nonce}:",
        f"{name}:{ends}:{nonce}:é",
        f"{name}:{'9' * 300}:{nonce}:{mac}",
        SECRET,
        f"ci={SECRET}",
    ]
    browser.cookies.clear()
    for each in forged:
        sent = {b"Cookie": f"{SESSION_COOKIE}={each}".encode()}
        assert browser.get("/", headers=sent).status_code == 303, each
    sent = {b"Cookie": f"{SESSION_COOKIE}={cookie}".encode()}
    assert browser.get("/", headers=sent).status_code == 200


@given(st.text(max_size=400))
def test_what_was_not_written_here_is_no_session(cookie: str) -> None:
    assert Sessions(FULL).find(cookie) is None
    assert Sessions(FULL).find(f"ci:{cookie}") is None


@given(st.integers(0, 500), st.characters())
def test_a_cookie_with_any_character_changed_is_no_session(place: int, other: str) -> None:
    sessions = Sessions(FULL)
    cookie = sessions.begin(FULL[0])
    place %= len(cookie)
    changed = cookie[:place] + other + cookie[place + 1 :]
    assert (sessions.find(changed) is not None) == (changed == cookie)


def test_a_session_ends_and_every_worker_knows_it() -> None:
    now = 1_000.0
    first, second = Sessions(FULL, clock=lambda: now), Sessions(FULL, clock=lambda: now)
    cookie = first.begin(FULL[0])
    found = second.find(cookie)
    assert found is not None
    assert found.token is FULL[0]
    assert found == first.find(cookie)
    now += LASTS_S
    assert second.find(cookie) is None


def test_each_login_has_a_form_secret_of_its_own() -> None:
    sessions = Sessions(FULL)
    found = [sessions.find(sessions.begin(FULL[0])) for _ in range(3)]
    assert len({each.csrf for each in found if each}) == 3


@pytest.mark.parametrize(
    "now",
    [
        (Token("ci", OTHER),),
        (Token("anna", SECRET),),
        (Token("ci", SECRET, votes_only=True),),
        (),
    ],
)
def test_a_token_that_changes_takes_its_sessions_with_it(now: tuple[Token, ...]) -> None:
    cookie = Sessions((Token("ci", SECRET),)).begin(Token("ci", SECRET))
    assert Sessions(now).find(cookie) is None


# -- Forms of other sites --------------------------------------------------------------------


def test_logging_out_needs_the_sessions_own_form(browser: httpx.Client) -> None:
    log_in(browser)
    csrf = csrf_of(browser.get("/"))
    for data in ({}, {"csrf": ""}, {"csrf": csrf[:-1]}, {"csrf": "x"}):
        assert browser.post("/logout", data=data).status_code == 403
    assert browser.get("/").status_code == 200
    flag = "/runs/1/pairs/1/flag"
    assert browser.post(flag, data={"name": "mine"}).status_code == 403
    assert browser.post(flag, data={"name": "mine", "csrf": csrf}).status_code == 404
    answer = browser.post("/logout", data={"csrf": csrf})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert browser.get("/").status_code == 303


def test_a_copy_of_the_cookie_opens_nothing_after_the_logout(service: HttpService) -> None:
    with browsing(service) as one, browsing(service) as thief, browsing(service) as other:
        log_in(one)
        log_in(other)
        copied = one.cookies[SESSION_COOKIE]
        thief.cookies.set(SESSION_COOKIE, copied)
        assert thief.get("/").status_code == 200
        assert one.post("/logout", data={"csrf": csrf_of(one.get("/"))}).status_code == 303
        assert thief.get("/").status_code == 303
        assert thief.get("/v1/runs").status_code == 401
        # Every worker, and the next start, asks the same store.
        store = service.config.store
        again = HttpService(
            ServerConfig(
                store=store, port=0, tokens=FULL, limits=ServerLimits(failures_per_minute=1000)
            )
        )
        again.start()
        try:
            with browsing(again) as elsewhere:
                elsewhere.cookies.set(SESSION_COOKIE, copied)
                assert elsewhere.get("/").status_code == 303
                elsewhere.cookies.clear()
                elsewhere.cookies.set(SESSION_COOKIE, other.cookies[SESSION_COOKIE])
                assert elsewhere.get("/").status_code == 200
        finally:
            again.close()
        # Another login of the same person is another session.
        assert other.get("/").status_code == 200
        assert log_in(one).status_code == 303
        assert one.get("/").status_code == 200


def test_one_sessions_form_is_not_anothers(service: HttpService) -> None:
    with browsing(service) as one, browsing(service) as other:
        log_in(one)
        log_in(other)
        csrf = csrf_of(one.get("/"))
        assert other.post("/logout", data={"csrf": csrf}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {},
    ],
)
def test_a_form_of_another_site_is_refused_with_the_cookie_and_the_secret(
    service: HttpService, headers: dict[str, str]
) -> None:
    with browsing(service) as browser:
        log_in(browser)
        csrf, cookie = csrf_of(browser.get("/")), browser.cookies[SESSION_COOKIE]
    sent = {"Cookie": f"{SESSION_COOKIE}={cookie}", **headers}
    for path, data in (
        ("/logout", {"csrf": csrf}),
        ("/logout", None),
        ("/login", {"token": OTHER}),
    ):
        answer = service.client.post(path, data=data, headers=sent)
        assert answer.status_code == 403, path
        assert "set-cookie" not in answer.headers


# -- What a cookie opens of the API ----------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/judges"])
def test_pages_may_fetch_the_little_that_they_need(browser: httpx.Client, path: str) -> None:
    log_in(browser)
    assert browser.get(path).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/compare"),
        ("POST", "/v1/runs"),
        ("POST", "/v1/runs/1/cancel"),
        ("POST", "/v1/runs/1/resume"),
        ("GET", "/v1/runs/1/verdicts"),
        ("GET", "/v1/runs/1/report"),
        ("GET", "/v1/rank?run=1"),
        ("POST", "/v1/audits"),
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
    ],
)
def test_a_cookie_opens_nothing_else_of_the_api(
    browser: httpx.Client, method: str, path: str
) -> None:
    log_in(browser)
    answer = browser.request(method, path, json={} if method == "POST" else None)
    problem(answer, 401, "unauthorized")


# -- Voters ----------------------------------------------------------------------------------

CLOSED = [
    *("/", "/rank", "/try", "/runs/1", "/runs/1/pairs", "/runs/1/pairs/1", "/runs/1/audit"),
    *("/runs/1/votes", "/runs/1/vote/", "/runs/1/vote/x", "/runs/a/b/vote", "/runs/1/pairs.csv"),
    *("/runs/1/charts/outcomes.svg", "/v1/runs", "/v1/judges", "/v1/runs/1", "/v1/runs/1/events"),
    *("/mcp", "/metrics", "/openapi.json", "/readyz", "/nothing"),
]


@pytest.mark.parametrize("path", CLOSED)
def test_a_voter_sees_nothing_but_where_to_vote(browser: httpx.Client, path: str) -> None:
    log_in(browser, VOTERS)
    for method in ("GET", "POST", "HEAD", "PUT", "DELETE"):
        answer = browser.request(method, path)
        assert answer.status_code == 403, (method, path)
    page = browser.get("/")
    assert "for voting only" in page.text
    assert 'href="/rank"' not in page.text


@pytest.mark.parametrize("path", ["/v1/runs", "/mcp", "/", "/runs/1/vote", "/v1/compare"])
def test_a_voters_token_is_no_bearer_token(service: HttpService, path: str) -> None:
    headers = {"Authorization": f"Bearer {VOTERS}"}
    problem(service.client.get(path, headers=headers), 403, "forbidden")


def test_a_voter_is_sent_to_the_run_to_vote_on_and_nowhere_else(browser: httpx.Client) -> None:
    assert log_in(browser, VOTERS, next="/runs/7/vote").headers["location"] == "/runs/7/vote"
    assert log_in_again(browser, next="/rank").headers["location"] == "/login"
    page = browser.get("/login")
    assert page.status_code == 200
    assert "logged in as vera" in page.text


def log_in_again(browser: httpx.Client, **more: str) -> httpx.Response:
    data = {"token": VOTERS, "csrf": csrf_of(browser.get("/login")), **more}
    return browser.post("/login", data=data)


def test_voters_tokens_come_with_names_and_beside_full_ones() -> None:
    read = read_tokens(f"vera={VOTERS}, tom={OTHER}", votes_only=True)
    assert [(token.name, token.votes_only) for token in read] == [("vera", True), ("tom", True)]
    with pytest.raises(SettingsError, match="token 1 in EVENHAND_VOTER_TOKEN has no name"):
        read_tokens(VOTERS, votes_only=True)
    with pytest.raises(SettingsError, match="token vera in EVENHAND_VOTER_TOKEN has 5 char"):
        read_tokens("vera=short", votes_only=True)
    for host in ("127.0.0.1", "0.0.0.0"):
        with pytest.raises(SettingsError, match="set EVENHAND_TOKEN too"):
            ServerConfig(host=host, voters=(VOTER,))
    with pytest.raises(SettingsError, match="two tokens are named 'vera'"):
        ServerConfig(tokens=(Token("vera", SECRET),), voters=(VOTER,))
    with pytest.raises(SettingsError, match="the same secret") as refused:
        ServerConfig(tokens=(Token("ci", VOTERS),), voters=(VOTER,))
    assert VOTERS not in str(refused.value)


def test_without_tokens_there_is_nothing_to_log_in_to(tmp_path: Any) -> None:
    made = HttpService(ServerConfig(store=str(tmp_path / "service.db"), port=0))
    made.start()
    try:
        with browsing(made) as browser:
            assert browser.get("/").status_code == 200
            assert browser.get("/login?next=/rank").headers["location"] == "/rank"
            assert "csrf" not in browser.get("/").text
            assert log_in(browser, SECRET).status_code == 401
    finally:
        made.close()
