"""From an upload to a run in the store, all of it or nothing: what is answered survives a kill."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.contract import read_criteria
from evenhand.data import Reading
from evenhand.errors import Conflict, InputError, Interrupted, StoreBusy, StoreError
from evenhand.runs import JudgePlan, PairFiles, RunOptions, Stop
from evenhand.runs.engine import refuse_judges
from evenhand.runs.intake import take_in
from evenhand.runs.naming import find_or_create, is_run_of
from evenhand.runs.pricing import reckon
from evenhand.serve.bounds import BoundedSources
from evenhand.serve.config import Limits
from evenhand.serve.upload import Upload
from evenhand.serve.values import StartRun
from evenhand.store import RunRecord, Store
from evenhand.store.jobs import NewJob

# The same data may be coming in by another request, or another process.
_LOOKED_EVERY_S = 0.1
_AWAITED_S = 120.0


@dataclass(frozen=True, slots=True)
class Started:
    run: RunRecord
    found: bool  # it was there before


class Starting:
    """One request's way; for a thread, since it reads and writes for as long as the data is."""

    def __init__(
        self,
        store: Store,
        limits: Limits,
        plans: Sequence[JudgePlan],
        options: RunOptions,
        *,
        job: NewJob,
        stop: Stop,
    ) -> None:
        self._store = store
        self._limits = limits
        self._plans = plans
        self._options = options
        self._job = job
        self._stop = stop

    def take_in(self, upload: Upload, asked: StartRun) -> Started:
        refuse_judges(self._plans, self._options)
        for plan in self._plans:
            reckon(plan, self._options)
        upload.unpack(limit_bytes=self._limits.upload_bytes)
        data_limits = self._limits.of_data
        upload.refuse_long_lines(limit_bytes=data_limits.row_bytes)
        reading = Reading(
            columns=asked.columns,
            criteria=read_criteria(asked.criteria) if asked.criteria else (),
            criteria_needed=any(plan.judge.traits.needs_prompt for plan in self._plans),
            allow_tie=asked.allow_tie,
            swap_positions=asked.swap_positions,
        )
        sources = BoundedSources(PairFiles((upload.source(data_limits),), reading), self._limits)
        self._refuse_name(sources)
        until = time.monotonic() + _AWAITED_S
        ours = False  # even where another request was faster to fill it
        while True:
            run, created = self._found(sources)
            ours = ours or created
            if run.intake_done:
                return Started(run, found=not ours)
            try:
                taken = self._taken(run, sources)
            except StoreBusy:
                if time.monotonic() > until:
                    raise Conflict(
                        f"the same pairs are just coming in as run {run.name!r}; "
                        f"ask for it in a moment: it is run {run.id}"
                    ) from None
                self._rest()
                continue
            if taken is not None:
                return Started(taken, found=not ours)

    def _refuse_name(self, sources: BoundedSources) -> None:
        name = self._options.name
        found = self._store.find_run(name) if name is not None else None
        if found is not None and not is_run_of(
            found, sources.describe(), self._plans, self._options
        ):
            raise Conflict(
                f"run {name!r} is there already, with other data, judges or options; "
                "give another name (equal passes are shared), or none"
            )

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
            told=lambda _: None,
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
    return Interrupted("the server was stopped while the pairs came in; send them again")
