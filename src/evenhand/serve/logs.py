"""The server's log: one line per request, as text or JSON, on standard error."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evenhand.judges.redaction import Redactor, secrets_in
from evenhand.serve.config import VARIABLE, VOTER_VARIABLE, ServerConfig

log = logging.getLogger("evenhand.serve")

_LONGEST_LINE = 20_000
# What may stand in a path without being a text that somebody wrote.
_PLAIN_PART = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


@dataclass(frozen=True, slots=True)
class RequestLine:
    """What is told of a request. The texts are there only where the operator wants them."""

    client: str
    token: str | None
    method: str
    path: str
    status: int
    seconds: float
    bytes_in: int
    bytes_out: int
    request_id: str
    kind: str | None = None  # of the error that the guard refused it with
    request_text: str | None = None
    response_text: str | None = None

    def as_text(self) -> str:
        parts = [
            f"{self.client} {self.token or '-'} {self.method} {self.path} {self.status}",
            f"{self.seconds * 1000:.1f} ms, {self.bytes_in} bytes in, {self.bytes_out} out,",
            f"id {self.request_id}",
        ]
        if self.kind:
            parts.append(f"({self.kind})")
        for name, text in (("request", self.request_text), ("response", self.response_text)):
            if text is not None:
                parts.append(f"{name}: {text!r}")
        return " ".join(parts)

    def as_json(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields["seconds"] = round(self.seconds, 6)
        return {name: value for name, value in fields.items() if value is not None}


def log_request(line: RequestLine) -> None:
    if log.isEnabledFor(logging.INFO):
        log.info("%s", line.as_text(), extra={"fields": line.as_json()})


def route_of(scope: Mapping[str, Any]) -> str | None:
    """The template that the request was routed by: /v1/runs/{run_id}, never the path itself."""
    route = scope.get("route")
    path = getattr(route, "path_format", None) or getattr(route, "path", None)
    if isinstance(path, str):
        return path
    # A plain route (/mcp, /openapi.json) leaves its endpoint alone; its path has no parameters.
    is_plain = "endpoint" in scope and not scope.get("path_params")
    return str(scope["path"]) if is_plain else None


def shown_path(route: str | None, params: Mapping[str, Any] | None) -> str:
    """The route with its parameters; a parameter that is no plain name stays out, as do paths
    that lead nowhere and all queries: they may hold anything."""
    if route is None:
        return "(no such path)"
    path = route
    for name, value in (params or {}).items():
        text = str(value)
        if _PLAIN_PART.fullmatch(text):
            path = path.replace(f"{{{name}}}", text)
    return path


class _Line(logging.Formatter):
    def __init__(self, redact: Redactor, *, as_json: bool) -> None:
        super().__init__()
        self._redact = redact
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        at = at.replace("+00:00", "Z")
        if not self._as_json:
            line = self._redact(_said(record), limit=_LONGEST_LINE)
            return f"{at} {record.levelname.lower()} {line}"
        fields = getattr(record, "fields", None) or {"message": _said(record)}
        safe = {name: self._safe(value) for name, value in fields.items()}
        head = {"time": at, "level": record.levelname.lower(), "pid": record.process}
        return json.dumps(head | safe, ensure_ascii=False)

    def _safe(self, value: object) -> object:
        return self._redact(value, limit=_LONGEST_LINE) if isinstance(value, str) else value


def _said(record: logging.LogRecord) -> str:
    """The message; of an exception its type alone, for its message may quote what was sent."""
    message = record.getMessage()
    if record.exc_info and record.exc_info[0] is not None:
        from evenhand.serve.http.problems import trail_of

        error = record.exc_info[1]
        message = f"{message.strip()}: {trail_of(error) if error else record.exc_info[0].__name__}"
    return message


def configure_logs(config: ServerConfig, environment: Mapping[str, str] | None = None) -> None:
    """Ours and the libraries' loggers write lines of one form to standard error."""
    environment = os.environ if environment is None else environment
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line(Redactor(secrets_of(config, environment)), as_json=config.log_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name, level in (("evenhand", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(level)


def secrets_of(config: ServerConfig, environment: Mapping[str, str]) -> Iterable[str]:
    """Whatever may stand in no line: tokens, keys, the store's password."""
    from evenhand.store.address import ServerAddress, read_address

    yield from (token.secret for token in (*config.tokens, *config.voters))
    for variable in (VARIABLE, VOTER_VARIABLE):
        yield from (each.strip() for each in environment.get(variable, "").split(","))
    named = {offer.api_key_env for offer in config.judges if offer.api_key_env}
    yield from (environment[name].strip() for name in named if name in environment)
    yield from secrets_in(environment)
    store = config.store or environment.get("EVENHAND_STORE")
    if store and "://" in store:
        address = read_address(store)
        if isinstance(address, ServerAddress):
            yield from address.secrets
