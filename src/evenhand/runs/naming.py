"""The run that a command means: the one it began before, or a new one."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from evenhand.errors import InputError
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan, RunPlan
from evenhand.runs.sources import Sources
from evenhand.store import NewRun, RunRecord, Store

if TYPE_CHECKING:
    from evenhand.store.jobs import NewJob

_NOT_IN_A_NAME = re.compile(r"[^\w.+-]+")
_LONGEST_TITLE = 60


def find_or_create(
    store: Store,
    sources: Sources,
    judges: Sequence[JudgePlan],
    options: RunOptions,
    *,
    job: NewJob | None = None,
) -> tuple[RunRecord, bool]:
    """The run, and whether it was made just now; then with the job, where it is a server's."""
    data = sources.describe()
    plan = RunPlan.of(data, judges, pursued=options.pursued)
    if options.fresh:
        begun = _fresh_one(store, data, judges, options)
        if begun is not None:
            return begun, False
        plan = RunPlan.of(data, judges, fresh=secrets.token_hex(4), pursued=options.pursued)
    elif options.name is None:
        found = store.run_of_fingerprint(plan.fingerprint)
        if found is not None and not found.summary.get("forgotten_at"):
            return found, False
    else:
        found = store.find_run(options.name)
        if found is not None:
            if not is_run_of(found, data, judges, options):
                _refuse(found, plan)
            if found.summary.get("forgotten_at"):
                raise InputError(
                    f"the texts of run {found.name!r} were forgotten, so that it cannot go on; "
                    "give another --name"
                )
            return found, False
    name = _free_name(store, options.name or _title(sources, plan))
    new = NewRun(name, plan.fingerprint, plan.as_json(), tuple(sources.names))
    return (store.create_run(new), True) if job is None else store.create_job_run(new, job)


def refuse_other(run: RunRecord, judges: Sequence[JudgePlan], options: RunOptions) -> None:
    """Judges, or ways to decide, that are not those of the run."""
    plan = RunPlan.of(
        run.plan["data"], judges, fresh=run.plan.get("fresh"), pursued=options.pursued
    )
    if plan.fingerprint != run.fingerprint:
        raise InputError(
            f"run {run.name!r} was begun with {plan.differs_in(run.plan)}; restore what it was "
            "begun with, or start another run"
        )


def is_run_of(
    run: RunRecord, data: Mapping[str, Any], judges: Sequence[JudgePlan], options: RunOptions
) -> bool:
    """Whether the run was made by this command, with or without --fresh."""
    salt = run.plan.get("fresh")
    plan = RunPlan.of(data, judges, fresh=salt, pursued=options.pursued)
    return plan.fingerprint == run.fingerprint


def _fresh_one(
    store: Store, data: Mapping[str, Any], judges: Sequence[JudgePlan], options: RunOptions
) -> RunRecord | None:
    """A fresh run that was broken off goes on; a finished one is touched only to try again."""
    name = options.name
    for run in store.list_runs():
        named = name is None or run.name == name or run.name.startswith(f"{name}-")
        wanted = run.state != "finished" or bool(options.retry)
        if named and wanted and run.plan.get("fresh") and is_run_of(run, data, judges, options):
            return run
    return None


def _refuse(found: RunRecord, plan: RunPlan) -> NoReturn:
    raise InputError(
        f"run {found.name!r} is there already, with {plan.differs_in(found.plan)}; give another "
        f"--name (equal passes are shared), or remove it: evenhand runs delete {found.name}"
    )


def _free_name(store: Store, wanted: str) -> str:
    name, number = wanted, 1
    while store.find_run(name) is not None:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _title(sources: Sources, plan: RunPlan) -> str:
    """The files' names and the beginning of the fingerprint: told apart, and recognised."""
    title = _NOT_IN_A_NAME.sub("-", sources.title)[:_LONGEST_TITLE].strip("-.") or "run"
    return f"{title}-{plan.fingerprint[:6]}"
