"""Messages of the rooms below speak of the command line's options; clients have fields instead."""

from __future__ import annotations

import re

from pydantic.alias_generators import to_camel

from evenhand.contract import ErrorBody
from evenhand.errors import EvenhandError

_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")


def in_clients_words(message: str) -> str:
    """`--bad-rows skip` is `badRows skip`."""
    return _OPTION.sub(lambda found: to_camel(found[1].replace("-", "_")), message)


def error_body(error: EvenhandError) -> ErrorBody:
    return ErrorBody(
        kind=error.kind, message=in_clients_words(error.message), retryable=error.retryable
    )
