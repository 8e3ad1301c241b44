"""Messages of the rooms below speak of the command line's options; clients have fields instead."""

from __future__ import annotations

import re

from pydantic.alias_generators import to_camel

from evenhand.contract import ErrorBody
from evenhand.errors import EvenhandError, StoreBusy, StoreError, visible
from evenhand.serve.logs import log

_LONGEST_MESSAGE = 2000
_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")


def in_clients_words(message: str) -> str:
    """`--bad-rows skip` is `badRows skip`."""
    return _OPTION.sub(lambda found: to_camel(found[1].replace("-", "_")), message)


def presentable(message: str) -> str:
    """An error's message for whoever reads it: visible, on one line, and not without end."""
    line = visible(" ".join(message.split()))
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"


def for_clients(error: EvenhandError) -> EvenhandError:
    """Where the store is, and what its engine says, is the operator's affair: that is logged."""
    if not isinstance(error, StoreError):
        return error
    log.error("%s: %s", error.kind, error.message)
    told = type(error)(
        "the store is busy; try again"
        if isinstance(error, StoreBusy)
        else "the server's store fails; its log says why, tell its operator"
    )
    told.metadata = error.metadata
    return told


def error_body(error: EvenhandError) -> ErrorBody:
    error = for_clients(error)
    return ErrorBody(
        kind=error.kind,
        message=presentable(in_clients_words(error.message)),
        retryable=error.retryable,
    )
