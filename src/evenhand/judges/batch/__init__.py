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
from evenhand.messages import Message

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


def refuse_without_batches(judge: Judge) -> None:
    """Before anything is opened or read."""
    kind = judge.name.partition(":")[0]
    if kind not in ("openai", "anthropic"):
        raise InputError(
            Message("judges.no_batch_api", name=judge.name, takes=Message("judges.batch_takes"))
        )
    if kind == "openai":
        from evenhand.judges.openai import OpenAIJudge

        if not isinstance(judge, OpenAIJudge):
            raise InputError(Message("judges.batch_one_server", name=judge.name))


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
        raise InputError(
            Message(
                "judges.own_judge_no_batch",
                name=judge.name,
                takes=Message("judges.batch_takes"),
            )
        )
    return AnthropicBatches(judge)
