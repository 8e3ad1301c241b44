"""The store as other rooms see it: every read and write, each in a transaction of its own, over
SQLite or PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from sqlalchemy import Engine

from evenhand.errors import StoreError
from evenhand.store import columns as battles
from evenhand.store import columns as criteria
from evenhand.store import columns as outcomes
from evenhand.store import deletion, full_text, intake, postgres, schema_version, sqlite, work
from evenhand.store import requests as idempotency
from evenhand.store import runs as catalogue
from evenhand.store import runs as survey
from evenhand.store import verdict_index as marks
from evenhand.store import verdict_index as totals
from evenhand.store import verdict_table as table_search
from evenhand.store import verdicts as results
from evenhand.store import verdicts as verdict_search
from evenhand.store import work as queue
from evenhand.store import work as standings
from evenhand.store.address import FileAddress, ServerAddress, read_address
from evenhand.store.batches import BatchStore, PassAsked, forget
from evenhand.store.database import Database
from evenhand.store.jobs import JobStore, NewJob, add_job
from evenhand.store.locks import (
    attend_by_server,
    hold_by_file,
    hold_by_server,
    is_attended_at_server,
)
from evenhand.store.records import (
    QUEUE_START,
    BattleColumns,
    BattleCount,
    Contest,
    CriterionColumns,
    ItemWhole,
    JudgeRecord,
    NewItem,
    NewJudge,
    NewPass,
    NewRun,
    NewVerdict,
    OutcomeColumns,
    PrefixColumns,
    Queued,
    QueuePlace,
    RunRecord,
    RunState,
    SkippedRow,
    Tally,
    VerdictRow,
    WholeVerdict,
    WorkItem,
)
from evenhand.store.report_cache import ReportCacheStore
from evenhand.store.requests import end_session, session_has_ended
from evenhand.store.verdict_index import Models, contests_of
from evenhand.store.verdict_table import (
    CountUpTo,
    Coverage,
    Sort,
    TableFilter,
    TablePage,
    TablePlace,
)
from evenhand.store.verdicts import count_verdicts, tally
from evenhand.store.vote_part import VotePart

# Of a store: its runs, their judges, and the rows that came in for them.


class RunPart(Database):
    """Runs are made, found, held and deleted; judges named; rows taken in."""

    # Runs

    def create_run(self, run: NewRun) -> RunRecord:
        with self._writing() as connection:
            return catalogue.create_run(connection, run)

    def create_job_run(self, run: NewRun, job: NewJob) -> tuple[RunRecord, bool]:
        """A server's run with its job, both or neither; or the run with this fingerprint, where
        another process made it a moment ago. Whether it was made now."""
        with self._writing() as connection:
            if isinstance(self._where, ServerAddress):
                postgres.take_turn(connection)
            found = catalogue.run_of_fingerprint(connection, run.fingerprint)
            if found is not None and not found.summary.get("forgotten_at"):
                return found, False
            created = catalogue.create_run(connection, run)
            add_job(connection, created.id, job, wanted="intake")
            return created, True

    def run_at(self, run_id: int) -> RunRecord | None:
        with self._reading() as connection:
            return catalogue.run_at(connection, run_id)

    def run_page(self, *, before: int | None = None, limit: int = 100) -> list[RunRecord]:
        """Newest first, from the one before this id on."""
        with self._reading() as connection:
            return catalogue.run_page(connection, before=before, limit=limit)

    def find_run(self, name: str) -> RunRecord | None:
        with self._reading() as connection:
            return catalogue.find_run(connection, name)

    def run_of_fingerprint(self, fingerprint: str) -> RunRecord | None:
        """The newest of them."""
        with self._reading() as connection:
            return catalogue.run_of_fingerprint(connection, fingerprint)

    def list_runs(self) -> list[RunRecord]:
        """Oldest first; without those that cannot be read."""
        with self._reading() as connection:
            return catalogue.list_runs(connection)

    def damaged_runs(self) -> list[StoreError]:
        """What is wrong with each run that cannot be read."""
        with self._reading() as connection:
            return catalogue.damaged_runs(connection)

    def update_run(
        self,
        run_id: int,
        *,
        state: RunState | None = None,
        intake_done: bool | None = None,
        stopped_by: str | Literal[False] | None = False,
        seconds: float | None = None,
        calls: int | None = None,
        reused_passes: int | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> None:
        """Set what is given; the rest stays. `stopped_by` stays where it is False."""
        given: dict[str, Any] = {
            "state": state,
            "intake_done": intake_done,
            "seconds": seconds,
            "calls": calls,
            "reused_passes": reused_passes,
            "summary": None if summary is None else catalogue.to_json(summary),
        }
        changes = {name: value for name, value in given.items() if value is not None}
        if stopped_by is not False:
            changes["stopped_by"] = stopped_by
        with self._writing() as connection:
            catalogue.update_run(connection, run_id, changes)

    def rename_run(self, name: str, new: str) -> None:
        with self._writing() as connection:
            catalogue.rename_run(connection, name, new)

    def passes_to_go(self, run_id: int) -> int:
        """How many passes would go with the run; those that other runs use would stay."""
        with self._reading() as connection:
            return deletion.passes_to_go(connection, run_id)

    def votes_to_go(self, run_id: int) -> int:
        """How many votes are on pairs that no other run has."""
        with self._reading() as connection:
            return deletion.votes_to_go(connection, run_id)

    def delete_run(self, name: str, *, with_votes: bool = False) -> None:
        """Forget a run; what other runs use of it stays, and so do people's votes with their pairs,
        unless they are to go too."""
        with self._reading() as connection:
            run = catalogue.needed_run(connection, name)
        with self.hold(run.id):
            self.delete_held(run.id, with_votes=with_votes)

    def delete_held(self, run_id: int, *, with_votes: bool = False) -> None:
        """The same of a run that the caller holds."""
        with self._writing() as connection:
            deletion.delete_run(connection, run_id, with_votes=with_votes)
        if isinstance(self._where, FileAddress):
            with self.faults_told():
                sqlite.shrink_log(self._writes)

    def texts_to_go(self, run_id: int) -> deletion.Forgotten:
        with self._reading() as connection:
            return deletion.texts_to_go(connection, run_id)

    def forget_texts(self, name: str) -> deletion.Forgotten:
        """Drop a run's prompts, responses and answers, while its figures stay."""
        with self._reading() as connection:
            run = catalogue.needed_run(connection, name)
        with self.hold(run.id):
            with self._writing() as connection:
                gone = deletion.forget_texts(connection, run.id)
            if isinstance(self._where, FileAddress):
                with self.faults_told():
                    sqlite.wipe_free_space(self._writes)
        return gone

    @contextmanager
    def hold(self, run_id: int) -> Iterator[None]:
        """Keep other processes from this run; StoreBusy where one has it."""
        with ExitStack() as held:
            if isinstance(self._where, FileAddress):
                held.enter_context(hold_by_file(self._where.path, run_id))
            else:
                with self.faults_told():
                    held.enter_context(hold_by_server(self._reads, run_id, self.address))
            yield

    @contextmanager
    def attend(self, run_id: int) -> Iterator[None]:
        """Work on a run that another process holds; several may. Ends with the process."""
        with ExitStack() as attending:
            if isinstance(self._where, ServerAddress):
                with self.faults_told():
                    attending.enter_context(attend_by_server(self._reads, run_id))
            yield

    def is_attended(self, run_id: int) -> bool:
        """Whether somebody attends to the run: workers of a holder who is gone, maybe."""
        if isinstance(self._where, FileAddress):
            return False
        with self.faults_told():
            return is_attended_at_server(self._reads, run_id)

    # Judges

    def add_judge(self, judge: NewJudge) -> int:
        """The id of the judge with this key, which is added where it is new."""
        with self._writing() as connection:
            return catalogue.add_judge(connection, judge)

    def set_run_judges(self, run_id: int, judge_ids: Sequence[int]) -> None:
        with self._writing() as connection:
            catalogue.set_run_judges(connection, run_id, judge_ids)

    def run_judges(self, run_id: int) -> list[JudgeRecord]:
        with self._reading() as connection:
            return catalogue.judges_of_run(connection, run_id)

    # Intake

    def add_items(self, run_id: int, items: Sequence[NewItem]) -> int:
        """How many were new. The same again changes nothing; other content is a DataError."""
        with self._writing() as connection:
            added = intake.add_items(connection, run_id, items)
        if self._growth:
            self._growth.note("pairs, items", added)
        return added

    def count_items(self, run_id: int) -> int:
        with self._reading() as connection:
            return intake.count_items(connection, run_id)

    def add_skipped(self, run_id: int, rows: Sequence[SkippedRow]) -> None:
        with self._writing() as connection:
            intake.add_skipped(connection, run_id, rows)

    def skipped(self, run_id: int, *, limit: int = 100) -> list[SkippedRow]:
        with self._reading() as connection:
            return intake.skipped(connection, run_id, limit=limit)


# Of a store: what is left to judge, in its order or another, and what was judged.


class WorkPart(Database):
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


# Of a store: tables of verdicts, and what a server keeps in it.


class TablePart(Database):
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


# Of a store: what came out, in columns for statistics and row by row.

_T = TypeVar("_T")


class ResultPart(Database):
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


# The face of a store: every question that the other rooms may ask of it.


def open_store(
    address: str | Path | None = None, *, create: bool = True, busy_timeout_s: float = 30
) -> Store:
    """A file or a postgresql:// URL; without one EVENHAND_STORE, or a file of the user's.

    A store that is not there is made unless `create` is False; one of an earlier release is
    brought up to date.
    """
    where = read_address(address)
    if isinstance(where, FileAddress):
        sqlite.prepare_file(where.path, create=create)
        engines = sqlite.open_engines(where.path, busy_timeout_s=busy_timeout_s)
    else:
        engines = postgres.open_engines(where.url, busy_timeout_s=busy_timeout_s)
    store = Store(where, *engines)
    try:
        with store.faults_told():
            schema_version.bring_up(engines[1], where.shown, create=create)
    except BaseException:
        store.close()
        raise
    return store


class Store(RunPart, WorkPart, VotePart, TablePart, ResultPart):
    """Safe to use from several threads. Writes come from one at a time; others wait."""

    def __init__(self, where: FileAddress | ServerAddress, reads: Engine, writes: Engine) -> None:
        super().__init__(where, reads, writes)
        self.jobs = JobStore(self._reading, self._writing)
        self.batches = BatchStore(self._reading, self._writing)
        self.kept = ReportCacheStore(self._reading, self._writing)
