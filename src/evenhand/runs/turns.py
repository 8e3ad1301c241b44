"""A judge behind its gate: each attempt waits for its turn, is counted, and tells how it went."""

from __future__ import annotations

from dataclasses import replace

from evenhand.errors import JudgeError, JudgeRateLimited, JudgeServerError, JudgeTimeout
from evenhand.judges import Completion, Judge, JudgeCall, RetryPolicy, Traits, ask_with_retries
from evenhand.judges.prices import Price, cost_usd
from evenhand.runs.budget import Budget
from evenhand.runs.gate import Gate, Stopped
from evenhand.runs.health import Health
from evenhand.runs.size import tokens_of
from evenhand.runs.telemetry import Telemetry

_OVERLOADED = (JudgeRateLimited, JudgeTimeout)


class GatedJudge:
    """One attempt a question, at its turn and within the budget."""

    def __init__(self, judge: Judge, gate: Gate, budget: Budget, *, price: Price | None) -> None:
        self._judge = judge
        self._gate = gate
        self._budget = budget
        self._price = price
        self.name: str = judge.name
        self.traits: Traits = judge.traits

    async def ask(self, call: JudgeCall) -> Completion:
        tokens = 0.0
        if self._gate.counts_tokens:
            tokens = sum(tokens_of(message.text) for message in call.messages)
        turn = await self._gate.enter(tokens)
        if not self._budget.begin():
            self._gate.left(turn)
            raise Stopped
        try:
            completion = await self._judge.ask(call)
        except JudgeError as error:
            self._budget.end(requests=error.requests, answered=False)
            self._gate.failed(
                turn, overloaded=isinstance(error, _OVERLOADED), pause_s=_asked_to_wait_s(error)
            )
            raise
        except Stopped:  # it waited for leave to ask, and the run ended before
            self._budget.end(requests=0, answered=False)
            self._gate.left(turn)
            raise
        except BaseException:
            self._budget.end(requests=1, answered=False)
            self._gate.left(turn)
            raise
        usage = completion.usage
        cost = cost_usd(usage, model=completion.model, traits=self.traits, price=self._price)
        if cost is not None:
            usage = usage.model_copy(update={"cost_usd": cost})
            completion = replace(completion, usage=usage)
        self._budget.end(
            # A replayed answer is a call too, though no request was made for it.
            requests=max(1, usage.requests),
            cost_usd=cost,
            # A yardstick reads and writes nothing.
            input_tokens=0 if self.traits.free else usage.input_tokens,
            output_tokens=0 if self.traits.free else usage.output_tokens,
        )
        self._gate.answered(
            turn,
            used=_both(usage.input_tokens, usage.output_tokens),
            output=usage.output_tokens,
            requests=usage.requests,
        )
        if completion.pause_s:
            self._gate.pause(completion.pause_s)
        return completion

    async def close(self) -> None:
        await self._judge.close()


class PatientJudge:
    """Asks again what is worth asking again; what fails after all is told to the judge's health."""

    def __init__(
        self,
        gated: GatedJudge,
        gate: Gate,
        health: Health,
        *,
        retry: RetryPolicy,
        telemetry: Telemetry,
    ) -> None:
        self._gated = gated
        self._gate = gate
        self._health = health
        self._retry = retry
        self._telemetry = telemetry
        self.name = gated.name
        self.traits = gated.traits

    async def ask(self, call: JudgeCall) -> Completion:
        with self._telemetry.call(self.name, call) as span:
            try:
                completion = await ask_with_retries(
                    self._gated, call, self._retry, sleep=self._gate.rest
                )
            except JudgeError as error:
                self._health.failed(error, in_flight=self._gate.limit)
                raise
            self._health.answered()
            span.answered(completion)
            return completion

    async def close(self) -> None:
        await self._gated.close()


def _asked_to_wait_s(error: JudgeError) -> float | None:
    if isinstance(error, JudgeRateLimited | JudgeServerError):
        return error.retry_after_s
    return None


def _both(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
