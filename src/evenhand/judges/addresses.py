"""Where judges' servers are, cut out of what clients and shared files say of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from yarl import URL

from evenhand.judges.transport import proxy_for
from evenhand.messages import Message

_THE_SERVER = "the judge's server"
# The values of a message that say where a judge is.
_PLACES = {
    "host": "judges.the_server",
    "host2": "judges.the_server",
    "base_url": "judges.the_server",
    "target": "judges.the_server",
    "proxy_shown": "judges.the_proxy",
}
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


class AddressRedactor:
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
        """A message's values say which are places; any other text is looked through for them."""
        if isinstance(message, Message):
            values = {name: self._hidden(name, each) for name, each in message.values.items()}
            return Message.of(message.code, values)
        for pattern, instead in self._rules:
            message = pattern.sub(instead, message)
        return message

    def _hidden(self, name: str, value: Any) -> Any:
        if name in _PLACES:
            return Message(_PLACES[name])
        return self(value) if isinstance(value, str) else value

    def _hide(self, text: str, instead: str) -> None:
        pattern = re.compile(rf"(?<![\w.-]){re.escape(text)}(?![\w-])", re.IGNORECASE)
        self._rules.append((pattern, instead))
