"""What a chat-completions server takes: every feature we ask for is a ladder to climb down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from evenhand.judges.openai_reply import Fault


class Dialect(NamedTuple):
    """How many rungs down each ladder below a server has pushed us; it only ever goes down.

    Calls in flight learn at the same time, so a step counts from what that call sent, and what
    two calls learned is joined by the larger number.
    """

    response_format: int = 0
    limit: int = 0
    temperature: int = 0
    seed: int = 0
    logprobs: int = 0

    def stepped(self, feature: str) -> Dialect:
        return self._replace(**{feature: getattr(self, feature) + 1})

    def joined(self, other: Dialect) -> Dialect:
        return Dialect(*map(max, self, other))


class Learned:
    """What servers have taught so far. Those of a fleet share it: both orders of a pair are to be
    asked alike, whichever server gets them."""

    __slots__ = ("dialect",)

    def __init__(self) -> None:
        self.dialect = Dialect()

    def join(self, other: Dialect) -> None:
        self.dialect = self.dialect.joined(other)


FORMATS = ("json_schema", "json_object", None)
LIMITS = ("max_tokens", "max_completion_tokens", None)
OPENAI_LIMITS = ("max_completion_tokens", "max_tokens", None)  # its newer models refuse the old
TOP_LOGPROBS = (20, 5, None)

_NAMES = {
    "response_format": re.compile(
        r"response_?format|json[_ ](?:schema|object|mode)|structured[_ ]output|\bgrammar\b|guided_",
        re.IGNORECASE,
    ),
    "limit": re.compile(r"\bmax_(?:completion_)?tokens\b"),
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE),
    "seed": re.compile(r"\bseed\b", re.IGNORECASE),
    "logprobs": re.compile(r"\b(?:top_)?logprobs\b|\blog[_ ]?prob", re.IGNORECASE),
}
_NAMED_REFUSALS = frozenset({400, 404, 422, 500, 501})


def refused_feature(fault: Fault, request: Mapping[str, Any], *, model: str) -> str | None:
    """The feature of this request that the error names first, if it names one."""
    if fault.status not in _NAMED_REFUSALS or fault.param == "model":
        return None
    if "model_not_found" in fault.code:
        return None
    for text in (fault.param, fault.message.replace(model, "")):
        found = [
            (match.start(), feature)
            for feature, name in _NAMES.items()
            if uses(request, feature) and (match := name.search(text))
        ]
        if found:
            return min(found)[1]
    return None


def uses(request: Mapping[str, Any], feature: str) -> bool:
    if feature == "limit":
        return "max_tokens" in request or "max_completion_tokens" in request
    return feature in request
