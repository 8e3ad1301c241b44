"""What Python callers use: the comparer with a judge by name, the settings applied, and a sync
face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand import comparer, judges
from evenhand.contract import Pair, Verdict, read_pair
from evenhand.errors import InputError
from evenhand.judges import Judge, JudgeOptions
from evenhand.procedure import Procedure
from evenhand.settings import Settings, load_settings
from evenhand.sync import run_sync


def judge_options(settings: Settings) -> JudgeOptions:
    return JudgeOptions(
        base_url=settings.base_url,
        api_key=settings.api_key,
        timeout_s=settings.timeout_s,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        cache_dir=settings.cache_dir,
    )


def open_judge(spec: str | None = None, options: JudgeOptions | None = None) -> Judge:
    """A judge by name, with the environment's and the config file's settings unless given."""
    settings = load_settings()
    spec = spec or settings.judge
    if spec is None:
        raise InputError("no judge is named; give one such as openai:gpt-4o, or set EVENHAND_JUDGE")
    return judges.open_judge(spec, options or judge_options(settings))


async def compare(
    pair: Pair | Mapping[str, Any],
    judge: str | Judge | None = None,
    procedure: Procedure | None = None,
) -> Verdict:
    """Which of two responses is better. A judge given by name is opened and closed here."""
    checked = read_pair(pair)
    if judge is not None and not isinstance(judge, str):
        return await comparer.compare(checked, judge, procedure)
    opened = open_judge(judge)
    try:
        return await comparer.compare(checked, opened, procedure)
    finally:
        await opened.close()


def compare_sync(
    pair: Pair | Mapping[str, Any],
    judge: str | Judge | None = None,
    procedure: Procedure | None = None,
) -> Verdict:
    """The same for code that is not async; works inside a running event loop too."""
    return run_sync(compare(pair, judge, procedure))
