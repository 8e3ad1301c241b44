"""A random order that a seed names: the same after a crash."""

from __future__ import annotations

from hashlib import blake2b


def order_key(prompt: str, *, seed: int) -> int:
    """A number below 2^63 that places a prompt in the order of a seed; sort by it.

    It depends on the prompt and the seed alone: prompts that are added later fall among the
    others and change nobody's place before them.
    """
    # Texts from data may hold half of a surrogate pair, which plain UTF-8 refuses.
    text = prompt.encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=8, key=_key(seed)).digest()
    return int.from_bytes(digest, "big") >> 1


def _key(seed: int) -> bytes:
    return b"evenhand:%d" % seed
