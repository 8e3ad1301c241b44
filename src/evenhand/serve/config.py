"""What a server offers and allows: the operator's choice as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

from evenhand.errors import SettingsError
from evenhand.judges.prices import Price
from evenhand.judging.config import JudgeConfig
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.data import ReadLimits as DataLimits


MIB = 1024 * 1024


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
    connections: int = 4096  # open at once; beyond, the longest idle ones are closed
    connections_per_address: int = 512  # of these; behind a trusted proxy, requests at once
    requests: int = 1024  # at once, event streams among them
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
        from evenhand.data import ReadLimits as DataLimits

        row_bytes = max(MIB, 16 * self.field_chars)
        return DataLimits(
            row_bytes=row_bytes,
            page_bytes=row_bytes * 2,
            delta_encoded=False,
            keys_every=1,
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
