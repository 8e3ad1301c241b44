"""From an upload to a run in the store, all of it or nothing; and stored runs as clients see them:
listed, inspected, cancelled, resumed.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import re
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import orjson

from evenhand.contract import read_criteria
from evenhand.data import ReadLimits, ReadOptions, Source
from evenhand.data.formats import open_table
from evenhand.errors import (
    Conflict,
    DataError,
    InputError,
    Interrupted,
    NoRoom,
    ServiceError,
    StoreBusy,
    StoreError,
    TooLarge,
)
from evenhand.messages import Message
from evenhand.runs import JudgePlan, PairFiles, RunOptions, Stop
from evenhand.runs.engine import refuse_judges
from evenhand.runs.plan import apply_price, find_or_create, is_run_of
from evenhand.runs.sources import take_in
from evenhand.serve.config import ServerLimits
from evenhand.serve.jobs import Jobs, resumed
from evenhand.serve.logs import log
from evenhand.serve.run_status import SILENT_S, is_number, needed_run, read_status, state_of
from evenhand.serve.security.limits import BoundedSources
from evenhand.serve.values import RunPage, RunStatus, StartRun
from evenhand.store import RunRecord, Store
from evenhand.store.jobs import NewJob

if TYPE_CHECKING:
    from evenhand.runs.preview import Preview

_LONGEST_NAME = 100
_BLOCK = 1 << 20
_OPEN_FILES = Path("/proc/self/fd")  # Linux; elsewhere such a file shares its place
# A quota and a limit of one file's size are as much the operator's as the disk.
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_GZIP = b"\x1f\x8b"
_NOT_IN_A_NAME = re.compile(r"[^\w.+ -]+")


class Upload:
    """Made by an edge, written to, and given to `Service.start_run`, which closes it."""

    def __init__(self, name: str = "pairs.jsonl", *, limit_bytes: int | None = None) -> None:
        self.name = plain_name(name)
        self._limit = limit_bytes
        self._size = 0
        self._digest = hashlib.sha256(name.encode(errors="replace") + b"\0")
        # Without its name's ending: what clients call it names no file here.
        with _making_room():
            self._file = _temporary()

    @classmethod
    def of_pairs(cls, pairs: Iterable[Mapping[str, Any]]) -> Upload:
        upload = cls()
        try:
            for number, pair in enumerate(pairs, start=1):
                upload.write(_line(pair, number))
        except BaseException:
            upload.close()
            raise
        return upload

    def write(self, block: bytes) -> None:
        self._size += len(block)
        if self._limit is not None and self._size > self._limit:
            raise TooLarge(Message("serve.pairs_too_long", limit=self._limit))
        self._digest.update(block)
        with _making_room():
            self._file.write(block)

    @property
    def digest(self) -> bytes:
        """Of its name and all that was written."""
        return self._digest.digest()

    def source(self, limits: ReadLimits | None = None) -> Source:
        """What has been written, to be read; closing the upload closes it."""
        with _making_room():
            self._file.flush()
        return Source(_path_of(self._file), self.name, limits=limits or ReadLimits())

    def unpack(self, *, limit_bytes: int) -> None:
        """Gzipped data becomes plain, so that a small file cannot be endless."""
        with _making_room():
            self._file.flush()
        self._file.seek(0)
        if self._file.read(2) != _GZIP:
            return
        self._file.seek(0)
        with _making_room():
            plain = _temporary()  # takes the place of ours
        try:
            _unpack(self._file, plain, limit_bytes=limit_bytes, name=self.name)
            plain.seek(0)
            if plain.read(2) == _GZIP:
                # Readers would unpack it again, to any size.
                raise DataError(Message("serve.gzip_twice", name=self.name))
        except BaseException:
            plain.close()
            raise
        self._file.close()
        self._file = plain
        self.name = self.name.removesuffix(".gz")

    def refuse_long_lines(self, *, limit_bytes: int) -> None:
        """A line is in memory whole; no pair within the limits of its texts is as long as this."""
        with _making_room():
            self._file.flush()
        self._file.seek(0)
        start = self._file.read(4).lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith((b"[", b"PAR1")) or self.name.lower().endswith(".json"):
            return  # these are not read by lines
        self._file.seek(0)
        length = 0
        while block := self._file.read(_BLOCK):
            first, newline, rest = block.partition(b"\n")
            length += len(first)
            if length > limit_bytes:
                raise TooLarge(
                    Message("serve.line_too_long", name=self.name, limit_bytes=limit_bytes)
                )
            if newline:
                length = len(rest) - rest.rfind(b"\n") - 1

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what a full disk did not take is of no use any more
            self._file.close()

    def __enter__(self) -> Upload:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _temporary() -> IO[bytes]:
    """Without a name, where it can be opened by its number: then even a kill leaves nothing."""
    if _OPEN_FILES.is_dir():
        return tempfile.TemporaryFile(prefix="evenhand-", suffix=".data")
    return tempfile.NamedTemporaryFile(prefix="evenhand-", suffix=".data")


def _path_of(file: IO[bytes]) -> Path:
    return _OPEN_FILES / str(file.fileno()) if _OPEN_FILES.is_dir() else Path(file.name)


@contextlib.contextmanager
def _making_room() -> Iterator[None]:
    """A full disk is no mistake of the program, nor of the client."""
    try:
        yield
    except OSError as error:
        kind = NoRoom if error.errno in _DISK_FULL else ServiceError
        raise kind(
            Message("serve.upload_no_room", strerror=error.strerror or type(error).__name__)
        ) from None


def plain_name(given: str) -> str:
    """A file's name without folders and without what terminals and pages act upon."""
    last = re.split(r"[/\\]", given)[-1]
    name = _NOT_IN_A_NAME.sub("-", last).strip(" .-")
    return name[-_LONGEST_NAME:] or "pairs"


def _line(pair: Mapping[str, Any], number: int) -> bytes:
    try:
        return orjson.dumps(dict(pair), option=orjson.OPT_APPEND_NEWLINE)
    except (TypeError, ValueError) as error:
        raise DataError(Message("serve.row_no_plain_data", number=number, error=error)) from None


def _unpack(packed: IO[bytes], plain: IO[bytes], *, limit_bytes: int, name: str) -> None:
    written = 0
    try:
        with gzip.GzipFile(fileobj=packed) as stream:
            while block := stream.read1(_BLOCK):
                written += len(block)
                if written > limit_bytes:
                    raise TooLarge(
                        Message("serve.unpacked_too_long", name=name, limit_bytes=limit_bytes)
                    )
                with _making_room():
                    plain.write(block)
    except (EOFError, OSError, zlib.error) as error:
        reason = " ".join(str(error).split())
        raise DataError(Message("serve.gzip_damaged", name=name, reason=reason)) from None


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
class UploadPreview:
    """A file before a run of it begins: its columns, its first rows, and what it would take."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
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

    def preview(self, upload: Upload, asked: StartRun) -> UploadPreview:
        """The first rows as they are in the file, and what the run would take; nothing is kept."""
        from evenhand.runs.preview import preview_run

        sources = self._sources(upload, asked)
        table = open_table(upload.source(self._limits.of_data), wanted=lambda _: True)
        begun = [row for _, row in islice(table.rows, _PREVIEWED_ROWS) if isinstance(row, Mapping)]
        columns = tuple(dict.fromkeys(str(name) for row in begun for name in row))
        shown = tuple(
            tuple(_cell(row.get(name)) for name in columns[:_PREVIEWED_COLUMNS]) for row in begun
        )
        return UploadPreview(
            file=upload.name,
            columns=columns,
            rows=shown,
            estimate=preview_run(sources, self._plans, self._options),
        )

    def _sources(self, upload: Upload, asked: StartRun) -> BoundedSources:
        refuse_judges(self._plans, self._options)
        for plan in self._plans:
            apply_price(plan, self._options)
        upload.unpack(limit_bytes=self._limits.upload_bytes)
        data_limits = self._limits.of_data
        upload.refuse_long_lines(limit_bytes=data_limits.row_bytes)
        reading = ReadOptions(
            columns=asked.columns,
            criteria=read_criteria(asked.criteria) if asked.criteria else (),
            criteria_needed=any(plan.judge.traits.needs_prompt for plan in self._plans),
            allow_tie=asked.allow_tie,
            swap_positions=asked.swap_positions,
            orders=asked.order_draw,
        )
        return BoundedSources(PairFiles((upload.source(data_limits),), reading), self._limits)

    def take_in(self, upload: Upload, asked: StartRun) -> StartedRun:
        sources = self._sources(upload, asked)
        self._refuse_name(sources)
        until = time.monotonic() + _AWAITED_S
        ours = False  # even where another request was faster to fill it
        while True:
            run, created = self._found(sources)
            ours = ours or created
            if run.intake_done:
                return StartedRun(run, found=not ours)
            try:
                taken = self._taken(run, sources)
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
        existing = self._store.find_run(name) if name is not None else None
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

    def _taken(self, run: RunRecord, sources: BoundedSources) -> RunRecord | None:
        """The run with all its rows; None where it went away meanwhile. What breaks it off takes
        the run along: nobody was ever told of it."""
        store = self._store
        with store.hold(run.id):
            now = store.run_at(run.id)
            if now is None or now.intake_done:
                return now
            store.jobs.add(run.id, self._job)
            try:
                self._fill(now, sources)
            except BaseException:
                with contextlib.suppress(StoreError):
                    store.delete_held(run.id)
                raise
            store.jobs.want(run.id, "run", only_from=("intake",))
            return store.run_at(run.id)

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
        store.set_run_judges(
            run.id, [store.add_judge(plan.record(salt=salt)) for plan in self._plans]
        )
        store.update_run(run.id, intake_done=True, state="judging")

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
        while records := self._store.run_page(before=before, limit=limit + 1):
            jobs = self._store.jobs.of_runs([run.id for run in records])
            for run in records:
                if state is None or state_of(run, jobs.get(run.id)) == state:
                    if len(statuses) == limit:
                        return RunPage(runs=tuple(statuses), next=statuses[-1].id)
                    try:
                        statuses.append(read_status(self._store, run, jobs.get(run.id)))
                    except StoreError as error:  # what is wrong with one hides no other
                        log.warning("run %s is left out of the list: %s", run.id, error.message)
            before = records[-1].id
        return RunPage(runs=tuple(statuses))

    def by_state(self) -> dict[str, int]:
        counted: Counter[str] = Counter()
        before: int | None = None
        while records := self._store.run_page(before=before, limit=_COUNTED_AT_ONCE):
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
                jobs.want(run.id, "run", only_from=("stop",), options=resumed(there))
        return read_status(self._store, run).model_copy(update={"found": started.found})

    def cancel(self, run_id: str) -> RunStatus:
        store = self._store
        run = needed_run(store, run_id)
        if store.jobs.find(run.id) is None and run.state in ("reading", "judging"):
            raise Conflict(Message("serve.run_of_command_line", name=run.name))
        if store.jobs.want(run.id, "stop", only_from=("run",)):
            job = store.jobs.find(run.id)
            if job is not None and not job.is_judged(within_s=SILENT_S):
                store.update_run(run.id, state="stopped", stopped_by="interrupt")
        return self.status(str(run.id))

    def resume(self, run_id: str) -> RunStatus:
        store = self._store
        run = needed_run(store, run_id)
        job = store.jobs.find(run.id)
        if job is None and run.state != "finished":
            raise Conflict(Message("serve.run_begun_elsewhere", name=run.name))
        if job is not None and job.wanted == "stop":
            self._jobs.refuse_when_full()
            store.jobs.want(run.id, "run", only_from=("stop",), options=resumed(job))
        return self.status(str(run.id))


def _id_of(after: str | None) -> int | None:
    if after is None:
        return None
    if not is_number(after):
        raise InputError(Message("serve.after_malformed", after=after[:40]))
    return int(after)
