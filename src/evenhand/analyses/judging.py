"""What an analysis judges before it looks: one run after another, under one set of caps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.data.options import ReadOptions
    from evenhand.data.source import Source
    from evenhand.judging.config import JudgeConfig
    from evenhand.runs import JudgePlan, RunOptions, RunSummary, Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingRequest:
    """What the caller chose for judging. `given` are the flags; `config` resolves them, with what
    the analysis chooses itself."""

    given: Collection[str]
    config: Callable[..., JudgeConfig]
    options: RunOptions
    named: str | None  # a file, for those that judge one; the next two open and read it
    open_data: Callable[[], Source]
    reading: Callable[[JudgeConfig], ReadOptions]


@dataclass(frozen=True, slots=True)
class Stage:
    """One run; `part` ends its name where there are several."""

    sources: Sources
    plan: JudgePlan
    part: str = ""


@dataclass(frozen=True, slots=True)
class JudgedStage:
    stage: Stage
    summary: RunSummary


async def judge_stages(
    stages: Iterable[Stage],
    options: RunOptions,
    judge: Callable[[Stage, RunOptions], Awaitable[RunSummary]],
) -> list[JudgedStage]:
    """Each run with what the ones before it left of the caps. What stops one ends them all."""
    judged: list[JudgedStage] = []
    for stage in stages:
        name = f"{options.name}-{stage.part}" if options.name and stage.part else options.name
        try:
            summary = await judge(stage, replace(options, name=name))
        finally:
            stage.sources.close()
            await stage.plan.judge.close()
        judged.append(JudgedStage(stage, summary))
        if not summary.finished:
            break
        options = options.less(summary.calls, summary.cost_usd)
    return judged
