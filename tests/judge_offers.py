"""What a server offers, written short."""

from __future__ import annotations

from typing import Any

from evenhand.judges import RetryPolicy
from evenhand.judges.prices import Price
from evenhand.judging.config import JudgeConfig
from evenhand.serve.config import JudgeOffer


def judge_offer(
    name: str,
    judge: str,
    *,
    api_key_env: str | None = None,
    calibration: str | None = None,
    price: Price | None = None,
    retries: int | None = None,
    **config: Any,
) -> JudgeOffer:
    """`config` are the fields of its `JudgeConfig`."""
    if retries is not None:
        config["retry"] = RetryPolicy(attempts=retries + 1)
    chosen = JudgeConfig(judge=judge, **config)
    return JudgeOffer(name, chosen, api_key_env=api_key_env, calibration=calibration, price=price)
