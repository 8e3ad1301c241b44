"""Providers' batch APIs: the requests of a judge, answered within a day at half the price.

`protocol` says what a batch API is; `openai` and `anthropic` implement it, with `sdk` for what
they share.
"""

from __future__ import annotations

from evenhand.errors import InputError
from evenhand.judges.batch.protocol import (
    UNSURE,
    AnsweredRequest,
    AskAgain,
    BatchApi,
    BatchLimits,
    BatchStatus,
    Draft,
    RequestResult,
    UnconfirmedBatch,
)
from evenhand.judges.protocol import Judge

__all__ = [
    "BATCH_RATE",
    "UNSURE",
    "AnsweredRequest",
    "AskAgain",
    "BatchApi",
    "BatchLimits",
    "BatchStatus",
    "Draft",
    "RequestResult",
    "UnconfirmedBatch",
    "batch_api_of",
    "refuse_without_batches",
]

BATCH_RATE = 0.5  # of the list price, at both providers and for every model
_TAKES = "--batch takes openai:MODEL and anthropic:MODEL"


def refuse_without_batches(judge: Judge) -> None:
    """Before anything is opened or read."""
    kind = judge.name.partition(":")[0]
    if kind not in ("openai", "anthropic"):
        raise InputError(f"{judge.name} has no batch API; {_TAKES}, or leave --batch out")
    if kind == "openai":
        from evenhand.judges.openai import OpenAIJudge

        if not isinstance(judge, OpenAIJudge):
            raise InputError(
                f"{judge.name} has several servers, and a batch goes to one; give one --base-url"
            )


def batch_api_of(judge: Judge) -> BatchApi:
    """The batch API behind a judge. Nothing is sent yet."""
    refuse_without_batches(judge)
    from evenhand.judges.openai import OpenAIJudge

    if isinstance(judge, OpenAIJudge):
        from evenhand.judges.batch.openai import OpenAIBatches

        return OpenAIBatches(judge)
    from evenhand.judges.batch.anthropic import AnthropicBatches
    from evenhand.judges.providers import ProviderJudge

    if not isinstance(judge, ProviderJudge):
        raise InputError(f"{judge.name} is a judge of your own; {_TAKES} as evenhand opens them")
    return AnthropicBatches(judge)
