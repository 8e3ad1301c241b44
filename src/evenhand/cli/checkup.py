"""Is the set-up sound, and does the judge answer? The checks behind `evenhand doctor`."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from evenhand import __version__
from evenhand.contract import Criterion, Outcome, Pair, Verdict
from evenhand.errors import EvenhandError, SettingsError, Status, exit_code
from evenhand.installation import Extra, extras, install_command
from evenhand.judges.protocol import Judge
from evenhand.judges.redaction import shown_url
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.comparison import settle
from evenhand.judging.config import JudgeConfig
from evenhand.messages import Message
from evenhand.settings import Settings, load_settings

State = Literal["ok", "missing", "warning", "wrong"]

# What each extra is for.
_PURPOSES = {
    "local": "the embedded judge",
    "pandas": "verdicts as a DataFrame",
    "parquet": "Parquet files",
    "postgres": "PostgreSQL store",
    "providers": "anthropic:, google: and other judges, batch APIs",
    "ray": "runs on a Ray cluster",
    "remote": "data in S3 and Google Cloud Storage",
    "serve": "HTTP, MCP and pages",
    "speed": "a faster event loop and transport",
    "telemetry": "OpenTelemetry traces",
    "tools": "tools for agent frameworks",
}
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")

# What load_settings may find wrong in the environment itself.
_CHECKED_VARIABLES = ("EVENHAND_CONFIG", "EVENHAND_LOCALE", "EVENHAND_TRANSPORT")

# Right and wrong beyond doubt, so that what a judge makes of it says something about the judge.
_TRIAL = Pair(
    prompt="What is 7 times 8?",
    response_a="7 times 8 is 56.",
    response_b="7 times 8 is 54.",
    criteria=(Criterion(name="accuracy"),),
)

# What is wrong should be said at once, not after several tries.
_TRIED_ONCE = JudgeConfig(retry=RetryPolicy(attempts=1))


@dataclass(frozen=True, slots=True)
class SetupCheck:
    """One thing looked at. Only `wrong` is a fault, and `exit_code` says of what kind.

    `missing` may be meant so; a `warning` is about a judge that answers, but not well.
    """

    name: str
    state: State
    found: str
    exit_code: int = Status.OK


def settings_and_fault(
    environment: Mapping[str, str],
) -> tuple[Settings, SettingsError | None]:
    """The settings; where they are wrong, what is, and those of the environment alone."""
    try:
        return load_settings(environment), None
    except SettingsError as error:
        readable = {k: v for k, v in environment.items() if k not in _CHECKED_VARIABLES}
        nowhere = Path(os.devnull)
        return load_settings(readable, user_file=nowhere, directory=nowhere), error


def check_set_up(
    settings: Settings, environment: Mapping[str, str], fault: SettingsError | None = None
) -> Iterator[SetupCheck]:
    """Everything but the judge. `fault` is what is wrong with the settings."""
    yield SetupCheck(
        "evenhand", "ok", f"{__version__}, Python {platform.python_version()}, {sys.platform}"
    )
    yield from map(_check_extra, extras())
    yield _check_model(settings)
    yield _check_files(settings, fault)
    for key in _KEYS:
        yield SetupCheck(key, *(("ok", "set") if environment.get(key) else ("missing", "not set")))
    proxies = [name for name in ("HTTP_PROXY", "HTTPS_PROXY") if _either(environment, name)]
    if proxies:
        yield SetupCheck("proxy", "ok", f"{' and '.join(proxies)} used for judges not in NO_PROXY")


def _check_files(settings: Settings, fault: SettingsError | None) -> SetupCheck:
    if fault is not None:
        return SetupCheck("config files", "wrong", fault.message, exit_code(fault))
    return SetupCheck("config files", "ok", ", ".join(settings.sources) or "none found")


def _check_extra(extra: Extra) -> SetupCheck:
    name = f"extra {extra.name}"
    if extra.installed:
        packages = (f"{package} {version}" for package, version in extra.versions.items())
        return SetupCheck(name, "ok", ", ".join(packages))
    message = Message(
        "checkup.extra_missing",
        packages=[package for package, version in extra.versions.items() if version is None],
        purpose=_PURPOSES.get(extra.name, extra.name),
        command=install_command(extra.name),
    )
    return SetupCheck(name, "missing", message)


def _either(environment: Mapping[str, str], name: str) -> str | None:
    return environment.get(name) or environment.get(name.lower())


def _check_model(settings: Settings) -> SetupCheck:
    from evenhand.judges.embedded_model import locate

    path = locate(settings.cache_dir)
    if path is None:
        return SetupCheck("embedded model", "missing", Message("checkup.no_model"))
    return SetupCheck("embedded model", "ok", str(path))


async def check_judges(config: JudgeConfig) -> list[SetupCheck]:
    """Ask the judge something with one right answer, once in each order; a fleet at each server."""
    if config.judge is None:
        result = Message("checkup.no_judge")
        return [SetupCheck("judge", "missing", result)]
    name = f"judge {config.judge}"
    if len(config.base_urls) < 2:
        return [await _check(name, config)]
    try:
        await config.open_judge().close()
    except EvenhandError as error:  # of them together, e.g. one is named twice
        return [SetupCheck(name, "wrong", error.message, exit_code(error))]
    return [
        await _check(f"{name} at {shown_url(each)}", replace(config, base_url=each))
        for each in config.base_urls
    ]


async def _check(name: str, config: JudgeConfig) -> SetupCheck:
    try:
        judge = config.open_judge()
    except EvenhandError as error:
        return SetupCheck(name, "wrong", error.message, exit_code(error))
    try:
        return await _try(name, judge)
    finally:
        await judge.close()


async def _try(name: str, judge: Judge) -> SetupCheck:
    if not judge.traits.needs_prompt:
        return SetupCheck(name, "ok", "opened; not asked, because it does not read prompts")
    settled = await settle(_TRIAL, judge, _TRIED_ONCE)
    if not isinstance(settled, Verdict):
        _, error = settled
        return SetupCheck(name, "wrong", error.message, exit_code(error))
    meta = settled.metadata
    result = (
        f"answered in {meta.evaluation_time_ms / 1000:.1f} s ({meta.mode} mode, {meta.outcome})"
    )
    state: State = "ok"
    if settled.outcome is Outcome.INCONSISTENT:
        state = "warning"
        result += "; its verdict flipped with the order"
    if settled.winner != "A":
        state = "warning"
        result += "; it got a simple sum wrong"
    if settled.confidence is None:
        result += "; it gives no confidence"
    return SetupCheck(name, state, result)
