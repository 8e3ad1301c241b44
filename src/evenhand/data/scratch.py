"""A temporary database that holds the answers of many files while they are joined."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.data.answers import Answer, Question
from evenhand.errors import DataError

_SCHEMA = Path(__file__).with_name("scratch.sql")
_BATCH = 500
_COLUMNS = "file, row, id, mark, turn, turns, prompt, response, context, reference, tags, cluster"


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer with the place it came from."""

    file: int
    row: int
    answer: Answer


class Scratch:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._waiting: list[tuple[object, ...]] = []
        self.joined_by_id = True

    def add(self, stored: Stored) -> None:
        one = stored.answer
        self._waiting.append(
            (
                stored.file,
                stored.row,
                one.id,
                None if one.prompt is None else _mark(one.prompt),
                one.turn,
                one.turns,
                one.prompt,
                one.response,
                one.context,
                one.reference,
                json.dumps(one.tags) if one.tags else None,
                one.cluster,
            )
        )
        if one.id is None:
            self.joined_by_id = False
        # A long answer goes to the disk at once; a batch of them need not fit into the memory.
        if len(self._waiting) >= _BATCH or len(one.response) > 1 << 16:
            self._flush()

    def add_question(self, question: Question) -> bool:
        """False where the id is there already."""
        added = self._connection.execute(
            "INSERT OR IGNORE INTO questions VALUES (?, ?, ?, ?)",
            (
                question.id,
                json.dumps(question.prompts),
                json.dumps(question.references),
                json.dumps(question.tags),
            ),
        )
        return added.rowcount == 1

    def finish(self) -> None:
        """All is in: join by id where every answer has one, else by prompt."""
        self._flush()
        column = "id" if self.joined_by_id else "mark"
        self._connection.execute(f"CREATE INDEX joined ON answers ({column}, turn, seq)")
        self._connection.execute("COMMIT")

    def groups(self) -> Iterator[Iterator[Stored]]:
        """The answers to one question, by file; questions in the order of the first file."""
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
            found = self._connection.execute(
                f"SELECT {_COLUMNS} FROM answers WHERE {where} ORDER BY seq",  # noqa: S608 - fixed names
                values,
            )
            yield (_stored(row) for row in found)

    def question(self, identity: str) -> Question | None:
        row = self._connection.execute(
            "SELECT prompts, refs, tags FROM questions WHERE id = ?", (identity,)
        ).fetchone()
        if row is None:
            return None
        prompts, references, tags = (tuple(json.loads(text)) for text in row)
        return Question(identity, prompts, references, tags)

    def _flush(self) -> None:
        marks = ", ".join("?" * len(_COLUMNS.split(",")))
        self._connection.executemany(
            f"INSERT INTO answers ({_COLUMNS}) VALUES ({marks})",  # noqa: S608 - fixed names
            self._waiting,
        )
        self._waiting.clear()


@contextmanager
def scratch() -> Iterator[Scratch]:
    """An empty one; its file is gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        # Whoever takes the next record may do so from another thread, one at a time.
        connection = sqlite3.connect(
            Path(folder) / "answers.db", isolation_level=None, check_same_thread=False
        )
        try:
            connection.executescript(_SCHEMA.read_text("utf-8"))
            yield Scratch(connection)
        except sqlite3.Error as error:
            raise DataError(
                f"the temporary database in {Path(folder).parent} failed ({error}); "
                "free some space, or name another folder in TMPDIR"
            ) from None
        finally:
            connection.close()


def _mark(prompt: str) -> bytes:
    return hashlib.blake2b(prompt.encode(), digest_size=16).digest()


def _stored(row: tuple[Any, ...]) -> Stored:
    # SQLite's rows are untyped; the table was filled from an Answer.
    file, number, identity, _, turn, turns, prompt, response, *of_prompt, tags, cluster = row
    context, reference = of_prompt
    answer = Answer(
        id=identity,
        prompt=prompt,
        response=response,
        turn=turn,
        turns=turns,
        context=context,
        reference=reference,
        tags=tuple(json.loads(tags)) if isinstance(tags, str) else (),
        cluster=cluster,
    )
    return Stored(file, number, answer)
