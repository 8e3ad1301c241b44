"""What a server offers and allows: the operator's choice as one frozen value, and how it is read
from a file, the options and the environment.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import SettingsError
from evenhand.judge_kinds import at_path, takes_address
from evenhand.judges.prices import Price, read_price
from evenhand.judging.config import JudgeConfig, read_addresses
from evenhand.messages import Message
from evenhand.options import JudgingOptions
from evenhand.settings import check_setting

if TYPE_CHECKING:
    from evenhand.data.options import ReadLimits as DataLimits


MIB = 1024 * 1024
_UNPACKED_SPARE = 64 * MIB  # what any upload may become, however small it is
VARIABLE = "EVENHAND_TOKEN"
VOTER_VARIABLE = "EVENHAND_VOTER_TOKEN"
LEAST_SECRET = 16  # characters
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_PRINTABLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class JudgeOffer:
    """A judge that clients may name; what its config leaves open is as the settings say."""

    name: str
    config: JudgeConfig = field(repr=False)  # its base URL is not for every reader
    api_key_env: str | None = None  # the variable that holds its key
    calibration: str | None = None  # the name of one
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Of each server process. None: no limit."""

    body_bytes: int = 32 * MIB  # of a run's pairs as JSON
    compare_bytes: int = 16 * MIB  # of a comparison, and of a message to /mcp
    upload_bytes: int = 1024 * MIB  # of a run's pairs; they go to a file, not into memory
    bodies_bytes: int = 256 * MIB  # of all requests that are being read or answered
    body_timeout_s: float = 60  # in which a body, or the next 64 KiB of an upload, must come
    field_chars: int = 1_000_000  # of one text
    criteria: int = 50
    requests: int = 1024  # at once, event streams among them
    requests_per_address: int = 512  # of these
    event_streams: int = 256  # of these
    requests_per_minute: int | None = None  # of each token
    failures_per_minute: int = 10  # wrong tokens, of each address
    compares: int = 64  # judged at once
    compare_queue: int = 128  # waiting for that
    compare_timeout_s: float = 300  # from its admission
    background_runs: int = 2
    queued_runs: int = 100
    run_pairs: int = 1_000_000
    run_max_cost: float | None = None  # the most that a client may allow a run
    run_max_calls: int | None = None
    page_rows: int = 1000
    rank_responses: int = 50
    tool_pairs: int = 1000
    shutdown_s: float = 30  # in which what is in flight may end

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise SettingsError(Message("serve.limit_not_positive", name=name, value=value))

    @property
    def of_data(self) -> DataLimits:
        """Of an upload's rows: sixteen bytes for each character that one text may have, since a
        row has several texts, which may be written as escapes."""
        from evenhand.data.options import ReadLimits as DataLimits

        row_bytes = max(MIB, 16 * self.field_chars)
        return DataLimits(
            row_bytes=row_bytes,
            page_bytes=row_bytes * 2,
            unpacked_bytes=self.upload_bytes,
            unpacked_spare=_UNPACKED_SPARE,
            delta_encoded=False,
            keys_every=1,
            rows=self.run_pairs,
            raisable=False,
        )


@dataclass(frozen=True, slots=True)
class Token:
    """The name stands in logs and beside what it started; the secret nowhere."""

    name: str
    secret: str = field(repr=False)
    votes_only: bool = False  # it opens the pages where people vote, and nothing else


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The first judge is the default. `store`: None is the settings' own."""

    judges: tuple[JudgeOffer, ...] = ()
    store: str | None = field(default=None, repr=False)
    host: str = "127.0.0.1"
    port: int = 8321
    tokens: tuple[Token, ...] = ()
    voters: tuple[Token, ...] = ()  # each is of one person, who votes by its name
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()  # whose word on the client's address is taken
    limits: ServerLimits = field(default_factory=ServerLimits)
    log_texts: bool = False
    log_json: bool = False
    workers: int = 1

    def __post_init__(self) -> None:
        for what, names in (
            ("judges", [offer.name for offer in self.judges]),
            ("tokens", [token.name for token in (*self.tokens, *self.voters)]),
        ):
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise SettingsError(Message("serve.name_twice", what=what, twice=min(twice)))
        if self.workers < 1:
            raise SettingsError(Message("serve.workers_outside", workers=self.workers))
        if not 0 <= self.port <= 65535:
            raise SettingsError(Message("serve.port_outside", port=self.port))
        secrets = [token.secret for token in (*self.tokens, *self.voters)]
        if len(set(secrets)) < len(secrets):
            raise SettingsError(Message("serve.secret_twice"))
        if self.voters and not self.tokens:
            raise SettingsError(Message("serve.voter_token_alone"))
        if not self.is_local and not self.tokens:
            raise SettingsError(Message("serve.open_host_without_token", host=self.host))

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    name = host.strip("[]").lower()
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def read_tokens(text: str, *, votes_only: bool = False) -> tuple[Token, ...]:
    """Secrets separated by commas, each with a name before it (ci=…) or none.

    Voters' always have one: votes are kept by it.
    """
    variable = VOTER_VARIABLE if votes_only else VARIABLE
    tokens = []
    for place, entry in enumerate((each.strip() for each in text.split(",")), start=1):
        if not entry:
            continue
        name, equals, secret = entry.partition("=")
        # Base64 ends in signs of equality.
        if not equals or not _NAME.fullmatch(name) or not secret.strip("="):
            name, secret = f"token{place}", entry
            if votes_only:
                raise SettingsError(
                    Message("serve.token_without_name", place=place, variable=variable)
                )
        if not _PRINTABLE.fullmatch(secret):
            raise SettingsError(Message("serve.token_malformed", name=name, variable=variable))
        if len(secret) < LEAST_SECRET:
            raise SettingsError(
                Message(
                    "serve.token_too_short",
                    name=name,
                    variable=variable,
                    n=len(secret),
                    least_secret=LEAST_SECRET,
                )
            )
        tokens.append(Token(name, secret, votes_only))
    return tuple(tokens)


_TEXTS = ("store", "host")
_WHOLE = {"port": 0, "workers": 1}  # with the least they may be
_FLAGS = ("log_texts", "log_json")
_LISTS = ("allowed_hosts", "allowed_origins", "trusted_proxies")
TOP_KEYS = (*_TEXTS, *_WHOLE, *_FLAGS, *_LISTS, "limits", "judges")
_OF_THE_OFFER = ("name", "api_key_env", "calibration", "price")
_OF_ITS_JUDGE = tuple(row.name for row in JudgingOptions.rows() if row.option.served)
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
                base_url=addresses if len(specs) == 1 or takes_address(spec) else None,
            ),
        )
        for spec in specs
    )


def _offered_name(spec: str) -> str:
    return at_path(spec, lambda path: Path(path).name)


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
    for named in ("judge", "prepare_with"):
        if named in fields:
            fields[named] = _from(folder, fields[named])
    if "template" in fields:
        fields["template"] = folder / Path(fields["template"]).expanduser()
    return JudgeOffer(
        **{"name": _offered_name(fields["judge"]), **own}, config=JudgeConfig(**fields)
    )


def _from(folder: Path, spec: str) -> str:
    """A judge that reads a file: beside the config file, unless the path says otherwise."""
    return at_path(spec, lambda path: folder / Path(path).expanduser())
