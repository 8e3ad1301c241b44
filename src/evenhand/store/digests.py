"""What makes two pairs the same pair: everything that a prompt depends on, and nothing else."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from evenhand.contract import Criterion, Pair

_VERSION = b"pair 1;"


def pair_digest(pair: Pair, salt: str | None = None) -> bytes:
    """Sixteen bytes over the texts, each with its length before it, so that none runs into another.

    The id and whether positions are swapped are the item's: no single pass depends on them.
    """
    digest = blake2b(_VERSION, digest_size=16)
    for text in (pair.prompt, pair.response_a, pair.response_b):
        digest.update(_sized(text))
    digest.update(_criteria(pair.criteria))
    for optional in (pair.context, pair.reference, salt):
        digest.update(_sized_or_none(optional))
    digest.update(b"t" if pair.allow_tie else b"f")
    return digest.digest()


def prompt_key(prompt: str, context: str | None) -> int:
    """What rows with the same question have in common, in every run and every store: 64 bits, with
    a sign, as both engines hold them. Some two of a million prompts share one by a chance of 3e-8.
    """
    asked = prompt.encode()
    if context is not None:
        asked += b"\xff" + context.encode()  # a byte that no UTF-8 has
    return int.from_bytes(blake2b(asked, digest_size=8).digest(), "little", signed=True)


def place_digest(source: str, row: int, turn: int = 1) -> bytes:
    place = b"%d;" % row if turn == 1 else b"%d:%d;" % (row, turn)
    return blake2b(place + source.encode(), digest_size=16).digest()


def _sized(text: str) -> bytes:
    encoded = text.encode()
    return b"%d:%s" % (len(encoded), encoded)


def _sized_or_none(text: str | None) -> bytes:
    return b"-" if text is None else _sized(text)


@lru_cache(maxsize=64)
def _criteria(criteria: tuple[Criterion, ...]) -> bytes:
    parts = [b"%d[" % len(criteria)]
    for criterion in criteria:
        weight = "" if criterion.weight is None else criterion.weight.hex()
        parts += (
            _sized(criterion.name),
            _sized_or_none(criterion.description),
            _sized(weight),
        )
    return b"".join(parts)
