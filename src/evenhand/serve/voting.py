"""People's votes on a run's pairs, as pages ask for them: blind, and by several people at once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from evenhand.contract import Order, Pair
from evenhand.errors import Conflict, InputError, NotFound
from evenhand.messages import Message
from evenhand.serve.run_status import needed_run
from evenhand.store import NewVote, RunRecord, Store
from evenhand.store.records import LONGEST_COMMENT as LONGEST_COMMENT
from evenhand.trust.label_queue import VoteQueue, VoterProgress, vote_queue, voter_progress
from evenhand.trust.labelling import refuse_forgotten_texts, side_for, winner_of

# What a person says of the responses as they are shown. Both bad is a tie, and kept as such.
Choice = Literal["first", "second", "tie", "both_bad", "skip"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
_QUEUES_KEPT = 16
_PATIENCE_S = 0.2  # then the page says that it comes back

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class VoteQuestion:
    """The pair to show, its responses as they are to be shown; both None where none is left.

    It says nothing of models, labels, verdicts or other people's votes. `last` is the number of
    the pair that the person voted on last.
    """

    run_id: str
    number: int | None
    pair: Pair | None
    voted: int
    skipped: int
    pairs: int
    last: int | None


class Voting:
    """`service.voting`"""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queues: OrderedDict[int, tuple[str, asyncio.Task[VoteQueue]]] = OrderedDict()

    async def close(self) -> None:
        tasks = [task for _, task in self._queues.values()]
        self._queues.clear()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(self, run_id: str, who: str, *, number: int | None = None) -> VoteQuestion | None:
        """`number`: that pair, if the person may vote on it and has not. None where the order of
        the pairs is still being worked out."""
        run, making = await self._queue(run_id)
        await asyncio.wait({making}, timeout=_PATIENCE_S)
        if not making.done():
            return None
        queue = making.result()
        return await asyncio.to_thread(self._ask, run, queue, who, number)

    async def vote(
        self, run_id: str, who: str, *, number: int, choice: Choice, comment: str | None = None
    ) -> None:
        """Once a person and pair: the same again changes nothing, another choice replaces it."""
        if comment is not None and len(comment) > LONGEST_COMMENT:
            raise InputError(
                Message("serve.reason_too_long", n=len(comment), longest_comment=LONGEST_COMMENT)
            )
        run, making = await self._queue(run_id)
        queue = await asyncio.shield(making)

        def write() -> None:
            place, pair = self._asked(run, queue, who, number)
            if choice in ("tie", "both_bad") and not pair.allow_tie:
                raise InputError(Message("serve.tie_not_allowed"))
            order = _order(pair, who)
            vote = NewVote(
                pair_id=int(queue.pair_ids[place]),
                who=who,
                verdict=winner_of("tie" if choice == "both_bad" else choice, order),
                both_bad=choice == "both_bad",
                origin="page",
                draw=queue.draw,
                chance=queue.chance_at(place),
                shown_order=order,
                comment=comment,
            )
            self._store.votes.add([vote])

        await _to_the_end(write)

    async def undo(self, run_id: str, who: str, *, number: int) -> bool:
        """Take back a person's own vote on this pair; whether there was one."""
        run, making = await self._queue(run_id)
        queue = await asyncio.shield(making)
        place = queue.place_of(number)
        if place is None:
            raise _no_such(run, number)
        pair_id = int(queue.pair_ids[place])
        return await _to_the_end(lambda: self._store.votes.withdraw(pair_id, who))

    async def _queue(self, run_id: str) -> tuple[RunRecord, asyncio.Task[VoteQueue]]:
        """Made once for as long as the run stays as it is: of a million pairs it takes seconds."""
        run, stamp = await asyncio.to_thread(self._stamp, run_id)
        queue = self._queues.get(run.id)
        if queue is None or queue[0] != stamp or _failed(queue[1]):
            making = asyncio.create_task(asyncio.to_thread(vote_queue, self._store, run))
            queue = self._queues[run.id] = stamp, making
            while len(self._queues) > _QUEUES_KEPT:
                self._queues.popitem(last=False)
        self._queues.move_to_end(run.id)
        return run, queue[1]

    def _stamp(self, run_id: str) -> tuple[RunRecord, str]:
        run = needed_run(self._store, run_id)
        if not run.intake_done:
            raise Conflict(Message("serve.run_still_read"))
        refuse_forgotten_texts(run)
        if run.state == "finished":
            return run, f"finished {run.updated_at.timestamp()}"
        return run, f"goes on {self._store.items.count(run.id)}"

    def _ask(self, run: RunRecord, queue: VoteQueue, who: str, number: int | None) -> VoteQuestion:
        standing = voter_progress(queue, who, self._store.votes.standings)
        place = standing.asked
        if number is not None:
            wanted = queue.place_of(number)
            if _is_open(wanted, standing) and wanted not in standing.own:
                place = wanted
        return VoteQuestion(
            run_id=str(run.id),
            number=None if place is None else int(queue.numbers[place]),
            pair=None if place is None else self._shown(run, int(queue.numbers[place]), who),
            voted=standing.voted,
            skipped=standing.skipped,
            pairs=queue.pairs,
            last=None if standing.last is None else int(queue.numbers[standing.last]),
        )

    def _asked(self, run: RunRecord, queue: VoteQueue, who: str, number: int) -> tuple[int, Pair]:
        """A pair that the rounds have reached: a vote on any other was not drawn, but picked."""
        place = queue.place_of(number)
        if place is None or not _is_open(
            place, voter_progress(queue, who, self._store.votes.standings)
        ):
            raise _no_such(run, number)
        return place, self._pair(run, number)

    def _shown(self, run: RunRecord, number: int, who: str) -> Pair:
        pair = self._pair(run, number)
        if _order(pair, who) == "original":
            return pair
        turned = {"response_a": pair.response_b, "response_b": pair.response_a}
        return pair.model_copy(update=turned)

    def _pair(self, run: RunRecord, number: int) -> Pair:
        pair = self._store.items.pair(run.id, number)
        if pair is None:
            raise NotFound(Message("serve.run_deleted"))
        return pair


def _order(pair: Pair, who: str) -> Order:
    """The same whenever this person sees this pair, in the terminal too."""
    return side_for(pair.id or "", who, seed=0)


def _is_open(place: int | None, standing: VoterProgress) -> bool:
    return place is not None and place < standing.reach


def _failed(task: asyncio.Task[VoteQueue]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _no_such(run: RunRecord, number: int) -> NotFound:
    return NotFound(Message("serve.pair_not_up", number=number, id=run.id))


async def _to_the_end(work: Callable[[], _T]) -> _T:
    """A browser that leaves does not take its vote along."""
    return await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(work)))
