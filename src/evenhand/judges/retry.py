"""How long a server asks to wait, and retries with backoff."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime

from evenhand.errors import JudgeError, JudgeRateLimited, SettingsError
from evenhand.judges.protocol import Completion, Judge, JudgeCall
from evenhand.judges.reply_limits import LONGEST_HEADER, number_in, wait_s
from evenhand.messages import Message

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|h|m|s))")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# A reset this large is a point in time, not a duration.
_EPOCH_S = 1e9
_EPOCH_MS = 1e12


def retry_after_s(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """How long the server asks to wait: its own figure, else its rate limits' resets."""
    now = time.time() if now is None else now
    milliseconds = number_in(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return wait_s(milliseconds / 1000)
    given = headers.get("retry-after")
    if given is not None:
        wait = number_in(given)
        if wait is None:
            wait = _until_date(given, now)
        if wait is not None:
            return wait_s(wait)
    return _until_reset(headers, now)


def _until_date(text: str, now: float) -> float | None:
    if len(text) > LONGEST_HEADER:
        return None
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _until_reset(headers: Mapping[str, str], now: float) -> float | None:
    """The longest reset of the exhausted limits; the shortest if none is marked as such."""
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
    """How long an exhausted rate limit lasts, by the headers."""
    pause: float | None = None
    for remaining, reset in _RATE_LIMITS:
        left = headers.get(remaining)
        if left is not None and number_in(left) == 0:
            wait = _duration(headers.get(reset), time.time() if now is None else now)
            if wait is not None:
                pause = wait if pause is None else max(pause, wait)
    return pause


def _duration(text: str | None, now: float) -> float | None:
    """Seconds in "1.5", "6m0s" or "250ms", or until a timestamp in (milli)seconds."""
    if text is None or len(text) > LONGEST_HEADER:
        return None
    number = number_in(text)
    if number is None:
        text = text.strip()
        parts = _DURATION.findall(text)
        if not parts or "".join(amount + unit for amount, unit in parts) != text:
            return None
        return wait_s(sum(float(amount) * _UNIT_S[unit] for amount, unit in parts))
    if number >= _EPOCH_MS:
        return wait_s(max(0.0, number / 1000 - now))
    if number >= _EPOCH_S:
        return wait_s(max(0.0, number - now))
    return wait_s(number)


_JITTER = random.Random()  # noqa: S311 - spreads calls in time, protects nothing


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` in all; before attempt n + 1, wait up to base_s · 2^(n-1), at most cap_s.

    429s, which say nothing about the call, count separately by `limited_attempts`. `patience_s` is
    the longest wait that a server may ask for, if above cap_s.
    """

    attempts: int = 4
    base_s: float = 0.5
    cap_s: float = 30.0
    limited_attempts: int | None = None
    patience_s: float | None = None
    # Called with the reason and length of each wait.
    notice: Callable[[JudgeError, float], None] | None = field(
        default=None, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        for attempts in (self.attempts, self.limited_attempts):
            if attempts is not None and attempts < 1:
                raise SettingsError.of("judges.attempts_outside", attempts=attempts)
        if self.base_s < 0 or self.cap_s < 0:
            raise SettingsError.of(
                "judges.retry_pause_outside", base_s=self.base_s, cap_s=self.cap_s
            )

    def wait_s(self, failed: int, rng: random.Random) -> float:
        """Full jitter, from zero to the whole step, to spread calls out."""
        # 2**1000 is still a float; cap_s has long decided by then.
        return rng.uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** min(failed - 1, 1000)))


async def ask_with_retries(
    judge: Judge,
    call: JudgeCall,
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    rng: random.Random | None = None,
) -> Completion:
    """The judge's answer; its usage counts failed attempts too."""
    failed = limited = 0
    failed_requests = 0
    while True:
        try:
            completion = await judge.ask(call)
        except JudgeError as error:
            failed += 1
            limited += policy.limited_attempts is not None and isinstance(error, JudgeRateLimited)
            failed_requests += error.requests
            asked_s = error.retry_after_s
            most_s = max(policy.cap_s, policy.patience_s or 0.0)
            too_long = error.retryable and asked_s is not None and asked_s > most_s
            if too_long or not error.retryable or _is_spent(policy, failed - limited, limited):
                if too_long:
                    wait = {"asked_s": asked_s, "most_s": most_s}
                    error.reword(Message("judges.asks_to_wait", error=error.message, **wait))
                if failed > 1:
                    error.reword(Message("judges.tried", error=error.message, n=failed))
                error.requests = failed_requests
                raise
            wait_s = max(policy.wait_s(failed, rng or _JITTER), asked_s or 0.0)
            if policy.notice is not None:
                policy.notice(error, wait_s)
        else:
            return _with_requests(completion, failed_requests) if failed_requests else completion
        await sleep(wait_s)


def _is_spent(policy: RetryPolicy, failed: int, limited: int) -> bool:
    most_limited = policy.limited_attempts
    return failed >= policy.attempts or (most_limited is not None and limited >= most_limited)


def _with_requests(completion: Completion, failed_requests: int) -> Completion:
    requests = completion.usage.requests + failed_requests
    return replace(completion, usage=completion.usage.model_copy(update={"requests": requests}))
