"""Judges in sequence: each stage is a run over the pairs that the one before could not settle, the
rest goes to people; and what the cascade came to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Outcome
from evenhand.contract.codes import NO_WINNER
from evenhand.contract.model import Model
from evenhand.contract.pair import drawn_order
from evenhand.data.options import ReadOptions
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.report.abstentions import LearnedFrom, Promise, contradiction, stands
from evenhand.report.lookup import find_run
from evenhand.report.votes import fair_labels
from evenhand.runs import (
    JudgePlan,
    PairFiles,
    RunOptions,
    RunSummary,
    Sources,
    given_pairs,
    judge_pairs,
)
from evenhand.runs.executor import refuse_executor
from evenhand.stats.calibration.guarantee import PromiseCheck, check_promise
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.store import Store, WholeVerdict

StageRunner = Callable[[Sources, JudgePlan, RunOptions], Awaitable[RunSummary]]


async def run_cascade(
    sources: Sources,
    plans: Sequence[JudgePlan],
    options: RunOptions,
    *,
    store: Store,
    stage: StageRunner | None = None,
) -> list[RunSummary]:
    """Judge by the first; what it leaves, by the second; and so on. The same call goes on.

    `stage` judges one of them, for whoever wants to watch; a summary for each stage that began.
    """

    async def unwatched(sources: Sources, plan: JudgePlan, options: RunOptions) -> RunSummary:
        return await judge_pairs(sources, [plan], options, store=store)

    refuse_cascade(plans, options)
    # Of every stage: whoever comes last should not find out when all others have been paid.
    refuse_executor(store, plans, options)
    judge = stage or unwatched
    summaries: list[RunSummary] = []
    given = sources  # whoever opened these closes them
    for plan in plans:
        try:
            summary = await judge(sources, plan, options)
        finally:
            if sources is not given:
                sources.close()
        summaries.append(summary)
        further = next_stage(store, summary, options) if len(summaries) < len(plans) else None
        if further is None:
            break
        sources, options = further
    return summaries


def refuse_cascade(plans: Sequence[JudgePlan], options: RunOptions) -> None:
    """Before the first call: what no cascade can be made of."""
    if options.until_decided is not None or options.rank_adaptive is not None:
        raise InputError(Message("trust.escalation_judges_all"))
    names = [plan.judge.name for plan in plans]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(Message("trust.cascade_judge_twice", name=name))


def next_stage(
    store: Store, summary: RunSummary, options: RunOptions
) -> tuple[PairFiles, RunOptions] | None:
    """The pairs that a finished stage left, and the options with what remains of the caps.

    None where nothing is left, the stage did not finish, or a cap is used up.
    """
    if not summary.finished:
        return None
    max_calls = None if options.max_calls is None else options.max_calls - summary.calls
    max_cost = options.max_cost
    if max_cost is not None:
        max_cost -= summary.cost_usd or 0.0
    if (max_calls is not None and max_calls < 1) or (max_cost is not None and max_cost <= 0):
        return None
    rows = [_row(whole) for whole in left_over(store, summary.run)]
    if not rows:
        return None
    spooled = given_pairs(rows, ReadOptions(criteria_needed=False))
    (file,) = spooled.files
    named = replace(spooled, files=(replace(file, name=f"{summary.run}-left"),))
    return named, replace(options, name=None, max_calls=max_calls, max_cost=max_cost)


def left_over(store: Store, run: str) -> Iterator[WholeVerdict]:
    """The pairs on which the run's judge has no verdict that stands."""
    record = find_run(store, run)
    (judge,) = store.runs.judges(record.id)
    promise = Promise.of(judge, record)
    for whole in store.verdicts.each_whole(record.id, judge_id=judge.id):
        if not stands(whole.row, promise):
            yield whole


def for_people(store: Store, run: str) -> Iterator[dict[str, Any]]:
    """What is left for people, as rows of a file: blind, so without labels and models.

    Each says where it comes from, so that votes which are filled in and imported are known as
    escalated, and kept out of figures that need a fair draw.
    """
    for whole in left_over(store, run):
        row = _row(whole)
        blind = {name: row[name] for name in row if name not in ("label", "model_a", "model_b")}
        yield blind | {"origin": "escalation"}


def _row(whole: WholeVerdict) -> dict[str, Any]:
    """The pair as a row of data, so that the next run reads it as the first did."""
    pair, item = whole.pair, whole.row.item
    fields: dict[str, Any] = {
        "id": item.key,
        "prompt": pair.prompt,
        "response_a": pair.response_a,
        "response_b": pair.response_b,
        "context": pair.context,
        "reference": pair.reference,
        "criteria": [each.model_dump(mode="json", exclude_none=True) for each in pair.criteria],
        "allow_tie": pair.allow_tie,
        # A pair that was asked in one drawn order goes on to be asked in both.
        "swap_positions": None if drawn_order(pair) else pair.swap_positions,
        "label": item.label,
        "model_a": item.model_a,
        "model_b": item.model_b,
        "tags": list(item.tags),
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}


# What a cascade of judges came to: who settled what, how well, and at what cost.


class CascadeStage(Model):
    """One judge's part. `kept` verdicts stand; `left` pairs went on.

    `passes` and `cost_usd` are of all passes behind it, also those that an earlier run had made;
    `calls` those that it made itself.
    """

    judge: str
    run: str
    min_agreement: float | None
    asked: int
    kept: int
    left: int
    abstained: int
    inconsistent: int
    invalid: int
    agreement: EstimatedShare
    passes: int
    calls: int
    cost_usd: float | None
    learned_from: LearnedFrom | None = None
    check: PromiseCheck | None = None


class CascadeReport(Model):
    """`cost_usd` is null where a part is not known: half a sum is no sum. `left` pairs are
    people's to judge."""

    stages: tuple[CascadeStage, ...]
    pairs: int
    kept: int
    left: int
    coverage: EstimatedShare
    agreement: EstimatedShare
    passes: int
    calls: int
    cost_usd: float | None
    finished: bool
    level: float
    notes: tuple[Sentence, ...] = ()


@dataclass(frozen=True, slots=True)
class _StageVerdicts:
    """A run's verdicts by whether they stand, a row each."""

    keys: list[str]
    stands: NDArray[np.bool_]
    labelled: NDArray[np.bool_]
    agrees: NDArray[np.bool_]
    prompts: NDArray[np.int64]
    outcomes: list[Outcome]


def report_cascade(
    store: Store, summaries: Sequence[RunSummary], *, planned: int, level: float = 0.95
) -> CascadeReport:
    stages: list[CascadeStage] = []
    standings: list[_StageVerdicts] = []
    for summary in summaries:
        standings.append(_stage_verdicts(store, summary.run))
        stages.append(_stage(store, summary, standings[-1], level=level))
    finished = all(summary.finished for summary in summaries)
    left = stages[-1].left
    first = standings[0]
    costs = [stage.cost_usd for stage in stages]
    known = [cost for cost in costs if cost is not None]
    kept = sum(stage.kept for stage in stages)
    pairs = stages[0].asked
    capped = finished and left > 0 and len(stages) < planned
    return CascadeReport(
        stages=tuple(stages),
        pairs=pairs,
        kept=kept,
        left=left,
        coverage=share_of_rows(_covered(standings), first.prompts, level=level, unit="pair"),
        agreement=_agreement(standings, level=level),
        passes=sum(stage.passes for stage in stages),
        calls=sum(stage.calls for stage in stages),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        finished=finished and not capped,
        level=level,
        notes=tuple(_notes(stages, finished=finished, capped=capped)),
    )


def _notes(stages: list[CascadeStage], *, finished: bool, capped: bool) -> Iterator[str]:
    last = stages[-1]
    if not finished:
        yield Message("trust.cascade_stopped", run=last.run)
    elif capped:
        yield Message("trust.cascade_capped", run=last.run)
    for place, stage in enumerate(stages):
        yield from contradiction(stage.check, stage.judge)
        if stage.learned_from is not None and stage.min_agreement is not None:
            yield stage.learned_from.sentence
        if place and stage.min_agreement is not None:
            yield Message("trust.promise_of_easier_pairs", judge=stage.judge, run=stage.run)
        if stage.min_agreement is None:
            yield Message("trust.no_promise", judge=stage.judge)


def _stage_verdicts(store: Store, name: str) -> _StageVerdicts:
    run = find_run(store, name)
    (judge,) = store.runs.judges(run.id)
    promise = Promise.of(judge, run)
    columns = store.columns.outcomes(run.id, judge.id)
    numbers = np.asarray(columns.number, dtype=np.int64)
    judged = set(columns.number)
    rows = [
        row
        for row in store.verdicts.each(run.id, judge_id=judge.id)
        if row.item.number in judged  # a run that goes on may have got more since
    ]
    labels = fair_labels(store, run.id, numbers, of_data=columns.label, evenly=True).winners
    return _StageVerdicts(
        keys=[row.item.key for row in rows],
        stands=np.array([stands(row, promise) for row in rows], dtype=np.bool_),
        # A tie by rule stands, but says nothing about the judge.
        labelled=(labels != NO_WINNER) & (np.asarray(columns.by_rule) == 0),
        # The winner codes are the outcome codes of a win or a tie; nothing else stands.
        agrees=labels == np.asarray(columns.outcome, dtype=np.int8),
        prompts=np.asarray(columns.prompt_key, dtype=np.int64),
        outcomes=[row.outcome for row in rows],
    )


def _stage(
    store: Store, summary: RunSummary, verdicts: _StageVerdicts, *, level: float
) -> CascadeStage:
    run = find_run(store, summary.run)
    (judge,) = store.runs.judges(run.id)
    promise = Promise.of(judge, run)
    used = store.verdicts.tally(run.id, judge.id).used
    kept = int(verdicts.stands.sum())
    inconsistent = verdicts.outcomes.count(Outcome.INCONSISTENT)
    invalid = verdicts.outcomes.count(Outcome.INVALID)
    return CascadeStage(
        judge=judge.name,
        run=summary.run,
        min_agreement=None if promise is None else promise.min_agreement,
        asked=summary.pairs,
        kept=kept,
        left=summary.pairs - kept,
        abstained=len(verdicts.outcomes) - kept - inconsistent - invalid,
        inconsistent=inconsistent,
        invalid=invalid,
        agreement=_agreement([verdicts], level=level),
        passes=used.passes,
        calls=summary.total.calls,
        cost_usd=None if used.unpriced_passes else used.cost_usd or 0.0,
        learned_from=LearnedFrom.of(judge, run),
        check=None if promise is None else _checked(verdicts, promise.min_agreement),
    )


def _checked(verdicts: _StageVerdicts, promised: float) -> PromiseCheck | None:
    known = verdicts.stands & verdicts.labelled
    return check_promise(verdicts.agrees[known], target=promised, prompts=verdicts.prompts[known])


def _agreement(standings: Sequence[_StageVerdicts], *, level: float) -> EstimatedShare:
    """Of the verdicts that stand and have a label: the data's own, or the majority of people's
    votes on pairs that were not chosen for what was known of them."""
    chosen = [each.stands & each.labelled for each in standings]
    agrees = np.concatenate([e.agrees[c] for e, c in zip(standings, chosen, strict=True)])
    prompts = np.concatenate([e.prompts[c] for e, c in zip(standings, chosen, strict=True)])
    return share_of_rows(agrees, prompts, level=level, unit="labelled verdict")


def _covered(standings: Sequence[_StageVerdicts]) -> NDArray[np.bool_]:
    """The first stage's rows that some stage kept; a pair keeps its id from stage to stage."""
    kept = {
        key
        for each in standings
        for key, kept_it in zip(each.keys, each.stands, strict=True)
        if kept_it
    }
    return np.array([key in kept for key in standings[0].keys], dtype=np.bool_)
