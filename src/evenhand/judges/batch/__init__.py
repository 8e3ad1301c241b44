"""Providers' batch APIs: the requests of a judge, answered within a day at half the price.

What a batch API is to the rest of the program; `openai` and `anthropic` implement it, with `sdk`
for what they share.
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
    """Of one batch. Smaller than the providers' own where a batch is held in memory to be sent."""

    requests: int
    bytes: int


class AnsweredRequest(NamedTuple):
    """A request that was answered: in which form it was written, and what came (JSON)."""

    form: str | None
    answer: str


class AskAgain(NamedTuple):
    """The provider refused the request's form: ask again in this one."""

    form: str | None


@dataclass(frozen=True, slots=True)
class Draft:
    """Requests about to be sent: their ids, and what is sent for each."""

    nonce: str
    lines: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class UnconfirmedBatch:
    """A batch that may have been sent, and whose id is not known."""

    nonce: str
    requests: int
    sent_at: float
    others: Collection[str]  # ids of batches that are known to be somebody's


class Unsure(NamedTuple):
    """There is one that may be it, which only shows when that has ended."""


UNSURE: Final = Unsure()


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """`answered`: for how many requests there is a result to fetch, once it has ended."""

    phase: Literal["running", "ended", "expired", "cancelled", "refused"]
    through: int = 0
    answered: int = 0
    why: str = ""  # where it was refused
    crowded: bool = False  # it was refused because too much is at the provider already
    files: tuple[str, ...] = ()


class RequestResult(NamedTuple):
    """`answer` is None where the request was not run: the batch ended before."""

    custom_id: str
    answer: str | None


class BatchApi(Protocol):
    """Raises only JudgeError. Errors of a request are raised by `read`, others by whoever meets
    them."""

    limits: BatchLimits

    @property
    def host(self) -> str: ...

    @property
    def form(self) -> str | None:
        """In which form a request is best written, by what is known so far."""

    async def write(self, call: JudgeCall, form: str | None) -> bytes:
        """The request's body, as JSON."""

    def read(
        self, call: JudgeCall, tried: AnsweredRequest, *, refusals: dict[str, JudgeError]
    ) -> Completion | AskAgain: ...

    def usage(self, answer: str) -> tuple[Usage, str | None] | None:
        """What an answer took and of which model, without reading it; None where nothing was."""

    async def submit(self, draft: Draft, sending: Callable[[], Awaitable[None]]) -> str:
        """Its id at the provider. `sending` is awaited just before it can come to be there."""

    async def find(self, sought: UnconfirmedBatch) -> str | Unsure | None:
        """The batch of a submission whose end nobody saw; None where there is none."""

    async def look(self, batch_id: str) -> BatchStatus: ...

    def results(self, batch_id: str, status: BatchStatus) -> AsyncGenerator[RequestResult, None]:
        """Raises JudgeConnectionLost where they were cut short."""

    async def cancel(self, batch_id: str) -> None: ...

    async def close(self) -> None: ...


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
