"""Texts that a judge prepares before verdicts: metrics and a reference for a prompt, an analysis of
a response. Each is an artefact, written once and shared by all pairs that need it.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import time
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal, Protocol, TypeVar

import orjson

from evenhand.contract import Artefact, ArtefactKind, Pair, Usage
from evenhand.errors import JudgeError
from evenhand.judges.prepared import writer_of
from evenhand.judges.prices import cost_usd
from evenhand.judges.protocol import Completion, Judge, JudgeCall
from evenhand.judges.retry import RetryPolicy, ask_with_retries
from evenhand.judging.answers.vocabulary import is_refusal
from evenhand.judging.config import JudgeConfig
from evenhand.prompts.preparation import BY_ID, artefact_messages, artefact_texts
from evenhand.prompts.prompt import NO_NOTES, Notes

Side = Literal["A", "B"]
AnswerOutcome = Literal["answered", "truncated", "refused", "empty", "failed"]

_T = TypeVar("_T")
# More than the pairs in flight need; older ones are in the store.
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class GeneratedAnswer:
    """A model's answer to a prompt. `error` says why there is none; a failed call's tokens are
    unknown."""

    key: str
    outcome: AnswerOutcome
    text: str = ""
    error: str | None = None
    model: str | None = None  # as the server names it
    requests: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    time_ms: float | None = None

    @classmethod
    def of(cls, key: str, completion: Completion, started: float) -> GeneratedAnswer:
        usage = completion.usage
        return cls(
            key,
            outcome_of(completion),
            completion.text,
            completion.refusal,
            completion.model,
            max(1, usage.requests),
            usage.input_tokens,
            usage.output_tokens,
            usage.cost_usd,
            round(1000 * (time.perf_counter() - started), 3),
        )

    @property
    def usage(self) -> Usage:
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_usd=self.cost_usd,
            requests=self.requests,
        )


def outcome_of(completion: Completion) -> AnswerOutcome:
    if completion.finish in ("refusal", "filter"):
        return "refused"
    if completion.finish == "length":
        return "truncated"
    return "answered" if completion.text.strip() else "empty"


@dataclass(frozen=True, slots=True)
class ArtefactRequest:
    """One text that is wanted: of the pair's prompt, or of one of its responses."""

    kind: ArtefactKind
    pair: Pair
    config: JudgeConfig
    side: Side | None = None

    @property
    def response(self) -> str | None:
        return None if self.side is None else response_of(self.pair, self.side)

    def key(self, writer: str) -> str:
        """A digest of all that the text depends on; `writer` stands for the model, its settings,
        and its prompts' language and version."""
        if writer.startswith(BY_ID):
            known: list[Any] = [writer, self.kind, self.pair.id, self.side]
        else:
            criteria = []
            if self.kind == "analysis":
                criteria = [[c.name, c.description, c.weight] for c in self.pair.criteria]
            texts = artefact_texts(self.kind, self.pair, self.response)
            known = [writer, self.kind, texts, criteria]
        digest = sha256(orjson.dumps(known, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
        return f"{self.kind}-{digest}"

    def call(self) -> JudgeCall:
        locale = self.config.language
        return JudgeCall(
            pair=self.pair,
            order="original",
            sample=1,
            messages=artefact_messages(self.kind, self.pair, self.response, locale=locale),
            artefact=self.kind,
            artefact_of=self.side,
        )

    def to_contract(self, made: GeneratedAnswer, *, written_here: bool) -> Artefact:
        """Its usage is counted once, with the pair for which it was written."""
        return Artefact(
            kind=self.kind,
            response=self.side,
            outcome=made.outcome,
            text=made.text,
            model=made.model,
            usage=made.usage if written_here else _NOTHING,
        )


_NOTHING = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0)


def response_of(pair: Pair, side: Side) -> str:
    return pair.response_a if side == "A" else pair.response_b


def wanted_before(
    pair: Pair, config: JudgeConfig, kinds: Sequence[ArtefactKind]
) -> list[ArtefactRequest]:
    """What to prepare for this pair. A caller's reference replaces a written one."""
    wanted: list[ArtefactRequest] = []
    for kind in kinds:
        if kind == "analysis":
            wanted += [ArtefactRequest(kind, pair, config, "A")]
            wanted += [ArtefactRequest(kind, pair, config, "B")]
        elif kind != "reference" or pair.reference is None:
            wanted.append(ArtefactRequest(kind, pair, config))
    return wanted


class AnswerKeeper(Protocol):
    """Where artefacts are kept beyond this process."""

    async def find(self, keys: Sequence[str]) -> Mapping[str, GeneratedAnswer]: ...

    async def add(self, made: GeneratedAnswer) -> None: ...


class Artefacts:
    """Every artefact once: concurrent callers wait for the same one."""

    def __init__(self, writer: str = "", keeper: AnswerKeeper | None = None) -> None:
        self.writer = writer
        self._keeper = keeper
        self._known: dict[str, asyncio.Future[GeneratedAnswer]] = {}

    async def get(
        self, request: ArtefactRequest, judge: Judge, retry: RetryPolicy
    ) -> tuple[GeneratedAnswer, bool]:
        """The text, and whether it was written just now."""
        key = request.key(self.writer)
        while (known := self._known.get(key)) is not None:
            # If another caller's writing was cancelled, this one starts over.
            with contextlib.suppress(_Cancelled):
                return await _shared(known), False
        future = self._known[key] = asyncio.get_running_loop().create_future()
        try:
            made, written = await self._made(key, request, judge, retry)
        except BaseException as error:
            # A retryable failure is left to the next pair; any other is the same for all.
            if not isinstance(error, JudgeError) or error.retryable:
                del self._known[key]
            future.set_exception(error if isinstance(error, Exception) else _Cancelled())
            future.exception()  # nobody else may be waiting for it
            raise
        future.set_result(made)
        if len(self._known) > _REMEMBERED:
            self._forget_oldest()
        return made, written

    async def _made(
        self, key: str, request: ArtefactRequest, judge: Judge, retry: RetryPolicy
    ) -> tuple[GeneratedAnswer, bool]:
        if self._keeper is not None:
            stored = (await self._keeper.find([key])).get(key)
            if stored is not None and stored.outcome != "failed":
                return stored, False
        made = await write(key, request, judge, retry)
        await self._keep(made, judge)
        return made, True

    async def _keep(self, made: GeneratedAnswer, judge: Judge) -> None:
        """Stored before use: a kill loses only what is in flight."""
        if self._keeper is not None:
            await self._keeper.add(made)

    def _forget_oldest(self) -> None:
        for key in [key for key, future in self._known.items() if future.done()][:_REMEMBERED]:
            del self._known[key]


class _Cancelled(Exception):
    """The caller that was writing it was cancelled."""


async def _shared(known: asyncio.Future[GeneratedAnswer]) -> GeneratedAnswer:
    try:
        return await asyncio.shield(known)
    except JudgeError as error:
        # Each pair gets its own error, without another pair's requests.
        own = copy.copy(error)
        own.requests = 0
        raise own from None


async def write(
    key: str, request: ArtefactRequest, judge: Judge, retry: RetryPolicy
) -> GeneratedAnswer:
    started = time.perf_counter()
    call = request.call()
    if retry.attempts == 1:
        completion = await judge.ask(call)
    else:
        completion = await ask_with_retries(judge, call, retry)
    made = GeneratedAnswer.of(key, completion, started)
    # Declining may be the right answer to a prompt, but is not a metric or analysis.
    if made.outcome == "answered" and request.kind != "reference" and is_refusal(made.text):
        made = replace(made, outcome="refused")
    if made.cost_usd is None:
        traits = writer_of(judge).traits
        cost = cost_usd(completion.usage, model=completion.model, traits=traits)
        made = replace(made, cost_usd=cost)
    return made


async def gather_each(
    asked: Sequence[Coroutine[Any, Any, _T]], *, at_once: bool = True
) -> list[_T | BaseException]:
    """All concurrently, or in turn up to the first failure, with failures as values. The first runs
    here and only the others are tasks, which halves the tasks of a pair."""
    settled: list[_T | BaseException] = []
    if not at_once:
        for place, each in enumerate(asked):
            try:
                settled.append(await each)
            except Exception as error:  # a value, which the caller raises unless it is a judge's
                for rest in asked[place + 1 :]:
                    rest.close()
                return [*settled, error]
        return settled
    create_task = asyncio.get_running_loop().create_task
    others = [create_task(each) for each in asked[1:]]
    every: list[Awaitable[_T]] = [*asked[:1], *others]
    try:
        for awaited in every:
            try:
                settled.append(await awaited)
            except Exception as error:  # likewise; a cancellation is none, and ends all of them
                settled.append(error)
    except BaseException:
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        raise
    return settled


def in_contract(
    wanted: Sequence[ArtefactRequest], made: Sequence[tuple[GeneratedAnswer, bool]]
) -> tuple[Artefact, ...]:
    return tuple(
        [
            request.to_contract(answer, written_here=written)
            for request, (answer, written) in zip(wanted, made, strict=True)
        ]
    )


class ArtefactsFailed(Exception):
    """A text could not be prepared; the requests of all failures are counted."""

    def __init__(self, error: JudgeError, requests: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.requests = requests


async def obtain(
    wanted: Sequence[ArtefactRequest], judge: Judge, config: JudgeConfig, artefacts: Artefacts
) -> list[tuple[GeneratedAnswer, bool]]:
    """All of them, or the first failure in an order that does not depend on the labels A and B."""
    if not wanted:
        return []
    asked = [artefacts.get(each, judge, config.retry_policy) for each in wanted]
    made = await gather_each(asked, at_once=judge.traits.parallel)
    errors = [each for each in made if isinstance(each, BaseException)]
    for error in errors:
        if not isinstance(error, JudgeError):
            raise error
    failed = [error for error in errors if isinstance(error, JudgeError)]
    if failed:
        first = min(failed, key=lambda error: error.message)
        raise ArtefactsFailed(first, sum(error.requests for error in failed))
    return [each for each in made if not isinstance(each, BaseException)]


def used(prepared: Sequence[Artefact]) -> list[Artefact]:
    """What the judge is shown of it: an analysis only together with the other response's."""
    lacking = {each.kind for each in prepared if each.outcome != "answered"}
    return [each for each in prepared if each.kind not in lacking]


def notes_of(prepared: Sequence[Artefact]) -> Notes:
    texts = {(each.kind, each.response): each.text for each in used(prepared)}
    notes = Notes(
        metrics=texts.get(("metrics", None)),
        own_reference=texts.get(("reference", None)),
        analysis_a=texts.get(("analysis", "A")),
        analysis_b=texts.get(("analysis", "B")),
    )
    return notes if any(text is not None for text in notes) else NO_NOTES


def places_of(kinds: Sequence[ArtefactKind]) -> Notes:
    """Placeholders for prepared texts, to preview a prompt."""
    written = dict.fromkeys(kinds, "…")
    analysis = written.get("analysis")
    return Notes(written.get("metrics"), written.get("reference"), analysis, analysis)
