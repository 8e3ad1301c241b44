"""Ask a judge again when it is worth it: backing off, and waiting as long as the server asks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from evenhand.errors import JudgeError, JudgeRateLimited, JudgeServerError, SettingsError
from evenhand.judges.protocol import Completion, Judge, JudgeCall

_JITTER = random.Random()  # noqa: S311 - spreads calls in time, protects nothing


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` in all; before attempt n + 1, wait up to base_s · 2^(n-1), at most cap_s.

    Being told to slow down (429) says nothing of the call: where `limited_attempts` is given, those
    are counted apart from the others. `patience_s`: how long a server may ask to wait, where that
    is longer than cap_s.
    """

    attempts: int = 4
    base_s: float = 0.5
    cap_s: float = 30.0
    limited_attempts: int | None = None
    patience_s: float | None = None

    def __post_init__(self) -> None:
        for attempts in (self.attempts, self.limited_attempts):
            if attempts is not None and attempts < 1:
                raise SettingsError(f"attempts is {attempts}; give at least 1")
        if self.base_s < 0 or self.cap_s < 0:
            raise SettingsError(
                f"base_s is {self.base_s} and cap_s is {self.cap_s}; give seconds, 0 or more"
            )

    def wait_s(self, failed: int, rng: random.Random) -> float:
        """Full jitter: anything from nothing to the whole step, so that calls spread out."""
        # 2**1000 is still a float; beyond it the cap has long decided.
        return rng.uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** min(failed - 1, 1000)))


async def ask_with_retries(
    judge: Judge,
    call: JudgeCall,
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    rng: random.Random | None = None,
) -> Completion:
    """The judge's answer, its usage counting the failed attempts' requests too."""
    failed = limited = 0
    failed_requests = 0
    while True:
        try:
            completion = await judge.ask(call)
        except JudgeError as error:
            failed += 1
            limited += policy.limited_attempts is not None and isinstance(error, JudgeRateLimited)
            failed_requests += error.requests
            asked_s = _asked_to_wait_s(error)
            most_s = max(policy.cap_s, policy.patience_s or 0.0)
            too_long = error.retryable and asked_s is not None and asked_s > most_s
            if too_long or not error.retryable or _is_spent(policy, failed - limited, limited):
                if too_long:
                    _append(
                        error,
                        f"; the server asks to wait {asked_s:g} s, longer than the "
                        f"{most_s:g} s that a retry may wait; try again after that",
                    )
                if failed > 1:
                    _append(error, f" (tried {failed} times)")
                error.requests = failed_requests
                raise
        else:
            return _with_requests(completion, failed_requests) if failed_requests else completion
        await sleep(max(policy.wait_s(failed, rng or _JITTER), asked_s or 0.0))


def _is_spent(policy: RetryPolicy, failed: int, limited: int) -> bool:
    most_limited = policy.limited_attempts
    return failed >= policy.attempts or (most_limited is not None and limited >= most_limited)


def _asked_to_wait_s(error: JudgeError) -> float | None:
    if isinstance(error, JudgeRateLimited | JudgeServerError):
        return error.retry_after_s
    return None


def _with_requests(completion: Completion, failed_requests: int) -> Completion:
    requests = completion.usage.requests + failed_requests
    return replace(completion, usage=completion.usage.model_copy(update={"requests": requests}))


def _append(error: JudgeError, text: str) -> None:
    error.message += text
    error.args = (error.message,)
