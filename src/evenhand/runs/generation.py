"""Answers of two models to the same prompts, for an A/B test, stored one by one so that a killed
run generates none twice.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand.contract import read_pair
from evenhand.contract.model import Model
from evenhand.data.prompts import PromptRow, Turns
from evenhand.errors import EvenhandError, InputError, JudgeError
from evenhand.judges.prices import Price
from evenhand.judges.protocol import ChatMessage, Judge, JudgeCall, identity_of
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.preparation import GeneratedAnswer
from evenhand.prompts.template import Segment
from evenhand.runs.budget import Budget
from evenhand.runs.estimate import Estimate, Range, call_cost, token_range, tokens_of
from evenhand.runs.health import JudgeHealth
from evenhand.runs.local import GatedJudge, PatientJudge, adaptive_limit, trouble_of
from evenhand.runs.options import RunOptions
from evenhand.runs.pacing import CallGate, Pace, Stopped
from evenhand.runs.plan import digest, model_of
from evenhand.runs.stop import Stop
from evenhand.runs.telemetry import Telemetry
from evenhand.runs.writer import AnswerWriter
from evenhand.store import RunRecord, Store

SideName = Literal["A", "B"]
SIDES: tuple[SideName, SideName] = ("A", "B")
# Models are asked by the judges' clients, which look at the messages alone.
_NO_PAIR = read_pair({"prompt": "", "response_a": "", "response_b": ""}, criteria_needed=False)
PLACEHOLDER = "{{ prompt }}"
_PLACE = re.compile(r"\{\{\s*prompt\s*\}\}")
# A short and a long answer, if no token limit is lower.
_SHORT_TOKENS, _LONG_TOKENS = 60, 1200
_COMMANDS_AT_ONCE = 4
_REPORTED_EVERY_S = 0.25


def check_template(text: str, *, named: str) -> str:
    """An answering model's template, which must have a place for the prompt."""
    if not _PLACE.search(text):
        raise InputError.of("runs.template_without_prompt", name=named, placeholder=PLACEHOLDER)
    return text


@dataclass(frozen=True, slots=True)
class ModelSide:
    """A model that answers, and its settings. `template` holds {{ prompt }}."""

    model: Judge
    system: str | None = None
    template: str | None = None
    max_tokens: int | None = None
    label: str | None = None  # what tells it from another side of the same model
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.template is not None:
            check_template(self.template, named=f"of {self.name}")

    @property
    def name(self) -> str:
        return self.label or self.model.name

    def asked_chars(self, prompt: str) -> int:
        """The prompt's length; a template may repeat it."""
        if self.template is None:
            return len(prompt)
        return len(self.template) + len(_PLACE.findall(self.template)) * len(prompt)

    def messages(self, prompt: PromptRow) -> tuple[ChatMessage, ...]:
        turns: Turns = prompt.turns
        if self.template is not None:
            # In one pass: a prompt that contains the placeholder is not filled again.
            last = turns[-1][1]
            filled = _PLACE.sub(lambda _: last, self.template)
            turns = (*turns[:-1], ("user", filled))
        if self.system is not None:
            turns = (("system", self.system), *(each for each in turns if each[0] != "system"))
        return tuple([ChatMessage(role, (Segment(text, judged=True),)) for role, text in turns])

    def identity(self) -> dict[str, Any]:
        """Everything an answer depends on except the prompt, with texts as digests: it is kept with
        the run, whose texts may be deleted."""
        return {
            "model": self.model.name,
            **identity_of(self.model),
            "system": None if self.system is None else digest(self.system),
            "template": None if self.template is None else digest(self.template),
        }


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A side whose answers exist already, by the prompt's id or text."""

    name: str
    digest: str
    by_id: Mapping[str, str]
    by_prompt: Mapping[str, str]

    def answer(self, prompt: PromptRow) -> str | None:
        if prompt.key in self.by_id:
            return self.by_id[prompt.key]
        return self.by_prompt.get(prompt.text)

    def identity(self) -> dict[str, Any]:
        return {"file": self.digest}


Side = ModelSide | AnswerFile


class SideCounts(Model):
    """The state of one side's prompts; `reused` answers are from earlier commands."""

    side: SideName
    model: str
    answered: int = 0
    truncated: int = 0
    refused: int = 0
    empty: int = 0
    failed: int = 0
    missing: int = 0  # of a file
    pending: int = 0
    reused: int = 0
    commonest_error: str | None = None  # of the failed ones
    commonest_errors: int = 0  # how many have it, numbers and ids in it aside

    @property
    def without_answer(self) -> int:
        return self.truncated + self.refused + self.empty + self.failed + self.missing


class GenerationSummary(Model):
    """What this command's answers took."""

    sides: tuple[SideCounts, SideCounts]
    repeats: int
    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float


def answer_key(side: ModelSide, prompt: PromptRow, repeat: int, salt: str | None) -> str:
    return digest([side.identity(), list(prompt.turns), repeat, *([salt] if salt else [])])


@dataclass(slots=True)
class Generation:
    """Both sides' answers: found in the store, or generated."""

    store: Store
    prompts: Sequence[PromptRow]
    sides: tuple[Side, Side]
    repeats: int
    options: RunOptions
    stop: Stop = field(default_factory=Stop)
    budget: Budget = field(init=False)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    salt: str | None = None  # of a fresh run, which shares no answers
    unpriced: bool = False  # a side's price is not known
    report: Callable[[int, int, str | None], None] = lambda done, total, trouble: None
    done: int = 0
    total: int = 0
    _started: float = field(default_factory=time.monotonic)
    _reused: Counter[SideName] = field(default_factory=Counter)
    _gates: list[CallGate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.budget = Budget(self.stop)

    def wanted(self, side: ModelSide) -> Iterator[tuple[PromptRow, int, str]]:
        for prompt in self.prompts:
            for repeat in range(1, self.repeats + 1):
                yield prompt, repeat, answer_key(side, prompt, repeat, self.salt)

    def pending(self, side: ModelSide) -> list[tuple[PromptRow, int, str]]:
        """Those without an answer; failed ones are tried again."""
        wanted = list(self.wanted(side))
        stored = self.store.answers.find([key for _, _, key in wanted])
        return [
            each for each in wanted if each[2] not in stored or stored[each[2]].outcome == "failed"
        ]

    def prepare(self, run: RunRecord, retry: RetryPolicy, stop: Stop) -> None:
        """Attach to the run that it belongs to."""
        self.stop, self.retry = stop, retry
        self.salt = run.plan.get("fresh")

    async def run(
        self, run_id: int, caps: RunOptions, *, report: Callable[[int, int, str | None], None]
    ) -> None:
        """Ends when all is answered, or after a stop once calls in flight are done. The caller
        holds the run; `report` gets the numbers of answers and prompts."""
        self.budget = Budget(self.stop, max_calls=caps.max_calls, max_cost=caps.max_cost)
        if self.unpriced:
            self.budget.cap_unpriced(caps.calls_unpriced)
        self.report = report
        work: list[tuple[ModelSide, list[tuple[PromptRow, int, str]]]] = []
        for name, side in zip(SIDES, self.sides, strict=True):
            if isinstance(side, ModelSide):
                pending = await asyncio.to_thread(self.pending, side)
                every = len(self.prompts) * self.repeats
                self._reused[name] = every - len(pending)
                self.total += every
                self.done += every - len(pending)
                work.append((side, pending))
        self.report(self.done, self.total, None)
        writer = AnswerWriter(self.store, run_id)
        # A named limit is for both sides together.
        named = self.options.concurrency
        shared = self._gate(named, work[0][0].model) if named is not None and work else None
        tasks = [
            asyncio.create_task(self._ask_all(side, wanted, writer, shared))
            for side, wanted in work
        ]
        reports = asyncio.create_task(self._report_trouble())
        try:
            await asyncio.gather(*tasks)
        except EvenhandError as error:
            self.stop.ask("store", error)
        finally:
            for task in (*tasks, reports):
                task.cancel()
            await asyncio.gather(*tasks, reports, return_exceptions=True)
            await writer.flush()

    async def _report_trouble(self) -> None:
        while True:
            await asyncio.sleep(_REPORTED_EVERY_S)
            trouble = trouble_of(self._gates)
            if trouble is not None:
                self.report(self.done, self.total, trouble)

    async def _ask_all(
        self,
        side: ModelSide,
        wanted: Sequence[tuple[PromptRow, int, str]],
        writer: AnswerWriter,
        shared: CallGate | None,
    ) -> None:
        if not wanted:
            return
        model = side.model
        concurrency = self.options.concurrency
        if concurrency is None and model.name.startswith("command:"):
            concurrency = min(_COMMANDS_AT_ONCE, os.cpu_count() or 1)
        gate = shared or self._gate(concurrency, model)
        health = JudgeHealth(model.name, self.stop, proven=False)
        asked = PatientJudge(
            GatedJudge(model, gate, self.budget, price=side.price),
            gate,
            health,
            retry=self.retry,
            telemetry=Telemetry.available(),
        )
        queue = iter(wanted)

        async def worker() -> None:
            for prompt, repeat, key in queue:
                try:
                    answer = await self._answer(side, asked, prompt, repeat, key)
                except Stopped:
                    return
                # Holds its slot until stored: a kill loses only what is in flight.
                await writer.add(answer)
                self.done += 1
                self.report(self.done, self.total, None)

        most = gate.limit if concurrency is not None or not model.traits.parallel else 512
        workers = [asyncio.create_task(worker()) for _ in range(min(most, len(wanted)))]
        try:
            async with health.giving_up(gate, after_s=self.options.gives_up_after_s):
                await asyncio.gather(*workers)
        finally:
            for each in workers:
                each.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        if self.stop.by is None and not health.answered_here:
            health.never_answered()

    def _gate(self, concurrency: int | None, model: Judge) -> CallGate:
        pace = Pace(requests=self.options.rpm, tokens=self.options.tpm)
        gate = CallGate(adaptive_limit(model, concurrency), pace, clock=time.monotonic)
        self.stop.listen(gate.stop)
        self._gates.append(gate)
        return gate

    async def _answer(
        self, side: ModelSide, model: Judge, prompt: PromptRow, repeat: int, key: str
    ) -> GeneratedAnswer:
        started = time.perf_counter()
        call = JudgeCall(_NO_PAIR, "original", repeat, messages=side.messages(prompt))
        try:
            completion = await model.ask(call)
        except JudgeError as error:
            return GeneratedAnswer(key, "failed", error=error.message, requests=error.requests)
        return GeneratedAnswer.of(key, completion, started)

    def answers(
        self, side: Side, prompts: Sequence[PromptRow]
    ) -> dict[tuple[str, int], GeneratedAnswer | None]:
        """By prompt and repeat. A file has one answer to each."""
        if isinstance(side, AnswerFile):
            return {
                (prompt.key, repeat): None
                if (text := side.answer(prompt)) is None
                else GeneratedAnswer("", "answered" if text.strip() else "empty", text)
                for prompt in prompts
                for repeat in range(1, self.repeats + 1)
            }
        keys = {
            (prompt.key, repeat): answer_key(side, prompt, repeat, self.salt)
            for prompt in prompts
            for repeat in range(1, self.repeats + 1)
        }
        stored = self.store.answers.find(list(keys.values()))
        return {place: stored.get(key) for place, key in keys.items()}

    def counts(self) -> tuple[SideCounts, SideCounts]:
        counted = []
        for name, side in zip(SIDES, self.sides, strict=True):
            outcomes: Counter[str] = Counter()
            errors = _Errors()
            lacking = "missing" if isinstance(side, AnswerFile) else "pending"
            for some in in_blocks(self.prompts):
                for answer in self.answers(side, some).values():
                    outcomes[lacking if answer is None else answer.outcome] += 1
                    if answer is not None and answer.error:
                        errors.add(answer.error)
            error, count = errors.commonest
            counted.append(
                SideCounts(
                    side=name,
                    model=side.name,
                    reused=self._reused[name],
                    commonest_error=error,
                    commonest_errors=count,
                    **outcomes,
                )
            )
        return counted[0], counted[1]

    def summary(self) -> GenerationSummary:
        return GenerationSummary(
            sides=self.counts(),
            repeats=self.repeats,
            calls=self.budget.calls,
            input_tokens=self.budget.known_input_tokens,
            output_tokens=self.budget.known_output_tokens,
            cost_usd=self.budget.known_cost_usd,
            seconds=round(time.monotonic() - self._started, 3),
        )


class _Errors:
    """Errors that differ only in numbers and ids count as one, shown by the first."""

    _VARYING = re.compile(r"\b\w*\d\w*\b")

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, error: str) -> None:
        alike = self._VARYING.sub("0", error)
        self._first.setdefault(alike, error)
        self._counts[alike] += 1

    @property
    def commonest(self) -> tuple[str | None, int]:
        for alike, count in self._counts.most_common(1):
            return self._first[alike], count
        return None, 0


def in_blocks(prompts: Sequence[PromptRow]) -> Iterator[Sequence[PromptRow]]:
    for start in range(0, len(prompts), 500):
        yield prompts[start : start + 500]


def estimate_answers(side: ModelSide, pending: Iterable[tuple[PromptRow, int, str]]) -> Estimate:
    """Of generating these answers, without retries."""
    inputs = outputs = Range(0.0, 0.0)
    cost: Range | None = Range(0.0, 0.0)
    calls = 0
    longest = min(_LONG_TOKENS, side.max_tokens or _LONG_TOKENS)
    each = Range(min(_SHORT_TOKENS, longest), longest)
    for prompt, _, _ in pending:
        calls += 1
        sent = token_range(sum(tokens_of(message.text) for message in side.messages(prompt)))
        inputs += sent
        outputs += each
        call_usd = call_cost(sent, each, model_of(side.model), side.model, side.price)
        cost = None if cost is None or call_usd is None else cost + call_usd
    if side.model.traits.free:
        inputs = outputs = Range(0.0, 0.0)
    return Estimate(0, calls, inputs, outputs, cost)
