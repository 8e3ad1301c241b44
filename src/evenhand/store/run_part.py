"""Of a store: its runs, their judges, and the rows that came in for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from evenhand.errors import StoreError
from evenhand.store import catalogue, deletion, intake, postgres, sqlite
from evenhand.store.address import FileAddress, ServerAddress
from evenhand.store.attendance import attend_by_server, is_attended_at_server
from evenhand.store.connected import Connected
from evenhand.store.hold import hold_by_file, hold_by_server
from evenhand.store.jobs import NewJob, add_job
from evenhand.store.records import (
    JudgeRecord,
    NewItem,
    NewJudge,
    NewRun,
    RunRecord,
    RunState,
    SkippedRow,
)


class RunPart(Connected):
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
