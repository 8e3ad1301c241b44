"""Criteria for a data set, suggested by a judge from a sample of its prompts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

from evenhand.contract import Criterion, Locale, Usage, criterion_key, read_pair
from evenhand.errors import InputError, JudgeUnreadable
from evenhand.judges.protocol import ChatMessage, Judge, JudgeCall, Segment
from evenhand.judges.retry import ask_with_retries
from evenhand.judging.answers.json_answer import find_objects
from evenhand.judging.ballots import add_usage
from evenhand.judging.config import JudgeConfig
from evenhand.prompts import marker_of
from evenhand.prompts.template import words_for

# Longer prompts rarely say more, and a sample has many.
_LONGEST_PROMPT = 2000
_MOST_CRITERIA = 8
_LONGEST_NAME, _LONGEST_DESCRIPTION = 60, 400
# Eight criteria take a few thousand characters.
_LONGEST_ANSWER = 100_000
_LONGEST_SHOWN = 10_000  # of an answer that the judge is shown again
_NO_PAIR = {"response_a": "", "response_b": ""}

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "criteria": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "description": {"type": "string"}},
                "required": ["name", "description"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["criteria"],
    "additionalProperties": False,
}


async def ask_for_criteria(
    judge: Judge, prompts: Sequence[str], config: JudgeConfig
) -> tuple[tuple[Criterion, ...], Usage]:
    """The judge's suggestion and its usage; an unreadable answer is retried as often as the config
    allows."""
    if not judge.traits.needs_prompt:
        raise InputError.of("judging.suggests_no_criteria", judge=judge.name)
    shown = tuple(map(_shortened, prompts))
    pair = read_pair({"prompt": "\n".join(shown), **_NO_PAIR}, criteria_needed=False)
    messages = suggestion_messages(shown, config.language)
    call = JudgeCall(pair, "original", 1, messages, answer_schema=SCHEMA)
    usages: list[Usage] = []
    for _ in range(1 + config.repairs_allowed):
        completion = await ask_with_retries(judge, call, config.retry_policy)
        usages.append(completion.usage)
        criteria = read_suggestion(completion.text)
        if criteria:
            return criteria, add_usage(usages)
        call = replace(call, messages=(*messages, *_complaint(completion.text, config.language)))
    raise JudgeUnreadable.of("judging.criteria_unread", judge=judge.name)


def suggestion_messages(prompts: Sequence[str], locale: Locale) -> tuple[ChatMessage, ...]:
    """Every prompt is fenced by a code that occurs in none."""
    source = files("evenhand.prompts").joinpath(locale, "criteria.txt").read_text("utf-8")
    system, _, user = source.removeprefix("=== system ===\n").partition("=== user ===\n")
    before, _, after = user.strip("\n").partition("{prompts}\n")
    pair = read_pair({"prompt": "\n".join(prompts), **_NO_PAIR}, criteria_needed=False)
    marker, words = marker_of(pair), words_for(locale)
    opens = words.fence["open"].format(marker=marker, name=words.names["prompt"]) + "\n"
    closes = "\n" + words.fence["close"].format(marker=marker) + "\n"
    fenced = [
        part
        for prompt in prompts
        for part in (Segment(opens), Segment(prompt, judged=True), Segment(closes))
    ]
    asked = (Segment(before.replace("{marker}", marker)), *fenced, Segment(after))
    return (
        ChatMessage("system", (Segment(system.strip("\n")),)),
        ChatMessage("user", asked),
    )


def _complaint(answer: str, locale: Locale) -> tuple[ChatMessage, ...]:
    words = words_for(locale)
    kind = "malformed" if answer.strip() else "empty"
    request = words.repair.replace("{complaint}", words.complaints[kind])
    return (
        ChatMessage("assistant", (Segment(answer[:_LONGEST_SHOWN], judged=True),)),
        ChatMessage("user", (Segment(request),)),
    )


def _shortened(prompt: str) -> str:
    return prompt if len(prompt) <= _LONGEST_PROMPT else prompt[:_LONGEST_PROMPT] + " …"


def read_suggestion(text: str) -> tuple[Criterion, ...]:
    """The first few useful criteria of an answer, without duplicates; empty if there are none."""
    values = [each.value for each in (find_objects(text[:_LONGEST_ANSWER]) or []) if each.value]
    listed = [value["criteria"] for value in values if isinstance(value.get("criteria"), list)]
    # The last list counts, as with verdicts; a bare list is found as its objects.
    entries = listed[-1] if listed else values
    criteria: dict[str, Criterion] = {}
    for name, description in _entries(entries):
        criteria.setdefault(
            criterion_key(name), Criterion(name=name, description=description or None)
        )
        if len(criteria) == _MOST_CRITERIA:
            break
    return tuple(criteria.values())


def _entries(entries: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        parts: Sequence[Any] = ()
        if isinstance(entry, str):
            parts = entry.replace("：", ":", 1).partition(":")[::2]
        elif isinstance(entry, dict):
            parts = [entry.get(each) for each in ("name", "description")]
        name, description = map(_line, parts or ("", ""))
        if name and len(name) <= _LONGEST_NAME:
            yield name, description[:_LONGEST_DESCRIPTION]


def _line(value: Any) -> str:
    """One line without control characters and lone surrogates."""
    if not isinstance(value, str):
        return ""
    kept = (" " if each.isspace() else each for each in value)
    return " ".join("".join(c for c in kept if unicodedata.category(c)[0] != "C").split())
