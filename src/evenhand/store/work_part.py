"""Of a store: what is left to judge, in its order or another, and what was judged."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from evenhand.store import catalogue, intake, queue, standings, survey, work
from evenhand.store.batches import PassAsked, forget
from evenhand.store.columns import PrefixColumns
from evenhand.store.connected import Connected
from evenhand.store.records import (
    QUEUE_START,
    Contest,
    NewPass,
    NewVerdict,
    Queued,
    QueuePlace,
    WorkItem,
)


class WorkPart(Connected):
    """Pending pairs go out, passes and verdicts come in."""

    # Work

    def pending(
        self,
        run_id: int,
        judge_id: int,
        *,
        after: int,
        limit: int,
        up_to: int | None = None,
        firsts: bool | None = None,
    ) -> list[WorkItem]:
        """Items after number `after` that this judge has no verdict on, by number.

        `firsts`: of items with the same content only the first, or only the others.
        """
        with self._reading() as connection:
            catalogue.refuse_forgotten(connection, run_id)
            return work.pending(
                connection,
                run_id,
                judge_id,
                after=after,
                limit=limit,
                up_to=up_to,
                firsts=firsts,
            )

    def pending_span(
        self,
        run_id: int,
        judge_id: int,
        *,
        after: int,
        limit: int,
        up_to: int | None = None,
        firsts: bool | None = None,
    ) -> tuple[int, int, int] | None:
        """Their first number, their last and their count, without their texts."""
        with self._reading() as connection:
            return work.pending_span(
                connection,
                run_id,
                judge_id,
                after=after,
                limit=limit,
                up_to=up_to,
                firsts=firsts,
            )

    def write(
        self,
        passes: Sequence[NewPass],
        verdicts: Sequence[NewVerdict],
        *,
        settled: Sequence[PassAsked] = (),
    ) -> None:
        """All of it or nothing. What is there already stays as it is. `settled` passes need the
        answers of their batches no more."""
        with self._writing() as connection:
            work.write(connection, passes, verdicts)
            forget(connection, settled)
        if self._growth:
            self._growth.note("passes, verdicts", len(passes))

    def retire(self, run_id: int, statuses: Collection[Literal["failed", "unread"]]) -> int:
        """Set such passes of the run aside, and undo the verdicts that rest on them."""
        with self._writing() as connection:
            return work.retire(connection, run_id, statuses)

    # Work in an order of its own

    def fill_queue(self, run_id: int, *, seed: int, by_models: bool = False) -> None:
        """Give the run's prompts a random order by this seed, in all, or for every two models.

        For when all items are in. A queue that is full stays as it is, whatever the seed.
        """
        with self._writing() as connection:
            queue.fill_queue(connection, run_id, seed=seed, by_models=by_models)
            filled = intake.count_items(connection, run_id)
        if self._growth:
            self._growth.note("queue", filled)

    def queued(
        self,
        run_id: int,
        judge_id: int,
        *,
        contest: int = 0,
        after: QueuePlace = QUEUE_START,
        limit: int,
    ) -> list[Queued]:
        """Items after this place that the judge has no verdict on, in the queue's order.

        `contest` is 0 where the queue was filled without regard to models.
        """
        with self._reading() as connection:
            return queue.queued(
                connection, run_id, judge_id, contest=contest, after=after, limit=limit
            )

    def settled_prefix(
        self, run_id: int, judge_id: int, *, contest: int = 0, after: int = 0
    ) -> PrefixColumns:
        """The verdicts on the prompts behind place `after`, up to the first that lacks one."""
        with self._reading() as connection:
            return standings.settled_prefix(
                connection, run_id, judge_id, contest=contest, after=after
            )

    def contests(self, run_id: int, judge_id: int) -> list[Contest]:
        """Every two models of a queue that was filled by models, by the order of their items."""
        with self._reading() as connection:
            return standings.contests(connection, run_id, judge_id)

    def survey(self, run_id: int) -> survey.Survey:
        """How many prompts a run has, and which models meet in it."""
        with self._reading() as connection:
            return survey.survey(connection, run_id)

    def grown_from(self, run_id: int, judge_id: int) -> tuple[str, ...]:
        """The names of the finished runs of this judge over fewer pairs, most of them this run's:
        each was a look at data that grew into these."""
        with self._reading() as connection:
            return survey.grown_from(connection, run_id, judge_id)
