"""Requests for a provider's batch API: a judge that answers from stored results and notes what to
ask next, the artefacts that pairs share, and the batches that requests are collected into.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.contract import ArtefactKind
from evenhand.errors import JudgeError
from evenhand.judges.batch import BATCH_RATE, AnsweredRequest, BatchApi, BatchLimits, Draft
from evenhand.judges.prices import Price, cost_usd
from evenhand.judges.protocol import Completion, Judge, JudgeCall, Traits
from evenhand.judging.config import JudgeConfig
from evenhand.judging.preparation import ArtefactRequest, GeneratedAnswer, wanted_before
from evenhand.runs.estimate import Estimate, tokens_of
from evenhand.store import Store, WorkItem
from evenhand.store.batches import NewBatch, OpenRequest, PassAsked, RequestAsked, artefact_number


def still_to_submit(whole: Estimate, store: Store, run_id: int, judge_id: int) -> Estimate:
    """The estimate without requests at the provider or waiting for their pass."""
    there = sum(batch.requests for batch in store.batches.unfinished(run_id, judge_id))
    asked = there + store.batches.count_answered(run_id, judge_id)
    left = max(0, whole.calls - asked) / whole.calls if whole.calls else 0.0
    return whole.share(left).at_batch_rates(BATCH_RATE)


class AnswerPending(Exception):
    """The answer has not arrived. Not a JudgeError: nothing has failed."""


@dataclass(frozen=True, slots=True)
class WantedRequest:
    """The next request for a pass or an artefact."""

    order: str  # of an artefact: its key
    sample: int
    turn: int  # which request of its pass, from 1
    form: str | None
    body: bytes
    input_tokens: float  # about
    repairs: str | None = None  # the answer that could not be read
    artefact: ArtefactKind | None = None

    def filed_under(self, work: WorkItem) -> int:
        return work.pair_id if self.artefact is None else artefact_number(self.order)


class PageArtefacts:
    """The artefacts that a page of pairs needs: those stored, and requests for the others."""

    def __init__(
        self, store: Store, run_id: int, judge_id: int, *, config: JudgeConfig, writer: str
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._judge_id = judge_id
        self._config = config
        self._writer = writer
        self._looked_up: set[str] = set()
        self._stored: dict[str, GeneratedAnswer] = {}
        self._open: dict[int, list[OpenRequest]] = {}
        self.wanted: set[str] = set()  # by a pair of this page: the others wait for it
        self.made: list[GeneratedAnswer] = []  # from answers that have come; to be stored

    async def look_up(self, works: Sequence[WorkItem], traits: Traits) -> None:
        """Load the artefacts of these pairs in one query."""
        config, needed = self._config, list[ArtefactRequest]()
        kinds = config.prepares(traits)
        for work in works:
            if kinds and work.lacks_passes(config.samples_per_order):
                needed += wanted_before(work.pair, config, kinds)
        await self.find([each.key(self._writer) for each in needed])

    async def find(self, keys: Sequence[str]) -> dict[str, GeneratedAnswer]:
        new = [key for key in dict.fromkeys(keys) if key not in self._looked_up]
        if new:
            self._looked_up.update(new)
            await asyncio.to_thread(self._look_up, new)
        return {key: self._stored[key] for key in keys if key in self._stored}

    def _look_up(self, keys: Sequence[str]) -> None:
        self._stored |= self._store.answers.find(keys)
        numbers = [artefact_number(key) for key in keys if key not in self._stored]
        self._open |= self._store.batches.open_requests(self._run_id, self._judge_id, numbers)

    async def add(self, made: GeneratedAnswer) -> None:
        self._stored[made.key] = made
        self.made.append(made)

    def key_of(self, call: JudgeCall) -> str | None:
        """None if it is for a pass."""
        if call.artefact is None:
            return None
        asked = ArtefactRequest(call.artefact, call.pair, self._config, call.artefact_of)
        return asked.key(self._writer)

    def open_requests(self, key: str) -> list[OpenRequest]:
        filed = self._open.get(artefact_number(key), ())
        return [each for each in filed if each.order == key]

    def settled(self, key: str) -> PassAsked:
        return PassAsked(self._run_id, self._judge_id, artefact_number(key), key, 1)


class CollectingJudge:
    """Answers from batch results and notes what to ask otherwise: first requests, repairs and
    retries all become wanted requests. For one pair, once: it counts the requests of each pass."""

    def __init__(
        self,
        judge: Judge,
        api: BatchApi,
        open_requests: Sequence[OpenRequest],
        artefacts: PageArtefacts,
        *,
        attempts: int,
        price: Price | None,
    ) -> None:
        self._judge = judge
        self._api = api
        self._artefacts = artefacts
        self._attempts = attempts
        self._price = price
        self._open: defaultdict[tuple[str, int, int], list[OpenRequest]] = defaultdict(list)
        for each in open_requests:
            self._open[each.order, each.sample, each.turn].append(each)
        self._turns: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.name: str = judge.name
        self.traits: Traits = replace(judge.traits, deferred=True)
        self.wanted: list[WantedRequest] = []
        self.answered = False
        self.failed_artefacts: list[PassAsked] = []  # for good
        self._answers: dict[tuple[str, int], str] = {}  # the last of each pass

    async def ask(self, call: JudgeCall) -> Completion:
        artefact = self._artefacts.key_of(call)
        if artefact is not None:
            asked = self._artefacts.open_requests(artefact)
            return await self._answer(call, (artefact, 1), 1, asked)
        key = (call.order, call.sample)
        self._turns[key] += 1
        return await self._answer(call, key, self._turns[key], self._open[(*key, self._turns[key])])

    async def _answer(
        self, call: JudgeCall, key: tuple[str, int], turn: int, asked: Sequence[OpenRequest]
    ) -> Completion:
        form = self._api.form
        refusals: dict[str, JudgeError] = {}
        last: JudgeError | None = None
        requests = failed = 0
        for request in asked:
            if request.answer is None:
                raise AnswerPending
            requests += 1
            try:
                read = self._api.read(
                    call, AnsweredRequest(request.form, request.answer), refusals=refusals
                )
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
                last.reword(last.message + f" (tried {failed} times)")
            if call.artefact is not None:
                self.failed_artefacts.append(self._artefacts.settled(key[0]))
            raise last
        if call.artefact is not None:
            if key[0] in self._artefacts.wanted:
                raise AnswerPending
            self._artefacts.wanted.add(key[0])
        body = await self._api.write(call, form)
        size = sum(tokens_of(message.text) for message in call.messages)
        # A pass by letters has several questions; one in words is only asked again for repair.
        repairs = None if call.letters else self._answers.get(key)
        self.wanted.append(WantedRequest(*key, turn, form, body, size, repairs, call.artefact))
        raise AnswerPending

    async def close(self) -> None:
        """The opener closes the judge."""

    def _priced(self, read: Completion, *, requests: int) -> Completion:
        usage = read.usage
        cost = cost_usd(usage, model=read.model, traits=self.traits, price=self._price)
        update = {"requests": requests} | ({} if cost is None else {"cost_usd": cost * BATCH_RATE})
        return replace(read, usage=usage.model_copy(update=update))


# The envelope around a request's body, including its id.
_AROUND = 160
# Providers allow letters, digits and these two signs, up to 64.
_NONCE_BYTES = 12


class BatchBuilder:
    """One batch in the making. A single request always fits; the provider may refuse it."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._bytes = 0
        self._requests: list[RequestAsked] = []
        self._bodies: list[bytes] = []
        self._numbers: list[int] = []
        self._reserved: float | None = 0.0

    def __len__(self) -> int:
        return len(self._requests)

    def has_room(self, wanted: WantedRequest) -> bool:
        if not self._requests:
            return True
        full = len(self._requests) >= self._limits.requests
        return not full and self._bytes + len(wanted.body) + _AROUND <= self._limits.bytes

    def add(self, work: WorkItem, wanted: WantedRequest, *, reserved_usd: float | None) -> None:
        filed_under = wanted.filed_under(work)
        asked = RequestAsked(filed_under, wanted.order, wanted.sample, wanted.turn, wanted.form)
        self._requests.append(asked)
        self._bodies.append(wanted.body)
        self._numbers.append(work.number)
        self._bytes += len(wanted.body) + _AROUND
        known = self._reserved is not None and reserved_usd is not None
        self._reserved = (self._reserved or 0.0) + (reserved_usd or 0.0) if known else None

    @property
    def reserved_usd(self) -> float | None:
        return self._reserved

    def closed(self, run_id: int, judge_id: int) -> tuple[NewBatch, list[RequestAsked], Draft]:
        nonce = f"eh{secrets.token_hex(_NONCE_BYTES)}"
        new = NewBatch(
            run_id,
            judge_id,
            nonce,
            first_number=min(self._numbers),
            last_number=max(self._numbers),
            reserved_usd=self._reserved,
        )
        lines = tuple(
            (custom_id_of(nonce, place), body) for place, body in enumerate(self._bodies, 1)
        )
        return new, self._requests, Draft(nonce, lines)


def custom_id_of(nonce: str, place: int) -> str:
    return f"{nonce}-{place}"


def place_of(custom_id: str, nonce: str) -> int | None:
    """None for a foreign id: a provider's file is untrusted."""
    mine, _, place = custom_id.rpartition("-")
    return int(place) if mine == nonce and place.isascii() and place.isdigit() else None
