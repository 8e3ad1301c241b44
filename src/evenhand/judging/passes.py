"""The passes of a pair: each order asked, read, and repaired if need be."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from evenhand.contract import Artefact, Mode, Order, Pair, Reconciling, Unread, Usage
from evenhand.errors import JudgeError
from evenhand.judges.prices import cost_usd
from evenhand.judges.protocol import Completion, Judge, JudgeCall
from evenhand.judges.retry import ask_with_retries
from evenhand.judging.ballots import add_usage, read_completion, read_letters, unless_changed
from evenhand.judging.config import JudgeConfig
from evenhand.judging.decision import PassBallot, PassResult, Reading, VerdictContext
from evenhand.judging.preparation import (
    Artefacts,
    ArtefactsFailed,
    gather_each,
    in_contract,
    notes_of,
    obtain,
    wanted_before,
)
from evenhand.judging.reconciliation import shown_first
from evenhand.messages import Message
from evenhand.prompts import Prompt, answer_schema, response_digests
from evenhand.prompts.preparation import refuse_without_slots


@dataclass(frozen=True, slots=True)
class Case:
    """A pair before its judge, with everything decided that can be before asking."""

    pair: Pair
    judge: Judge
    config: JudgeConfig
    mode: Mode
    how: Reconciling
    prompt: Prompt | None
    started: float

    @classmethod
    def of(cls, pair: Pair, judge: Judge, config: JudgeConfig) -> Case:
        mode = config.mode_for(judge)
        prompt = None
        if judge.traits.needs_prompt:
            template = config.template_for(mode)
            refuse_without_slots(template, config.prepare or ())
            prompt = Prompt.of(pair, template)
        how = config.reconciling(mode)
        config.calibration_for(judge)
        return cls(pair, judge, config, mode, how, prompt, time.perf_counter())

    @property
    def first_order(self) -> Order | None:
        return shown_first(self.prompt.responses if self.prompt else response_digests(self.pair))

    def context(self) -> VerdictContext:
        return VerdictContext(
            judge=self.judge.name,
            caveat=self.judge.traits.caveat,
            mode=self.mode,
            reconcile=self.how,
            prompt_version=self.prompt.template.version if self.prompt else None,
            options=self.config,
        )


def milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


# Longer completions take more than a few milliseconds to read.
_LONGEST_READ_AT_ONCE = 20_000


class PassesFailed(Exception):
    """A judge failed in a pass; completed passes are kept."""

    def __init__(
        self,
        errors: list[JudgeError],
        passes: tuple[PassResult, ...],
        *,
        requests: int | None = None,
        prepared: tuple[Artefact, ...] = (),
    ) -> None:
        super().__init__(str(errors[0]))
        self.error = errors[0]
        self.passes = passes
        self.prepared = prepared
        self.requests = sum(error.requests for error in errors) if requests is None else requests


class PassCache(Protocol):
    """Where passes are kept beyond one comparison; a kept pass is not asked again."""

    def recall(self, order: Order, sample: int) -> PassResult | None: ...

    def keep(self, made: PassResult) -> None: ...

    def failed(self, order: Order, sample: int, error: JudgeError) -> None: ...


async def make_passes(
    case: Case, keeper: PassCache | None = None, artefacts: Artefacts | None = None
) -> tuple[tuple[PassResult, ...], tuple[Artefact, ...]]:
    """Both orders concurrently, unless the judge answers one at a time; and the texts prepared for
    them."""
    wanted = [(o, s) for o in case.pair.orders for s in range(1, case.config.samples_per_order + 1)]
    kept = (
        [keeper.recall(order, sample) for order, sample in wanted]
        if keeper
        else [None] * len(wanted)
    )
    prepared: tuple[Artefact, ...] = ()
    if None in kept and case.config.prepare:
        case, prepared = await _prepare(case, artefacts or Artefacts())
    asked = [
        _kept_pass(case, order, sample, known, keeper)
        for (order, sample), known in zip(wanted, kept, strict=True)
    ]
    made = await gather_each(asked, at_once=case.judge.traits.parallel)
    passes = tuple([p for p in made if not isinstance(p, BaseException)])
    if len(passes) == len(wanted):
        return passes, prepared
    failed: list[tuple[Order, JudgeError]] = []
    for (order, _), problem in zip(wanted, made, strict=False):
        if isinstance(problem, JudgeError):
            failed.append((order, problem))
        elif isinstance(problem, BaseException):
            raise problem
    # Reported in an order that does not depend on the caller's labels.
    first = case.first_order or "original"
    failed.sort(key=lambda entry: entry[0] != first)
    raise PassesFailed([error for _, error in failed], passes, prepared=prepared)


async def _prepare(case: Case, artefacts: Artefacts) -> tuple[Case, tuple[Artefact, ...]]:
    kinds = case.config.prepares(case.judge.traits)
    requests = wanted_before(case.pair, case.config, kinds)
    try:
        made = await obtain(requests, case.judge, case.config, artefacts)
    except ArtefactsFailed as failed:
        raise PassesFailed([failed.error], (), requests=failed.requests) from None
    prepared = in_contract(requests, made)
    if case.prompt is None:
        return case, prepared
    prompt = Prompt.of(case.pair, case.prompt.template, notes_of(prepared))
    return replace(case, prompt=prompt), prepared


async def _kept_pass(
    case: Case, order: Order, sample: int, known: PassResult | None, keeper: PassCache | None
) -> PassResult:
    if known is not None:
        return known
    make = _letter_pass if case.mode == "letter" else _reasoned_pass
    try:
        made = await make(case, order, sample)
    except JudgeError as error:
        if keeper is not None:
            keeper.failed(order, sample, error)
        raise
    if keeper is not None:
        keeper.keep(made)
    return made


async def _reasoned_pass(case: Case, order: Order, sample: int) -> PassResult:
    started = time.perf_counter()
    messages = case.prompt.messages(order) if case.prompt else ()
    schema = answer_schema(case.pair) if case.prompt and not case.config.template else None
    from_logprobs = case.config.confidence_from == "logprobs"
    call = JudgeCall(
        pair=case.pair,
        order=order,
        sample=sample,
        messages=messages,
        answer_schema=schema,
        logprobs=from_logprobs,
    )
    completions: list[Completion] = []
    unread: list[Unread] = []
    repairs = case.config.repairs_allowed if case.prompt else 0
    while True:
        try:
            completion = await _ask(case, call)
        except JudgeError as error:
            if not unread:
                raise
            # The first answer was paid for and is kept; only the repair failed.
            last = unread.pop()
            reason = Message("unread.repair_failed", reason=last.reason, error=error.message)
            failed = Completion("", usage=Usage(requests=error.requests))
            last = last.model_copy(update={"reason": reason})
            return _pass(case, last, [*completions, failed], unread, started)
        read = partial(
            read_completion,
            completion,
            pair=case.pair,
            order=order,
            sample=sample,
            protocol=case.config.protocol,
            from_logprobs=from_logprobs,
            structured=schema is not None,
        )
        if len(completion.text) <= _LONGEST_READ_AT_ONCE:
            reading = read()
        else:  # In a thread, so that nobody else waits for it.
            reading = await asyncio.to_thread(read)
        completions.append(completion)
        if isinstance(reading, PassBallot) and unread:
            reading = unless_changed(reading, unread[0])
        if isinstance(reading, PassBallot) or len(unread) == repairs or case.prompt is None:
            return _pass(case, reading, completions, unread, started)
        unread.append(reading)
        call = replace(call, messages=case.prompt.repair(messages, reading.raw, reading.kind))


async def _letter_pass(case: Case, order: Order, sample: int) -> PassResult:
    assert case.prompt is not None  # noqa: S101 - only judges that read prompts have this mode
    started = time.perf_counter()
    prompt = case.prompt

    def call(question: str) -> JudgeCall:
        messages = prompt.messages(order, question=question, lead_in=case.judge.traits.continues)
        return JudgeCall(
            case.pair, order, sample, messages=messages, letters=prompt.letters, logprobs=True
        )

    first, *others = prompt.questions()
    completions: list[Completion] = []
    if case.judge.traits.deferred:
        others = [first, *others]
    else:  # The first question fills the server's prefix cache; the others then share it.
        completions = [await _ask(case, call(first))]
    asked = [_ask(case, call(question)) for question in others]
    settled = await gather_each(asked, at_once=case.judge.traits.parallel)
    completions = _answered([*completions, *settled])
    reading = read_letters(completions, pair=case.pair, order=order, sample=sample)
    return _pass(case, reading, completions, [], started)


async def _ask(case: Case, call: JudgeCall) -> Completion:
    retry = case.config.retry_policy
    if retry.attempts == 1:
        return await case.judge.ask(call)
    return await ask_with_retries(case.judge, call, retry)


def _pass(
    case: Case,
    reading: Reading,
    completions: list[Completion],
    unread: list[Unread],
    started: float,
) -> PassResult:
    models = [completion.model for completion in completions if completion.model]
    return PassResult(
        reading,
        usage=add_usage([_priced(case, completion) for completion in completions]),
        time_ms=milliseconds_since(started),
        model=models[-1] if models else None,
        request_ids=tuple([c.request_id for c in completions if c.request_id]),
        repaired=tuple(unread),
    )


def _priced(case: Case, completion: Completion) -> Usage:
    """Priced by request: tiers depend on a request's size, not on a pass's sum."""
    usage = completion.usage
    if usage.cost_usd is not None:  # whoever passed the call on has counted it already
        return usage
    cost = cost_usd(usage, model=completion.model, traits=case.judge.traits)
    return usage if cost is None else usage.model_copy(update={"cost_usd": cost})


def _answered(settled: list[Completion | BaseException]) -> list[Completion]:
    """All of them, or the first error, with every request counted."""
    errors = [outcome for outcome in settled if isinstance(outcome, BaseException)]
    completions = [outcome for outcome in settled if isinstance(outcome, Completion)]
    if errors:
        if isinstance(errors[0], JudgeError):
            others = sum(e.requests for e in errors[1:] if isinstance(e, JudgeError))
            errors[0].requests += others + sum(c.usage.requests for c in completions)
        raise errors[0]
    return completions
