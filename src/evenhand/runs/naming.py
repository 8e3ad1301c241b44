"""The run that a command means: the one it began before, or a new one."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from evenhand.errors import InputError
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan, RunPlan
from evenhand.runs.sources import Sources
from evenhand.store import NewRun, RunRecord, Store

_NOT_IN_A_NAME = re.compile(r"[^\w.+-]+")
_LONGEST_TITLE = 60


def find_or_create(
    store: Store, sources: Sources, judges: Sequence[JudgePlan], options: RunOptions
) -> tuple[RunRecord, bool]:
    """The run, and whether it was made just now."""
    plan = RunPlan.of(sources.describe(), judges)
    if options.fresh:
        unfinished = _unfinished_fresh(store, plan, options.name)
        if unfinished is not None:
            return unfinished, False
        plan = RunPlan.of(sources.describe(), judges, fresh=secrets.token_hex(4))
    elif options.name is None:
        found = store.run_of_fingerprint(plan.fingerprint)
        if found is not None:
            return found, False
    else:
        found = store.find_run(options.name)
        if found is not None:
            _refuse_other(found, plan)
            return found, False
    name = _free_name(store, options.name or _title(sources, plan))
    new = NewRun(name, plan.fingerprint, plan.as_json(), tuple(sources.names))
    return store.create_run(new), True


def _unfinished_fresh(store: Store, plan: RunPlan, name: str | None) -> RunRecord | None:
    """A fresh run that was broken off goes on; a finished one is not touched."""
    for run in store.list_runs():
        told = run.plan
        same = told.get("data") == plan.as_json()["data"]
        same = same and told.get("judge_names") == list(plan.names)
        named = name is None or run.name == name or run.name.startswith(f"{name}-")
        if same and named and told.get("fresh") and run.state != "finished":
            return run
    return None


def _refuse_other(found: RunRecord, plan: RunPlan) -> None:
    if found.fingerprint == plan.fingerprint:
        return
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
