"""The loopback server's faults: how often each comes, and what is sent instead of an answer.

A fault is drawn from the request's digest, how often that request came before, and a seed: the
same requests meet the same faults, and asking again may help.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

from benchmarks.answers import completion, evenhand_answer, http_reply, text_message

Fault = Literal["429", "500", "never", "half", "nonsense"]

SHARES: tuple[tuple[Fault, float], ...] = (
    ("429", 0.10),
    ("500", 0.05),
    ("never", 0.02),
    ("half", 0.02),
    ("nonsense", 0.03),
)

_ERROR = b'{"error": {"message": "loopback fault", "type": "fault", "param": null, "code": null}}'
_TOO_MANY = (
    http_reply(_ERROR, status="429 Too Many Requests"),
    http_reply(_ERROR, status="429 Too Many Requests", headers="Retry-After-Ms: 50\r\n"),
)
_FAILED = http_reply(_ERROR, status="500 Internal Server Error")


def draw_fault(digest: bytes, times_seen: int, seed: int) -> tuple[Fault, int] | None:
    """The fault that this request meets, if any, and a number to choose its variant by."""
    salt = f"{seed}/{times_seen}".encode()
    drawn = int.from_bytes(blake2b(digest, digest_size=8, key=salt).digest(), "big")
    left = (drawn >> 8) / 2**56
    for fault, share in SHARES:
        if left < share:
            return fault, drawn & 0xFF
        left -= share
    return None


def faulty_reply(fault: Fault, variant: int, *, whole: bytes) -> tuple[bytes, bool]:
    """What is written, and whether the connection is closed after it."""
    match fault:
        case "429":
            return _TOO_MANY[variant % 2], False
        case "500":
            return _FAILED, False
        case "never":
            return b"", False
        case "half":
            body = whole.index(b"\r\n\r\n") + 4
            return whole[: body + (len(whole) - body) // 2], True
        case "nonsense":
            return _NONSENSE[variant % len(_NONSENSE)], False


def _nonsense() -> tuple[bytes, ...]:
    """Four ways to answer HTTP 200 and say nothing that can be read as a verdict."""
    answer = evenhand_answer("A", "usual")
    return (
        http_reply(completion(text_message("Seventeen purple umbrellas hum in the pantry."))),
        http_reply(completion(text_message(answer[: answer.index('"comparison"')]))),
        http_reply(completion(text_message(""))),
        http_reply(b"<html><head><title>Just a moment</title></head><body>Wait</body></html>"),
    )


_NONSENSE = _nonsense()
