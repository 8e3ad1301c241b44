"""A stored run by its id or name, and its status from its record and its job: what every edge
reports of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from evenhand.contract import ErrorBody
from evenhand.contract.codes import OUTCOMES
from evenhand.errors import NotFound
from evenhand.messages import Message, from_json, to_json
from evenhand.report.lookup import nearest
from evenhand.runs.progress import Progress
from evenhand.runs.sources import note_on_partners, note_on_repeats
from evenhand.runs.summary import RunSummary
from evenhand.serve.values import RunStateView, RunStatus
from evenhand.store import RunRecord, Store, Tally
from evenhand.store.answers import AnswerSpending
from evenhand.store.figures import FigureKey
from evenhand.store.jobs import JobRecord
from evenhand.store.schema import AT_REST

_MOST_DIGITS = 18


def is_number(text: str) -> bool:
    """As an address has it: a place in a run or a list, never a sign or a fraction."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def needed_run(store: Store, wanted: str) -> RunRecord:
    """By its id, or by its name. Digits are an id where there is such a run, and else a name."""
    run = store.runs.at(int(wanted)) if is_number(wanted) else None
    run = run or store.runs.find(wanted)
    if run is not None:
        return run
    names = [each.name for each in store.runs.page(limit=1000)]
    near = nearest(wanted, names)
    if near:
        raise NotFound(Message("serve.run_unknown_near", wanted=wanted[:80], near=near[0]))
    raise NotFound(Message("serve.run_unknown", wanted=wanted[:80]))


def recorded_judge(store: Store, runs: Sequence[RunRecord], judge: str | None) -> str | None:
    """What the runs call a judge that clients know by its offer's name."""
    for run in runs if judge is not None else ():
        job = store.jobs.find(run.id)
        if job is not None and judge in job.judges:
            return store.runs.judges(run.id)[job.judges.index(judge)].name
    return judge


# How a run stood when something was worked out from it: what was made at another stamp is old.


def is_at_rest(run: RunRecord) -> bool:
    return run.state in AT_REST  # its record says when it came to rest


def stamp_of(store: Store, run: RunRecord) -> str:
    """Changes with the run's verdicts; of one that goes on, they are counted."""
    if is_at_rest(run):
        return f"{run.state} {run.updated_at.timestamp()}"
    return f"{run.state} {store.verdicts.count(run.id).judged}"


# Whoever judges a run tells of it once a second; silent for so long, it is taken for dead.
SILENT_S = 10.0

# Fewer verdicts are counted sooner than what was kept of them is read and written.
_MANY = 10_000


def read_status(store: Store, run: RunRecord, job: JobRecord | None = None) -> RunStatus:
    """`job` where it was read already, beside the run."""
    job = job or store.jobs.find(run.id)
    state = state_of(run, job)
    if job is not None and state in ("stopped", "failed") and run.stopped_by is None:
        # Its end came between the two: the run was read before it, and the job after it.
        run = store.runs.at(run.id) or run
    progress = _reported(run, job) or count_outcomes(store, run)
    judges = tuple(job.judges) if job else tuple(run.plan.get("judge_names", ()))
    done = sum(progress[name] for name in OUTCOMES)
    judging = state == "judging"
    trouble = progress.get("trouble") if state in ("answering", "judging") else None
    return RunStatus(
        id=str(run.id),
        name=run.name,
        state=state,
        judges=judges,
        pairs=progress["pairs"],
        skipped_rows=progress["skipped_rows"],
        answers=None if run.intake_done else progress.get("answers"),
        done=done,
        **{name: progress[name] for name in OUTCOMES},
        pending=max(0, progress["pairs"] * len(judges) - done),
        calls=progress.get("calls", run.calls),
        cost_usd=progress.get("cost_usd"),
        pairs_per_s=progress.get("pairs_per_s") if judging else None,
        remaining_s=progress.get("remaining_s") if judging else None,
        trouble=None if trouble is None else from_json(trouble),
        stopped_by=_stopped_by(run, job, state),
        error=_error(job, state),
        created_at=run.created_at,
        updated_at=max(run.updated_at, job.updated_at) if job else run.updated_at,
        notes=tuple(_notes(run, job, progress, state)),
    )


def state_of(run: RunRecord, job: JobRecord | None) -> RunStateView:
    if job is None:
        return run.state
    if job.wanted == "intake":
        return "reading"
    if job.is_judged(within_s=SILENT_S):
        return "judging" if run.intake_done else "answering"
    if job.wanted == "done" or run.state == "finished":
        return "finished"
    if job.wanted == "run":
        return "queued"
    return "failed" if job.error else "stopped"


def progress_of(
    progress: Progress, *, pairs: int, skipped_rows: int, before: Mapping[str, Any]
) -> dict[str, Any]:
    """What a job tells of a run that is being judged; `before` is what was spent earlier."""
    return {
        "pairs": pairs,
        "skipped_rows": skipped_rows,
        **progress.outcomes,
        "calls": before["calls"] + progress.calls,
        "cost_usd": added(before["cost_usd"], progress.cost_usd),
        "pairs_per_s": progress.pairs_per_s,
        "remaining_s": progress.remaining_s,
        "trouble": None if progress.trouble is None else to_json(progress.trouble),
    }


def progress_at_end(
    summary: RunSummary, generated: AnswerSpending, answers: Mapping[str, int] | None
) -> dict[str, Any]:
    """`answers` where a run of prompts stopped before it had all of them."""
    return {
        **({} if answers is None else {"answers": answers}),
        "pairs": summary.pairs,
        "skipped_rows": summary.skipped_rows,
        **summary.outcomes,
        "calls": summary.total.calls + generated.requests,
        "cost_usd": added(summary.total.cost_usd, generated.cost_usd),
        "notes": [to_json(note) for note in summary.notes],
    }


def progress_before(tally: Tally, written: AnswerSpending, *, calls: int) -> dict[str, Any]:
    """`written`: answers, and what was written beside the verdicts, which passes do not count."""
    cost = None if tally.made.unpriced_passes else tally.made.cost_usd or 0.0
    return {
        "pairs": tally.pairs,
        "skipped_rows": tally.skipped_rows,
        **tally.outcomes,
        "calls": calls,
        "cost_usd": added(cost, written.cost_usd),
    }


def added(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _reported(run: RunRecord, job: JobRecord | None) -> Mapping[str, Any] | None:
    """What the job says of itself, unless the run went on elsewhere since."""
    if job is None or "pairs" not in job.progress:
        return None
    is_news = job.updated_at >= run.updated_at or job.is_judged(within_s=SILENT_S)
    return job.progress if is_news else None


def count_outcomes(store: Store, run: RunRecord) -> Mapping[str, Any]:
    """Of a run at rest once: counting a million takes a tenth of a second, and a page has many."""
    key = FigureKey.of(run.id, "counts", {})
    stamp = f"{run.state} {run.updated_at.timestamp()}" if is_at_rest(run) else None
    if stamp is not None:
        cached = store.figures.find(key)
        if cached is not None and cached.stamp == stamp and cached.body is not None:
            kept: dict[str, Any] = orjson.loads(cached.body)
            return kept
    tally = store.verdicts.count(run.id)
    counted = {
        "pairs": tally.pairs,
        "skipped_rows": tally.skipped_rows,
        **tally.outcomes,
    }
    if stamp is not None and tally.judged >= _MANY:
        number = store.figures.begin(key)
        if number is not None:
            store.figures.keep(number, orjson.dumps(counted), stamp=stamp, took_s=0)
    return counted


def _error(job: JobRecord | None, state: RunStateView) -> ErrorBody | None:
    """Why it failed, or why it waits; one that goes on has left it behind."""
    if job is None or job.error is None or state not in ("failed", "queued"):
        return None
    return ErrorBody.model_validate(job.error)


def _stopped_by(run: RunRecord, job: JobRecord | None, state: RunStateView) -> str | None:
    if job is None:
        return run.stopped_by
    if state in ("reading", "queued", "answering", "judging"):
        return None
    if state == "stopped" and run.stopped_by in (None, "interrupt"):
        return "cancel"
    return run.stopped_by


def _notes(
    run: RunRecord, job: JobRecord | None, progress: Mapping[str, Any], state: RunStateView
) -> list[str]:
    notes: list[str] = [from_json(note) for note in progress.get("notes", ())]
    for note in (note_on_repeats(run), note_on_partners(run)):
        if note is not None and note not in notes:
            notes.append(note)
    if job is not None and job.wanted == "stop" and state in ("answering", "judging"):
        notes.append(Message("serve.being_stopped"))
    return notes
