"""Of a store: tables of verdicts, and what a server keeps in it."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.store import full_text, idempotency, intake, marks, table_search, totals
from evenhand.store.connected import Connected
from evenhand.store.contests import Models, contests_of
from evenhand.store.ended_sessions import end_session, session_has_ended
from evenhand.store.verdict_table import (
    CountUpTo,
    Coverage,
    Sort,
    TableFilter,
    TablePage,
    TablePlace,
)


class TablePart(Connected):
    """Verdicts filtered, sorted and searched by the page; requests and sessions of a server."""

    # A server's answers

    def begin_request(
        self,
        request: idempotency.KeyedRequest,
        *,
        leased_s: float = idempotency.LEASED_S,
        kept_s: float = idempotency.KEPT_S,
    ) -> idempotency.KeptRequest | None:
        """None: nobody has asked this yet, and the caller is to answer it."""
        with self._writing() as connection:
            return idempotency.begin_request(connection, request, leased_s=leased_s, kept_s=kept_s)

    def finish_request(
        self, request: idempotency.KeyedRequest, answer: idempotency.KeptAnswer
    ) -> bool:
        """Keep the answer; False where the caller had lost the request to another."""
        with self._writing() as connection:
            return idempotency.finish_request(connection, request, answer)

    def forget_request(self, request: idempotency.KeyedRequest) -> None:
        """No answer that is worth keeping: the key may be tried again at once."""
        with self._writing() as connection:
            idempotency.forget_request(connection, request)

    def forget_old_requests(self, *, kept_s: float = idempotency.KEPT_S) -> int:
        with self._writing() as connection:
            return idempotency.forget_old_requests(connection, kept_s=kept_s)

    # Tables of verdicts, and what is filled behind the runs for them

    def browse(
        self,
        run_id: int,
        wanted: TableFilter,
        *,
        sort: Sort = "number",
        descending: bool = False,
        after: TablePlace | None = None,
        before: TablePlace | None = None,
        limit: int = 50,
        count_to: int | None = None,
    ) -> TablePage:
        """A page of the verdicts that are marked, and how many there are in all, up to 10,000, or
        up to `count_to`."""
        with self._reading() as connection:
            return table_search.browse(
                connection,
                run_id,
                wanted,
                sort=sort,
                descending=descending,
                after=after,
                before=before,
                limit=limit,
                count_to=count_to,
            )

    def count_up_to(
        self, run_id: int, wanted: TableFilter, most: int = table_search.COUNTED_UP_TO
    ) -> CountUpTo:
        with self._reading() as connection:
            return table_search.count_up_to(connection, run_id, wanted, most=most)

    def place_of(
        self,
        run_id: int,
        number: int,
        *,
        judge_ids: Sequence[int] | None = None,
        sort: Sort = "number",
    ) -> TablePlace | None:
        """Where a pair stands in a table, by the first of these judges with a verdict on it."""
        with self._reading() as connection:
            return table_search.place_of(connection, run_id, number, judge_ids=judge_ids, sort=sort)

    def mark_verdicts(
        self, run_id: int, *, noted: marks.Noted, limit: int = 500, stamp: str | None = None
    ) -> int:
        """Mark verdicts on up to `limit` further items; how many items it were, 0 at the end."""
        with self._writing() as connection:
            marked = marks.mark_verdicts(connection, run_id, noted=noted, limit=limit, stamp=stamp)
        if self._growth:
            self._growth.note("verdict_marks", marked)
        return marked

    def add_words(self, run_id: int, *, limit: int = 200) -> int:
        """Index the words of up to `limit` further items; how many that were, 0 at the end."""
        with self._writing() as connection:
            added = full_text.add_words(connection, run_id, limit=limit)
        if self._growth:
            self._growth.note("search_docs", added)
        return added

    def index_state(self, run_id: int) -> marks.IndexState:
        with self._reading() as connection:
            return marks.index_state(connection, run_id)

    def words_coverage(self, run_id: int) -> Coverage:
        """How many of the run's pairs can be found by their words."""
        with self._reading() as connection:
            state = marks.index_state(connection, run_id)
            return Coverage(state.worded_to, intake.count_items(connection, run_id))

    def count_marked(self, run_id: int) -> totals.MarkTotals:
        """The run's verdicts by all that tables are filtered by, in grouped queries."""
        with self._reading() as connection:
            return totals.count_marked(connection, run_id)

    def models_met(self, run_id: int, *, most: int) -> list[Models]:
        """Which models meet as A and B, as far as verdicts are marked."""
        with self._reading() as connection:
            return contests_of(connection, run_id, most=most)

    def end_session(self, session_id: str, *, ends_at: float) -> None:
        """Somebody logged out; it would have ended by itself at that time."""
        with self._writing() as connection:
            end_session(connection, session_id, ends_at=ends_at)

    def session_has_ended(self, session_id: str) -> bool:
        with self._reading() as connection:
            return session_has_ended(connection, session_id)
