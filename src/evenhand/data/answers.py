"""A model's answers, in the layouts that benchmarks use, and the temporary database that holds the
answers of many files while they are joined.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.data.columns import (
    OUTPUT_FIELDS,
    FieldValues,
    RowShape,
    optional_text,
    reference_text,
    sendable,
    text_of_cluster,
    text_of_id,
)
from evenhand.data.records import Tag, kind_of
from evenhand.errors import DataError


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's answer to one turn; `prompt` is None if the file lacks it.

    `cluster` is shared by the turns of a conversation: the first prompt, unless the row names
    another.
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
class PromptTurns:
    """The prompts, turn by turn, from a separate file."""

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
        missing = self._plain.shape(columns).missing
        if missing and not {"choices", "messages"} & set(columns):
            raise DataError.of("data.source_missing", source=source, missing=missing)

    def read(self, row: Mapping[str, Any]) -> list[ModelAnswer]:
        if isinstance(row.get("choices"), list):
            return self._of_turns(row, *_from_choices(row["choices"]))
        if isinstance(row.get("messages"), list):
            return self._of_turns(row, *_from_messages(row["messages"]))
        shape, values = self._plain.read(row)
        return [
            replace(
                _common(shape, values),
                prompt=_text("prompt", values["prompt"]) if "prompt" in values else None,
                response=_text("response", values["response"]),
            )
        ]

    def _of_turns(
        self, row: Mapping[str, Any], prompts: Sequence[str], responses: Sequence[str]
    ) -> list[ModelAnswer]:
        shape, values = self._chat.read(row)
        common = _common(shape, values)
        if not responses:
            raise DataError.of("data.no_answer")
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


def read_question(row: Mapping[str, Any], fields: FieldValues) -> PromptTurns:
    shape, values = fields.read({name: value for name, value in row.items() if name != "turns"})
    identity = text_of_id(values.get("id"))
    if identity is None:
        raise DataError.of("data.question_without_id")
    if isinstance(row.get("turns"), list):
        prompts = tuple(_content("turns", turn) for turn in row["turns"])
    else:
        prompts = (_text("prompt", values.get("prompt")),)
    if not prompts:
        raise DataError.of("data.turns_empty")
    references = reference_text(values.get("reference"))
    if not isinstance(references, list):
        references = [] if references in (None, "") else [references] * len(prompts)
    return PromptTurns(
        identity,
        prompts,
        tuple(_content("reference", reference_text(reference)) for reference in references),
        shape.tags(values),
    )


def conversation(texts: Sequence[str], title: str) -> str:
    """The text itself if there is one, else all of them, numbered."""
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"[{title} {number}]\n{text}" for number, text in enumerate(texts, 1))


def _common(shape: RowShape, values: Mapping[str, Any]) -> ModelAnswer:
    return ModelAnswer(
        id=text_of_id(values.get("id")),
        prompt=None,
        response="",
        model=optional_text("model", values.get("model")),
        context=optional_text("context", values.get("context")),
        reference=optional_text("reference", reference_text(values.get("reference"))),
        tags=shape.tags(values),
        cluster=text_of_cluster(values.get("cluster")),
    )


def _from_choices(choices: list[Any]) -> tuple[list[str], list[str]]:
    """MT-Bench and Arena-Hard 0.1: the answers of the first choice, and no prompts."""
    first = choices[0] if choices else None
    turns = first.get("turns") if isinstance(first, dict) else None
    if not isinstance(turns, list):
        raise DataError.of("data.turns_missing")
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
            raise DataError.of("data.messages_not_alternating")
    if len(asked) != len(answered):
        raise DataError.of("data.messages_without_answer")
    return asked, answered


def _content(field: str, value: Any) -> str:
    """A turn's text: itself, its content, or the answer inside its content."""
    for key in ("content", "answer"):
        if isinstance(value, dict):
            value = value.get(key)
    return _text(field, value)


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise DataError.of("data.text_needed", field=field, value=kind_of(value))
    return sendable(field, value)


_SCHEMA = Path(__file__).with_name("scratch.sql")
_BATCH = 500
# The columns of `answers`, besides place, prompt and tags.
_FIELDS = ("id", "turn", "turns", "prompt", "response", "context", "reference", "cluster")
_COLUMNS = f"file, row, mark, tags, {', '.join(_FIELDS)}"


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer with its place in the files."""

    file: int
    row: int
    answer: ModelAnswer


class Scratch:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._waiting: list[tuple[object, ...]] = []
        self.joined_by_id = True

    def add(self, stored: Stored) -> None:
        one = stored.answer
        mark = None if one.prompt is None else _mark(one.prompt)
        fields = (getattr(one, name) for name in _FIELDS)
        self._waiting.append((stored.file, stored.row, mark, _packed(one.tags), *fields))
        if one.id is None:
            self.joined_by_id = False
        # Written at once: a batch of long answers may not fit into memory.
        if len(self._waiting) >= _BATCH or len(one.response) > 1 << 16:
            self._flush()

    def add_question(self, question: PromptTurns) -> bool:
        """False if the id is already there."""
        added = self._connection.execute(
            "INSERT OR IGNORE INTO questions VALUES (?, ?, ?, ?)",
            (
                question.id,
                json.dumps(question.prompts),
                json.dumps(question.references),
                _packed(question.tags),
            ),
        )
        return added.rowcount == 1

    def finish(self) -> None:
        """Join by id if every answer has one, else by prompt."""
        self._flush()
        column = "id" if self.joined_by_id else "mark"
        self._connection.execute(f"CREATE INDEX joined ON answers ({column}, turn, seq)")
        self._connection.execute("COMMIT")

    def groups(self) -> Iterator[Iterator[Stored]]:
        """The answers to one question, by file, in the order of the first file."""
        column = "id" if self.joined_by_id else "mark"
        order = self._connection.execute(
            f"SELECT a.seq, a.{column}, a.turn FROM answers a WHERE NOT EXISTS ("  # noqa: S608 - fixed names
            f"SELECT 1 FROM answers b WHERE b.{column} = a.{column} AND b.turn = a.turn "
            "AND b.seq < a.seq) ORDER BY a.seq"
        )
        for seq, key, turn in order:
            where, values = (
                ("seq = ?", (seq,)) if key is None else (f"{column} = ? AND turn = ?", (key, turn))
            )
            rows = self._connection.execute(
                f"SELECT {_COLUMNS} FROM answers WHERE {where} ORDER BY seq",  # noqa: S608 - fixed names
                values,
            )
            yield (_stored(row) for row in rows)

    def question(self, identity: str) -> PromptTurns | None:
        row = self._connection.execute(
            "SELECT prompts, refs, tags FROM questions WHERE id = ?", (identity,)
        ).fetchone()
        if row is None:
            return None
        prompts, references = (tuple(json.loads(text)) for text in row[:2])
        return PromptTurns(identity, prompts, references, _unpacked(row[2]))

    def _flush(self) -> None:
        marks = ", ".join("?" * len(_COLUMNS.split(",")))
        self._connection.executemany(
            f"INSERT INTO answers ({_COLUMNS}) VALUES ({marks})",  # noqa: S608 - fixed names
            self._waiting,
        )
        self._waiting.clear()


@contextmanager
def scratch() -> Iterator[Scratch]:
    """An empty store in a temporary file, deleted at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        # Records may be consumed in another thread, one at a time.
        connection = sqlite3.connect(
            Path(folder) / "answers.db", isolation_level=None, check_same_thread=False
        )
        try:
            connection.executescript(_SCHEMA.read_text("utf-8"))
            yield Scratch(connection)
        except sqlite3.Error as error:
            raise DataError.of(
                "data.temporary_database_failed", parent=Path(folder).parent, error=error
            ) from None
        finally:
            connection.close()


def _packed(tags: tuple[str, ...]) -> str | None:
    if not tags:
        return None
    return json.dumps([(tag, tag.column if isinstance(tag, Tag) else None) for tag in tags])


def _unpacked(text: str | None) -> tuple[str, ...]:
    pairs = json.loads(text or "[]")
    return tuple([tag if column is None else Tag(tag, column) for tag, column in pairs])


def _mark(prompt: str) -> bytes:
    return hashlib.blake2b(prompt.encode(), digest_size=16).digest()


def _stored(row: tuple[Any, ...]) -> Stored:
    file, number, _, tags, *fields = row
    answer = ModelAnswer(**dict(zip(_FIELDS, fields, strict=True)), tags=_unpacked(tags))
    return Stored(file, number, answer)
