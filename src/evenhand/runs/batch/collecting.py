"""A judge that answers from what batches have brought, and otherwise notes what to ask.

`comparer.decide` runs with it as with any other. So the first requests of a pass, its repairs and
its retries all come about in the same way: as what is wanted next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.contract import Order
from evenhand.errors import JudgeError
from evenhand.judges import Completion, Judge, JudgeCall, Traits
from evenhand.judges.batch import BATCH_RATE, BatchApi, Tried
from evenhand.judges.prices import Price, cost_usd
from evenhand.runs.size import tokens_of
from evenhand.store.batches import RequestKept


class Awaiting(Exception):
    """The answer has not come yet. No JudgeError: nothing has failed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request that is to be asked next."""

    order: Order
    sample: int
    turn: int  # which request of its pass, from 1
    form: str | None
    body: bytes
    input_tokens: float  # about
    repairs: str | None = None  # the answer that could not be read


class CollectingJudge:
    """For one pair, once: it counts the requests of each pass as they come."""

    def __init__(
        self,
        judge: Judge,
        api: BatchApi,
        kept: Sequence[RequestKept],
        *,
        attempts: int,
        price: Price | None,
    ) -> None:
        self._judge = judge
        self._api = api
        self._attempts = attempts
        self._price = price
        self._kept: defaultdict[tuple[Order, int, int], list[RequestKept]] = defaultdict(list)
        for each in kept:
            self._kept[each.order, each.sample, each.turn].append(each)
        self._turns: defaultdict[tuple[Order, int], int] = defaultdict(int)
        self.name: str = judge.name
        self.traits: Traits = replace(judge.traits, deferred=True)
        self.wanted: list[Wanted] = []
        self.answered = False
        self._answers: dict[tuple[Order, int], str] = {}  # the last of each pass

    async def ask(self, call: JudgeCall) -> Completion:
        key = (call.order, call.sample)
        self._turns[key] += 1
        turn = self._turns[key]
        form = self._api.form
        refusals: dict[str, JudgeError] = {}
        last: JudgeError | None = None
        requests = failed = 0
        for kept in self._kept[(*key, turn)]:
            if kept.answer is None:
                raise Awaiting
            requests += 1
            try:
                read = self._api.read(call, Tried(kept.form, kept.answer), refusals=refusals)
            except JudgeError as error:
                failed += 1
                last, form = error, self._api.form
                continue
            if isinstance(read, Completion):
                self.answered = True
                self._answers[key] = read.text
                return self._priced(read, requests=requests)
            last, form = None, read.form
        if last is not None and (not last.retryable or failed >= self._attempts):
            last.requests = requests
            if failed > 1:
                last.message += f" (tried {failed} times)"
                last.args = (last.message,)
            raise last
        body = await self._api.write(call, form)
        size = sum(tokens_of(message.text) for message in call.messages)
        # A pass by letters has several questions; one in words is asked again only to repair it.
        repairs = None if call.letters else self._answers.get(key)
        self.wanted.append(Wanted(call.order, call.sample, turn, form, body, size, repairs))
        raise Awaiting

    async def close(self) -> None:
        """The judge is closed by whoever opened it."""

    def _priced(self, read: Completion, *, requests: int) -> Completion:
        usage = read.usage
        cost = cost_usd(usage, model=read.model, traits=self.traits, price=self._price)
        told = {"requests": requests} | ({} if cost is None else {"cost_usd": cost * BATCH_RATE})
        return replace(read, usage=usage.model_copy(update=told))
