"""Stored runs as values: a line for each, one run in numbers, and its batches at a provider."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from evenhand.contract import Locale, Mode
from evenhand.contract.codes import OutcomeCounts
from evenhand.contract.model import Model
from evenhand.errors import StoreBusy, StoreError
from evenhand.messages import Message, Sentence
from evenhand.report.lookup import find_run
from evenhand.store import JudgeRecord, RunRecord, RunState, Spending, Store, Tally
from evenhand.store.answers import NOTHING_SPENT, AnswerSpending
from evenhand.store.batches import BatchRecord
from evenhand.store.faults import of_run

_N = TypeVar("_N", int, float)


class RunLine(OutcomeCounts):
    """A run in a list. With several judges, verdicts and what is pending are theirs together."""

    run: str
    created_at: datetime
    updated_at: datetime
    state: RunState
    stopped_by: str | None
    judges: tuple[str, ...]
    pairs: int
    judged: int
    pending: int
    skipped_rows: int


def list_runs(store: Store) -> list[RunLine]:
    """Newest first; `look_over` tells of those that cannot be read, too."""
    return look_over(store)[0]


def look_over(store: Store) -> tuple[list[RunLine], list[StoreError]]:
    """The runs, newest first, and what is wrong with those that cannot be read."""
    lines, damaged = [], store.runs.damaged()
    for run in sorted(store.runs.all(), key=lambda run: (run.created_at, run.id), reverse=True):
        try:
            lines.append(_line(store, run))
        except StoreBusy:
            raise
        except StoreError as error:
            damaged.append(
                StoreError(Message("report.of_run", name=run.name, message=error.message))
            )
    return lines, damaged


def _line(store: Store, run: RunRecord) -> RunLine:
    tally = store.verdicts.tally(run.id)
    judges = tuple(judge.name for judge in store.runs.judges(run.id))
    return RunLine.of_parts(run, tally, run=run.name, judges=judges)


# One run in numbers: what was asked for, what it came to, what it took, what was left out.

SHOWN_AT_MOST = 20


class Skipped(Model):
    """A row of a source that is no pair, and why."""

    source: str
    row: int
    reason: Sentence


class Invalid(Model):
    """A pair without a verdict, and why."""

    id: str
    judge: str
    kind: str
    message: Sentence


class RunUsage(Model):
    """Null where a part is not known: half a sum is no sum."""

    passes: int
    requests: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    known_cost_usd: float | None  # of those passes whose cost is known
    unpriced_passes: int

    @classmethod
    def of(cls, spending: Spending, written: AnswerSpending = NOTHING_SPENT) -> RunUsage:
        """`written`: what was written beside the passes, and answers to prompts."""
        if not spending.passes and written.requests:
            spending = Spending(input_tokens=0, output_tokens=0, cost_usd=0.0)
        counted = spending.uncounted_passes == 0
        cost = _sum(spending.cost_usd, written.cost_usd, written)
        return cls(
            passes=spending.passes,
            requests=spending.requests + written.requests,
            input_tokens=_sum(
                spending.input_tokens if counted else None, written.input_tokens, written
            ),
            output_tokens=_sum(
                spending.output_tokens if counted else None, written.output_tokens, written
            ),
            cost_usd=cost if spending.unpriced_passes == 0 else None,
            known_cost_usd=cost,
            unpriced_passes=spending.unpriced_passes,
        )


def _sum(of_passes: _N | None, of_written: _N | None, written: AnswerSpending) -> _N | None:
    if not written.requests:
        return of_passes
    return None if of_passes is None or of_written is None else of_passes + of_written


class JudgeReport(OutcomeCounts):
    """One judge: how it was asked, and its verdicts. Shares are of the pairs that were won."""

    judge: str
    prompt_version: str | None
    locale: Locale | None
    mode: Mode | None
    samples: int | None
    reconcile: str | None
    settings: dict[str, Any]
    pending: int
    unread_passes: int
    failed_passes: int
    reused_passes: int
    spent: RunUsage


class RunReport(Model):
    """`skipped` and `invalid_pairs` hold the first of them; the numbers count all."""

    run: str
    store: str
    state: RunState
    stopped_by: str | None
    created_at: datetime
    updated_at: datetime
    sources: tuple[str, ...]
    plan: dict[str, Any]
    pairs: int
    skipped_rows: int
    repeated_rows: int
    skipped: tuple[Skipped, ...]
    judges: tuple[JudgeReport, ...]
    invalid_pairs: tuple[Invalid, ...]
    calls: int
    spent: RunUsage  # by this run itself, on answers, what it prepared and replaced passes too
    seconds: float


@of_run
def report_run(store: Store, name: str) -> RunReport:
    run = find_run(store, name)
    judges = store.runs.judges(run.id)
    tallies = [store.verdicts.tally(run.id, judge.id) for judge in judges]
    whole = store.verdicts.tally(run.id)
    invalid = sum(tally.invalid for tally in tallies)
    return RunReport.of_parts(
        run,
        whole,
        run=run.name,
        store=store.address,
        plan=dict(run.plan),
        repeated_rows=run.summary.get("repeatedRows", 0),
        skipped=tuple(
            Skipped.of_parts(row) for row in store.items.skipped(run.id, limit=SHOWN_AT_MOST)
        ),
        judges=tuple(
            _judge(judge, tally, run.planned_for(judge, "deciding"))
            for judge, tally in zip(judges, tallies, strict=True)
        ),
        invalid_pairs=_first_invalid(store, run, judges, at_most=min(invalid, SHOWN_AT_MOST)),
        calls=run.calls + store.answers.spent(run.id, artefacts=False).requests,
        spent=RunUsage.of(whole.made, store.answers.spent(run.id)),
    )


def _judge(judge: JudgeRecord, tally: Tally, deciding: Mapping[str, Any]) -> JudgeReport:
    return JudgeReport.of_parts(
        judge,
        tally,
        judge=judge.name,
        samples=deciding.get("samples"),
        reconcile=deciding.get("reconcile"),
        settings=dict(judge.settings),
        spent=RunUsage.of(tally.used),
    )


def _first_invalid(
    store: Store, run: RunRecord, judges: list[JudgeRecord], *, at_most: int
) -> tuple[Invalid, ...]:
    if not at_most:
        return ()
    names = {judge.id: judge.name for judge in judges}
    invalid: list[Invalid] = []
    for row in store.verdicts.each(run.id):
        if row.error_kind is not None:
            invalid.append(
                Invalid(
                    id=row.item.key,
                    judge=names[row.judge_id],
                    kind=row.error_kind,
                    message=row.error_message or "",
                )
            )
            if len(invalid) == at_most:
                break
    return tuple(invalid)


# A run's batches at a provider: where each is, how large, and what it may cost.

# `sent`: nobody saw whether it arrived, and it is looked for; `open`: it is at the provider.
BatchStage = Literal["intended", "sent", "open", "done"]


class BatchReport(Model):
    """`id` is the provider's, null until it is known; `reserved_usd` what it may cost at most,
    as it was reckoned before it was sent, null where no price is known."""

    id: str | None
    judge: str
    state: BatchStage
    requests: int
    sent_at: datetime | None
    reserved_usd: float | None


def report_batches(store: Store, name: str) -> tuple[BatchReport, ...]:
    """Oldest first."""
    run = find_run(store, name)
    names = {judge.id: judge.name for judge in store.runs.judges(run.id)}
    return tuple(
        BatchReport(
            id=batch.provider_id,
            judge=names.get(batch.judge_id, ""),
            state=_stage(batch),
            requests=batch.requests,
            sent_at=None if batch.sent_at is None else datetime.fromtimestamp(batch.sent_at, UTC),
            reserved_usd=batch.reserved_usd,
        )
        for batch in store.batches.of_run(run.id)
    )


def _stage(batch: BatchRecord) -> BatchStage:
    if batch.state == "intended":
        return "intended" if batch.sent_at is None else "sent"
    return batch.state
