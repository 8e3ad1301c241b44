"""Where a judge is stays with the operator: clients are told what failed, the log also where."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from yarl import URL

from evenhand.errors import JudgeError
from evenhand.judges import Completion, Judge, JudgeCall, Traits
from evenhand.judges.addresses import proxy_for
from evenhand.judges.protocol import identity_of, news_of
from evenhand.serve.logs import log

# A judge that is down fails every call; the log says so once in a while.
_LOGGED_EVERY_S = 10.0
_THE_SERVER = "the judge's server"
_REDIRECT = re.compile(r"\bredirects to \S+")
_ANY_SERVER = (
    (re.compile(r"\bhost name [^\s;]+"), f"host name of {_THE_SERVER}"),
    (re.compile(r"\badd [^\s;]+ to NO_PROXY"), f"add {_THE_SERVER} to NO_PROXY"),
    (re.compile(r"\bproxy [^\s;]+:\d+"), "proxy"),
    (re.compile(r"\bbase URL https?://[^\s;]+"), "base URL"),
    (re.compile(r"\bhttps?://[^\s;,)]+"), _THE_SERVER),
    # An IPv6 address has colons of its own, with or without brackets.
    (
        re.compile(r"(?<![\w.:[-])\[?(?:[\da-fA-F]*:){2,}[\da-fA-F]*\]?:\d{1,5}(?![\w-])"),
        _THE_SERVER,
    ),
    (re.compile(r"(?<![\w.-])(?=[\w.-]*[a-zA-Z.])[\w.-]+:\d{1,5}(?![\w-])"), _THE_SERVER),
)


class Discretion:
    """Cuts the addresses of a judge's servers, and of the proxy before them, out of a message."""

    def __init__(self, *base_urls: str | None) -> None:
        self._rules: list[tuple[re.Pattern[str], str]] = [(_REDIRECT, "redirects elsewhere")]
        given = [base_url for base_url in base_urls if base_url]
        for base_url in given:
            self._hide_server(base_url)
        hosts = [f"{url.host}:{url.port}" for url in map(URL, given)]
        self.address = ", ".join(hosts) or "no address"

    @classmethod
    def of_record(cls, settings: Mapping[str, Any]) -> Self:
        """For what a stored run says of its judge. The settings that it keeps tell one address;
        the other servers of a fleet may have been anywhere, so nothing like one is let through."""
        address = settings.get("base_url")
        if not isinstance(address, str):
            return cls()
        hide = cls(address)
        hide._rules += _ANY_SERVER
        return hide

    def _hide_server(self, base_url: str) -> None:
        url = URL(base_url)
        host, name = f"{url.host}:{url.port}", url.host or ""
        proxy = proxy_for(url)
        if proxy is not None:
            self._hide(f"proxy {proxy.host}:{proxy.port}", "proxy")
            self._hide(f"{proxy.host}:{proxy.port}", "the proxy")
        self._hide(f"base URL {base_url}", "base URL")
        self._hide(f"judge at {host}", "judge")
        self._hide(f"host name {name}", f"host name of {_THE_SERVER}")
        self._hide(f"add {name} to", f"add {_THE_SERVER} to")
        self._hide(base_url, _THE_SERVER)
        self._hide(host, _THE_SERVER)
        # A bare name may be a common word, which messages have for other reasons.
        if name == "localhost" or not name.isalpha():
            self._hide(name, _THE_SERVER)

    def __call__(self, message: str) -> str:
        for pattern, instead in self._rules:
            message = pattern.sub(instead, message)
        return message

    def _hide(self, text: str, instead: str) -> None:
        pattern = re.compile(rf"(?<![\w.-]){re.escape(text)}(?![\w-])", re.IGNORECASE)
        self._rules.append((pattern, instead))


class DiscreetJudge:
    """An offered judge as clients meet it."""

    def __init__(self, judge: Judge, *, offer: str, base_urls: Sequence[str] = ()) -> None:
        self._judge = judge
        self._offer = offer
        self._hide = Discretion(*base_urls)
        self._news = news_of(judge)
        self._logged_at: dict[str, float] = {}

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def traits(self) -> Traits:
        return self._judge.traits

    @property
    def identity(self) -> Mapping[str, object]:
        return identity_of(self._judge)

    async def ask(self, call: JudgeCall) -> Completion:
        try:
            return await self._judge.ask(call)
        except JudgeError as error:
            self._log(error)
            error.message = self._hide(error.message)
            error.args = (error.message,)
            raise
        finally:
            for each in self._news():
                what = "answers again" if each.kind is None else f"is left alone: {each.kind}"
                log.warning("judge %s: %s %s", self._offer, each.address, what)

    async def close(self) -> None:
        await self._judge.close()

    def _log(self, error: JudgeError) -> None:
        """Its kind alone: the message may quote what the judge was sent."""
        now = time.monotonic()
        if now - self._logged_at.get(error.kind, -_LOGGED_EVERY_S) >= _LOGGED_EVERY_S:
            self._logged_at[error.kind] = now
            log.warning("judge %s at %s: %s", self._offer, self._hide.address, error.kind)
