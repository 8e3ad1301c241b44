"""What a page's form sends: from our own pages alone, small, and read into plain texts."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from evenhand.errors import Forbidden, InputError, WrongMediaType
from evenhand.messages import Message
from evenhand.serve.http.requests import media_type_of, refuse_encoded, whole_body
from evenhand.serve.security.access import sent_by_own_page

if TYPE_CHECKING:
    from evenhand.serve.service import Service


URLENCODED = "application/x-www-form-urlencoded"
_MOST_FIELDS = 100
_SMALL_BYTES = 64 * 1024
_BLOCK = 64 * 1024


class Fields:
    """A form's fields; a field that was left empty is one that was not given."""

    def __init__(self, given: Mapping[str, Sequence[str]]) -> None:
        self._given = {
            name: kept for name, values in given.items() if (kept := [v for v in values if v])
        }

    def get(self, name: str) -> str | None:
        values = self._given.get(name, ())
        if len(values) > 1:
            raise InputError(Message("serve.form_field_given_times", name=name, n=len(values)))
        return values[0] if values else None

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(self._given.get(name, ()))

    def needed(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise InputError(Message("serve.form_field_empty_fill", name=name))
        return value


def require_same_origin(request: Request) -> None:
    """Of every POST to a page: no other site's page may send it in somebody's name."""
    origins = [value.encode("latin-1") for value in request.headers.getlist("origin")]
    site = request.headers.get("sec-fetch-site")
    host = request.headers.get("host", "")
    if not sent_by_own_page(origins, None if site is None else site.encode("latin-1"), host):
        raise Forbidden(Message("serve.form_may_sent_server"))


def require_csrf(request: Request, fields: Fields) -> None:
    """Where somebody is logged in, a form carries what only that session's pages know."""
    expected: str | None = getattr(request.state, "csrf", None)
    if expected is None:
        return
    given = fields.get("csrf") or ""
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise Forbidden(Message("serve.form_session_open_page"))


async def read_form(request: Request, *, limit_bytes: int = _SMALL_BYTES) -> Fields:
    """A form without files, from one of our own pages, of the session that is logged in."""
    require_same_origin(request)
    refuse_encoded(request)
    kind, _ = media_type_of(request)
    body = await whole_body(request, limit_bytes=limit_bytes)
    if body and kind != URLENCODED:
        raise WrongMediaType(
            Message("serve.form_content_type_send", kind=kind[:60], urlencoded=URLENCODED)
        )
    service: Service = request.app.state.service
    fields = Fields(await service.read_in(body, _decoded))
    require_csrf(request, fields)
    return fields


def _decoded(body: bytes) -> dict[str, list[str]]:
    parts = body.split(b"&", _MOST_FIELDS)
    fields: dict[str, list[str]] = {}
    try:
        if len(parts) > _MOST_FIELDS or not body.isascii():
            raise ValueError
        for part in parts:
            if part:
                name, _, value = part.partition(b"=")
                fields.setdefault(_plain(name), []).append(_with_plain_lines(_plain(value)))
    except ValueError:
        raise InputError(Message("serve.body_form_page_server")) from None
    return fields


def _plain(encoded: bytes) -> str:
    """In blocks: each escape is an object on the way, and a block is soon done with."""
    spaced = encoded.replace(b"+", b" ")
    blocks, begin = [], 0
    while begin < len(spaced):
        end = begin + _BLOCK
        cut = spaced.rfind(b"%", end - 2, end)  # no escape is cut in two
        end = end if cut < 0 else cut
        blocks.append(unquote_to_bytes(spaced[begin:end]))
        begin = end
    return b"".join(blocks).decode()


def _with_plain_lines(text: str) -> str:
    """Browsers send the lines of a text with both signs of a line's end."""
    return text.replace("\r\n", "\n")
