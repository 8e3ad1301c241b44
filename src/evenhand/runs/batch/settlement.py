"""Pending pairs settled as far as their answers have come in; what remains to be asked is
returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.contract import Order
from evenhand.errors import JudgeAuthentication, JudgeError, JudgeQuotaExceeded
from evenhand.judges import RetryPolicy
from evenhand.judging.comparison import Failed, judge_pair
from evenhand.judging.decision import PassResult
from evenhand.messages import Message
from evenhand.runs.batch.context import BatchContext
from evenhand.runs.batch.requests import AnswerPending, CollectingJudge, WantedRequest
from evenhand.runs.health import UnreadMonitor, example_of
from evenhand.store import FailedPass, NewPass, NewVerdict, Settled, WorkItem
from evenhand.store.batches import PassAsked

_ONCE = RetryPolicy(attempts=1)
_OF_THE_ACCOUNT = (JudgeAuthentication, JudgeQuotaExceeded)
_PassKey = tuple[int, Order, int]  # pair, order, sample


@dataclass(slots=True)
class _Written:
    """What one transaction stores."""

    passes: list[NewPass]
    verdicts: list[NewVerdict]
    settled: list[PassAsked]


class BatchSettler:
    """Of one judge in a run."""

    def __init__(self, context: BatchContext, unread: UnreadMonitor) -> None:
        run_judge = context.run_judge
        self._run_id = context.run_id
        self._run_judge = run_judge
        self._api = context.api
        self._store = context.store
        self._stop = context.stop
        self._unread = unread
        self._attempts = run_judge.config.retry_policy.attempts
        self._config = replace(run_judge.config, retry=_ONCE)
        # Whether the judge has answered: until then its failures say nothing of the pairs.
        self.proven = run_judge.count.proven
        self.doubted = 0  # pairs that wait for that
        self.last_failure: JudgeError | None = None
        # Passes that this command has stored, of pairs that have no verdict yet.
        self._own: set[_PassKey] = set()
        self._unread_once: set[_PassKey] = set()  # and told to the watch

    async def settle(self, works: Sequence[WorkItem]) -> list[tuple[WorkItem, list[WantedRequest]]]:
        """Store what these pairs have come to, all of it at once; what they lack is given back."""
        judge_id = self._run_judge.judge_id
        pair_ids = {work.pair_id for work in works}
        kept = await asyncio.to_thread(
            self._store.batches.open_requests, self._run_id, judge_id, pair_ids
        )
        written = _Written([], [], [])
        lacking: list[tuple[WorkItem, list[WantedRequest]]] = []
        for work in works:
            judge = CollectingJudge(
                self._run_judge.judge,
                self._api,
                kept.get(work.pair_id, ()),
                attempts=self._attempts,
                price=self._run_judge.price,
            )
            await self._decide(work, judge, written)
            self._watch(work, judge)
            if judge.wanted:
                lacking.append((work, judge.wanted))
        if written.passes or written.verdicts:
            await asyncio.to_thread(
                self._store.write, written.passes, written.verdicts, settled=written.settled
            )
            for verdict in written.verdicts:
                self._run_judge.count.settled(verdict.settled)
            self._run_judge.count.stored(len(written.verdicts))
        return lacking

    async def _decide(self, work: WorkItem, judge: CollectingJudge, written: _Written) -> None:
        keeper = _StoredPasses(work)
        settled: Settled | None = None
        error: Exception | None = None
        try:
            judged = await judge_pair(work.pair, judge, self._config, keeper=keeper)
        except AnswerPending:
            pass
        else:
            settled, error = judged if isinstance(judged, Failed) else (judged, None)
        self.proven = self.proven or judge.answered or bool(keeper.recalled)
        failed = keeper.failed_passes
        if isinstance(error, JudgeError):
            self.last_failure = error
            if isinstance(error, _OF_THE_ACCOUNT):
                self._stop.ask("judge", error)
                settled = None
            elif not self.proven:
                self.doubted += 1
                settled = None
        if settled is None:
            failed = []  # nothing is settled by them yet
        else:
            written.verdicts.append(
                NewVerdict(self._run_id, work.number, self._run_judge.judge_id, settled)
            )
            self._count_reused(work, keeper)
        for made in keeper.made:
            self._file(work, made, written)
        for without in failed:
            self._file(work, without, written)
        if settled is None:
            self._own.update((work.pair_id, made.order, made.sample) for made in keeper.made)

    def _file(self, work: WorkItem, made: PassResult | FailedPass, written: _Written) -> None:
        judge_id = self._run_judge.judge_id
        written.passes.append(NewPass(work.pair_id, judge_id, self._run_id, made))
        written.settled.append(
            PassAsked(self._run_id, judge_id, work.pair_id, made.order, made.sample)
        )
        if not isinstance(made, FailedPass):
            self._run_judge.count.made(made)
            key = (work.pair_id, made.order, made.sample)
            if key not in self._unread_once or made.unread is None:
                self._unread.answered(made)

    def _watch(self, work: WorkItem, judge: CollectingJudge) -> None:
        """An answer counts as unread before its repair here: the repairs of a whole batch are
        asked at once, and would cost as much again before the first of them is seen."""
        for wanted in judge.wanted:
            key = (work.pair_id, wanted.order, wanted.sample)
            if wanted.repairs is not None and key not in self._unread_once:
                self._unread_once.add(key)
                self._unread.came(
                    Message(
                        "runs.unread_example",
                        answer=example_of(wanted.repairs),
                        reason=Message("runs.before_repair"),
                    )
                )

    def _count_reused(self, work: WorkItem, keeper: _StoredPasses) -> None:
        for order, sample in keeper.recalled:
            key = (work.pair_id, order, sample)
            if key in self._own:
                self._own.discard(key)
            else:
                self._run_judge.count.reused += 1


class _StoredPasses:
    """The store's passes of one pair, and what comes to them."""

    def __init__(self, work: WorkItem) -> None:
        self._work = work
        self.made: list[PassResult] = []
        self.recalled: list[tuple[Order, int]] = []
        self.failed_passes: list[FailedPass] = []

    def recall(self, order: Order, sample: int) -> PassResult | None:
        made = self._work.recall(order, sample)
        if made is not None:
            self.recalled.append((order, sample))
        return made

    def keep(self, made: PassResult) -> None:
        self.made.append(made)

    def failed(self, order: Order, sample: int, error: JudgeError) -> None:
        self.failed_passes.append(FailedPass.of(order, sample, error))
