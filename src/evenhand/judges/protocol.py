"""What a judge is: something that answers one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

from evenhand.contract import ArtefactKind, Mode, Order, Pair, Usage, Winner
from evenhand.prompts.template import ChatMessage, Segment

__all__ = [
    "ChatMessage",
    "ClosedOnExit",
    "Completion",
    "Finish",
    "Judge",
    "JudgeCall",
    "News",
    "OpenJudge",
    "Segment",
    "ServerNews",
    "TokenLogprob",
    "Traits",
    "identity_of",
    "news_lines",
    "news_of",
]


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """One request to a judge, and the pass it belongs to."""

    pair: Pair
    order: Order
    sample: int
    messages: tuple[ChatMessage, ...] = ()
    answer_schema: Mapping[str, Any] | None = None  # the JSON Schema that the answer should fit
    letters: tuple[str, ...] = ()  # letter mode: the tokens whose probabilities are wanted
    logprobs: bool = False  # reasoned mode: token log-probabilities are wanted with the text
    # What to write instead of a verdict, and of which response, if of one.
    artefact: ArtefactKind | None = None
    artefact_of: Literal["A", "B"] | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A generated token with the likeliest alternatives and their log-probabilities."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


Finish = Literal["stop", "length", "refusal", "filter", "other"]


@dataclass(frozen=True, slots=True)
class Completion:
    """A judge's reply; `text` is verbatim."""

    text: str
    finish: Finish = "stop"
    # A tool call's arguments: the answer, if a schema was requested and the server returns it here.
    tool_arguments: str | None = None
    refusal: str | None = None  # the judge's words when it declined
    thought: bool = False  # the model produced hidden thinking before (or instead of) text
    # A verdict recorded without its text, in the labels that the pass showed.
    verdict_as_shown: Winner | None = None
    scores_as_shown: tuple[float, float] | None = None  # recorded with it, in the same order
    logprobs: tuple[TokenLogprob, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    request_id: str | None = None
    flags: tuple[str, ...] = ()
    pause_s: float | None = None  # the server says that nothing is left for this long


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known about a judge before asking it."""

    modes: tuple[Mode, ...] = ("reasoned", "letter")  # the first is its default
    parallel: bool = True  # False: one pass at a time, so that its prefix cache holds
    needs_prompt: bool = True  # False: it does not read the prompt (replayed, baseline)
    continues: bool = False  # True: it goes on from an answer that was begun for it
    caveat: str | None = None  # why it is not a valid judge; shown once per command
    free: bool = False  # True: asking it costs no money, so the cost is known to be 0
    provider: str | None = None  # whose price list counts, where the provider is known by name
    api_url: str | None = None  # …or by its address
    by_id: bool = False  # True: it finds its answers by the pair's id, not by its texts
    deferred: bool = False  # True: answers come hours later, so no question waits for another's


class Judge(Protocol):
    """Opened by `open_judge`, closed by `close`. `ask` raises only JudgeError.

    It may also have an `identity`, an account and news; see the functions below.
    """

    @property
    def name(self) -> str: ...

    @property
    def traits(self) -> Traits: ...

    async def ask(self, call: JudgeCall) -> Completion: ...

    async def close(self) -> None: ...


class OpenJudge(Judge, Protocol):
    """What `open_judge` returns: a judge that `async with` closes."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *raised: object) -> None: ...


class ClosedOnExit:
    """Makes an async context manager of a judge."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Nothing is held open by default."""


def identity_of(judge: Judge) -> Mapping[str, object]:
    """What a judge's answers depend on besides its name, as JSON without secrets; optional for
    custom judges."""
    identity: Mapping[str, object] = getattr(judge, "identity", {})
    return identity


@dataclass(frozen=True, slots=True)
class ServerNews:
    """A server is skipped, or answers again (no kind). `why` may quote it."""

    judge: str
    address: str
    kind: str | None = None  # of the error
    why: str = ""

    def __str__(self) -> str:
        if self.kind is None:
            return f"{self.judge}: {self.address} answers again"
        return f"{self.judge}: {self.address} is skipped for now: {self.why}"


News = Callable[[], tuple[ServerNews, ...]]  # each time, what is new


def news_of(judge: Judge) -> News:
    """What has happened to the judge since it was last asked, e.g. a lost server."""
    opened: Callable[[], News] | None = getattr(judge, "open_news", None)
    return _nothing if opened is None else opened()


def news_lines(news: Iterable[News]) -> tuple[str, ...]:
    """Each line once, however often it happened: for the summary of a run."""
    return tuple(dict.fromkeys(str(each) for one in news for each in one()))


def _nothing() -> tuple[()]:
    return ()
