"""Providers' batch APIs: requests answered within a day at half price.

`BatchApi` is their interface; `openai` and `anthropic` implement it on what `sdk` shares.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from evenhand.contract import Usage
from evenhand.errors import InputError, JudgeError
from evenhand.judges.protocol import Completion, Judge, JudgeCall
from evenhand.messages import Message

BATCH_RATE = 0.5  # of the list price, at both providers and for every model


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of one batch; below the providers' own where a batch is held in memory."""

    requests: int
    bytes: int


class AnsweredRequest(NamedTuple):
    """An answered request: its dialect, and the reply (JSON)."""

    form: str | None
    answer: str


class AskAgain(NamedTuple):
    """The provider refused the request: ask again in this dialect."""

    form: str | None


@dataclass(frozen=True, slots=True)
class Draft:
    """Requests about to be sent, with their ids."""

    nonce: str
    lines: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class UnconfirmedBatch:
    """A batch that may have been sent, but has no known id."""

    nonce: str
    requests: int
    sent_at: float
    others: Collection[str]  # ids of batches that are known to be somebody's


class Unsure(NamedTuple):
    """A possible match, which can be confirmed only once it has ended."""


UNSURE: Final = Unsure()


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """`answered`: how many requests have a result to fetch once it has ended."""

    phase: Literal["running", "ended", "expired", "cancelled", "refused"]
    through: int = 0
    answered: int = 0
    why: str = ""  # where it was refused
    crowded: bool = False  # it was refused because too much is at the provider already
    files: tuple[str, ...] = ()


class RequestResult(NamedTuple):
    """`answer` is None if the batch ended before running the request."""

    custom_id: str
    answer: str | None


class BatchApi(Protocol):
    """Raises only JudgeError. `read` raises a request's own error."""

    limits: BatchLimits

    @property
    def host(self) -> str: ...

    @property
    def form(self) -> str | None:
        """The dialect in which to write a request, by what is known so far."""

    async def write(self, call: JudgeCall, form: str | None) -> bytes:
        """The request's body, as JSON."""

    def read(
        self, call: JudgeCall, tried: AnsweredRequest, *, refusals: dict[str, JudgeError]
    ) -> Completion | AskAgain: ...

    def usage(self, answer: str) -> tuple[Usage, str | None] | None:
        """Tokens and model of an answer, without reading it; None if nothing was answered."""

    async def submit(self, draft: Draft, sending: Callable[[], Awaitable[None]]) -> str:
        """Its id at the provider. `sending` is awaited just before it is sent."""

    async def find(self, sought: UnconfirmedBatch) -> str | Unsure | None:
        """The batch of an unconfirmed submission; None if there is none."""

    async def look(self, batch_id: str) -> BatchStatus: ...

    def results(self, batch_id: str, status: BatchStatus) -> AsyncGenerator[RequestResult, None]:
        """Raises JudgeConnectionLost if they are cut short."""

    async def cancel(self, batch_id: str) -> None: ...

    async def close(self) -> None: ...


def refuse_without_batches(judge: Judge) -> None:
    kind = judge.name.partition(":")[0]
    if kind not in ("openai", "anthropic"):
        raise InputError.of(
            "judges.no_batch_api", name=judge.name, takes=Message("judges.batch_takes")
        )
    if kind == "openai":
        from evenhand.judges.openai import OpenAIJudge

        if not isinstance(judge, OpenAIJudge):
            raise InputError.of("judges.batch_one_server", name=judge.name)


def batch_api_of(judge: Judge) -> BatchApi:
    """The judge's batch API. Nothing is sent yet."""
    refuse_without_batches(judge)
    from evenhand.judges.openai import OpenAIJudge

    if isinstance(judge, OpenAIJudge):
        from evenhand.judges.batch.openai import OpenAIBatches

        return OpenAIBatches(judge)
    from evenhand.judges.batch.anthropic import AnthropicBatches
    from evenhand.judges.providers import ProviderJudge

    if not isinstance(judge, ProviderJudge):
        raise InputError.of(
            "judges.own_judge_no_batch", name=judge.name, takes=Message("judges.batch_takes")
        )
    return AnthropicBatches(judge)
