"""How long a server asks to wait, by whichever header it says so."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|h|m|s))")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# A reset given as a number this large is a point in time, not a duration.
_EPOCH_S = 1e9
_EPOCH_MS = 1e12


def retry_after_s(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """How long the server asks to wait: its own figure first, then its rate limits' resets."""
    now = time.time() if now is None else now
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    if given is not None:
        wait = _number(given)
        if wait is None:
            wait = _until_date(given, now)
        if wait is not None:
            return wait
    return _until_reset(headers, now)


def _until_date(text: str, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _until_reset(headers: Mapping[str, str], now: float) -> float | None:
    """The longest reset of those limits that are used up; where none says so, the shortest."""
    pause = used_up_s(headers, now=now)
    if pause is not None:
        return pause
    resets = (_duration(headers.get(reset), now) for _, reset in _RATE_LIMITS)
    return min((wait for wait in resets if wait is not None), default=None)


_RATE_LIMITS = tuple(
    (f"x-ratelimit-remaining{what}", f"x-ratelimit-reset{what}")
    for what in ("-requests", "-tokens", "")
)


def used_up_s(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """How long nothing is left of a rate limit, where the headers say that nothing is."""
    pause: float | None = None
    for remaining, reset in _RATE_LIMITS:
        left = headers.get(remaining)
        if left is not None and _number(left) == 0:
            wait = _duration(headers.get(reset), time.time() if now is None else now)
            if wait is not None:
                pause = wait if pause is None else max(pause, wait)
    return pause


def _duration(text: str | None, now: float) -> float | None:
    """Seconds in "1.5", "6m0s" or "250ms", or until a point in time in (milli)seconds."""
    if text is None:
        return None
    number = _number(text)
    if number is None:
        text = text.strip()
        parts = _DURATION.findall(text)
        if not parts or "".join(amount + unit for amount, unit in parts) != text:
            return None
        return sum(float(amount) * _UNIT_S[unit] for amount, unit in parts)
    if number >= _EPOCH_MS:
        return max(0.0, number / 1000 - now)
    if number >= _EPOCH_S:
        return max(0.0, number - now)
    return number


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
