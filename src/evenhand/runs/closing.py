"""The end of a command: what the store holds now becomes the run's summary, and its state."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.contract import ErrorBody
from evenhand.errors import CapReached, EvenhandError
from evenhand.runs.budget import Budget
from evenhand.runs.executor import Seat
from evenhand.runs.intake import note_on_partners, note_on_repeats
from evenhand.runs.pursuit import Pursuit
from evenhand.runs.stop import Stop
from evenhand.runs.summary import JudgeSummary, RunSummary, Spent
from evenhand.store import RunRecord, Store, Tally


def close_run(
    store: Store,
    run: RunRecord,
    seats: Sequence[Seat],
    *,
    budget: Budget,
    stop: Stop,
    pursuit: Pursuit,
    notes: Sequence[str],
    seconds: float,
) -> RunSummary:
    """Reads the store and writes to it, and so is called off the event loop."""
    found, account = pursuit.found(), pursuit.account()
    recorded = store.find_run(run.name)
    said = [note_on_repeats(recorded), note_on_partners(recorded)] if recorded else []
    said.append(account)
    tally = store.tally(run.id)
    judges = [
        # One judge's tally is the run's: counting a million passes takes seconds.
        _judge_summary(seat, tally if len(seats) == 1 else store.tally(run.id, seat.judge_id))
        for seat in seats
    ]
    spent = tally.made
    summary = RunSummary(
        run=run.name,
        store=store.address,
        pairs=tally.pairs,
        wins_a=tally.wins_a,
        wins_b=tally.wins_b,
        ties=tally.ties,
        inconsistent=tally.inconsistent,
        invalid=tally.invalid,
        pending=tally.pending,
        skipped_rows=tally.skipped_rows,
        calls=budget.calls,
        reused_passes=sum(seat.count.reused for seat in seats),
        input_tokens=budget.known_input_tokens,
        output_tokens=budget.known_output_tokens,
        cost_usd=budget.known_cost_usd,
        seconds=round(seconds, 3),
        stopped_by=stop.by,
        judges=tuple(judges),
        total=Spent(
            # A command that was killed could not say what it had made.
            calls=max(run.calls + budget.calls, spent.requests),
            input_tokens=None if spent.uncounted_passes else spent.input_tokens or 0,
            output_tokens=None if spent.uncounted_passes else spent.output_tokens or 0,
            cost_usd=None if spent.unpriced_passes else spent.cost_usd or 0.0,
            seconds=round(run.seconds + seconds, 3),
        ),
        error=_body(stop.error),
        notes=(*notes, *_why_capped(stop, budget), *(note for note in said if note)),
        decision=found.decision,
        ranking=found.ranking,
    )
    store.update_run(
        run.id,
        state="finished" if summary.finished else "stopped",
        stopped_by=stop.by,
        seconds=summary.total.seconds,
        calls=summary.total.calls,
        reused_passes=run.reused_passes + summary.reused_passes,
    )
    return summary


def _why_capped(stop: Stop, budget: Budget) -> list[str]:
    unpriced = budget.unpriced and stop.by == "max-cost"
    return [stop.error.message] if stop.error is not None and unpriced else []


def _body(error: EvenhandError | None) -> ErrorBody | None:
    """A cap is no error: whoever set it has got what they asked for."""
    if error is None or isinstance(error, CapReached):
        return None
    return ErrorBody(kind=error.kind, message=error.message, retryable=error.retryable)


def _judge_summary(seat: Seat, tally: Tally) -> JudgeSummary:
    judge = seat.judge
    reads_prompt = judge.traits.needs_prompt
    template = seat.procedure.template_for(seat.procedure.mode_for(judge)) if reads_prompt else None
    return JudgeSummary(
        judge=judge.name,
        prompt_version=template.version if template else None,
        wins_a=tally.wins_a,
        wins_b=tally.wins_b,
        ties=tally.ties,
        inconsistent=tally.inconsistent,
        invalid=tally.invalid,
        pending=tally.pending,
        unread_passes=tally.unread_passes,
    )
