"""Who is logged in on pages: a cookie that says so, which only this server can have written.

It holds the token's name, when it ends and a MAC of that; never the token. The MAC's key comes from
the token itself: all workers agree on it, it outlives a restart, a token that is taken away takes
its sessions with it, and whoever has a cookie learns nothing of other people's tokens. Who logs
out is written down in the store until the session would have ended: a copy of the cookie is worth
nothing then, to any worker.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from evenhand.serve.config import Token

SESSION_COOKIE = "evenhand_session"
LASTS_S = 7 * 24 * 3600
_ENDS = re.compile(r"[0-9]{1,12}")
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Session:
    """`csrf` is what every form of this session's pages carries; `id` names it where it is written
    down that somebody logged out, and lets nobody in."""

    token: Token
    csrf: str
    id: str
    ends_at: int


class Sessions:
    def __init__(self, tokens: Sequence[Token], *, clock: Callable[[], float] = time.time) -> None:
        self._tokens = {token.name: token for token in tokens}
        self._keys = {token.name: _key_of(token) for token in tokens}
        self._clock = clock

    def begin(self, token: Token) -> str:
        """The cookie's value, another one for every login."""
        ends = int(self._clock()) + LASTS_S
        said = f"{token.name}:{ends}:{secrets.token_urlsafe(12)}"
        return f"{said}:{self._mac(token.name, said, of='session')}"

    def find(self, cookie: str) -> Session | None:
        """None where it was not written here, or has ended, or its token is gone."""
        if len(cookie) > _LONGEST:
            return None
        said, _, mac = cookie.rpartition(":")
        name, _, rest = said.partition(":")
        token = self._tokens.get(name)
        if token is None or not hmac.compare_digest(
            mac.encode(), self._mac(name, said, of="session").encode()
        ):
            return None
        ends = rest.partition(":")[0]
        if not _ENDS.fullmatch(ends) or int(ends) <= self._clock():
            return None
        return Session(
            token, self._mac(name, said, of="form"), self._mac(name, said, of="id"), int(ends)
        )

    def _mac(self, name: str, said: str, *, of: str) -> str:
        text = f"{of}\0{said}".encode()
        return blake2b(text, key=self._keys[name], digest_size=24).hexdigest()


def _key_of(token: Token) -> bytes:
    what = b"voter" if token.votes_only else b"full"
    secret = blake2b(token.secret.encode(), person=b"evenhand-page").digest()
    return blake2b(what + b"\0" + token.name.encode(), key=secret, digest_size=32).digest()
