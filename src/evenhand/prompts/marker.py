"""The code on the lines that fence the material: nobody who writes a response can know it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256

from evenhand.contract import Pair

# 20 base-32 characters carry the first 100 bits of a digest, two characters every ten of them.
# `base64.b32encode` does the same in five times the time.
_DIGEST_BITS = 256
_SHIFTS = tuple(_DIGEST_BITS - 10 * place for place in range(1, 11))
_BASE_32 = "abcdefghijklmnopqrstuvwxyz234567"
_TWO_CHARACTERS = [first + second for first in _BASE_32 for second in _BASE_32]


def text_digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def response_digests(pair: Pair) -> tuple[bytes, bytes]:
    return text_digest(pair.response_a), text_digest(pair.response_b)


def marker_of(pair: Pair, responses: tuple[bytes, bytes] | None = None) -> str:
    """A code derived from the whole pair, the same in both orders, and absent from every text.

    A response takes part in its own marker, so writing the marker into a response changes it;
    that it is not there all the same is checked, and the next code taken if it is. `responses`
    are the digests of the two, where they are known already.
    """
    seed = _pair_digest(pair, responses or response_digests(pair))
    # No code has a line break, so none is found across two texts.
    lowered = "\n".join(_texts(pair)).lower()
    attempt = 0
    while True:
        digest = sha256(seed + attempt.to_bytes(4, "big")).digest()
        bits = int.from_bytes(digest, "big")
        code = "".join([_TWO_CHARACTERS[bits >> shift & 1023] for shift in _SHIFTS])
        if code not in lowered:
            return code
        attempt += 1


def _texts(pair: Pair) -> Iterator[str]:
    yield pair.prompt
    yield pair.response_a
    yield pair.response_b
    if pair.context is not None:
        yield pair.context
    if pair.reference is not None:
        yield pair.reference
    for criterion in pair.criteria:
        yield criterion.name
        if criterion.description is not None:
            yield criterion.description


def _pair_digest(pair: Pair, responses: tuple[bytes, bytes]) -> bytes:
    digests = [
        text_digest(pair.prompt),
        _optional_digest(pair.context),
        _optional_digest(pair.reference),
        *sorted(responses),
    ]
    for criterion in pair.criteria:
        digests += (_name_digest(criterion.name), _optional_digest(criterion.description))
    return sha256(b"".join(digests)).digest()


# The same few names stand in every pair of a run.
_name_digest = lru_cache(maxsize=256)(text_digest)


def _optional_digest(text: str | None) -> bytes:
    # An absent text and an empty one are different material.
    return bytes(32) if text is None else text_digest(text)
