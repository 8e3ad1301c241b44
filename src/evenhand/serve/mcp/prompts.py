"""Prompts that a person picks for an agent, in English and Chinese; the texts are in `texts`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from evenhand.contract import Locale, read_pair
from evenhand.errors import InputError, NotFound, visible
from evenhand.messages import Message
from evenhand.prompts import Prompt as JudgingPrompt
from evenhand.prompts import built_in_template

if TYPE_CHECKING:
    from evenhand.contract import Pair


_LANGUAGES: tuple[Locale, ...] = ("en", "zh")
_PAIR = ("prompt", "responseA", "responseB", "criteria")
_LANGUAGE = PromptArgument(name="language", description="en or zh; en if not given")


@dataclass(frozen=True, slots=True)
class _Kind:
    title: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]  # name, description, whether it is needed

    @property
    def needed(self) -> tuple[str, ...]:
        return tuple(name for name, _, needed in self.arguments if needed)


_PAIR_ARGUMENTS = (
    ("prompt", "The prompt that both answer", True),
    ("responseA", "One answer", True),
    ("responseB", "The other answer", True),
    ("criteria", "What to judge by, comma-separated", True),
)
_KINDS: dict[str, _Kind] = {
    "compare_answers": _Kind(
        "Compare two answers",
        "Compare two answers with pairwiseCompare and report the result faithfully.",
        _PAIR_ARGUMENTS,
    ),
    "judge_answers": _Kind(
        "Judge two answers yourself",
        "The exact prompt that evenhand's judge sees in its first pass, for your own model.",
        _PAIR_ARGUMENTS,
    ),
    "evaluate_change": _Kind(
        "Evaluate a change",
        "Find out, with a run over many pairs, whether a new version is better than the old one.",
        (
            ("task", "What both are used for", True),
            ("old", "The current model, prompt or version", True),
            ("new", "The candidate to replace it", True),
        ),
    ),
    "draft_criteria": _Kind(
        "Draft criteria",
        "Write criteria for judging answers to a kind of task.",
        (("task", "The kind of task", True),),
    ),
}


def list_prompts() -> list[Prompt]:
    return [
        Prompt(
            name=name,
            title=kind.title,
            description=kind.description,
            arguments=[
                *(
                    PromptArgument(name=argument, description=description, required=needed)
                    for argument, description, needed in kind.arguments
                ),
                _LANGUAGE,
            ],
        )
        for name, kind in _KINDS.items()
    ]


def get_prompt(name: str, given: Mapping[str, str]) -> GetPromptResult:
    kind = _KINDS.get(name)
    if kind is None:
        raise NotFound(Message("serve.prompt_unknown", kinds=", ".join(_KINDS)))
    known = (*(argument for argument, _, _ in kind.arguments), "language")
    for argument in given:
        if argument not in known:
            raise InputError(
                Message("serve.prompt_argument_unknown", name=name, known=", ".join(known))
            )
    for argument in kind.needed:
        if argument not in given:
            raise InputError(Message("serve.prompt_argument_missing", argument=argument, name=name))
    language = _language(given.get("language", "en"))
    if name == "judge_answers":
        messages = _as_the_judge(_pair(given), language)
    elif name == "compare_answers":
        arguments = visible(json.dumps(_arguments(given), ensure_ascii=False, indent=2))
        messages = [_said(_text(language, name).format(arguments=arguments))]
    else:
        texts = {argument: visible(given[argument]) for argument in kind.needed}
        messages = [_said(_text(language, name).format(**texts))]
    return GetPromptResult(description=kind.description, messages=messages)


def complete_argument(argument: str, begun: str) -> list[str]:
    if argument != "language":
        return []
    return [language for language in _LANGUAGES if language.startswith(begun)]


def _language(given: str) -> Locale:
    chosen = next((language for language in _LANGUAGES if language == given), None)
    if chosen is None:
        raise InputError(Message("serve.language_unknown", languages=_LANGUAGES))
    return chosen


def _arguments(given: Mapping[str, str]) -> dict[str, Any]:
    names = [name.strip() for name in given["criteria"].replace("，", ",").split(",")]
    texts = {name: given[name] for name in _PAIR if name != "criteria"}
    return {**texts, "criteria": [name for name in names if name]}


def _pair(given: Mapping[str, str]) -> Pair:
    return read_pair(_arguments(given))


def _as_the_judge(pair: Pair, language: Locale) -> list[PromptMessage]:
    """Prompts have no system message: what belongs there comes first."""
    prompt = JudgingPrompt.of(pair, built_in_template(language, "reasoned"))
    return [_said("\n\n".join(message.text for message in prompt.messages("original")))]


def _said(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=TextContent(type="text", text=text))


@cache
def _text(language: Locale, name: str) -> str:
    return files("evenhand.serve.mcp").joinpath("texts", language, f"{name}.txt").read_text("utf-8")
