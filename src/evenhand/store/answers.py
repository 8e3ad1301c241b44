"""Texts that models wrote: answers in A/B tests, and artefacts shared by pairs. Stored as they
arrive, under a digest of all they depend on, so that none is generated twice. An artefact's key
begins with its kind and a hyphen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, func, select

from evenhand.contract import Pair
from evenhand.messages import from_text, to_text
from evenhand.store.database import Subject
from evenhand.store.records import JudgeRecord
from evenhand.store.rows import in_slices, insert_for
from evenhand.store.schema import answers

# Loaded where they are used: most commands only read verdicts.
if TYPE_CHECKING:
    from evenhand.judging.preparation import ArtefactRequest, GeneratedAnswer


class NewAnswer(NamedTuple):
    run_id: int
    made: GeneratedAnswer


class AnswerSpending(NamedTuple):
    """None if some are unknown, such as those of failed calls."""

    requests: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    known_cost_usd: float = 0.0  # of the others


NOTHING_SPENT = AnswerSpending(0, 0, 0, 0.0)


class AnswerStore(Subject):
    """Texts that models wrote, by key."""

    def find(self, keys: Sequence[str]) -> dict[str, GeneratedAnswer]:
        with self._reading() as connection:
            return find_answers(connection, keys)

    def add(self, run_id: int, made: Sequence[GeneratedAnswer]) -> None:
        with self._writing() as connection:
            add_answers(connection, [NewAnswer(run_id, each) for each in made])

    def spent(self, run_id: int, *, artefacts: bool | None = None) -> AnswerSpending:
        """On this run's answers, its artefacts, or both, over all its commands."""
        is_artefact = answers.c.key.like("%-%")
        amounts = (answers.c.input_tokens, answers.c.output_tokens, answers.c.cost_usd)
        query = select(
            func.coalesce(func.sum(answers.c.requests), 0),
            func.count(),
            *(func.count(amount) for amount in amounts),
            *(func.coalesce(func.sum(amount), 0) for amount in amounts),
        ).where(answers.c.run_id == run_id)
        if artefacts is not None:
            query = query.where(is_artefact if artefacts else ~is_artefact)
        with self._reading() as connection:
            requests, every, *rest = connection.execute(query).one()
        sums = [
            sum_ if known == every else None for known, sum_ in zip(rest[:3], rest[3:], strict=True)
        ]
        tokens_in, tokens_out, cost = sums
        return AnswerSpending(int(requests), tokens_in, tokens_out, cost, rest[-1])


def add_answers(connection: Connection, new: Sequence[NewAnswer]) -> None:
    """A later try replaces a failed one; others stay."""
    from evenhand.judging.preparation import GeneratedAnswer

    insert = insert_for(connection.dialect.name, answers)
    columns = [name for name in (*GeneratedAnswer.__slots__, "run_id") if name != "key"]
    statement = insert.on_conflict_do_update(
        index_elements=[answers.c.key],
        set_={name: insert.excluded[name] for name in columns},
        where=answers.c.outcome == "failed",
    )
    # In a fixed order, so that two processes cannot deadlock.
    for run_id, each in sorted(new, key=lambda one: one.made.key):
        values = {name: getattr(each, name) for name in GeneratedAnswer.__slots__}
        values["error"] = None if each.error is None else to_text(each.error)
        connection.execute(statement, values | {"run_id": run_id})


def find_answers(connection: Connection, keys: Sequence[str]) -> dict[str, GeneratedAnswer]:
    from evenhand.judging.preparation import GeneratedAnswer

    stored: dict[str, GeneratedAnswer] = {}
    for some in in_slices(keys):
        query = select(answers).where(answers.c.key.in_(some))
        for row in connection.execute(query).mappings():
            values = {name: row[name] for name in GeneratedAnswer.__slots__}
            values["error"] = None if row["error"] is None else from_text(row["error"])
            stored[row["key"]] = GeneratedAnswer(**values)
    return stored


# What a stored judge has prepared before judging.


def prepares(judge: JudgeRecord) -> bool:
    return bool(judge.settings.get("prepare"))


def written_before(pair: Pair, judge: JudgeRecord) -> list[tuple[str, ArtefactRequest]]:
    """With their storage keys."""
    from evenhand.judging.config import JudgeConfig
    from evenhand.judging.preparation import wanted_before

    config = JudgeConfig(prepare=judge.settings["prepare"], locale=judge.locale)
    requests = wanted_before(pair, config, config.prepare or ())
    return [(each.key(judge.settings["writer"]), each) for each in requests]


def keys_before(pair: Pair, judge: JudgeRecord) -> list[str]:
    return [key for key, _ in written_before(pair, judge)]
