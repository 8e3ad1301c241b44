"""What models wrote: their answers to the prompts of an A/B test, and artefacts that judges share
among pairs. Each is stored as it comes, under a digest of all that it depends on, so that none is
generated twice. The key of an artefact begins with its kind and a hyphen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from evenhand.judging.preparation import GeneratedAnswer
from evenhand.messages import from_text, to_text
from evenhand.store.rows import in_slices, insert_for
from evenhand.store.schema import answers

_Opened = Callable[[], AbstractContextManager[Connection]]


class AnswerSpending(NamedTuple):
    """None: of some of them nobody knows it."""

    requests: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


class AnswerStore:
    """Every call is a transaction of its own."""

    def __init__(self, reading: _Opened, writing: _Opened) -> None:
        self._reading = reading
        self._writing = writing

    def find(self, keys: Sequence[str]) -> dict[str, GeneratedAnswer]:
        """Those that are there."""
        with self._reading() as connection:
            return find_answers(connection, keys)

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

    def spent(self, run_id: int, *, artefacts: bool) -> AnswerSpending:
        """By the answers, or the artefacts, that this run had generated in all its commands."""
        is_artefact = answers.c.key.like("%-%")
        amounts = (answers.c.input_tokens, answers.c.output_tokens, answers.c.cost_usd)
        query = select(
            func.coalesce(func.sum(answers.c.requests), 0),
            func.count(),
            *(func.count(amount) for amount in amounts),
            *(func.coalesce(func.sum(amount), 0) for amount in amounts),
        ).where(answers.c.run_id == run_id, is_artefact if artefacts else ~is_artefact)
        with self._reading() as connection:
            requests, every, *rest = connection.execute(query).one()
        sums = [
            sum_ if known == every else None for known, sum_ in zip(rest[:3], rest[3:], strict=True)
        ]
        return AnswerSpending(int(requests), *sums)


def find_answers(connection: Connection, keys: Sequence[str]) -> dict[str, GeneratedAnswer]:
    found: dict[str, GeneratedAnswer] = {}
    for some in in_slices(keys):
        query = select(answers).where(answers.c.key.in_(some))
        for row in connection.execute(query).mappings():
            values = {name: row[name] for name in GeneratedAnswer.__slots__}
            values["error"] = None if row["error"] is None else from_text(row["error"])
            found[row["key"]] = GeneratedAnswer(**values)
    return found
