"""One pair through one judge: the heart of the program.

pair → prompt → judge call → ballot or unread → verdict
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
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
from evenhand.errors import EvenhandError, JudgeError, NoVerdict
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
    case = _Case.of(pair, judge, procedure)
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
        for problem in made:
            if isinstance(problem, BaseException) and not isinstance(problem, JudgeError):
                raise problem
        failed = [problem for problem in made if isinstance(problem, JudgeError)]
        if failed:
            # Told from the side that does not depend on what the caller calls A.
            if canonical_order(self.pair) == "swapped":
                failed.reverse()
            raise _PassesFailed(failed, passes)
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
            completion = await self._ask(call)
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
            completions += await asyncio.gather(*(self._ask(call(q)) for q in others))
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
        model = completions[-1].model
        usage = add_usage(completion.usage for completion in completions)
        cost = cost_usd(usage, model=model, traits=self.judge.traits)
        return Pass(
            order=order,
            sample=sample,
            ballot=reading if isinstance(reading, Ballot) else None,
            unread=reading if isinstance(reading, Unread) else None,
            usage=usage.model_copy(update={"cost_usd": cost}),
            time_ms=_milliseconds_since(begun),
            repaired=tuple(unread),
            model=model,
            request_ids=tuple(c.request_id for c in completions if c.request_id),
        )

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
        if wanted and ruling.confidence is None:
            notes.append(say(locale, "no_logprobs"))
        if any(p.ballot and p.ballot.protocol == "recorded" for p in passes) and (
            self.judge.traits.caveat is None
        ):
            notes.append(say(locale, "recorded"))
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
