"""Deleting a run and what no other run needs, or only its texts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)

from evenhand.contract import Pair
from evenhand.store.answers import keys_before, prepares
from evenhand.store.database import Subject
from evenhand.store.figures import drop_joint_figures
from evenhand.store.full_text import forget_words
from evenhand.store.rows import OF_ITEM, in_slices, pair_of
from evenhand.store.runs import judges_of_run, needed_run
from evenhand.store.schema import (
    answers,
    batch_requests,
    batches,
    figures,
    item_tags,
    items,
    job_prompts,
    jobs,
    judges,
    pair_flags,
    pairs,
    passes,
    queue,
    replaced_passes,
    replaced_votes,
    run_judges,
    runs,
    search_docs,
    skipped_rows,
    verdicts,
    votes,
)

_BESIDE_ITEMS = (
    *(verdicts, queue, item_tags, pair_flags, skipped_rows, jobs, job_prompts),
    *(figures, batch_requests, batches),
)


class DeletionStore(Subject):
    def passes_to_go(self, run_id: int) -> int:
        """How many passes would be deleted with the run; those of other runs stay."""
        with self._reading() as connection:
            query = select(func.count()).select_from(passes).where(_removable_with(passes, run_id))
            return connection.execute(query).scalar_one()

    def votes_to_go(self, run_id: int) -> int:
        """How many votes are on pairs of no other run."""
        with self._reading() as connection:
            other = items.alias()
            elsewhere = exists().where(other.c.pair_id == votes.c.pair_id, other.c.run_id != run_id)
            query = (
                select(func.count()).select_from(votes).where(_of_run(votes, run_id), ~elsewhere)
            )
            return connection.execute(query).scalar_one()

    def delete(self, name: str, *, with_votes: bool = False) -> None:
        """Delete a run, but not what other runs use, nor people's votes and their pairs, unless
        requested."""
        with self._reading() as connection:
            run = needed_run(connection, name)
        with self._database.hold(run.id):
            self.delete_held(run.id, with_votes=with_votes)

    def delete_held(self, run_id: int, *, with_votes: bool = False) -> None:
        """The same for a run that the caller holds."""
        with self._writing() as connection:
            delete_run(connection, run_id, with_votes=with_votes)
        self._database.shrink_log()

    def texts_to_go(self, run_id: int) -> ForgottenTexts:
        with self._reading() as connection:
            own, shared = _pairs_apart(connection, run_id)
            return ForgottenTexts(len(own), len(shared))

    def forget_texts(self, name: str) -> ForgottenTexts:
        """Delete a run's prompts, responses and answers; its figures stay."""
        with self._reading() as connection:
            run = needed_run(connection, name)
        with self._database.hold(run.id):
            with self._writing() as connection:
                forgotten = forget_texts(connection, run.id)
            self._database.wipe_free_space()
        return forgotten


def delete_run(connection: Connection, run_id: int, *, with_votes: bool) -> None:
    drop_joint_figures(connection)
    judge_ids = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
    dropped_judges = [
        row.judge_id
        for row in connection.execute(
            judge_ids.where(
                run_judges.c.judge_id.not_in(
                    select(run_judges.c.judge_id).where(run_judges.c.run_id != run_id)
                )
            )
        )
    ]
    for table in (passes, replaced_passes):
        connection.execute(delete(table).where(_removable_with(table, run_id)))
        generated_here = and_(_of_run(table, run_id), table.c.run_id == run_id)
        connection.execute(update(table).where(generated_here).values(run_id=None))
    _drop_answers(connection, run_id)
    for table in _BESIDE_ITEMS:
        connection.execute(delete(table).where(table.c.run_id == run_id))
    reach = connection.execute(
        select(func.min(items.c.pair_id), func.max(items.c.pair_id)).where(items.c.run_id == run_id)
    ).one()
    connection.execute(delete(items).where(items.c.run_id == run_id))
    if reach[0] is not None:
        _delete_pairs(connection, *reach, with_votes=with_votes)
    connection.execute(delete(run_judges).where(run_judges.c.run_id == run_id))
    for judge_id in dropped_judges:
        has_passes = select(exists().where(passes.c.judge_id == judge_id))
        if not connection.execute(has_passes).scalar():
            connection.execute(delete(judges).where(judges.c.id == judge_id))
    connection.execute(delete(runs).where(runs.c.id == run_id))


def _delete_pairs(connection: Connection, first: int, last: int, *, with_votes: bool) -> None:
    """Delete pairs without items, except those with votes."""
    if with_votes:
        voted_here = exists().where(items.c.pair_id == votes.c.pair_id)
        connection.execute(delete(votes).where(votes.c.pair_id.between(first, last), ~voted_here))
    for table, column in ((replaced_votes, replaced_votes.c.pair_id), (pairs, pairs.c.id)):
        is_used = or_(
            exists().where(items.c.pair_id == column), exists().where(votes.c.pair_id == column)
        )
        connection.execute(delete(table).where(column.between(first, last), ~is_used))
    pair_exists = exists().where(pairs.c.id == search_docs.c.pair_id)
    forget_words(connection, and_(search_docs.c.pair_id.between(first, last), ~pair_exists))


def _of_run(table: Table, run_id: int) -> ColumnElement[bool]:
    return table.c.pair_id.in_(select(items.c.pair_id).where(items.c.run_id == run_id))


def _removable_with(table: Table, run_id: int) -> ColumnElement[bool]:
    judge_ids = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
    other = items.alias()
    pair_used = exists().where(other.c.pair_id == table.c.pair_id, other.c.run_id != run_id)
    other_judges = run_judges.alias()
    used = exists().where(
        other.c.pair_id == table.c.pair_id,
        other.c.run_id != run_id,
        other_judges.c.run_id == other.c.run_id,
        other_judges.c.judge_id == table.c.judge_id,
    )
    # A shared pair may have passes of judges that were never this run's; those stay.
    removable = or_(~pair_used, and_(table.c.judge_id.in_(judge_ids), ~used))
    return and_(_of_run(table, run_id), removable)


FORGOTTEN = "(forgotten)"
# Texts in the JSON of passes and verdicts that are not a judge's prose: names and choices.
_NO_PROSE = frozenset(
    (
        *("confidencesource", "criteria", "criterion", "decidedby", "firstpasswinner", "flags"),
        *("id", "judge", "kind", "locale", "mode", "model", "name", "order", "outcome"),
        *("promptversion", "protocol", "readas", "reconcile", "requestids", "secondpasswinner"),
        *("status", "winner"),
    )
)


def _forgotten(side: str) -> str:
    return f"(response {side.upper()} forgotten)"


class ForgottenTexts(NamedTuple):
    pairs: int
    shared_pairs: int  # other runs have them too, so that their texts and passes stay


def forget_texts(connection: Connection, run_id: int) -> ForgottenTexts:
    """Prompts, responses, and everything a judge wrote; every figure stays."""
    _drop_answers(connection, run_id)  # by the texts, while they are there
    own, shared = _pairs_apart(connection, run_id)
    emptied = update(pairs).where(pairs.c.id == bindparam("pair"))
    # Two texts of one length: nothing about similarity or lengths remains.
    texts = {f"response_{side}": _forgotten(side) for side in "ab"}
    texts["prompt"] = FORGOTTEN
    # A new digest: the same pair, read again, is another one.
    emptied = emptied.values(**texts, context=None, reference=None, digest=bindparam("digested"))
    for some in in_slices(own):
        values = [{"pair": each, "digested": secrets.token_bytes(16)} for each in some]
        connection.execute(emptied, values)
        for table in (passes, replaced_passes):
            _strip(connection, table, table.c.pair_id.in_(some), raw="")
    _strip(connection, verdicts, verdicts.c.run_id == run_id)
    failed = and_(verdicts.c.run_id == run_id, verdicts.c.error_message.is_not(None))
    connection.execute(update(verdicts).where(failed).values(error_message=FORGOTTEN))
    rows_of_run = skipped_rows.c.run_id == run_id
    connection.execute(update(skipped_rows).where(rows_of_run).values(reason=FORGOTTEN))
    flags_of_run = pair_flags.c.run_id == run_id
    connection.execute(update(pair_flags).where(flags_of_run).values(comment=None))
    for table in (figures, batch_requests, job_prompts):
        connection.execute(delete(table).where(table.c.run_id == run_id))
    drop_joint_figures(connection)
    for some in in_slices(own):
        forget_words(connection, search_docs.c.pair_id.in_(some))
    # The error that stopped a run may quote an answer.
    job_error = select(jobs.c.error).where(jobs.c.run_id == run_id, jobs.c.error.is_not(None))
    error = connection.execute(job_error).scalar()
    if error is not None:
        bare = orjson.dumps(orjson.loads(error) | {"message": FORGOTTEN}).decode()
        connection.execute(update(jobs).where(jobs.c.run_id == run_id).values(error=bare))
    before = connection.execute(select(runs.c.summary).where(runs.c.id == run_id)).scalar_one()
    summary = orjson.dumps(orjson.loads(before) | {"forgotten_at": time.time()}).decode()
    connection.execute(update(runs).where(runs.c.id == run_id).values(summary=summary))
    return ForgottenTexts(len(own), len(shared))


_NOBODY = 0  # no run has this number
_AT_ONCE = 500


def _drop_answers(connection: Connection, run_id: int) -> None:
    """Delete the answers that the run generated. Artefacts of pairs shared with other runs stay,
    without an owner: a half-judged pair there needs the same texts."""
    preparing = [judge for judge in judges_of_run(connection, run_id) if prepares(judge)]
    if preparing:
        shared = {*_pairs_apart(connection, run_id)[1]}
        kept, removable = set[str](), set[str]()
        for pair_id, pair in _pairs_with_texts(connection, run_id):
            keys = {key for judge in preparing for key in keys_before(pair, judge)}
            (kept if pair_id in shared else removable).update(keys)
        for some in in_slices(sorted(kept)):
            of_run = and_(answers.c.run_id == run_id, answers.c.key.in_(some))
            connection.execute(update(answers).where(of_run).values(run_id=_NOBODY))
        for some in in_slices(sorted(removable - kept)):
            unowned = and_(answers.c.run_id == _NOBODY, answers.c.key.in_(some))
            connection.execute(delete(answers).where(unowned))
    connection.execute(delete(answers).where(answers.c.run_id == run_id))


def _pairs_with_texts(connection: Connection, run_id: int) -> Iterator[tuple[int, Pair]]:
    after = 0
    while True:
        query = (
            select(items.c.number, items.c.pair_id, *OF_ITEM, *(pairs.c[name] for name in _TEXTS))
            .join(pairs, pairs.c.id == items.c.pair_id)
            .where(items.c.run_id == run_id, items.c.number > after)
            .order_by(items.c.number)
            .limit(_AT_ONCE)
        )
        rows = connection.execute(query).mappings().all()
        if not rows:
            return
        yield from ((row["pair_id"], pair_of(row)) for row in rows)
        after = rows[-1]["number"]


_TEXTS = (*("prompt", "response_a", "response_b", "criteria", "context", "reference", "allow_tie"),)


def _pairs_apart(connection: Connection, run_id: int) -> tuple[list[int], list[int]]:
    """The run's pairs with texts that no other run has, and the shared ones."""
    other = items.alias()
    elsewhere = exists().where(other.c.pair_id == items.c.pair_id, other.c.run_id != run_id)
    query = select(items.c.pair_id).where(items.c.run_id == run_id).distinct()
    emptied = exists().where(
        pairs.c.id == items.c.pair_id,
        pairs.c.prompt == FORGOTTEN,
        *(pairs.c[f"response_{side}"] == _forgotten(side) for side in "ab"),
    )
    own = connection.execute(query.where(~elsewhere, ~emptied)).scalars()
    shared = connection.execute(query.where(elsewhere)).scalars()
    return sorted(own), sorted(shared)


def _strip(connection: Connection, table: Table, those: ColumnElement[bool], **values: Any) -> None:
    keys = list(table.primary_key.columns)
    rows = connection.execute(select(*keys, table.c.body).where(those)).all()
    stripped = [
        {f"key{place}": part for place, part in enumerate(row[:-1])}
        | {"stripped": _stripped(row[-1])}
        for row in rows
    ]
    if stripped:
        match = and_(*(key == bindparam(f"key{place}") for place, key in enumerate(keys)))
        change = update(table).where(match).values(body=bindparam("stripped"), **values)
        connection.execute(change, stripped)


def _stripped(body: str) -> str:
    return orjson.dumps(_without_prose(orjson.loads(body), "")).decode()


def _without_prose(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _without_prose(each, name) for name, each in value.items()}
    is_name = key.replace("_", "").lower() in _NO_PROSE
    if isinstance(value, list):
        named = [each for each in value if is_name or not isinstance(each, str)]
        return [_without_prose(each, key) for each in named]
    return "" if isinstance(value, str) and not is_name else value
