"""Of a store: what came out, in columns for statistics and row by row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from evenhand.store import battles, criteria, outcomes, results, verdict_search
from evenhand.store.columns import BattleColumns, BattleCount, CriterionColumns, OutcomeColumns
from evenhand.store.connected import Connected
from evenhand.store.records import ItemWhole, Tally, VerdictRow, WholeVerdict
from evenhand.store.tally import count_verdicts, tally

_T = TypeVar("_T")


class ResultPart(Connected):
    """Results, counted and read back."""

    # In columns, for statistics

    def battle_counts(
        self, run_ids: Sequence[int], *, judge_ids: Collection[int] | None = None
    ) -> list[BattleCount]:
        """By models, outcome and winner, in one query; of all judges where none is named."""
        with self._reading() as connection:
            return battles.battle_counts(connection, run_ids, judge_ids)

    def battle_columns(
        self, run_ids: Sequence[int], *, judge_ids: Collection[int] | None = None
    ) -> BattleColumns:
        """The same verdict by verdict, with their prompts."""
        with self._reading() as connection:
            return battles.battle_columns(connection, run_ids, judge_ids)

    def outcome_columns(self, run_id: int, judge_id: int) -> OutcomeColumns:
        with self._reading() as connection:
            return outcomes.outcome_columns(connection, run_id, judge_id)

    def right_and_wrong(self, judge_id: int) -> tuple[int, int]:
        """A judge's wins against the labels and votes of every run in this store."""
        with self._reading() as connection:
            return outcomes.right_and_wrong(connection, judge_id)

    def criterion_columns(self, run_id: int, judge_id: int) -> tuple[CriterionColumns, ...]:
        """One for each criterion, in the order in which they first come."""
        with self._reading() as connection:
            return criteria.criterion_columns(connection, run_id, judge_id)

    # Reading back

    def tally(self, run_id: int, judge_id: int | None = None) -> Tally:
        with self._reading() as connection:
            return tally(connection, run_id, judge_id)

    def count_verdicts(self, run_id: int) -> Tally:
        """A tally of pairs and outcomes alone, which an index holds; the rest of it is empty."""
        with self._reading() as connection:
            return count_verdicts(connection, run_id)

    def find_verdicts(
        self,
        run_id: int,
        wanted: verdict_search.VerdictFilter,
        *,
        after: verdict_search.VerdictPlace = verdict_search.RUN_START,
        limit: int = 100,
        look_at: int = 50_000,
    ) -> verdict_search.FoundVerdicts:
        """A page of those that meet conditions; at most `look_at` items are looked at for it."""
        with self._reading() as connection:
            return verdict_search.find_verdicts(
                connection, run_id, wanted, after=after, limit=limit, look_at=look_at
            )

    def verdicts_at(
        self, run_id: int, places: Sequence[verdict_search.VerdictPlace]
    ) -> list[VerdictRow]:
        with self._reading() as connection:
            return verdict_search.rows_at(connection, run_id, places)

    def whole_verdicts_at(
        self, run_id: int, places: Sequence[verdict_search.VerdictPlace]
    ) -> list[WholeVerdict]:
        with self._reading() as connection:
            return verdict_search.whole_verdicts_at(connection, run_id, places)

    def verdicts(
        self, run_id: int, *, after: int = 0, limit: int = 500, judge_id: int | None = None
    ) -> list[VerdictRow]:
        """A page after item number `after`, by number, then judge; an empty one is the end."""
        with self._reading() as connection:
            return results.verdict_page(
                connection, run_id, after=after, limit=limit, judge_id=judge_id
            )

    def whole_verdicts(
        self, run_id: int, *, after: int = 0, limit: int = 100, judge_id: int | None = None
    ) -> list[WholeVerdict]:
        """The same, each with its pair, its passes and its prose."""
        with self._reading() as connection:
            return results.whole_page(
                connection, run_id, after=after, limit=limit, judge_id=judge_id
            )

    def each_verdict(self, run_id: int, *, judge_id: int | None = None) -> Iterator[VerdictRow]:
        """All of them, a page in memory at a time."""

        def page(after: int) -> list[VerdictRow]:
            return self.verdicts(run_id, after=after, judge_id=judge_id)

        return _each(page, lambda row: row.item.number)

    def each_whole_verdict(
        self, run_id: int, *, judge_id: int | None = None
    ) -> Iterator[WholeVerdict]:
        def page(after: int) -> list[WholeVerdict]:
            return self.whole_verdicts(run_id, after=after, judge_id=judge_id)

        return _each(page, lambda whole: whole.row.item.number)

    def item(self, run_id: int, key: str) -> ItemWhole | None:
        """One item with everything on it; `key` is the row's id."""
        with self._reading() as connection:
            return results.whole_item(connection, run_id, key)


def _each(page: Callable[[int], list[_T]], number: Callable[[_T], int]) -> Iterator[_T]:
    rows = page(0)
    while rows:
        yield from rows
        rows = page(number(rows[-1]))
