"""Pairs for the server, as request bodies, and whether the answer to one is right."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from benchmarks.answers import CRITERIA, NADIR, ZENITH

_FILLING = "It says what is known of the matter and where it is unsure. " * 12


def bodies() -> Iterator[bytes]:
    """Each is a pair of its own, of some two kilobytes; A is the better one."""
    number = 0
    while True:
        number += 1
        yield orjson.dumps(
            {
                "prompt": f"Question {number}: how does a tide come about?",
                "responseA": f"{_FILLING} {ZENITH} {number}",
                "responseB": f"{_FILLING} {NADIR} {number}",
                "criteria": list(CRITERIA),
            }
        )


def is_right(answer: bytes) -> bool:
    told = orjson.loads(answer)
    return bool(told["winner"] == "A" and told["metadata"]["outcome"] == "win")
