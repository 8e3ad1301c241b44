"""What Python callers use: the comparer with a judge by name, the settings applied, and a sync
face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evenhand import comparer, judges
from evenhand.contract import Pair, Verdict, read_pair
from evenhand.errors import InputError
from evenhand.judges import Judge, JudgeOptions
from evenhand.procedure import Procedure
from evenhand.settings import Settings, load_settings
from evenhand.sync import run_sync

# Samples taken at temperature 0 are one sample over again.
_SAMPLING_TEMPERATURE = 1.0


def judge_options(settings: Settings, spec: str, *, base_url: str | None = None) -> JudgeOptions:
    """What the settings say for the judge named `spec`.

    Their base URL and key are those of OpenAI-compatible servers: no other provider is sent them.
    `base_url` was chosen for this very judge.
    """
    is_openai = spec.strip().startswith("openai:")
    temperature = settings.temperature
    if temperature is None and (settings.samples or 1) > 1:
        temperature = _SAMPLING_TEMPERATURE
    return JudgeOptions(
        base_url=base_url or (settings.base_url if is_openai else None),
        api_key=settings.api_key if is_openai else None,
        timeout_s=settings.timeout_s,
        max_tokens=settings.max_tokens,
        temperature=temperature,
        cache_dir=settings.cache_dir,
    )


def open_judge_for(settings: Settings, spec: str, *, base_url: str | None = None) -> Judge:
    return judges.open_judge(spec, judge_options(settings, spec, base_url=base_url))


def open_judge(spec: str | None = None, options: JudgeOptions | None = None) -> Judge:
    """A judge by name, with the environment's and the config file's settings unless given."""
    return _open(load_settings(), spec, options)


def _open(settings: Settings, spec: str | None, options: JudgeOptions | None = None) -> Judge:
    if spec is not None and not isinstance(spec, str):  # callers may be untyped
        raise InputError(f"judge is {spec!r}; it takes a name such as openai:gpt-4o")
    spec = spec or settings.judge
    if spec is None:
        raise InputError("no judge is named; give one such as openai:gpt-4o, or set EVENHAND_JUDGE")
    if options is not None:
        return judges.open_judge(spec, options)
    return open_judge_for(settings, spec)


async def compare(
    pair: Pair | Mapping[str, Any],
    judge: str | Judge | None = None,
    procedure: Procedure | None = None,
) -> Verdict:
    """Which of two responses is better. A judge given by name is opened and closed here."""
    if judge is not None and not isinstance(judge, str):
        if not (hasattr(judge, "ask") and hasattr(judge, "traits")):
            raise InputError(f"judge is {judge!r}; it takes a name, or what open_judge gives")
        checked = read_pair(pair, criteria_needed=judge.traits.needs_prompt)
        return await comparer.compare(checked, judge, procedure)
    samples = procedure.samples if procedure else 1
    settings = replace(load_settings(), samples=samples)
    checked = read_pair(pair, criteria_needed=judges.reads_prompt(judge or settings.judge))
    opened = _open(settings, judge)
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
