"""One pair through one judge: the heart of the program.

pair → prompt → judge call → ballot or unread → verdict
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenhand.contract import (
    ORDERS,
    Ballot,
    ErrorBody,
    Failure,
    Metadata,
    Mode,
    Order,
    Outcome,
    Pair,
    Pass,
    Reconciling,
    Unread,
    Usage,
    Verdict,
    read_pair,
)
from evenhand.errors import EvenhandError, InputError, JudgeError, NoVerdict
from evenhand.judges import Completion, Judge, JudgeCall, ask_with_retries
from evenhand.judges.prices import cost_usd
from evenhand.notes import notes_on
from evenhand.phrases import say
from evenhand.procedure import Procedure
from evenhand.prompts import Prompt, answer_schema, text_digest
from evenhand.reading import read_letters, read_reasoned
from evenhand.reconcile import NoRuling, Ruling, reconcile


async def compare(
    pair: Pair | Mapping[str, Any], judge: Judge, procedure: Procedure | None = None
) -> Verdict:
    """The verdict on a pair. What went wrong is raised, with what is known in its metadata."""
    settled = await settle(read_pair(pair), judge, procedure or Procedure())
    if isinstance(settled, Verdict):
        return settled
    failure, error = settled
    error.metadata = failure.metadata
    raise error


async def settle(
    pair: Pair, judge: Judge, procedure: Procedure
) -> Verdict | tuple[Failure, EvenhandError]:
    """The same, with a failure as a value: what a run of many pairs keeps."""
    try:
        case = _Case.of(pair, judge, procedure)
    except InputError as error:
        error.metadata = Metadata(
            id=pair.id, positions_swapped=pair.swap_positions, judge=judge.name
        )
        return failure_of(error), error
    if pair.response_a == pair.response_b and not procedure.ask_identical:
        return case.unasked()
    try:
        passes = await case.make_passes()
    except _PassesFailed as failed:
        return case.failure(failed.error, failed.passes, requests=failed.requests)
    return case.verdict(passes)


def failure_of(error: EvenhandError) -> Failure:
    """The contract's JSON for an error, wherever it was raised."""
    metadata = error.metadata if isinstance(error.metadata, Metadata) else Metadata()
    return Failure(
        error=ErrorBody(kind=error.kind, message=error.message, retryable=error.retryable),
        metadata=metadata,
    )


class _PassesFailed(Exception):
    """A judge failed in a pass; the passes that did come are kept."""

    def __init__(self, errors: list[JudgeError], passes: tuple[Pass, ...]) -> None:
        super().__init__(str(errors[0]))
        self.error = errors[0]
        self.passes = passes
        self.requests = sum(error.requests for error in errors)


@dataclass(frozen=True, slots=True)
class _Case:
    """A pair before its judge, with everything decided that can be before asking."""

    pair: Pair
    judge: Judge
    procedure: Procedure
    mode: Mode
    how: Reconciling
    prompt: Prompt | None
    started: float

    @classmethod
    def of(cls, pair: Pair, judge: Judge, procedure: Procedure) -> _Case:
        mode = procedure.mode_for(judge)
        prompt = None
        if judge.traits.needs_prompt:
            prompt = Prompt.of(pair, procedure.template_for(mode))
        how = procedure.reconciling(mode)
        return cls(pair, judge, procedure, mode, how, prompt, time.perf_counter())

    async def make_passes(self) -> tuple[Pass, ...]:
        """Both orders at once, unless the judge answers one at a time anyway."""
        orders = ORDERS if self.pair.swap_positions else ORDERS[:1]
        wanted = [(o, s) for o in orders for s in range(1, self.procedure.samples + 1)]
        make = self._letter_pass if self.mode == "letter" else self._reasoned_pass
        made: list[Pass | BaseException] = []
        if self.judge.traits.parallel:
            made += await asyncio.gather(*(make(o, s) for o, s in wanted), return_exceptions=True)
        else:
            for order, sample in wanted:
                made += await asyncio.gather(make(order, sample), return_exceptions=True)
                if isinstance(made[-1], BaseException):
                    break
        passes = tuple(p for p in made if isinstance(p, Pass))
        failed: list[tuple[Order, JudgeError]] = []
        for (order, _), problem in zip(wanted, made, strict=False):
            if isinstance(problem, JudgeError):
                failed.append((order, problem))
            elif isinstance(problem, BaseException):
                raise problem
        if failed:
            # Told from the side that does not depend on what the caller calls A.
            first = canonical_order(self.pair) or "original"
            failed.sort(key=lambda entry: entry[0] != first)
            raise _PassesFailed([error for _, error in failed], passes)
        return passes

    async def _reasoned_pass(self, order: Order, sample: int) -> Pass:
        begun = time.perf_counter()
        messages = self.prompt.messages(order) if self.prompt else ()
        schema = answer_schema(self.pair) if self.prompt and not self.procedure.template else None
        from_logprobs = self.procedure.confidence == "logprobs"
        call = JudgeCall(
            pair=self.pair,
            order=order,
            sample=sample,
            messages=messages,
            answer_schema=schema,
            logprobs=from_logprobs,
        )
        completions: list[Completion] = []
        unread: list[Unread] = []
        repairs = self.procedure.repairs if self.prompt else 0
        while True:
            try:
                completion = await self._ask(call)
            except JudgeError as error:
                if not unread:
                    raise
                # The first answer was paid for and is kept; only the repair failed.
                last = unread.pop()
                reason = f"{last.reason} (and asking again failed: {error.message})"
                failed = Completion("", usage=Usage(requests=error.requests))
                return self._pass(
                    order,
                    sample,
                    last.model_copy(update={"reason": reason}),
                    [*completions, failed],
                    unread,
                    begun,
                )
            completions.append(completion)
            reading = read_reasoned(
                completion,
                pair=self.pair,
                order=order,
                sample=sample,
                protocol=self.procedure.protocol,
                from_logprobs=from_logprobs,
            )
            if isinstance(reading, Ballot) or len(unread) == repairs or self.prompt is None:
                return self._pass(order, sample, reading, completions, unread, begun)
            unread.append(reading)
            call = replace(
                call, messages=self.prompt.repair(messages, completion.text, reading.kind)
            )

    async def _letter_pass(self, order: Order, sample: int) -> Pass:
        assert self.prompt is not None  # noqa: S101 - only judges that read prompts have this mode
        begun = time.perf_counter()
        prompt = self.prompt

        def call(question: str) -> JudgeCall:
            messages = prompt.messages(
                order, question=question, lead_in=self.judge.traits.continues
            )
            return JudgeCall(
                self.pair, order, sample, messages=messages, letters=prompt.letters, logprobs=True
            )

        # The first question fills the server's prefix cache; the others then share it.
        first, *others = prompt.questions()
        completions = [await self._ask(call(first))]
        if self.judge.traits.parallel:
            completions += await _all_or_first_error([self._ask(call(q)) for q in others])
        else:
            completions += [await self._ask(call(q)) for q in others]
        reading = read_letters(completions, pair=self.pair, order=order, sample=sample)
        return self._pass(order, sample, reading, completions, [], begun)

    async def _ask(self, call: JudgeCall) -> Completion:
        return await ask_with_retries(self.judge, call, self.procedure.retry)

    def _pass(
        self,
        order: Order,
        sample: int,
        reading: Ballot | Unread,
        completions: list[Completion],
        unread: list[Unread],
        begun: float,
    ) -> Pass:
        models = [completion.model for completion in completions if completion.model]
        usage = add_usage(self._priced(completion) for completion in completions)
        return Pass(
            order=order,
            sample=sample,
            ballot=reading if isinstance(reading, Ballot) else None,
            unread=reading if isinstance(reading, Unread) else None,
            usage=usage,
            time_ms=_milliseconds_since(begun),
            repaired=tuple(unread),
            model=models[-1] if models else None,
            request_ids=tuple(c.request_id for c in completions if c.request_id),
        )

    def _priced(self, completion: Completion) -> Usage:
        """Each request by itself: prices step with a request's size, not with a pass's sum."""
        cost = cost_usd(completion.usage, model=completion.model, traits=self.judge.traits)
        return completion.usage.model_copy(update={"cost_usd": cost})

    def verdict(self, passes: tuple[Pass, ...]) -> Verdict | tuple[Failure, EvenhandError]:
        readings = [p.ballot or p.unread for p in passes]
        ruling = reconcile(
            self.pair,
            [reading for reading in readings if reading is not None],
            how=self.how,
            locale=self.procedure.locale,
            shows_first=canonical_order(self.pair),
        )
        if isinstance(ruling, NoRuling):
            return self.failure(NoVerdict(f"no valid verdict: {ruling.reason}"), passes, ruling)
        return Verdict(
            winner=ruling.winner,
            confidence=ruling.confidence,
            comparison=ruling.comparison,
            overall_reasoning=ruling.overall_reasoning,
            differentiators=ruling.differentiators,
            analysis=ruling.analysis,
            position_consistency=ruling.position_consistency,
            notes=(*ruling.notes, *self._notes(ruling, passes)),
            metadata=self._metadata(
                passes,
                outcome=ruling.outcome,
                confidence_source=ruling.confidence_source,
                decided_by=ruling.decided_by,
                probabilities=ruling.probabilities,
                criteria=ruling.criteria,
            ),
        )

    def failure(
        self,
        error: EvenhandError,
        passes: tuple[Pass, ...],
        ruling: NoRuling | None = None,
        *,
        requests: int = 0,
    ) -> tuple[Failure, EvenhandError]:
        """`requests` were made in vain, beside those of the passes that came."""
        usage = add_usage(p.usage for p in passes)
        error.metadata = self._metadata(
            passes,
            outcome=Outcome.INVALID,
            criteria=ruling.criteria if ruling else (),
            usage=usage.model_copy(update={"requests": usage.requests + requests}),
        )
        return failure_of(error), error

    def unasked(self) -> Verdict | tuple[Failure, EvenhandError]:
        """Identical responses, and a caller who does not want to pay for hearing so."""
        if not self.pair.allow_tie:
            message = "the responses are identical and a tie is not allowed; allow ties, or ask"
            return self.failure(NoVerdict(message), ())
        ruling = Ruling.of_identical(self.pair, say(self.procedure.locale, "not_judged"))
        return Verdict(
            winner=ruling.winner,
            confidence=None,
            comparison=ruling.comparison,
            overall_reasoning="",
            differentiators=ruling.differentiators,
            analysis=ruling.analysis,
            notes=(say(self.procedure.locale, "not_asked"),),
            metadata=self._metadata((), outcome=Outcome.TIE, positions_swapped=False),
        )

    def _notes(self, ruling: Ruling, passes: tuple[Pass, ...]) -> tuple[str, ...]:
        locale = self.procedure.locale
        notes = list(notes_on(self.pair, locale))
        if not self.pair.swap_positions:
            notes.append(say(locale, "one_order"))
        wanted = self.procedure.confidence == "logprobs"
        ballots = [p.ballot for p in passes if p.ballot]
        if wanted and any(ballot.probabilities is None for ballot in ballots):
            notes.append(say(locale, "no_logprobs"))
        if self.judge.traits.caveat is None and any(b.protocol == "recorded" for b in ballots):
            notes.append(say(locale, "recorded"))
        if len(ballots) < len(passes):
            unread = str(len(passes) - len(ballots))
            notes.append(say(locale, "some_unread", count=unread, total=str(len(passes))))
        return tuple(notes)

    def _metadata(self, passes: tuple[Pass, ...], **known: Any) -> Metadata:
        models = list(dict.fromkeys(p.model for p in passes if p.model))
        return Metadata(
            **{
                "id": self.pair.id,
                "evaluation_time_ms": _milliseconds_since(self.started),
                "positions_swapped": self.pair.swap_positions,
                "judge": self.judge.name,
                "judge_caveat": self.judge.traits.caveat,
                "model": models[0] if len(models) == 1 else None,
                "locale": self.procedure.locale,
                "mode": self.mode,
                "prompt_version": self.prompt.template.version if self.prompt else None,
                "reconcile": self.how,
                "samples": self.procedure.samples,
                "usage": add_usage(p.usage for p in passes),
                "passes": passes,
                **known,
            }
        )


async def _all_or_first_error(asked: list[Coroutine[Any, Any, Completion]]) -> list[Completion]:
    """All of them, or the first error once none is running any more; every request is counted."""
    settled = await asyncio.gather(*asked, return_exceptions=True)
    errors = [outcome for outcome in settled if isinstance(outcome, BaseException)]
    completions = [outcome for outcome in settled if isinstance(outcome, Completion)]
    if errors:
        if isinstance(errors[0], JudgeError):
            others = sum(e.requests for e in errors[1:] if isinstance(e, JudgeError))
            errors[0].requests += others + sum(c.usage.requests for c in completions)
        raise errors[0]
    return completions


def canonical_order(pair: Pair) -> Order | None:
    """The order whose first-shown response has the smaller hash; None where they are the same."""
    a, b = text_digest(pair.response_a), text_digest(pair.response_b)
    if a == b:
        return None
    return "original" if a < b else "swapped"


def add_usage(parts: Iterable[Usage]) -> Usage:
    """A sum is known only where every part is."""
    usages = list(parts)

    def total(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if known and len(known) == len(values) else None

    costs = [usage.cost_usd for usage in usages]
    known_costs = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=total([usage.input_tokens for usage in usages]),
        output_tokens=total([usage.output_tokens for usage in usages]),
        cached_input_tokens=total([usage.cached_input_tokens for usage in usages]),
        cost_usd=sum(known_costs) if known_costs and len(known_costs) == len(costs) else None,
        requests=sum(usage.requests for usage in usages),
    )


def _milliseconds_since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 3)
