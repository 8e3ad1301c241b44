"""Filling the judge's prompt templates. The texts live beside this file, in `en/` and `zh/`.

`template` opens one, `marker` makes the code on its fences, `prompt` fills it with a pair.
"""

from evenhand.prompts.marker import marker_of, response_digests, text_digest
from evenhand.prompts.prompt import LETTERS, Prompt, answer_schema
from evenhand.prompts.template import Template, built_in_template, make_template, open_template

__all__ = [
    "LETTERS",
    "Prompt",
    "Template",
    "answer_schema",
    "built_in_template",
    "make_template",
    "marker_of",
    "open_template",
    "response_digests",
    "text_digest",
]
