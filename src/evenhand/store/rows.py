"""Values to rows and back: passes, verdicts, items and pairs in columns; and many rows inserted at
once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter
from sqlalchemy import Connection, RowMapping, Table, func, literal_column, select

from evenhand.contract import (
    Criterion,
    CriterionOutcome,
    Facts,
    Failure,
    MeanProbabilities,
    Order,
    Outcome,
    Pair,
    Pass,
    Usage,
    Verdict,
    Vote,
    VotePass,
    Winner,
)
from evenhand.errors import InputError
from evenhand.store.faults import of_row
from evenhand.store.records import (
    FailedPass,
    ItemRecord,
    NewPass,
    NewVerdict,
    PassKey,
    Settled,
    StoredPass,
    VerdictRow,
)
from evenhand.store.schema import escape, escape_or_none, items, passes

# Values to rows and back: what a pass, a verdict and a pair are in columns.

PASS_COLUMNS = (
    *("pair_id", "judge_id", "shown_order", "sample", "status", "reason", "winner", "confidence"),
    *("requests", "input_tokens", "output_tokens", "cached_input_tokens", "cost_usd", "time_ms"),
    *("run_id", "created_at", "model", "raw", "body"),
)
VERDICT_COLUMNS = (
    *("run_id", "number", "judge_id", "outcome", "winner", "confidence", "confidence_source"),
    *("first_pass_winner", "second_pass_winner", "error_kind", "error_message"),
    *("samples", "passes", "created_at", "abstained", "body"),
)

_FAILED = TypeAdapter(FailedPass)
_BALLOT_RAW: Any = {"ballot": {"raw"}}
_UNREAD_RAW: Any = {"unread": {"raw"}}
_PASSES: Any = {"metadata": {"passes"}}
_AT_ONCE = 500  # values in one IN (…)
_T = TypeVar("_T")
# A trillion tokens, or requests, of one pass are no count; and sums of such must fit 64 bits.
_LARGEST_COUNT = 2**40


def moment(unix_time: float) -> datetime:
    return datetime.fromtimestamp(unix_time, UTC)


def pass_values(new: NewPass, now: float) -> tuple[Any, ...]:
    made, usage = new.made, new.made.usage
    winner = confidence = reason = None
    if isinstance(made, FailedPass):
        status, model, raw = "failed", None, ""
        reason = made.error.kind
        body = _FAILED.dump_json(made).decode()
    elif isinstance(made, VotePass):
        vote = made.vote
        status, model, raw = "ballot", made.model, vote.raw
        winner, confidence = vote.winner, vote.confidence
        body = _vote_body(vote.criteria, made.request_ids)
    # Unset fields are left out: smaller than with the defaults, and half the work of comparing
    # each value with its default.
    elif made.ballot is not None:
        status, model, raw = "ballot", made.model, made.ballot.raw
        winner, confidence = made.ballot.winner, made.ballot.confidence
        body = made.model_dump_json(exclude=_BALLOT_RAW, exclude_unset=True)
    else:
        status, model = "unread", made.model
        raw = made.unread.raw if made.unread else ""
        reason = made.unread.kind if made.unread else None
        body = made.model_dump_json(exclude=_UNREAD_RAW, exclude_unset=True)
    return (
        *(new.pair_id, new.judge_id, made.order, made.sample, status),
        *(escape_or_none(reason), winner, confidence),
        *(_whole(usage.requests) or 0, _whole(usage.input_tokens), _whole(usage.output_tokens)),
        *(_whole(usage.cached_input_tokens), _finite(usage.cost_usd), _finite(made.time_ms) or 0.0),
        *(new.run_id, now, escape_or_none(model), escape(raw), body),
    )


def _whole(value: int | None) -> int | None:
    """A server may claim any number of tokens; one that cannot be is as good as not known."""
    return value if value is None or 0 <= value <= _LARGEST_COUNT else None


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None


# No pass's JSON begins like this.
_VOTE = '{"vote":'


def _vote_body(criteria: tuple[tuple[str, Winner], ...], request_ids: tuple[str, ...]) -> str:
    """What has no column of its own, since nobody searches by it."""
    ids = f',"request_ids":{orjson.dumps(request_ids).decode()}' if request_ids else ""
    return f"{_VOTE}{_votes_json(criteria)}{ids}}}"


# A run's criteria are few, and so are the ways in which they can come out.
@lru_cache(maxsize=1024)
def _votes_json(criteria: tuple[tuple[str, Winner], ...]) -> str:
    return orjson.dumps(criteria).decode()


def _vote_of(row: RowMapping) -> VotePass:
    told = orjson.loads(row["body"])
    return VotePass(
        vote=Vote(
            order=row["shown_order"],
            sample=row["sample"],
            winner=row["winner"],
            confidence=row["confidence"],
            criteria=tuple((name, winner) for name, winner in told["vote"]),
            raw=row["raw"],
        ),
        usage=Usage(
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            cached_input_tokens=row["cached_input_tokens"],
            cost_usd=row["cost_usd"],
            requests=row["requests"],
        ),
        time_ms=row["time_ms"],
        model=row["model"],
        request_ids=tuple(told.get("request_ids", ())),
    )


@of_row("pass", "run_id", "pair_id", "judge_id", "shown_order", "sample")
def stored_pass(row: RowMapping) -> StoredPass:
    made: Pass | FailedPass
    status = row["status"]
    bare = row["body"].startswith(_VOTE)
    if bare:
        voted = _vote_of(row)
        made = voted.with_ballot(voted.vote.bare_ballot())
    elif status == "failed":
        made = _FAILED.validate_json(row["body"])
    else:
        made = Pass.model_validate_json(row["body"])
        if made.ballot is not None:
            ballot = made.ballot.model_copy(update={"raw": row["raw"]})
            made = made.model_copy(update={"ballot": ballot})
        elif made.unread is not None:
            unread = made.unread.model_copy(update={"raw": row["raw"]})
            made = made.model_copy(update={"unread": unread})
    return StoredPass(made, status, row["run_id"], moment(row["created_at"]), bare)


def pass_key(stored: StoredPass) -> PassKey:
    return stored.made.order, stored.made.sample


def verdict_values(new: NewVerdict, now: float) -> tuple[Any, ...]:
    settled = new.settled
    if isinstance(settled, Failure):
        metadata = settled.metadata
        orders = metadata.position_consistency
        chosen = (orders.first_pass_winner, orders.second_pass_winner) if orders else (None, None)
        return (
            *(new.run_id, new.number, new.judge_id, str(Outcome.INVALID), None, None),
            *(metadata.confidence_source, *chosen),
            *(escape(settled.error.kind), escape(settled.error.message)),
            *(metadata.samples, len(metadata.passes), now, False),
            settled.model_dump_json(exclude=_PASSES, exclude_unset=True),
        )
    if isinstance(settled, Facts):
        facts, body = settled, _beyond_columns(settled)
    else:
        facts = Facts.of(settled)
        body = settled.model_dump_json(exclude=_PASSES, exclude_unset=True)
    return (
        *(new.run_id, new.number, new.judge_id, str(facts.outcome)),
        *(facts.winner, facts.confidence, facts.confidence_source),
        *(facts.first_pass_winner, facts.second_pass_winner, None, None),
        *(facts.samples, facts.passes, now, facts.abstained, body),
    )


# No verdict's and no failure's JSON begins like this.
_FACTS = '{"facts":'


def _beyond_columns(facts: Facts) -> str:
    """What has no column of its own, since nobody searches by it."""
    told: dict[str, Any] = {"time_ms": facts.evaluation_time_ms}
    if facts.criteria:
        told["criteria"] = [
            [c.criterion, str(c.outcome), c.first_pass_winner, c.second_pass_winner]
            for c in facts.criteria
        ]
    if facts.abstained:
        told["abstained"] = True
    if facts.decided_by is not None:
        told["decided_by"] = facts.decided_by
    if facts.probabilities is not None:
        means = facts.probabilities
        told["probabilities"] = [means.a, means.b, means.tie]
    return f"{_FACTS}{orjson.dumps(told).decode()}}}"


def _facts_of(row: RowMapping) -> Facts:
    told = orjson.loads(row["body"])["facts"]
    means = told.get("probabilities")
    return Facts(
        outcome=Outcome(row["outcome"]),
        winner=row["winner"],
        confidence=row["confidence"],
        confidence_source=row["confidence_source"],
        first_pass_winner=row["first_pass_winner"],
        second_pass_winner=row["second_pass_winner"],
        decided_by=told.get("decided_by"),
        probabilities=MeanProbabilities(a=means[0], b=means[1], tie=means[2]) if means else None,
        criteria=tuple(
            CriterionOutcome(
                criterion=name,
                outcome=Outcome(outcome),
                first_pass_winner=first,
                second_pass_winner=second,
            )
            for name, outcome, first, second in told.get("criteria", ())
        ),
        samples=row["samples"],
        passes=row["passes"],
        evaluation_time_ms=told["time_ms"],
        abstained=told.get("abstained", False),
    )


@of_row("verdict", "run_id", "number", "judge_id")
def settled_of(row: RowMapping, passes: Iterable[StoredPass]) -> Settled:
    """The verdict, with the passes it rests on where it is one with prose."""
    if row["body"].startswith(_FACTS):
        return _facts_of(row)
    kind = Verdict if row["error_kind"] is None else Failure
    settled: Verdict | Failure = kind.model_validate_json(row["body"])
    if not row["passes"]:
        return settled
    rests_on = passes_behind(passes, swap_positions=row["swap_positions"], samples=row["samples"])
    metadata = settled.metadata.model_copy(update={"passes": rests_on})
    return settled.model_copy(update={"metadata": metadata})


def passes_behind(
    passes: Iterable[StoredPass], *, swap_positions: bool, samples: int
) -> tuple[Pass, ...]:
    """Of all passes of a pair, those that a verdict rests on; those that failed gave it nothing."""
    orders: tuple[Order, ...] = ("original", "swapped") if swap_positions else ("original",)
    behind = [
        stored.made
        for stored in passes
        if isinstance(stored.made, Pass)
        and stored.made.order in orders
        and stored.made.sample <= samples
    ]
    behind.sort(key=lambda made: (made.order, made.sample))
    return tuple(behind)


@of_row("verdict", "run_id", "number", "judge_id")
def verdict_row(row: RowMapping) -> VerdictRow:
    return VerdictRow(
        item=item_record(row),
        judge_id=row["judge_id"],
        outcome=Outcome(row["outcome"]),
        winner=row["winner"],
        confidence=row["confidence"],
        confidence_source=row["confidence_source"],
        first_pass_winner=row["first_pass_winner"],
        second_pass_winner=row["second_pass_winner"],
        error_kind=row["error_kind"],
        error_message=row["error_message"],
        abstained=row["abstained"],
    )


@of_row("item", "run_id", "number", "key")
def item_record(row: RowMapping) -> ItemRecord:
    return ItemRecord(
        number=row["number"],
        key=row["full_key"] or row["key"],
        pair_id=row["pair_id"],
        source=row["source"],
        row=row["row"],
        label=row["label"],
        model_a=row["model_a"],
        model_b=row["model_b"],
        tags=tuple(orjson.loads(row["tags"])) if row["tags"] else (),
        swap_positions=row["swap_positions"],
    )


@of_row("pair", "run_id", "number", "pair_id", "key")
def pair_of(row: RowMapping) -> Pair:
    """Made without checking again: it was a Pair when it was stored."""
    return Pair.model_construct(
        prompt=row["prompt"],
        response_a=row["response_a"],
        response_b=row["response_b"],
        criteria=read_criteria(row["criteria"]),
        id=row["full_key"] or row["key"],
        context=row["context"],
        reference=row["reference"],
        allow_tie=row["allow_tie"],
        swap_positions=row["swap_positions"],
    )


# The pairs of a run mostly share their criteria.
@lru_cache(maxsize=64)
def read_criteria(text: str) -> tuple[Criterion, ...]:
    return tuple(Criterion.model_validate(each) for each in orjson.loads(text))


@lru_cache(maxsize=64)
def write_criteria(criteria: tuple[Criterion, ...]) -> str:
    return orjson.dumps([each.model_dump(exclude_none=True) for each in criteria]).decode()


# Many rows at once: INSERT … ON CONFLICT with plain tuples.


def insert_new(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert the rows whose key is not there yet. The values are the database's own already.
    A pass that failed gives way to one that came.

    Core would look at each value of each row again: 22 against 16 µs for a pass in SQLite.
    """
    if rows:
        connection.exec_driver_sql(_statement(connection.dialect.name, table, columns), list(rows))


@cache
def _statement(dialect: str, table: Table, columns: tuple[str, ...]) -> str:
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        statement: Any = sqlite_insert(table)
        style: Any = sqlite_dialect(paramstyle="qmark")
    else:
        from sqlalchemy.dialects.postgresql import insert as postgres_insert
        from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

        statement = postgres_insert(table)
        # SQLAlchemy's dialects are half typed.
        style = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
    if table is passes:
        statement = statement.on_conflict_do_update(
            index_elements=list(passes.primary_key),
            set_={name: statement.excluded[name] for name in columns},
            where=passes.c.status == literal_column("'failed'"),
        )
    else:
        statement = statement.on_conflict_do_nothing()
    compiled = statement.compile(dialect=style, column_keys=list(columns))
    if tuple(compiled.positiontup) != columns:
        raise AssertionError(f"columns of {table.name} are not in the table's order")
    return str(compiled)


def insert_where_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """One row, unless its key is there; whether it was put in. Atomic among processes."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        statement: Any = sqlite_insert(table)
    else:
        from sqlalchemy.dialects.postgresql import insert as postgres_insert

        statement = postgres_insert(table)
    # Of insertions SQLAlchemy tells the count only where it is asked to keep it; else -1.
    kept = {"preserve_rowcount": True}
    statement = statement.values(values).on_conflict_do_nothing()
    return connection.execute(statement, execution_options=kept).rowcount > 0


def to_json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise InputError(
            f"a plan or a setting cannot be stored ({error}); use plain JSON"
        ) from None


def in_slices(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def count_items(connection: Connection, run_id: int) -> int:
    # Numbers have no gaps: items come in one by one and leave only with their run.
    last = select(func.max(items.c.number)).where(items.c.run_id == run_id)
    return connection.execute(last).scalar() or 0
