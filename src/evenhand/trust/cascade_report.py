"""What a cascade of judges came to: who settled what, how well, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Outcome
from evenhand.contract.model import Model
from evenhand.report.abstentions import LearnedFrom, Promise, contradiction, stands
from evenhand.report.lookup import find_run
from evenhand.runs import RunSummary
from evenhand.stats.estimated_share import EstimatedShare
from evenhand.stats.guarantee import PromiseCheck, check_promise
from evenhand.store import Store
from evenhand.trust.biases import share_of
from evenhand.trust.fair_labels import fair_labels
from evenhand.trust.votes import NO_WINNER


class Stage(Model):
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


class Cascade(Model):
    """`cost_usd` is null where a part is not known: half a sum is no sum. `left` pairs are
    people's to judge."""

    stages: tuple[Stage, ...]
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
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Standing:
    """A run's verdicts by whether they stand, a row each."""

    keys: list[str]
    stands: NDArray[np.bool_]
    labelled: NDArray[np.bool_]
    agrees: NDArray[np.bool_]
    prompts: NDArray[np.int64]
    outcomes: list[Outcome]


def report_cascade(
    store: Store, summaries: Sequence[RunSummary], *, planned: int, level: float = 0.95
) -> Cascade:
    stages: list[Stage] = []
    standings: list[_Standing] = []
    for summary in summaries:
        standings.append(_standing(store, summary.run))
        stages.append(_stage(store, summary, standings[-1], level=level))
    finished = all(summary.finished for summary in summaries)
    left = stages[-1].left
    first = standings[0]
    costs = [stage.cost_usd for stage in stages]
    known = [cost for cost in costs if cost is not None]
    kept = sum(stage.kept for stage in stages)
    pairs = stages[0].asked
    capped = finished and left > 0 and len(stages) < planned
    return Cascade(
        stages=tuple(stages),
        pairs=pairs,
        kept=kept,
        left=left,
        coverage=share_of(_covered(standings), first.prompts, level=level, unit="pair"),
        agreement=_agreement(standings, level=level),
        passes=sum(stage.passes for stage in stages),
        calls=sum(stage.calls for stage in stages),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        finished=finished and not capped,
        level=level,
        notes=tuple(_notes(stages, finished=finished, capped=capped)),
    )


def _notes(stages: list[Stage], *, finished: bool, capped: bool) -> Iterator[str]:
    last = stages[-1]
    if not finished:
        yield f"stopped in run {last.run}; the same command goes on with it"
    elif capped:
        yield f"a cap is used up after run {last.run}; the same command with more goes on"
    for place, stage in enumerate(stages):
        yield from contradiction(stage.check, stage.judge)
        if stage.learned_from is not None and stage.min_agreement is not None:
            yield stage.learned_from.sentence
        if place and stage.min_agreement is not None:
            yield (
                f"the promise of {stage.judge} holds for pairs like those it was learned on, and "
                f"those left over are harder; evenhand calibrate {stage.run} learns it on these"
            )
        if stage.min_agreement is None:
            yield (
                f"{stage.judge} has no calibration with --min-agreement: whatever it decides the "
                "same in both orders stands, and nothing is promised of it"
            )


def _standing(store: Store, name: str) -> _Standing:
    run = find_run(store, name)
    (judge,) = store.run_judges(run.id)
    promise = Promise.of(judge, run)
    columns = store.outcome_columns(run.id, judge.id)
    numbers = np.asarray(columns.number, dtype=np.int64)
    judged = set(columns.number)
    rows = [
        row
        for row in store.each_verdict(run.id, judge_id=judge.id)
        if row.item.number in judged  # a run that goes on may have got more since
    ]
    labels = fair_labels(store, run.id, numbers, of_data=columns.label, evenly=True).winners
    return _Standing(
        keys=[row.item.key for row in rows],
        stands=np.array([stands(row, promise) for row in rows], dtype=np.bool_),
        labelled=labels != NO_WINNER,
        # The winner codes are the outcome codes of a win or a tie; nothing else stands.
        agrees=labels == np.asarray(columns.outcome, dtype=np.int8),
        prompts=np.asarray(columns.prompt_key, dtype=np.int64),
        outcomes=[row.outcome for row in rows],
    )


def _stage(store: Store, summary: RunSummary, found: _Standing, *, level: float) -> Stage:
    run = find_run(store, summary.run)
    (judge,) = store.run_judges(run.id)
    promise = Promise.of(judge, run)
    used = store.tally(run.id, judge.id).used
    kept = int(found.stands.sum())
    inconsistent = found.outcomes.count(Outcome.INCONSISTENT)
    invalid = found.outcomes.count(Outcome.INVALID)
    return Stage(
        judge=judge.name,
        run=summary.run,
        min_agreement=None if promise is None else promise.min_agreement,
        asked=summary.pairs,
        kept=kept,
        left=summary.pairs - kept,
        abstained=len(found.outcomes) - kept - inconsistent - invalid,
        inconsistent=inconsistent,
        invalid=invalid,
        agreement=_agreement([found], level=level),
        passes=used.passes,
        calls=summary.total.calls,
        cost_usd=None if used.unpriced_passes else used.cost_usd or 0.0,
        learned_from=LearnedFrom.of(judge, run),
        check=None if promise is None else _checked(found, promise.min_agreement),
    )


def _checked(found: _Standing, promised: float) -> PromiseCheck | None:
    known = found.stands & found.labelled
    return check_promise(found.agrees[known], target=promised, prompts=found.prompts[known])


def _agreement(standings: Sequence[_Standing], *, level: float) -> EstimatedShare:
    """Of the verdicts that stand and have a label: the data's own, or the majority of people's
    votes on pairs that were not chosen for what was known of them."""
    chosen = [each.stands & each.labelled for each in standings]
    agrees = np.concatenate([e.agrees[c] for e, c in zip(standings, chosen, strict=True)])
    prompts = np.concatenate([e.prompts[c] for e, c in zip(standings, chosen, strict=True)])
    return share_of(agrees, prompts, level=level, unit="labelled verdict")


def _covered(standings: Sequence[_Standing]) -> NDArray[np.bool_]:
    """The first stage's rows that some stage kept; a pair keeps its id from stage to stage."""
    kept = {
        key
        for each in standings
        for key, kept_it in zip(each.keys, each.stands, strict=True)
        if kept_it
    }
    return np.array([key in kept for key in standings[0].keys], dtype=np.bool_)
