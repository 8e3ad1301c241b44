"""Who may ask, and how often: tokens compared in constant time, and buckets that refill."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address
from multiprocessing.context import SpawnContext
from typing import Protocol

from evenhand.errors import SettingsError
from evenhand.serve.config import Token

LEAST_SECRET = 16  # characters
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_PRINTABLE = re.compile(r"[!-~]+")
# Beyond so many addresses the longest silent is forgotten.
_ADDRESSES = 10_000


VARIABLE = "EVENHAND_TOKEN"
VOTER_VARIABLE = "EVENHAND_VOTER_TOKEN"


def read_tokens(text: str, *, votes_only: bool = False) -> tuple[Token, ...]:
    """Secrets separated by commas, each with a name before it (ci=…) or none.

    Voters' always have one: votes are kept by it.
    """
    variable = VOTER_VARIABLE if votes_only else VARIABLE
    tokens = []
    for place, entry in enumerate((each.strip() for each in text.split(",")), start=1):
        if not entry:
            continue
        name, equals, secret = entry.partition("=")
        # Base64 ends in signs of equality.
        if not equals or not _NAME.fullmatch(name) or not secret.strip("="):
            name, secret = f"token{place}", entry
            if votes_only:
                raise SettingsError(
                    f"token {place} of {variable} says not whose it is; write anna=SECRET, "
                    "for votes are kept by the voter's name"
                )
        if not _PRINTABLE.fullmatch(secret):
            raise SettingsError(
                f"token {name} of {variable} holds a space or a sign that no header carries; "
                "use letters and digits"
            )
        if len(secret) < LEAST_SECRET:
            raise SettingsError(
                f"token {name} of {variable} has {len(secret)} characters; give it at least "
                f"{LEAST_SECRET} that nobody can guess, e.g. from: openssl rand -hex 24"
            )
        tokens.append(Token(name, secret, votes_only))
    return tuple(tokens)


class Tokens:
    def __init__(self, tokens: Sequence[Token]) -> None:
        # Digests are all of one length, so that not even that of a secret shows in the time.
        self._salt = secrets.token_bytes(32)
        self._digests = [(token, self._digest(token.secret.encode())) for token in tokens]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def find(self, presented: bytes) -> Token | None:
        """Every token is compared, also after one that fits."""
        digest = self._digest(presented)
        found = None
        for token, known in self._digests:
            if hmac.compare_digest(digest, known):
                found = token
        return found

    def _digest(self, secret: bytes) -> bytes:
        return blake2b(secret, key=self._salt, digest_size=32).digest()


class Ledger(Protocol):
    """Where buckets are kept: (how full it was, when) by a key."""

    def get(self, key: str) -> tuple[float, float] | None: ...

    def put(self, key: str, level: float, at: float) -> None: ...


class OwnLedger:
    """Of this process; bounded."""

    def __init__(self, most: int = _ADDRESSES) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def get(self, key: str) -> tuple[float, float] | None:
        return self._kept.get(key)

    def put(self, key: str, level: float, at: float) -> None:
        self._kept[key] = (level, at)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


class SharedLedger:
    """Of several processes, which inherit it: a limit holds for all of them together.

    Keys that are not known beforehand, addresses, share places by a hash that nobody outside can
    work out: now and then two of them are counted as one.

    Nothing is locked: a process that is killed while it has a lock would silence all the others.
    What two of them write in the same moment is off by one request.
    """

    def __init__(self, keys: Sequence[str], context: SpawnContext) -> None:
        self._places = {key: 2 * place for place, key in enumerate(keys)}
        self._salt = secrets.token_bytes(32)
        self._numbers = context.RawArray("d", 2 * (len(keys) + _ADDRESSES))

    def get(self, key: str) -> tuple[float, float] | None:
        place = self._place(key)
        level, at = self._numbers[place : place + 2]
        return (level, at) if at else None

    def put(self, key: str, level: float, at: float) -> None:
        place = self._place(key)
        self._numbers[place : place + 2] = [level, at]

    def _place(self, key: str) -> int:
        known = self._places.get(key)
        if known is not None:
            return known
        digest = blake2b(key.encode(), key=self._salt, digest_size=8).digest()
        return 2 * (len(self._places) + int.from_bytes(digest) % _ADDRESSES)


class Rate:
    """A bucket for each key, as large as a minute's worth; it refills evenly."""

    def __init__(
        self,
        per_minute: int,
        *,
        ledger: Ledger | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = float(per_minute)
        self._per_s = per_minute / 60
        self._ledger = ledger or OwnLedger()
        self._clock = clock

    def wait_s(self, key: str) -> float:
        """How long until one is left; 0 where one is."""
        return max(0.0, (1 - self._level(key)) / self._per_s)

    def take(self, key: str) -> float:
        """Take one, and 0; or leave it, and how long until there is one."""
        level = self._level(key)
        if level < 1:
            return (1 - level) / self._per_s
        self._ledger.put(key, level - 1, self._clock())
        return 0.0

    def _level(self, key: str) -> float:
        kept = self._ledger.get(key)
        if kept is None:
            return self._most
        level, at = kept
        return min(self._most, level + (self._clock() - at) * self._per_s)


@lru_cache(maxsize=4096)
def address_key(address: str) -> str:
    """Whom failures are counted for: a whole /64 of IPv6 is one household's."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(known, IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return f"{int(known) >> 64:x}/64"
    return str(known)
