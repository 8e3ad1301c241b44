"""From an upload to a run in the store, all of it or nothing; and stored runs as clients see them:
listed, inspected, cancelled, resumed.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from evenhand.data.records import BadRow
from evenhand.data.source import Source
from evenhand.data.tables import open_table
from evenhand.errors import (
    Conflict,
    InputError,
    Interrupted,
    StoreBusy,
    StoreError,
)
from evenhand.messages import Message
from evenhand.runs import JudgePlan, PairFiles, RunOptions, Stop
from evenhand.runs.engine import refuse_judges
from evenhand.runs.plan import apply_price, find_or_create, is_run_of
from evenhand.runs.sources import ModelOutputs, take_in
from evenhand.serve.config import ServerLimits
from evenhand.serve.jobs import Jobs, read_options, resumed
from evenhand.serve.logs import log
from evenhand.serve.run_status import SILENT_S, is_number, needed_run, read_status, state_of
from evenhand.serve.security.limits import BoundedSources
from evenhand.serve.uploads import Upload
from evenhand.serve.values import RunPage, RunStatus, StartRun
from evenhand.store import RunRecord, Store
from evenhand.store.jobs import JobPrompts, NewJob

if TYPE_CHECKING:
    from evenhand.runs.ab import GeneratedPairs
    from evenhand.runs.generation import Side
    from evenhand.runs.preview import Preview


# The same data may be coming in by another request, or another process.
_LOOKED_EVERY_S = 0.1
_AWAITED_S = 120.0


@dataclass(frozen=True, slots=True)
class StartedRun:
    run: RunRecord
    found: bool  # it was there before


_PREVIEWED_ROWS = 3
_PREVIEWED_COLUMNS = 12
_PREVIEWED_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class FilePreview:
    """A file's columns and its first rows, as they are in it."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, source: Source) -> FilePreview:
        table = open_table(source, wanted=lambda _: True)
        begun = [row for _, row in islice(table.rows, _PREVIEWED_ROWS) if isinstance(row, Mapping)]
        columns = tuple(dict.fromkeys(str(name) for row in begun for name in row))
        shown = columns[:_PREVIEWED_COLUMNS]
        rows = tuple(tuple(_cell(row.get(name)) for name in shown) for row in begun)
        return cls(source.name, columns, rows)


@dataclass(frozen=True, slots=True)
class UploadPreview:
    """What a client sent, before a run of it begins, and what the run would take."""

    files: tuple[FilePreview, ...]
    estimate: Preview


def _cell(value: object) -> str:
    text = "" if value is None else value if isinstance(value, str) else str(value)
    return text[:_PREVIEWED_CHARACTERS]


@dataclass(frozen=True, slots=True)
class RunIntake:
    """One request's way; for a thread, since it reads and writes for as long as the data is."""

    _store: Store
    _limits: ServerLimits
    _plans: Sequence[JudgePlan]
    _options: RunOptions
    _job: NewJob
    _stop: Stop
    _sides: tuple[Side, Side] | None = None  # who answers, where rows are prompts

    def preview(self, upload: Upload, asked: StartRun) -> UploadPreview:
        """The first rows, and what the run would take; nothing is kept."""
        from evenhand.runs.preview import preview_ab, preview_run

        self._check(upload)
        if self._sides is None:
            estimate = preview_run(self._sources(upload, asked), self._plans, self._options)
        else:
            pairs, skipped = self._generated(upload, asked, self._sides)
            estimate = preview_ab(pairs, self._plans)
            first = skipped[0].message if skipped else None
            counted = {"skipped_rows": len(skipped), "first_skipped": first}
            estimate = estimate.model_copy(update=counted)
        sources = [each.source(self._limits.of_data) for each in upload.files]
        return UploadPreview(tuple(map(FilePreview.of, sources)), estimate)

    def _check(self, upload: Upload) -> None:
        """What can be refused before the rows are read."""
        refuse_judges(self._plans, self._options)
        for plan in self._plans:
            apply_price(plan, self._options)
        upload.unpack(self._limits.of_data)
        for each in upload.files:
            each.refuse_long_lines(limit_bytes=self._limits.of_data.row_bytes)
        if self._sides is not None and upload.other is not None:
            raise InputError(Message("serve.models_and_outputs"))

    def _generated(
        self, upload: Upload, asked: StartRun, sides: tuple[Side, Side]
    ) -> tuple[GeneratedPairs, tuple[BadRow, ...]]:
        from evenhand.serve.answering import generated_pairs

        return generated_pairs(
            upload.source(self._limits.of_data),
            sides,
            read_options(asked, self._plans),
            self._options,
            store=self._store,
            limits=self._limits,
        )

    def _sources(self, upload: Upload, asked: StartRun) -> BoundedSources:
        reading = read_options(asked, self._plans)
        files = tuple(each.source(self._limits.of_data) for each in upload.files)
        sources = (
            PairFiles(files, reading) if upload.other is None else ModelOutputs(files, reading)
        )
        return BoundedSources(sources, self._limits)

    def take_in(self, upload: Upload, asked: StartRun) -> StartedRun:
        """With all its rows; of prompts, the run keeps them until they are answered."""
        self._check(upload)
        if self._sides is None:
            sources = self._sources(upload, asked)
            return self._taken_in(sources, partial(self._fill, sources=sources))
        from evenhand.serve.answering import kept_prompts

        pairs, skipped = self._generated(upload, asked, self._sides)
        prompts = kept_prompts(upload, asked, self._limits)
        sources = BoundedSources(pairs, self._limits)
        keep = partial(self._keep_prompts, prompts=prompts, skipped=skipped)
        return self._taken_in(sources, keep)

    def _taken_in(self, sources: BoundedSources, fill: Callable[[RunRecord], None]) -> StartedRun:
        self._refuse_name(sources)
        until = time.monotonic() + _AWAITED_S
        ours = False  # even where another request was faster to fill it
        while True:
            run, created = self._found(sources)
            ours = ours or created
            if self._is_whole(run):
                return StartedRun(run, found=not ours)
            try:
                taken = self._taken(run, fill)
            except StoreBusy:
                if time.monotonic() > until:
                    raise Conflict(
                        Message("serve.same_pairs_coming", name=run.name, id=run.id)
                    ) from None
                self._rest()
                continue
            if taken is not None:
                return StartedRun(taken, found=not ours)

    def _refuse_name(self, sources: BoundedSources) -> None:
        name = self._options.name
        existing = self._store.runs.find(name) if name is not None else None
        if existing is not None and not is_run_of(
            existing, sources.describe(), self._plans, self._options
        ):
            raise Conflict(Message("serve.run_name_taken", name=name))

    def _found(self, sources: BoundedSources) -> tuple[RunRecord, bool]:
        try:
            return find_or_create(self._store, sources, self._plans, self._options, job=self._job)
        except (InputError, StoreError):
            # Another process may have made it at the same moment; then it is there now.
            return find_or_create(self._store, sources, self._plans, self._options, job=self._job)

    def _is_whole(self, run: RunRecord) -> bool:
        """Whether its rows, or its prompts, are in the store."""
        if run.intake_done or self._sides is None:
            return run.intake_done
        job = self._store.jobs.find(run.id)
        return job is not None and job.wanted != "intake"

    def _taken(self, run: RunRecord, fill: Callable[[RunRecord], None]) -> RunRecord | None:
        """The run with all its rows; None where it went away meanwhile. What breaks it off takes
        the run along: nobody was ever told of it."""
        store = self._store
        with store.hold(run.id):
            now = store.runs.at(run.id)
            if now is None or self._is_whole(now):
                return now
            store.jobs.add(run.id, self._job)
            try:
                fill(now)
            except BaseException:
                with contextlib.suppress(StoreError):
                    store.deletion.delete_held(run.id)
                raise
            store.jobs.want(run.id, "run", only_from=("intake",))
            return store.runs.at(run.id)

    def _fill(self, run: RunRecord, sources: BoundedSources) -> None:
        store = self._store
        whole = take_in(
            store,
            run.id,
            sources,
            bad_rows=self._options.bad_rows,
            by_id=any(plan.judge.traits.by_id for plan in self._plans),
            stop=self._stop,
            report=lambda _: None,
        )
        if not whole:
            raise _broken_off()
        salt = run.plan.get("fresh")
        store.runs.set_judges(
            run.id, [store.runs.add_judge(plan.record(salt=salt)) for plan in self._plans]
        )
        store.runs.update(run.id, intake_done=True, state="judging")

    def _keep_prompts(
        self, run: RunRecord, *, prompts: JobPrompts, skipped: Sequence[BadRow]
    ) -> None:
        if skipped:
            self._store.items.add_skipped(run.id, skipped)
        self._store.jobs.keep_prompts(run.id, prompts)

    def _rest(self) -> None:
        if self._stop.by is not None:
            raise _broken_off()
        time.sleep(_LOOKED_EVERY_S)


def _broken_off() -> Interrupted:
    return Interrupted(Message("serve.stopped_while_receiving"))


_COUNTED_AT_ONCE = 1000


class StoredRuns:
    def __init__(self, store: Store, jobs: Jobs) -> None:
        self._store = store
        self._jobs = jobs

    def status(self, run_id: str) -> RunStatus:
        return read_status(self._store, needed_run(self._store, run_id))

    def page(self, after: str | None, *, limit: int, state: str | None) -> RunPage:
        before = _id_of(after)
        statuses: list[RunStatus] = []
        # One more than is wanted, so that the last page knows that it is the last.
        while records := self._store.runs.page(before=before, limit=limit + 1):
            jobs = self._store.jobs.of_runs([run.id for run in records])
            for run in records:
                if state is None or state_of(run, jobs.get(run.id)) == state:
                    if len(statuses) == limit:
                        return RunPage(runs=tuple(statuses), next=statuses[-1].id)
                    try:
                        statuses.append(read_status(self._store, run, jobs.get(run.id)))
                    except StoreError as error:  # what is wrong with one hides no other
                        log.warning("run %s is not listed: %s", run.id, error.message)
            before = records[-1].id
        return RunPage(runs=tuple(statuses))

    def by_state(self) -> dict[str, int]:
        counted: Counter[str] = Counter()
        before: int | None = None
        while records := self._store.runs.page(before=before, limit=_COUNTED_AT_ONCE):
            jobs = self._store.jobs.of_runs([run.id for run in records])
            counted.update(state_of(run, jobs.get(run.id)) for run in records)
            before = records[-1].id
        return dict(counted)

    def take_on(self, started: StartedRun, job: NewJob) -> RunStatus:
        """A run that was there and had been stopped goes on; one of the command line becomes the
        server's."""
        run = started.run
        if started.found:
            jobs = self._store.jobs
            jobs.add(run.id, job, wanted="done" if run.state == "finished" else "run")
            there = jobs.find(run.id)
            if there is not None and there.wanted == "stop":
                jobs.want(run.id, "run", only_from=("stop",), options=resumed(self._store, there))
        return read_status(self._store, run).model_copy(update={"found": started.found})

    def cancel(self, run_id: str) -> RunStatus:
        store = self._store
        run = needed_run(store, run_id)
        if store.jobs.find(run.id) is None and run.state in ("reading", "judging"):
            raise Conflict(Message("serve.run_of_command_line", name=run.name))
        if store.jobs.want(run.id, "stop", only_from=("run",)):
            job = store.jobs.find(run.id)
            if job is not None and not job.is_judged(within_s=SILENT_S):
                store.runs.update(run.id, state="stopped", stopped_by="interrupt")
        return self.status(str(run.id))

    def resume(self, run_id: str) -> RunStatus:
        store = self._store
        run = needed_run(store, run_id)
        job = store.jobs.find(run.id)
        if job is None and run.state != "finished":
            raise Conflict(Message("serve.run_begun_elsewhere", name=run.name))
        if job is not None and job.wanted == "stop":
            self._jobs.refuse_when_full()
            store.jobs.want(run.id, "run", only_from=("stop",), options=resumed(store, job))
        return self.status(str(run.id))


def _id_of(after: str | None) -> int | None:
    if after is None:
        return None
    if not is_number(after):
        raise InputError(Message("serve.after_malformed", after=after[:40]))
    return int(after)
