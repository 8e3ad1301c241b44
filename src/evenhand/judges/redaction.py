"""Foreign text made fit for a message: keys, logins and control characters cut out."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Redactor:
    """Makes foreign text fit for a message: one short line without secrets."""

    _LOOKS_SECRET = re.compile(
        r"(?i:\bbearer)\s+[^\s\"',;]+"
        r"|\bBasic\s+[A-Za-z0-9+/=]{8,}"
        r"|(?<![A-Za-z0-9])(?:sk-|gsk_|xai-|hf_|AIza)[\w*.\-]{6,}"
        r"|(?<=//)[^/\s@]+(?=@)"
    )
    _UNPRINTABLE = re.compile(
        r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+"
    )
    _LOOKED_AT = 4096

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._longest = len(known[0]) if known else 0
        # A stand-in key such as "x" is only cut out as a word of its own.
        self._known = [
            re.compile(re.escape(s) if len(s) >= 8 else rf"(?<!\w){re.escape(s)}(?!\w)")
            for s in known
        ]

    def __call__(self, text: str, *, limit: int = 200) -> str:
        whole = self._redacted(text[: self._LOOKED_AT])
        if len(text) > self._LOOKED_AT and self._longest:
            whole = whole[: -self._longest]  # the cut may have left the front of a secret
        line = self._redacted(self._UNPRINTABLE.sub(" ", whole).strip())
        return line if len(line) <= limit else line[: limit - 1] + "…"

    def _redacted(self, text: str) -> str:
        for secret in self._known:
            text = secret.sub("***", text)
        return self._LOOKS_SECRET.sub("***", text)


def shown_url(text: str) -> str:
    """An address as it was typed, well formed or not, without credentials and query."""
    return re.sub(r"^(.*//)?.*@", r"\1", Redactor()(text).partition("?")[0])
