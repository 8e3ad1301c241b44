"""The environment and config files, read once and passed on as a value.

The user's config file may set anything. One in the working directory may come with somebody else's
checkout: it may choose how to judge, but not where requests go, which files are read, or which key
is used.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evenhand.analysis_options import GateOptions
from evenhand.contract import Criterion
from evenhand.errors import InputError, SettingsError
from evenhand.judge_kinds import file_of
from evenhand.options import JudgingOptions, RunningOptions

LOCAL_FILE = "evenhand.toml"

# Separates addresses; a comma inside an address is not followed by a scheme.
_BETWEEN_ADDRESSES = re.compile(r"[\s,]+(?=https?://)", re.IGNORECASE)
_TRANSPORTS = ("aiohttp", "httptools")
# The options of `evenhand gate` that [gate] may set.
GATE = (
    *("min_win_rate", "alpha", "max_inconsistent", "max_invalid", "max_skipped", "missing"),
    *("assume_accuracy", "require"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings(JudgingOptions, RunningOptions):
    """Defaults for every caller. None: not set."""

    api_key: str | None = field(default=None, repr=False)
    criteria: tuple[Criterion, ...] = ()  # of pairs that come without any, but over HTTP and MCP
    gate: GateOptions = field(default_factory=GateOptions)
    # Models' names or parts of them, and their families; later files add theirs.
    families: tuple[tuple[str, tuple[str, ...]], ...] = ()
    transport: Literal["aiohttp", "httptools"] | None = None
    cache_dir: Path | None = None
    sources: tuple[str, ...] = ()


_IN_FILES = {row.name: row for row in Settings.rows() if row.option.files != "none"}
_KNOWN = (*_IN_FILES, "transport", "criteria", "gate", "families")
_BY_VARIABLE = {row.option.variable: row for row in Settings.rows() if row.option.variable}


def load_settings(
    environment: Mapping[str, str] | None = None,
    *,
    user_file: Path | None = None,
    directory: Path | None = None,
) -> Settings:
    """The working directory's file, then the user's, then the environment; later ones win."""
    environment = os.environ if environment is None else environment
    settings = Settings()
    local_file = (directory or Path.cwd()) / LOCAL_FILE
    if local_file.is_file():
        settings = _with_file(settings, local_file, trusted=False)
    user_file = user_file or _user_file(environment)
    if user_file is not None and user_file.is_file():
        settings = _with_file(settings, user_file, trusted=True)
    return _with_environment(settings, environment)


def _user_file(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("EVENHAND_CONFIG")
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise SettingsError.of("settings.config_no_file", path=path)
        return path
    # platformdirs takes some milliseconds; skip it without a config file.
    from platformdirs import user_config_path

    return user_config_path("evenhand") / "config.toml"


def _with_file(settings: Settings, path: Path, *, trusted: bool) -> Settings:
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise SettingsError.of(
            "settings.config_unreadable", path=path, strerror=error.strerror or error
        ) from None
    except UnicodeDecodeError:
        raise SettingsError.of("settings.config_not_utf8", path=path) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError.of("settings.config_not_toml", path=path, error=error) from None
    return _with_table(settings, table, path, trusted=trusted)


def check_local(text: str) -> None:
    """Refuse what a file in the working directory may not set."""
    _with_table(Settings(), tomllib.loads(text), Path(LOCAL_FILE), trusted=False)


def _with_table(
    settings: Settings, table: Mapping[str, Any], path: Path, *, trusted: bool
) -> Settings:
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in _KNOWN:
            raise SettingsError.of(
                "settings.setting_unknown", path=path, key=key, known=", ".join(_KNOWN)
            )
        if not trusted:
            _refuse_reach(path, name, value)
        if name == "gate":
            values[name] = _with_limits(settings.gate, f"{path}: {key}", value)
        elif name == "families":
            values[name] = (*settings.families, *_families(f"{path}: {key}", value))
        elif name == "criteria":
            values[name] = _criteria(f"{path}: {key}", value)
        else:
            values[name] = check_setting(f"{path}: {key}", name, value)
    return replace(settings, **values, sources=(*settings.sources, str(path)))


def _with_limits(gate: GateOptions, where: str, table: object) -> GateOptions:
    if not isinstance(table, dict):
        raise SettingsError.of("settings.table_needed", where=where, known=list(GATE))
    values: dict[str, Any] = {}
    for key, value in table.items():
        name, at = key.replace("-", "_"), f"{where}.{key}"
        if name not in GATE:
            raise SettingsError.of(
                "settings.setting_unknown", path=where, key=key, known=", ".join(GATE)
            )
        row = GateOptions.row(name)
        checked = row.check(at, value, SettingsError) if row.kind == "choice" else value
        if row.kind == "texts":
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise SettingsError.of("settings.requirements_needed", where=at, value=value)
            checked = tuple(value)
        elif row.kind == "number" and (type(value) not in (int, float) or not 0 <= value <= 1):
            raise SettingsError.of("settings.share_needed", where=at, value=value)
        values[name] = checked
    return replace(gate, **values)


def _families(where: str, table: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(table, dict):
        raise SettingsError.of("settings.families_needed", where=where, value=table)
    entries = []
    for name, value in table.items():
        several = [value] if isinstance(value, str) else value
        if (
            not name.strip()
            or not isinstance(several, list)
            or not all(isinstance(each, str) and each.strip() for each in several)
        ):
            raise SettingsError.of("settings.families_needed", where=f"{where}.{name}", value=value)
        entries.append((name.strip(), tuple(each.strip().lower() for each in several)))
    return tuple(entries)


def _criteria(where: str, value: object) -> tuple[Criterion, ...]:
    from evenhand.contract.pair import criterion_in, read_criteria

    if not isinstance(value, list):
        raise SettingsError.of("settings.list_needed", where=where, value=value)
    try:
        return read_criteria([criterion_in(x) if isinstance(x, str) else x for x in value])
    except InputError as error:
        raise SettingsError.of("settings.criteria_refused", where=where, error=error) from None


def _refuse_reach(path: Path, name: str, value: object) -> None:
    if name in _IN_FILES and _IN_FILES[name].option.files == "yours":
        raise SettingsError.of("settings.not_in_working_directory", path=path, name=name)
    # open_judge strips names, so spaces hide nothing.
    if name in ("judge", "prepare_with") and file_of(str(value)) is not None:
        raise SettingsError.of("settings.judge_reads_file", path=path, value=value)


def check_setting(where: str, name: str, value: object) -> object:
    """The validated value; `where` is what people gave it as."""
    if name == "transport":
        if value not in _TRANSPORTS:
            raise SettingsError.of("option.choice", where=where, value=value, choices=_TRANSPORTS)
        return value
    return _IN_FILES[name].check(where, value, SettingsError)


def _with_environment(settings: Settings, environment: Mapping[str, str]) -> Settings:
    def text(name: str) -> str | None:
        # An empty variable is how shells and CI say "not set".
        return environment.get(name, "").strip() or None

    values: dict[str, Any] = {
        row.name: row.read(name, given, SettingsError)
        for name, row in _BY_VARIABLE.items()
        if (given := text(name)) is not None
    }
    values["api_key"] = text("OPENAI_API_KEY")
    if transport := text("EVENHAND_TRANSPORT"):
        values["transport"] = check_setting("EVENHAND_TRANSPORT", "transport", transport)
    cache_dir = text("EVENHAND_CACHE_DIR")
    values["cache_dir"] = Path(cache_dir).expanduser() if cache_dir else None
    return replace(settings, **{key: value for key, value in values.items() if value is not None})


def split_addresses(text: str) -> tuple[str, ...]:
    """Several are separated by spaces or commas."""
    several = tuple(_BETWEEN_ADDRESSES.split(text.strip(" \t\r\n,")))
    return several if len(several) > 1 else (text,)
