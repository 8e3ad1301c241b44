"""One row of a model's outputs as answers, in each of the layouts that benchmarks use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.data.columns import OUTPUT_FIELDS
from evenhand.data.fields import (
    FieldValues,
    optional_text,
    read_tags,
    sendable,
    text_of_cluster,
    text_of_id,
)
from evenhand.data.rows import kind_of
from evenhand.errors import DataError


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered to one turn; `prompt` is None where the file does not say it.

    `cluster` is what its turns have in common: the first prompt, unless the row names one.
    """

    id: str | None
    prompt: str | None
    response: str
    model: str | None = None
    turn: int = 1
    turns: int = 1
    context: str | None = None
    reference: str | None = None
    tags: tuple[str, ...] = ()
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, turn by turn, from a file of its own."""

    id: str
    prompts: tuple[str, ...]
    references: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class AnswerRows:
    def __init__(self, mapped: Mapping[str, str]) -> None:
        self._plain = FieldValues(OUTPUT_FIELDS, mapped, required=("response",))
        # Rows of the chat layouts have their responses inside choices or messages.
        self._chat = FieldValues(OUTPUT_FIELDS, mapped, required=())

    def check(self, source: str, columns: tuple[str, ...]) -> None:
        """Refuse a table whose header has no place for an answer."""
        missing = self._plain.shape(columns).missing
        if missing and not {"choices", "messages"} & set(columns):
            raise DataError(f"{source}: {missing}")

    def read(self, row: Mapping[str, Any]) -> list[Answer]:
        """The row's answers, one for each turn."""
        if isinstance(row.get("choices"), list):
            return self._of_turns(row, *_from_choices(row["choices"]))
        if isinstance(row.get("messages"), list):
            return self._of_turns(row, *_from_messages(row["messages"]))
        _, values = self._plain.read(row)
        return [
            replace(
                _common(values),
                prompt=_text("prompt", values["prompt"]) if "prompt" in values else None,
                response=_text("response", values["response"]),
            )
        ]

    def _of_turns(
        self, row: Mapping[str, Any], prompts: Sequence[str], responses: Sequence[str]
    ) -> list[Answer]:
        _, values = self._chat.read(row)
        common = _common(values)
        if not responses:
            raise DataError("the row holds no answer")
        own = values.get("prompt")
        if not prompts and isinstance(own, str) and len(responses) == 1:
            prompts = [own]
        if common.cluster is None and len(responses) > 1 and prompts:
            common = replace(common, cluster=prompts[0])
        return [
            replace(
                common,
                prompt=conversation(prompts[:turn], "User turn") if prompts else None,
                response=conversation(responses[:turn], "Answer to turn"),
                turn=turn,
                turns=len(responses),
            )
            for turn in range(1, len(responses) + 1)
        ]


def read_question(row: Mapping[str, Any], fields: FieldValues) -> Question:
    _, values = fields.read({name: value for name, value in row.items() if name != "turns"})
    identity = text_of_id(values.get("id"))
    if identity is None:
        raise DataError("the question has no id, question_id or uid; give it one")
    if isinstance(row.get("turns"), list):
        prompts = tuple(_content("turns", turn) for turn in row["turns"])
    else:
        prompts = (_text("prompt", values.get("prompt")),)
    if not prompts:
        raise DataError("turns is empty; a question has at least one")
    references = values.get("reference")
    if not isinstance(references, list):
        references = [] if references in (None, "") else [references] * len(prompts)
    return Question(
        identity,
        prompts,
        tuple(_content("reference", reference) for reference in references),
        read_tags(values.get("tags")),
    )


def conversation(texts: Sequence[str], title: str) -> str:
    """The text itself where there is one, else all of them, each under its number."""
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"[{title} {number}]\n{text}" for number, text in enumerate(texts, 1))


def _common(values: Mapping[str, Any]) -> Answer:
    return Answer(
        id=text_of_id(values.get("id")),
        prompt=None,
        response="",
        model=optional_text("model", values.get("model")),
        context=optional_text("context", values.get("context")),
        reference=optional_text("reference", values.get("reference")),
        tags=read_tags(values.get("tags")),
        cluster=text_of_cluster(values.get("cluster")),
    )


def _from_choices(choices: list[Any]) -> tuple[list[str], list[str]]:
    """MT-Bench and Arena-Hard 0.1: the answers of the first choice, and no prompts."""
    first = choices[0] if choices else None
    turns = first.get("turns") if isinstance(first, dict) else None
    if not isinstance(turns, list):
        raise DataError("choices[0].turns is missing; it takes the model's answers, turn by turn")
    return [], [_content("choices[0].turns", turn) for turn in turns]


def _from_messages(messages: list[Any]) -> tuple[list[str], list[str]]:
    """Arena-Hard 2.0: user and assistant take turns; what the system says is left out."""
    asked: list[str] = []
    answered: list[str] = []
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role == "user" and len(asked) == len(answered):
            asked.append(_content("messages", message))
        elif role == "assistant" and len(asked) == len(answered) + 1:
            answered.append(_content("messages", message))
        elif role not in ("system", "developer"):
            raise DataError("messages takes user and assistant in turn, the user first")
    if len(asked) != len(answered):
        raise DataError("messages ends without an answer of the assistant")
    return asked, answered


def _content(field: str, value: Any) -> str:
    """A turn's text: itself, its content, or the answer inside its content."""
    for key in ("content", "answer"):
        if isinstance(value, dict):
            value = value.get(key)
    return _text(field, value)


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise DataError(f"{field} takes a text, not {kind_of(value)}")
    return sendable(field, value)
