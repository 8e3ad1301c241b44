"""From judge to judge, then to people: what one cannot vouch for goes on to the next.

Each stage is a run of its own in the same store, over the pairs that the stage before left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from evenhand.data import Reading
from evenhand.errors import InputError
from evenhand.report.abstentions import Promise, stands
from evenhand.report.lookup import find_run
from evenhand.runs import (
    JudgePlan,
    PairFiles,
    RunOptions,
    RunSummary,
    Sources,
    given_pairs,
    judge_pairs,
)
from evenhand.runs.executors import refuse_executor
from evenhand.store import Store, WholeVerdict

Stage = Callable[[Sources, JudgePlan, RunOptions], Awaitable[RunSummary]]


async def run_cascade(
    sources: Sources,
    plans: Sequence[JudgePlan],
    options: RunOptions,
    *,
    store: Store,
    stage: Stage | None = None,
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
        raise InputError(
            "--escalate judges every pair, and --until-decided and --rank-adaptive do not; "
            "give one or the other"
        )
    names = [plan.judge.name for plan in plans]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f"judge {name} is given twice in the cascade; name it once")


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
    spooled = given_pairs(rows, Reading(criteria_needed=False))
    (file,) = spooled.files
    named = replace(spooled, files=(replace(file, name=f"{summary.run}-left"),))
    return named, replace(options, name=None, max_calls=max_calls, max_cost=max_cost)


def left_over(store: Store, run: str) -> Iterator[WholeVerdict]:
    """The pairs on which the run's judge has no verdict that stands."""
    found = find_run(store, run)
    (judge,) = store.run_judges(found.id)
    promise = Promise.of(judge, found)
    for whole in store.each_whole_verdict(found.id, judge_id=judge.id):
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
        "swap_positions": pair.swap_positions,
        "label": item.label,
        "model_a": item.model_a,
        "model_b": item.model_b,
        "tags": list(item.tags),
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}
