"""The store's runs as clients see them: listed, looked at, cancelled, resumed. For threads."""

from __future__ import annotations

from collections import Counter

from evenhand.errors import Conflict, InputError
from evenhand.serve.jobs import Jobs
from evenhand.serve.judging import resumed
from evenhand.serve.readings import MOST_DIGITS, needed_run
from evenhand.serve.starting import Started
from evenhand.serve.statuses import SILENT_S, read_status, state_of
from evenhand.serve.values import RunPage, RunStatus
from evenhand.store import Store
from evenhand.store.jobs import NewJob

_COUNTED_AT_ONCE = 1000


class RunBook:
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
            found = self._store.jobs.of_runs([run.id for run in records])
            for run in records:
                if state is None or state_of(run, found.get(run.id)) == state:
                    if len(statuses) == limit:
                        return RunPage(runs=tuple(statuses), next=statuses[-1].id)
                    statuses.append(read_status(self._store, run, found.get(run.id)))
            before = records[-1].id
        return RunPage(runs=tuple(statuses))

    def by_state(self) -> dict[str, int]:
        counted: Counter[str] = Counter()
        before: int | None = None
        while records := self._store.run_page(before=before, limit=_COUNTED_AT_ONCE):
            found = self._store.jobs.of_runs([run.id for run in records])
            counted.update(state_of(run, found.get(run.id)) for run in records)
            before = records[-1].id
        return dict(counted)

    def take_on(self, started: Started, job: NewJob) -> RunStatus:
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
            raise Conflict(f"run {run.name!r} is the command line's; stop it there")
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
            raise Conflict(
                f"run {run.name!r} was begun by the command line; go on with it there, or send "
                "its pairs here"
            )
        if job is not None and job.wanted == "stop":
            self._jobs.refuse_when_full()
            store.jobs.want(run.id, "run", only_from=("stop",), options=resumed(job))
        return self.status(str(run.id))


def _id_of(after: str | None) -> int | None:
    if after is None:
        return None
    if not (after.isascii() and after.isdigit() and len(after) <= MOST_DIGITS):
        raise InputError(f"after is {after[:40]!r}; give the `next` of the page before")
    return int(after)
