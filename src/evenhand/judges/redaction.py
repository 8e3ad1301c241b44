"""Redacts our secrets from foreign text, in messages and answers."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from evenhand.judges.protocol import Completion, TokenLogprob

_CUT = "***"
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)(?:_\d+)?$", re.IGNORECASE)
# A variable named …KEY may hold a plain word; only possible secrets are redacted.
_LEAST_SECRET = 8
# Placeholder keys ("none", "not-needed", "12345678") are words that answers use too; shorter ones
# are redacted only as whole words.
_LEAST_WORD = 16
_WORDS = re.compile(r"(?!sk-|gsk_|xai-|hf_)[A-Za-z]+(?:[-_ ][A-Za-z]+)*|\d+")
# A variable may name the file with the secret (GOOGLE_APPLICATION_CREDENTIALS).
_PATH = re.compile(r"[/~]|\.{1,2}[/\\]|[A-Za-z]:[/\\]")
# Parts of a secret this long are redacted; its public prefix ("sk-ant-api03-") is shorter. Any such
# part contains a whole block.
_LEAST_PART = 24
_BLOCK = 12
# Characters that a JSON writer or URL may escape needlessly; quotes and backslashes stay, since
# answers are often JSON.
_HEX = "(2[013-9a-fA-F]|[346][0-9a-fA-F]|5[0-9abd-fABD-F]|7[0-9a-eA-E])"
# Escaped once, or repeatedly, as JSON inside JSON is.
_ESCAPED = (
    ("\\u00", re.compile(r"(?<!\\)\\++u00" + _HEX)),
    ("\\x", re.compile(r"(?<!\\)\\++x" + _HEX)),
    ("%", re.compile(r"%(?:25)*" + _HEX)),
)


def secrets_in(environment: Mapping[str, str]) -> Iterator[str]:
    """The values of variables whose names suggest a secret."""
    for name, value in environment.items():
        secret = value.strip()
        if len(secret) < _LEAST_SECRET or _PATH.match(secret):
            continue
        if _SECRET_NAME.search(name):
            yield secret


class Redactor:
    """Redacts known secrets, in any encoding."""

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

    def __init__(self, secrets: Iterable[str] = (), *, others: Iterable[str] = ()) -> None:
        """`others`: secrets that the text's author was never sent; looked for only verbatim and
        whole, one search each."""
        known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        unsent = {secret for secret in others if _is_no_word(secret)}.difference(known)
        self._unsent = sorted(unsent, key=len, reverse=True)
        # A placeholder key such as "none" is a word of most messages.
        forms = [
            form for secret in known if len(secret) >= _LEAST_SECRET for form in _forms(secret)
        ]
        self._longest = max(map(len, forms), default=0)
        self._known = sorted(forms, key=len, reverse=True)
        self._secrets = [secret for secret in known if _is_no_word(secret)]
        # Substrings without which none of the secrets can occur; searched in every answer.
        self._needles = tuple(
            dict.fromkeys(
                (*(n for secret in self._secrets for n in _needles(secret)), *self._unsent)
            )
        )

    def __call__(self, text: str, *, limit: int = 200) -> str:
        """Shortened to one line for a message, without anything that looks like a secret."""
        whole = self._redacted(text[: self._LOOKED_AT])
        if len(text) > self._LOOKED_AT and self._longest:
            whole = whole[: -self._longest]  # the cut may have left the front of a secret
        line = self._redacted(self._UNPRINTABLE.sub(" ", whole).strip())
        return line if len(line) <= limit else line[: limit - 1] + "…"

    def _redacted(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, _CUT)
        return self._LOOKS_SECRET.sub(_CUT, self.cut(text))

    def cut(self, text: str) -> str:
        """The text without known secrets; usually unchanged."""
        has = text.__contains__
        if any(map(has, self._needles)):
            text = self._without(text)
        if not self._secrets:
            return text
        for mark, escaped in _ESCAPED:
            if has(mark) and escaped.search(text):
                read = escaped.sub(_character, text)
                if any(map(read.__contains__, self._needles)):
                    cut = self._without(read)
                    text = text if cut == read else cut
        return text

    def clean(self, completion: Completion) -> Completion:
        """The completion without secrets, wherever a server may have put them."""
        changes: dict[str, object] = {}
        for name in ("text", "tool_arguments", "refusal", "model", "request_id"):
            text: str | None = getattr(completion, name)
            if text and (cut := self.cut(text)) != text:
                changes[name] = cut
        if completion.logprobs:  # only the first place is ever quoted
            first = self._clean_place(completion.logprobs[0])
            if first != completion.logprobs[0]:
                changes["logprobs"] = (first, *completion.logprobs[1:])
        # By field name, which the type checker cannot follow.
        return replace(completion, **changes) if changes else completion  # type: ignore[arg-type]

    def _clean_place(self, place: TokenLogprob) -> TokenLogprob:
        top = tuple((self.cut(token), logprob) for token, logprob in place.top)
        return replace(place, token=self.cut(place.token), top=top)

    def _without(self, text: str) -> str:
        for secret in self._secrets:
            for form in _forms(secret):
                text = _without_whole(text, form) if form == secret else text.replace(form, _CUT)
            text = _without_parts(text, secret)
        for secret in self._unsent:
            text = _without_whole(text, secret)
        return text


def _is_no_word(secret: str) -> bool:
    if len(secret) >= _LEAST_WORD:
        return True
    return len(secret) >= _LEAST_SECRET and not _WORDS.fullmatch(secret)


def _without_whole(text: str, secret: str) -> str:
    if len(secret) >= _LEAST_WORD:
        return text.replace(secret, _CUT)
    return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", _CUT, text)


def _forms(secret: str) -> list[str]:
    """The secret as such, and as JSON, URLs, HTML, headers or logs write it, longest first, since
    one may contain another."""
    as_json = [json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]]
    forms = {secret, *as_json, *(each.replace("/", "\\/") for each in as_json)}
    forms |= {json.dumps(each)[1:-1] for each in as_json} | {repr(each)[1:-1] for each in as_json}
    forms |= {repr(secret)[1:-1], quote(secret, safe=""), quote(secret), quote_plus(secret)}
    # With both kinds of quotes in a text, Python escapes the single ones.
    forms |= {repr(each)[1:-1].replace("'", "\\'") for each in (secret, *as_json)}
    forms |= {html.escape(secret), html.escape(secret, quote=False)}
    forms |= set(_in_base64(secret))
    return sorted(forms, key=len, reverse=True)


def _in_base64(secret: str) -> Iterator[str]:
    """The parts that do not depend on its offset in base64 ("user:secret")."""
    raw = secret.encode("utf-8", "surrogatepass")
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw).decode()
        begins = (0, 2, 3)[before]
        ends = (before + len(raw)) * 8 // 6
        core = encoded[begins:ends]
        yield core
        yield core.replace("+", "-").replace("/", "_")


def _needles(secret: str) -> Iterator[str]:
    """Without one of these a text contains neither the secret nor a redactable part."""
    if len(secret) < _LEAST_PART:
        yield secret
    else:
        yield from (secret[at : at + _BLOCK] for at in range(0, len(secret) - _BLOCK + 1, _BLOCK))
    yield from (form for form in _forms(secret) if not _has_block(form, secret))


def _has_block(form: str, secret: str) -> bool:
    if len(secret) < _LEAST_PART:
        return secret in form
    return any(
        secret[at : at + _BLOCK] in form for at in range(0, len(secret) - _BLOCK + 1, _BLOCK)
    )


def _without_parts(text: str, secret: str) -> str:
    if len(secret) < _LEAST_PART:
        return text
    for at in range(0, len(secret) - _BLOCK + 1, _BLOCK):
        block = secret[at : at + _BLOCK]
        place = text.find(block)
        parts: list[str] = []
        copied_to = 0
        while place >= 0:
            first, last = at, at + _BLOCK  # of the secret
            start, end = place, place + _BLOCK  # of the text
            while first and start > copied_to and text[start - 1] == secret[first - 1]:
                first, start = first - 1, start - 1
            while last < len(secret) and end < len(text) and text[end] == secret[last]:
                last, end = last + 1, end + 1
            if end - start >= _LEAST_PART:
                parts += (text[copied_to:start], _CUT)
                copied_to = end
            place = text.find(block, end)
        if copied_to:
            text = "".join((*parts, text[copied_to:]))
    return text


def _character(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1], 16))


def shown_url(text: str) -> str:
    """A URL as typed, valid or not, without credentials and query."""
    return re.sub(r"^(.*//)?.*@", r"\1", Redactor()(text).partition("?")[0])
