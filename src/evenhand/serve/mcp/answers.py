"""What a tool gives back: structured, with a text beside it; failures in the contract's shape."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, TextContent

from evenhand.comparer import failure_of
from evenhand.contract import Verdict
from evenhand.contract.model import Model
from evenhand.errors import EvenhandError, visible
from evenhand.serve.wording import presentable

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    value: Model
    text: str

    def told(self) -> CallToolResult:
        return CallToolResult(
            content=[TextContent(type="text", text=self.text)],
            structured_content=self.value.model_dump(mode="json"),
        )


def verdict_answer(verdict: Verdict) -> Answer:
    """The text is the result's JSON, for clients that read nothing else; without the passes,
    which say the same at length."""
    told: dict[str, Any] = verdict.model_dump(mode="json", exclude={"metadata": {"passes"}})
    return Answer(verdict, visible(json.dumps(told, ensure_ascii=False)))


def failed(error: EvenhandError) -> CallToolResult:
    """No verdict, no number: what went wrong, what to do, and whether trying again may help."""
    again = " Trying again may help." if error.retryable else ""
    message = presentable(error.message)
    failure = failure_of(error)
    told = failure.error.model_copy(update={"message": message})
    return CallToolResult(
        content=[TextContent(type="text", text=f"{error.kind}: {message}.{again}")],
        structured_content=failure.model_copy(update={"error": told}).model_dump(mode="json"),
        is_error=True,
    )


def bug(error: Exception, *, where: str) -> EvenhandError:
    """Whatever it is, it is our fault; its text may quote what was judged and stays with us."""
    from evenhand.serve.problems import trail_of  # it brings a web framework

    logger.error("%s failed: %s", where, trail_of(error))
    return EvenhandError(
        f"this is a bug in evenhand ({type(error).__name__}); report it with the server's log"
    )
