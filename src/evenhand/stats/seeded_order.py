"""A seeded random order, the same after a crash."""

from __future__ import annotations

from hashlib import blake2b


def order_key(prompt: str, *, seed: int) -> int:
    """A number below 2^63 by which to sort prompts in a seed's order.

    Depends on the prompt and the seed alone: prompts added later do not change the others' order.
    """
    # Data may hold lone surrogates, which plain UTF-8 refuses.
    text = prompt.encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=8, key=_key(seed)).digest()
    return int.from_bytes(digest, "big") >> 1


def _key(seed: int) -> bytes:
    return b"evenhand:%d" % seed
