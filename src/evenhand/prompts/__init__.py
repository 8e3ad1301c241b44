"""Filling the judge's prompt templates. The texts live beside this file, in `en/` and `zh/`."""

from evenhand.prompts.marker import marker_of, response_digests, text_digest
from evenhand.prompts.render import LETTERS, Prompt
from evenhand.prompts.schema import answer_schema
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
