"""Where a judge is, and the proxy on the way there."""

from __future__ import annotations

import urllib.request

from yarl import URL

from evenhand.errors import SettingsError
from evenhand.judges.redaction import shown_url


def read_base_url(text: str) -> URL:
    """The base URL without trailing slashes; credentials and query are still in it."""
    try:
        url = URL(text.strip())
        usable = url.scheme in ("http", "https") and bool(url.host) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f"base URL {shown_url(text)!r} is not an http(s) address with a host; "
            "give e.g. https://api.openai.com/v1"
        )
    path = url.raw_path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return url.with_path(path, encoded=True).with_query(url.query)


def proxy_for(url: URL) -> URL | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for this address."""
    host = url.host or ""
    if urllib.request.proxy_bypass(host) or urllib.request.proxy_bypass(f"{host}:{url.port}"):
        return None
    given = urllib.request.getproxies().get(url.scheme)
    if not given:
        return None
    try:
        proxy = URL(given if "://" in given else f"http://{given}")
        usable = proxy.scheme in ("http", "https") and bool(proxy.host)
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f"{proxy_variable(url)} {shown_url(given)!r} is not an http(s) proxy; "
            f"give e.g. http://proxy.example:3128, or add {host} to NO_PROXY"
        )
    return proxy


def proxy_variable(url: URL) -> str:
    return f"{url.scheme.upper()}_PROXY"
