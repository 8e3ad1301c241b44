"""The server's config from the operator's file, the options and the environment."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.errors import SettingsError
from evenhand.judges import RetryPolicy
from evenhand.judges.prices import read_price
from evenhand.judging.config import JudgeConfig, read_addresses
from evenhand.messages import Message
from evenhand.serve.config import JudgeOffer, ServerConfig, ServerLimits
from evenhand.serve.security.access import VARIABLE, VOTER_VARIABLE, read_tokens
from evenhand.settings import check_setting

_TEXTS = ("store", "host")
_WHOLE = {"port": 0, "workers": 1}  # with the least they may be
_FLAGS = ("log_texts", "log_json")
_LISTS = ("allowed_hosts", "allowed_origins", "trusted_proxies")
TOP_KEYS = (*_TEXTS, *_WHOLE, *_FLAGS, *_LISTS, "limits", "judges")
_OF_THE_OFFER = ("name", "api_key_env", "calibration", "price")
_OF_ITS_JUDGE = (
    *("judge", "base_url", "mode", "locale", "template", "samples", "reconcile", "confidence"),
    *("timeout_s", "max_tokens", "temperature", "retries", "repairs"),
)
OFFER_KEYS = (*_OF_THE_OFFER, *_OF_ITS_JUDGE)
LIMIT_KEYS = tuple(ServerLimits.__dataclass_fields__)
_IN_PARTS = ("body_timeout_s", "compare_timeout_s", "shutdown_s", "run_max_cost")

# What people will look for in the file, and where it belongs instead.
_ELSEWHERE = {
    "token": "set EVENHAND_TOKEN in the environment",
    "tokens": "set EVENHAND_TOKEN in the environment",
    "voters": "set EVENHAND_VOTER_TOKEN in the environment",
    "api_key": "name the variable that holds it with api_key_env",
}


def read_config(
    path: Path | None = None,
    *,
    chosen: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ServerConfig:
    """`chosen` are fields that the command line sets: they win. Tokens are the environment's."""
    environment = os.environ if environment is None else environment
    fields = {} if path is None else _read(path)
    fields |= chosen or {}
    return ServerConfig(
        **fields,
        tokens=read_tokens(environment.get(VARIABLE, "")),
        voters=read_tokens(environment.get(VOTER_VARIABLE, ""), votes_only=True),
    )


def offers_of(
    specs: Sequence[str], *, base_url: str | Sequence[str] | None = None
) -> tuple[JudgeOffer, ...]:
    """What `--judge` offers, by names that tell clients no path.

    Of several judges the address goes to those that speak its language alone: it must not get
    another provider's key.
    """
    addresses = read_addresses(base_url)
    return tuple(
        JudgeOffer(
            _offered_name(spec),
            JudgeConfig(
                judge=spec,
                base_url=addresses if len(specs) == 1 or _is_openai(spec) else None,
            ),
        )
        for spec in specs
    )


def _is_openai(spec: str) -> bool:
    return spec.strip().startswith("openai:")


def _offered_name(spec: str) -> str:
    kind, colon, rest = spec.strip().partition(":")
    if colon and kind in ("local", "replay"):
        return f"{kind}:{Path(rest).name}"
    return spec.strip()


def _read(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise SettingsError(
            Message("serve.config_unreadable", path=path, strerror=error.strerror or error)
        ) from None
    except UnicodeDecodeError:
        raise SettingsError(Message("serve.config_not_utf8", path=path)) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(Message("serve.config_not_toml", path=path, error=error)) from None
    fields: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{path}: {key}"
        _known(path, key, TOP_KEYS)
        if key == "limits":
            fields[key] = _limits(where, value)
        elif key == "judges":
            fields[key] = _offers(where, value, path.parent)
        else:
            fields[key] = _checked(where, key, value)
    if "store" in fields and "://" not in fields["store"]:
        fields["store"] = str(path.parent / Path(fields["store"]).expanduser())
    return fields


def _known(where: object, key: str, known: tuple[str, ...]) -> None:
    if key not in known:
        remedy = _ELSEWHERE.get(key, f"it may set {', '.join(known)}")
        raise SettingsError(Message("serve.key_not_allowed", where=where, key=key, remedy=remedy))


def _checked(where: str, key: str, value: object) -> object:
    if key in _TEXTS and not (isinstance(value, str) and value.strip()):
        raise SettingsError(Message("serve.text_needed", where=where, value=value))
    if key in _FLAGS and not isinstance(value, bool):
        raise SettingsError(Message("serve.boolean_needed", where=where, value=value))
    if key in _WHOLE and (type(value) is not int or value < _WHOLE[key]):
        raise SettingsError(
            Message("serve.integer_needed", where=where, value=value, whole=_WHOLE[key])
        )
    if key in _LISTS:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise SettingsError(Message("serve.list_needed", where=where, value=value))
        return tuple(value)
    return value


def _limits(where: str, table: object) -> ServerLimits:
    if not isinstance(table, dict):
        raise SettingsError(Message("serve.limits_no_table", where=where, table=table))
    for key, value in table.items():
        _known(where, key, LIMIT_KEYS)
        allowed = (int, float) if key in _IN_PARTS else (int,)
        if type(value) not in allowed or not value > 0:
            raise SettingsError(
                Message("serve.number_not_positive", where=where, key=key, value=value)
            )
    return ServerLimits(**table)


def _offers(where: str, tables: object, folder: Path) -> tuple[JudgeOffer, ...]:
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise SettingsError(Message("serve.judges_no_tables", where=where))
    return tuple(
        _offer(f"{where}[{place}]", table, folder) for place, table in enumerate(tables, start=1)
    )


def _offer(where: str, table: dict[str, Any], folder: Path) -> JudgeOffer:
    fields: dict[str, Any] = {}
    for key, value in table.items():
        _known(where, key, OFFER_KEYS)
        at = f"{where}.{key}"
        if key in _OF_THE_OFFER:
            if not isinstance(value, str) or not value.strip():
                raise SettingsError(Message("serve.member_no_text", at=at, value=value))
            fields[key] = read_price(value, where=at) if key == "price" else value.strip()
        else:
            fields[key] = check_setting(at, key, value)
    if "judge" not in fields:
        raise SettingsError(Message("serve.config_without_judge", where=where))
    own = {key: fields.pop(key) for key in _OF_THE_OFFER if key in fields}
    fields["judge"] = _from(folder, fields["judge"])
    if "template" in fields:
        fields["template"] = folder / Path(fields["template"]).expanduser()
    if "retries" in fields:
        fields["retry"] = RetryPolicy(attempts=fields.pop("retries") + 1)
    return JudgeOffer(
        **{"name": _offered_name(fields["judge"]), **own}, config=JudgeConfig(**fields)
    )


def _from(folder: Path, spec: str) -> str:
    """A judge that reads a file: beside the config file, unless the path says otherwise."""
    kind, colon, rest = spec.strip().partition(":")
    if colon and rest and kind in ("local", "replay"):
        return f"{kind}:{folder / Path(rest).expanduser()}"
    return spec.strip()
