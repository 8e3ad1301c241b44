"""Answers that models gave to prompts of an A/B test: each is stored as it comes, under a digest of
all that it depends on, so that none is generated twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from sqlalchemy import Connection, func, select

from evenhand.messages import from_text, to_text
from evenhand.store.rows import in_slices, insert_for
from evenhand.store.schema import answers

AnswerOutcome = Literal["answered", "truncated", "refused", "empty", "failed"]
ANSWER_OUTCOMES: tuple[AnswerOutcome, ...] = get_args(AnswerOutcome)
_Opened = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class GeneratedAnswer:
    """`error` says why there is none. Of a failed call nobody knows the tokens."""

    key: str
    outcome: AnswerOutcome
    text: str = ""
    error: str | None = None
    model: str | None = None  # as the server names it
    requests: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    time_ms: float | None = None


class AnswerSpending(NamedTuple):
    requests: int
    cost_usd: float


class AnswerStore:
    """Every call is a transaction of its own."""

    def __init__(self, reading: _Opened, writing: _Opened) -> None:
        self._reading = reading
        self._writing = writing

    def find(self, keys: Sequence[str]) -> dict[str, GeneratedAnswer]:
        """Those that are there."""
        found: dict[str, GeneratedAnswer] = {}
        with self._reading() as connection:
            for some in in_slices(keys):
                query = select(answers).where(answers.c.key.in_(some))
                for row in connection.execute(query).mappings():
                    values = {name: row[name] for name in GeneratedAnswer.__slots__}
                    values["error"] = None if row["error"] is None else from_text(row["error"])
                    found[row["key"]] = GeneratedAnswer(**values)
        return found

    def add(self, run_id: int, made: Sequence[GeneratedAnswer]) -> None:
        """A failed one gives way to a later try; any other stays as it is."""
        with self._writing() as connection:
            insert = insert_for(connection.dialect.name, answers)
            columns = [name for name in (*GeneratedAnswer.__slots__, "run_id") if name != "key"]
            statement = insert.on_conflict_do_update(
                index_elements=[answers.c.key],
                set_={name: insert.excluded[name] for name in columns},
                where=answers.c.outcome == "failed",
            )
            for each in made:
                values = {name: getattr(each, name) for name in GeneratedAnswer.__slots__}
                values["error"] = None if each.error is None else to_text(each.error)
                connection.execute(statement, values | {"run_id": run_id})

    def spent(self, run_id: int) -> AnswerSpending:
        """By the answers that this run had generated, in all its commands."""
        query = select(func.sum(answers.c.requests), func.sum(answers.c.cost_usd))
        with self._reading() as connection:
            requests, cost = connection.execute(query.where(answers.c.run_id == run_id)).one()
        return AnswerSpending(int(requests or 0), float(cost or 0.0))
