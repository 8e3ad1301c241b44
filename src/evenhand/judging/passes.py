"""The passes of a pair: each order asked, read, and if need be asked once more; with everything
decided first that can be before asking.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from evenhand.contract import (
    ORDERS,
    Ballot,
    Mode,
    Order,
    Pair,
    Pass,
    Reconciling,
    Unread,
    Usage,
    Vote,
    VotePass,
)
from evenhand.errors import JudgeError
from evenhand.judges import Completion, Judge, JudgeCall, ask_with_retries
from evenhand.judges.prices import cost_usd
from evenhand.judging.ballots import read_letters, read_reasoned, read_vote, whole_ballot
from evenhand.judging.config import JudgeConfig
from evenhand.prompts import Prompt, answer_schema, response_digests

# A pair before its judge, with everything decided that can be before asking.


@dataclass(frozen=True, slots=True)
class Case:
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
            prompt = Prompt.of(pair, config.template_for(mode))
        how = config.reconciling(mode)
        config.calibration_for(judge)
        return cls(pair, judge, config, mode, how, prompt, time.perf_counter())

    @property
    def first_order(self) -> Order | None:
        """The order whose first-shown response has the smaller hash; None where they are the same.

        The one property of an order that does not depend on what the caller calls A.
        """
        a, b = self.prompt.responses if self.prompt else response_digests(self.pair)
        if a == b:
            return None
        return "original" if a < b else "swapped"


def milliseconds_since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 3)


# The passes of a pair: each order asked, read, and if need be asked once more.

Made = Pass | VotePass
Read = TypeVar("Read")

# A longer completion takes more than a few milliseconds to read.
_LONGEST_READ_AT_ONCE = 20_000


class PassesFailed(Exception):
    """A judge failed in a pass; the passes that did come are kept."""

    def __init__(self, errors: list[JudgeError], passes: tuple[Made, ...]) -> None:
        super().__init__(str(errors[0]))
        self.error = errors[0]
        self.passes = passes
        self.requests = sum(error.requests for error in errors)


class PassKeeper(Protocol):
    """Where passes are kept beyond one comparison: a pass that is there is not asked for again."""

    def recall(self, order: Order, sample: int) -> Pass | None: ...

    def keep(self, made: Made) -> None: ...

    def failed(self, order: Order, sample: int, error: JudgeError) -> None: ...


async def make_passes(
    case: Case, keeper: PassKeeper | None = None, *, briefly: bool = False
) -> tuple[Made, ...]:
    """Both orders at once, unless the judge answers one at a time anyway.

    `briefly`: of plain answers only the vote is read, and `in_full` reads the rest.
    """
    orders = ORDERS if case.pair.swap_positions else ORDERS[:1]
    wanted = [(o, s) for o in orders for s in range(1, case.config.samples_per_order + 1)]
    made: list[Made | BaseException] = []
    if case.judge.traits.parallel:
        made = await _settled([_kept_pass(case, o, s, keeper, briefly) for o, s in wanted])
    else:
        for order, sample in wanted:
            made += await _settled([_kept_pass(case, order, sample, keeper, briefly)])
            if isinstance(made[-1], BaseException):
                break
    passes = tuple([p for p in made if not isinstance(p, BaseException)])
    if len(passes) == len(wanted):
        return passes
    failed: list[tuple[Order, JudgeError]] = []
    for (order, _), problem in zip(wanted, made, strict=False):
        if isinstance(problem, JudgeError):
            failed.append((order, problem))
        elif isinstance(problem, BaseException):
            raise problem
    # Told from the side that does not depend on what the caller calls A.
    first = case.first_order or "original"
    failed.sort(key=lambda entry: entry[0] != first)
    raise PassesFailed([error for _, error in failed], passes)


def in_full(passes: tuple[Made, ...], pair: Pair) -> tuple[Pass, ...]:
    """The passes with the prose of those of which only the vote was read."""
    return tuple(
        made
        if isinstance(made, Pass)
        else made.with_ballot(whole_ballot(made.vote.bare_ballot(), pair))
        for made in passes
    )


async def _settled(asked: list[Coroutine[Any, Any, Made]]) -> list[Made | BaseException]:
    """All of them at once, a failure as a value, and none left running. The first runs here and
    only the others are tasks: that is half the tasks of a pair, and the first goes first."""
    create_task = asyncio.get_running_loop().create_task
    others = [create_task(each) for each in asked[1:]]
    settled: list[Made | BaseException] = []
    try:
        for each in (asked[0], *others):
            try:
                settled.append(await each)
            except Exception as error:
                settled.append(error)
    except BaseException:
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        raise
    return settled


async def _kept_pass(
    case: Case, order: Order, sample: int, keeper: PassKeeper | None, briefly: bool
) -> Made:
    if keeper is not None:
        known = keeper.recall(order, sample)
        if known is not None:
            return known
    made: Made
    try:
        if case.mode == "letter":
            made = await _letter_pass(case, order, sample)
        else:
            made = await _reasoned_pass(case, order, sample, briefly)
    except JudgeError as error:
        if keeper is not None:
            keeper.failed(order, sample, error)
        raise
    if keeper is not None:
        keeper.keep(made)
    return made


async def _reasoned_pass(case: Case, order: Order, sample: int, briefly: bool) -> Made:
    begun = time.perf_counter()
    messages = case.prompt.messages(order) if case.prompt else ()
    schema = answer_schema(case.pair) if case.prompt and not case.config.template else None
    from_logprobs = case.config.confidence == "logprobs"
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
            reason = f"{last.reason} (and asking again failed: {error.message})"
            failed = Completion("", usage=Usage(requests=error.requests))
            return _pass(
                case,
                order,
                sample,
                last.model_copy(update={"reason": reason}),
                [*completions, failed],
                unread,
                begun,
            )
        if briefly and not from_logprobs and not unread:
            reading = await _off_the_loop(
                completion,
                partial(
                    read_vote,
                    completion,
                    pair=case.pair,
                    order=order,
                    sample=sample,
                    protocol=case.config.protocol,
                ),
            )
            if isinstance(reading, Vote):
                return _vote_pass(case, reading, completion, begun)
        else:
            reading = await _off_the_loop(
                completion,
                partial(
                    read_reasoned,
                    completion,
                    pair=case.pair,
                    order=order,
                    sample=sample,
                    protocol=case.config.protocol,
                    from_logprobs=from_logprobs,
                ),
            )
        completions.append(completion)
        if isinstance(reading, Ballot) or len(unread) == repairs or case.prompt is None:
            return _pass(case, order, sample, reading, completions, unread, begun)
        unread.append(reading)
        call = replace(call, messages=case.prompt.repair(messages, completion.text, reading.kind))


async def _off_the_loop(completion: Completion, read: Callable[[], Read]) -> Read:
    """Reads a long completion in a thread, so that nobody else waits for it."""
    if len(completion.text) <= _LONGEST_READ_AT_ONCE:
        return read()
    return await asyncio.to_thread(read)


async def _letter_pass(case: Case, order: Order, sample: int) -> Pass:
    assert case.prompt is not None  # noqa: S101 - only judges that read prompts have this mode
    begun = time.perf_counter()
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
    if case.judge.traits.parallel:
        completions += await _all_or_first_error([_ask(case, call(q)) for q in others])
    else:
        completions += [await _ask(case, call(q)) for q in others]
    reading = read_letters(completions, pair=case.pair, order=order, sample=sample)
    return _pass(case, order, sample, reading, completions, [], begun)


async def _ask(case: Case, call: JudgeCall) -> Completion:
    retry = case.config.retry_policy
    if retry.attempts == 1:
        return await case.judge.ask(call)
    return await ask_with_retries(case.judge, call, retry)


def _pass(
    case: Case,
    order: Order,
    sample: int,
    reading: Ballot | Unread,
    completions: list[Completion],
    unread: list[Unread],
    begun: float,
) -> Pass:
    models = [completion.model for completion in completions if completion.model]
    usage = add_usage(_priced(case, completion) for completion in completions)
    return Pass(
        order=order,
        sample=sample,
        ballot=reading if isinstance(reading, Ballot) else None,
        unread=reading if isinstance(reading, Unread) else None,
        usage=usage,
        time_ms=milliseconds_since(begun),
        repaired=tuple(unread),
        model=models[-1] if models else None,
        request_ids=tuple(c.request_id for c in completions if c.request_id),
    )


def _vote_pass(case: Case, vote: Vote, completion: Completion, begun: float) -> VotePass:
    request_id = completion.request_id
    return VotePass(
        vote,
        usage=_priced(case, completion),
        time_ms=milliseconds_since(begun),
        model=completion.model or None,
        request_ids=(request_id,) if request_id else (),
    )


def _priced(case: Case, completion: Completion) -> Usage:
    """Each request by itself: prices step with a request's size, not with a pass's sum."""
    usage = completion.usage
    if usage.cost_usd is not None:  # whoever passed the call on has counted it already
        return usage
    cost = cost_usd(usage, model=completion.model, traits=case.judge.traits)
    return usage if cost is None else usage.model_copy(update={"cost_usd": cost})


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


def add_usage(parts: Iterable[Usage]) -> Usage:
    """A sum is known only where every part is."""
    usages = list(parts)
    if len(usages) == 1:
        return usages[0]

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
