"""Values to rows and back: passes, verdicts, items and pairs as columns; and bulk inserts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter
from sqlalchemy import (
    Connection,
    RowMapping,
    Table,
    func,
    literal_column,
    select,
)

from evenhand import messages
from evenhand.contract import (
    ORDERS,
    Criterion,
    Failure,
    MeanProbabilities,
    Order,
    Outcome,
    Pair,
    Probabilities,
    Scores,
    Unread,
    Usage,
)
from evenhand.contract.pair import DrawnOrderPair
from evenhand.errors import InputError, StoreError
from evenhand.judging.decision import CriterionDecision, Decision, Judged, PassBallot, PassResult
from evenhand.messages import WHOLE, from_text, to_text
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

PASS_COLUMNS = (
    *("pair_id", "judge_id", "shown_order", "sample", "status", "reason", "winner", "confidence"),
    *("requests", "input_tokens", "output_tokens", "cached_input_tokens", "cost_usd", "time_ms"),
    *("run_id", "created_at", "model", "raw", "body"),
)
VERDICT_COLUMNS = (
    *("run_id", "number", "judge_id", "outcome", "winner", "confidence", "confidence_source"),
    *("first_pass_winner", "second_pass_winner", "error_kind", "error_message"),
    *("samples", "passes", "created_at", "abstained", "by_criterion", "body"),
)

_FAILED = TypeAdapter(FailedPass)
_UNREADS = TypeAdapter(tuple[Unread, ...])
# Kept in separate tables, and deleted with the texts.
_PASSES: Any = {"metadata": {"passes", "artefacts"}}
_AT_ONCE = 500  # values in one IN (…)
_T = TypeVar("_T")
# A trillion tokens or requests of a pass is no count, and sums must fit 64 bits.
_LARGEST_COUNT = 2**40


def moment(unix_time: float) -> datetime:
    return datetime.fromtimestamp(unix_time, UTC)


def pass_values(new: NewPass, now: float) -> tuple[Any, ...]:
    made, usage = new.made, new.made.usage
    winner = confidence = reason = None
    if isinstance(made, FailedPass):
        status, model, raw = "failed", None, ""
        reason = made.error.kind
        body = _FAILED.dump_json(made, context=WHOLE).decode()
    elif isinstance(made.reading, Unread):
        status, model, raw = "unread", made.model, made.reading.raw
        reason = made.reading.kind
        body = _json({"reason": messages.to_json(made.reading.reason)} | _of_pass(made))
    else:
        ballot = made.reading
        status, model, raw = "ballot", made.model, ballot.raw
        winner, confidence = ballot.winner, ballot.confidence
        body = _json(_of_ballot(ballot) | _of_pass(made))
    return (
        *(new.pair_id, new.judge_id, made.order, made.sample, status),
        *(escape_or_none(reason), winner, confidence),
        *(_whole(usage.requests) or 0, _whole(usage.input_tokens), _whole(usage.output_tokens)),
        *(_whole(usage.cached_input_tokens), _finite(usage.cost_usd), _finite(made.time_ms) or 0.0),
        *(new.run_id, now, escape_or_none(model), escape(raw), body),
    )


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _of_pass(made: PassResult) -> dict[str, Any]:
    """The unusual values without a column, since nothing searches by them."""
    body: dict[str, Any] = {}
    if made.request_ids:
        body["request_ids"] = made.request_ids
    if made.repaired:
        body["repaired"] = _UNREADS.dump_python(made.repaired, mode="json", context=WHOLE)
    return body


def _of_ballot(ballot: PassBallot) -> dict[str, Any]:
    """The same for a ballot. Its prose is read from the raw text on demand."""
    body: dict[str, Any] = {}
    if ballot.criteria:
        body["criteria"] = ballot.criteria
    if ballot.confidence_source != _usual_source(ballot.confidence):
        body["confidence_source"] = ballot.confidence_source
    if ballot.probabilities is not None:
        body["probabilities"] = _shares(ballot.probabilities)
    if ballot.criterion_probabilities:
        shares = ballot.criterion_probabilities
        body["criterion_probabilities"] = [each and _shares(each) for each in shares]
    if ballot.scores is not None:
        body["scores"] = [ballot.scores.a, ballot.scores.b]
    if ballot.strength is not None:
        body["strength"] = ballot.strength
    if ballot.protocol != "evenhand":
        body["protocol"] = ballot.protocol
    if ballot.read_as is not None:
        body["read_as"] = ballot.read_as
    if ballot.flags:
        body["flags"] = ballot.flags
    return body


def _usual_source(confidence: float | None) -> str:
    return "none" if confidence is None else "stated"


def _shares(probabilities: Probabilities) -> list[float]:
    return [probabilities.a, probabilities.b, probabilities.tie]


def _probabilities(shares: list[float] | None) -> Probabilities | None:
    return Probabilities(a=shares[0], b=shares[1], tie=shares[2]) if shares else None


def _whole(value: int | None) -> int | None:
    """A server may claim any number of tokens; an impossible one is unknown."""
    return value if value is None or 0 <= value <= _LARGEST_COUNT else None


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None


@of_row("pass", "run_id", "pair_id", "judge_id", "shown_order", "sample")
def stored_pass(row: RowMapping) -> StoredPass:
    made: PassResult | FailedPass
    status = row["status"]
    if status == "failed":
        made = _FAILED.validate_json(row["body"])
    else:
        body = orjson.loads(row["body"])
        made = PassResult(
            _unread_of(row, body) if status == "unread" else _ballot_of(row, body),
            usage=Usage(
                input_tokens=row["input_tokens"],
                output_tokens=row["output_tokens"],
                cached_input_tokens=row["cached_input_tokens"],
                cost_usd=row["cost_usd"],
                requests=row["requests"],
            ),
            time_ms=row["time_ms"],
            model=row["model"],
            request_ids=tuple(body.get("request_ids", ())),
            repaired=_UNREADS.validate_python(body.get("repaired", ())),
        )
    return StoredPass(made, status, row["run_id"], moment(row["created_at"]))


def _unread_of(row: RowMapping, body: dict[str, Any]) -> Unread:
    return Unread(
        order=row["shown_order"],
        sample=row["sample"],
        kind=row["reason"],
        reason=messages.from_json(body["reason"]),
        raw=row["raw"],
    )


def _ballot_of(row: RowMapping, body: dict[str, Any]) -> PassBallot:
    scores = body.get("scores")
    return PassBallot(
        order=row["shown_order"],
        sample=row["sample"],
        winner=row["winner"],
        confidence=row["confidence"],
        criteria=tuple(body.get("criteria", ())),
        raw=row["raw"],
        confidence_source=body.get("confidence_source", _usual_source(row["confidence"])),
        probabilities=_probabilities(body.get("probabilities")),
        criterion_probabilities=tuple(map(_probabilities, body.get("criterion_probabilities", ()))),
        scores=Scores(a=scores[0], b=scores[1]) if scores else None,
        strength=body.get("strength"),
        protocol=body.get("protocol", "evenhand"),
        flags=tuple(body.get("flags", ())),
        read_as=body.get("read_as"),
    )


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
            *(escape(settled.error.kind), escape(to_text(settled.error.message))),
            *(metadata.samples, len(metadata.passes), now, False, None),
            settled.model_dump_json(exclude=_PASSES, exclude_unset=True, context=WHOLE),
        )
    decision = settled.decision
    return (
        *(new.run_id, new.number, new.judge_id, str(decision.outcome)),
        *(decision.winner, decision.confidence, decision.confidence_source),
        *(decision.first_pass_winner, decision.second_pass_winner, None, None),
        *(settled.samples, len(settled.passes), now, decision.abstained),
        *(_by_criterion(decision.criteria), _beyond_columns(settled)),
    )


def _by_criterion(criteria: Sequence[CriterionDecision]) -> str | None:
    if not criteria:
        return None
    return _json(
        [[c.name, c.outcome, c.winner, c.first_pass_winner, c.second_pass_winner] for c in criteria]
    )


def _beyond_columns(judged: Judged) -> str:
    """Values without a column, since nothing searches by them."""
    decision = judged.decision
    body: dict[str, Any] = {"time_ms": judged.time_ms}
    if decision.decided_by is not None:
        body["decided_by"] = decision.decided_by
    if decision.probabilities is not None:
        means = decision.probabilities
        body["probabilities"] = [means.a, means.b, means.tie]
    return _json(body)


@of_row("verdict", "run_id", "number", "judge_id")
def settled_of(row: RowMapping, passes: Iterable[StoredPass]) -> Settled:
    """The decision with its passes, or the failure, without passes."""
    if row["error_kind"] is not None:
        return Failure.model_validate_json(row["body"])
    body = orjson.loads(row["body"])
    means = body.get("probabilities")
    decision = Decision(
        outcome=Outcome(row["outcome"]),
        winner=row["winner"],
        confidence=row["confidence"],
        confidence_source=row["confidence_source"],
        first_pass_winner=row["first_pass_winner"],
        second_pass_winner=row["second_pass_winner"],
        criteria=tuple(
            CriterionDecision(name, Outcome(outcome), *winners)
            for name, outcome, *winners in orjson.loads(row["by_criterion"] or "[]")
        ),
        decided_by=body.get("decided_by"),
        probabilities=MeanProbabilities(a=means[0], b=means[1], tie=means[2]) if means else None,
        abstained=row["abstained"],
    )
    behind: tuple[PassResult, ...] = ()
    if row["passes"]:
        behind = passes_behind(passes, orders=orders_of(row), samples=row["samples"])
        if not behind:
            raise StoreError.of("store.answers_missing", number=row["number"])
    return Judged(decision, behind, row["samples"], body["time_ms"])


def orders_of(row: RowMapping) -> tuple[Order, ...]:
    """`Pair.orders`, without the pair."""
    if row["swap_positions"]:
        return ORDERS
    return ORDERS[:1] if row["drawn_order"] is None else (row["drawn_order"],)


def passes_behind(
    passes: Iterable[StoredPass], *, orders: Sequence[Order], samples: int
) -> tuple[PassResult, ...]:
    """Of a pair's passes, those that a verdict rests on, without failed ones."""
    behind = [
        stored.made
        for stored in passes
        if isinstance(stored.made, PassResult)
        and stored.made.order in orders
        and stored.made.sample <= samples
    ]
    behind.sort(key=lambda made: (made.order, made.sample))
    return tuple(behind)


# Fields named as their column.
_OF_VERDICT = (
    *("judge_id", "winner", "confidence", "confidence_source", "first_pass_winner"),
    *("second_pass_winner", "error_kind", "abstained"),
)
_OF_ITEM = (
    *("number", "pair_id", "source", "row", "label", "model_a", "model_b"),
    *("swap_positions", "drawn_order"),
)


@of_row("verdict", "run_id", "number", "judge_id")
def verdict_row(row: RowMapping) -> VerdictRow:
    error = row["error_message"]
    return VerdictRow(
        item=item_record(row),
        outcome=Outcome(row["outcome"]),
        error_message=None if error is None else from_text(error),
        **{name: row[name] for name in _OF_VERDICT},
    )


@of_row("item", "run_id", "number", "key")
def item_record(row: RowMapping) -> ItemRecord:
    return ItemRecord(
        key=row["full_key"] or row["key"],
        tags=tuple(orjson.loads(row["tags"] or "[]")),
        **{name: row[name] for name in _OF_ITEM},
    )


# An item's columns for its pair, besides those of `pairs`.
OF_ITEM = (items.c.key, items.c.full_key, items.c.swap_positions, items.c.drawn_order)


@of_row("pair", "run_id", "number", "pair_id", "key")
def pair_of(row: RowMapping) -> Pair:
    """Not validated again: it was a Pair when it was stored."""
    drawn = row["drawn_order"]
    make = Pair.model_construct
    if drawn is not None:
        make = partial(DrawnOrderPair.model_construct, drawn_order=drawn)
    return make(
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


# A run's pairs mostly share their criteria.
@lru_cache(maxsize=64)
def read_criteria(text: str) -> tuple[Criterion, ...]:
    return tuple(Criterion.model_validate(each) for each in orjson.loads(text))


@lru_cache(maxsize=64)
def write_criteria(criteria: tuple[Criterion, ...]) -> str:
    return orjson.dumps([each.model_dump(exclude_none=True) for each in criteria]).decode()


# Bulk inserts: INSERT … ON CONFLICT with plain tuples.


def insert_new(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows with new keys. Values are already in database form. A successful pass replaces a
    failed one.

    Core would process each value again: 22 against 16 µs for a pass in SQLite.
    """
    if rows:
        connection.exec_driver_sql(_statement(connection.dialect.name, table, columns), list(rows))


def insert_for(dialect: str, table: Table) -> Any:
    """An INSERT with ON CONFLICT; dialects are loaded on demand."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert as postgres_insert

    return postgres_insert(table)


@cache
def _statement(dialect: str, table: Table, columns: tuple[str, ...]) -> str:
    statement = insert_for(dialect, table)
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect

        style: Any = sqlite_dialect(paramstyle="qmark")
    else:
        from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

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
    """Insert one row unless its key exists; whether it did. Atomic among processes."""
    # SQLAlchemy reports an insert's row count only if asked to; else -1.
    counted = {"preserve_rowcount": True}
    statement = insert_for(connection.dialect.name, table).values(values).on_conflict_do_nothing()
    return connection.execute(statement, execution_options=counted).rowcount > 0


def to_json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise InputError.of("store.not_json", error=error) from None


def refuse_unwritable(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError.of("store.text_unwritable", name=name, text=text[:40]) from None


def in_slices(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def count_items(connection: Connection, run_id: int) -> int:
    # Numbers have no gaps: items are added one by one and deleted only with their run.
    last = select(func.max(items.c.number)).where(items.c.run_id == run_id)
    return connection.execute(last).scalar() or 0
