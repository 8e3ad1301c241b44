"""Fills the judge's prompt templates, whose texts are in `en/` and `zh/`.

`template` opens one, `prompt` fills it with a pair; `preparation` has the prompts for what is
written before judging.
"""

from evenhand.prompts.prompt import (
    LETTERS,
    Prompt,
    answer_schema,
    marker_of,
    response_digests,
    text_digest,
)
from evenhand.prompts.template import (
    ChatMessage,
    Segment,
    Template,
    built_in_template,
    make_template,
    open_template,
)

__all__ = [
    "LETTERS",
    "ChatMessage",
    "Prompt",
    "Segment",
    "Template",
    "answer_schema",
    "built_in_template",
    "make_template",
    "marker_of",
    "open_template",
    "response_digests",
    "text_digest",
]
