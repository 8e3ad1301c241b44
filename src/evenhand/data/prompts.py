"""Files of prompts to be answered: one a row, a text or a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evenhand.data.columns import (
    OUTPUT_FIELDS,
    Columns,
    FieldValues,
    optional_text,
    reference_text,
    sendable,
    text_of_cluster,
    text_of_id,
)
from evenhand.data.records import BadRow, kind_of
from evenhand.data.source import Source
from evenhand.data.tables import open_tables
from evenhand.errors import DataError, InputError

PROMPT_FIELDS = {name: names for name, names in OUTPUT_FIELDS.items() if name != "response"}
_CONVERSATIONS = ("messages", "turns")
_ROLES = ("system", "user", "assistant")
_TITLES = {"system": "System", "user": "User", "assistant": "Assistant"}

Role = Literal["system", "user", "assistant"]
Turns = tuple[tuple[Role, str], ...]


@dataclass(frozen=True, slots=True)
class PromptRow:
    """`turns` is what a model is sent, `text` what its judge reads."""

    key: str
    turns: Turns
    text: str
    source: str
    row: int
    context: str | None = None
    reference: str | None = None
    tags: tuple[str, ...] = ()
    cluster: str | None = None


def read_prompts(source: Source, columns: Mapping[str, str]) -> Iterator[PromptRow | BadRow]:
    """Every row, as a prompt or a bad row."""
    wanted = Columns(PROMPT_FIELDS, columns).wanted
    fields = FieldValues(PROMPT_FIELDS, columns, required=())
    seen: dict[str, int] = {}
    for file, table in open_tables(source, wanted=lambda n: wanted(n) or n in _CONVERSATIONS):
        for number, row in table.rows:
            try:
                if isinstance(row, str):
                    raise DataError(row)
                prompt = _prompt(row, fields, file.name, number)
                first = seen.setdefault(prompt.key, number)
                if first != number:
                    raise DataError.of("data.prompt_id_twice", id=prompt.key, row=first)
                yield prompt
            except InputError as error:
                yield BadRow(file.name, number, error.message)
    if not seen:
        raise DataError.of("data.file_without_prompts", name=source.name)


def _prompt(row: Mapping[str, Any], fields: FieldValues, source: str, number: int) -> PromptRow:
    shape, values = fields.read({n: v for n, v in row.items() if n not in _CONVERSATIONS})
    if isinstance(row.get("messages"), list):
        turns = tuple(_message(each) for each in row["messages"])
    elif isinstance(row.get("turns"), list):
        # Several user turns would need the answers in between, which do not exist yet.
        if len(row["turns"]) != 1:
            raise DataError.of("data.prompt_of_turns", n=len(row["turns"]))
        turns = (("user", _text("turns", row["turns"][0])),)
    elif "prompt" in values:
        turns = (("user", _text("prompt", values["prompt"])),)
    else:
        raise DataError(Columns(PROMPT_FIELDS, {}).missing("prompt", tuple(row)))
    if not turns or turns[-1][0] != "user":
        raise DataError.of("data.prompt_ends_otherwise")
    return PromptRow(
        text_of_id(values.get("id")) or f"#{number}",
        turns,
        shown_turns(turns),
        source,
        number,
        optional_text("context", values.get("context")),
        optional_text("reference", reference_text(values.get("reference"))),
        shape.tags(values),
        text_of_cluster(values.get("cluster")),
    )


def shown_turns(turns: Turns) -> str:
    """The prompt if it is the only message, else every message with its role."""
    if len(turns) == 1:
        return turns[0][1]
    return "\n\n".join(f"[{_TITLES[role]}]\n{text}" for role, text in turns)


def _message(value: Any) -> tuple[Role, str]:
    role = value.get("role") if isinstance(value, dict) else None
    if role not in _ROLES:
        raise DataError.of("data.prompt_message_role", value=kind_of(role or value))
    return role, _text("messages", value.get("content"))


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise DataError.of("data.text_needed", field=field, value=kind_of(value))
    if not value.strip():
        raise DataError.of("data.prompt_empty", field=field)
    return sendable(field, value)
