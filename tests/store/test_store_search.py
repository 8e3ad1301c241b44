"""Verdicts by conditions: the same as going through all of them, page by page, in both engines."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from evenhand.contract import ErrorBody, Failure, Metadata, Outcome, Winner
from evenhand.store import (
    NewItem,
    NewJudge,
    NewRun,
    NewVerdict,
    Settled,
    Store,
    VerdictRow,
    open_store,
)
from evenhand.store.verdict_filter import VerdictFilter
from evenhand.store.verdict_table import RUN_START
from evenhand.store.verdicts import VerdictPlace
from parts import examples
from store_values import decided, item

ITEMS = 60
TAGS = ("maths", "code", "m" * 500, "a\x00b")
WINNERS: tuple[Winner, ...] = ("A", "B", "TIE")


def fill(store: Store) -> tuple[int, list[int]]:
    rng = random.Random(4)
    run = store.create_run(NewRun("run", "f", {}, ()))
    judges = [store.add_judge(NewJudge(key, key)) for key in ("one", "two")]
    store.set_run_judges(run.id, judges)
    store.add_items(run.id, [_item(number, rng) for number in range(1, ITEMS + 1)])
    verdicts = [
        NewVerdict(run.id, number, judge_id, _settled(rng))
        for number, judge_id in product(range(1, ITEMS + 1), judges)
        if rng.random() < 0.9
    ]
    store.write([], verdicts)
    # Another run over the same pairs, which no search may find.
    other = store.create_run(NewRun("other", "g", {}, ()))
    store.set_run_judges(other.id, judges)
    store.add_items(other.id, [item("x", tags=TAGS)])
    store.write([], [NewVerdict(other.id, 1, judges[0], _settled(rng))])
    return run.id, judges


def _item(number: int, rng: random.Random) -> NewItem:
    label = rng.choice([None, *WINNERS])
    tags = tuple(tag for tag in TAGS if rng.random() < 0.3)
    return item(f"item-{number}", label=label, tags=tags)


def _settled(rng: random.Random) -> Settled:
    if rng.random() < 0.2:
        error = ErrorBody(kind="invalid", message="none", retryable=False)
        return Failure(error=error, metadata=Metadata(outcome=Outcome.INVALID))
    outcome, winner = rng.choice(
        [
            (Outcome.WIN, "A"),
            (Outcome.WIN, "B"),
            (Outcome.TIE, "TIE"),
            (Outcome.INCONSISTENT, "TIE"),
            (Outcome.INCONSISTENT, "B"),
        ]
    )
    return decided(
        outcome=outcome,
        winner=winner,  # type: ignore[arg-type]
        confidence=rng.choice([None, 0.25, 0.5, 1.0]),
        confidence_source="stated",
        abstained=rng.random() < 0.2,
    )


def meets(row: VerdictRow, wanted: VerdictFilter) -> bool:
    """The conditions once more, in plain Python."""
    agrees = row.outcome in (Outcome.WIN, Outcome.TIE) and row.winner == row.item.label
    confidence = row.confidence
    return (
        wanted.outcome in (None, row.outcome)
        and wanted.winner in (None, row.winner)
        and (wanted.judge_ids is None or row.judge_id in wanted.judge_ids)
        and (wanted.tag is None or wanted.tag in row.item.tags)
        and wanted.abstained in (None, row.abstained)
        and (
            wanted.disagrees is None
            or (row.item.label is not None and agrees is not wanted.disagrees)
        )
        and (
            wanted.min_confidence is None
            or (confidence is not None and confidence >= wanted.min_confidence)
        )
        and (
            wanted.max_confidence is None
            or (confidence is not None and confidence <= wanted.max_confidence)
        )
    )


def in_pages(
    store: Store, run_id: int, wanted: VerdictFilter, *, limit: int, look_at: int
) -> list[VerdictRow]:
    rows: list[VerdictRow] = []
    place: VerdictPlace | None = RUN_START
    while place is not None:
        found = store.find_verdicts(run_id, wanted, after=place, limit=limit, look_at=look_at)
        assert len(found.rows) <= limit
        assert found.reached is None or found.reached > place
        rows += found.rows
        place = found.reached
    return rows


filters = st.builds(
    VerdictFilter,
    outcome=st.none() | st.sampled_from(Outcome),
    winner=st.none() | st.sampled_from(WINNERS),
    judge_ids=st.sampled_from([None, (1,), (2,), (1, 2), ()]),
    tag=st.none() | st.sampled_from([*TAGS, "nowhere"]),
    disagrees=st.none() | st.booleans(),
    abstained=st.none() | st.booleans(),
    min_confidence=st.none() | st.sampled_from([0.0, 0.5]),
    max_confidence=st.none() | st.sampled_from([0.3, 1.0]),
)


def check(store: Store, run_id: int, wanted: VerdictFilter, *, limit: int, look_at: int) -> None:
    expected = [row for row in store.each_verdict(run_id) if meets(row, wanted)]
    assert in_pages(store, run_id, wanted, limit=limit, look_at=look_at) == expected


@given(wanted=filters, limit=st.integers(1, 130), look_at=st.integers(1, 130))
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_search_finds_what_meets_the_conditions_and_nothing_else(
    store: Store, wanted: VerdictFilter, limit: int, look_at: int
) -> None:
    run = store.find_run("run")
    if run is None:
        fill(store)
        run = store.find_run("run")
    assert run is not None
    check(store, run.id, wanted, limit=limit, look_at=look_at)


def test_whole_verdicts_are_read_by_their_places(store: Store) -> None:
    run_id, judges = fill(store)
    wanted = VerdictFilter(outcome=Outcome.INVALID, judge_ids=(judges[1],))
    rows = store.find_verdicts(run_id, wanted).rows
    places = [VerdictPlace(row.item.number, row.judge_id) for row in rows]
    assert [whole.row for whole in store.whole_verdicts_at(run_id, places)] == rows
    assert store.whole_verdicts_at(run_id, []) == []


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (
            VerdictFilter(outcome=Outcome.INVALID),
            "ix_verdicts_run_id_judge_id_outcome_winner_number",
        ),
        (VerdictFilter(winner="TIE"), "ix_verdicts_run_id_judge_id_outcome_winner_number"),
        (VerdictFilter(abstained=True), "ix_verdicts_abstained"),
        (VerdictFilter(tag="maths"), "item_tags"),
    ],
)
def test_a_rare_kind_is_found_by_its_index(
    tmp_path: Path, wanted: VerdictFilter, index: str
) -> None:
    with open_store(tmp_path / "s.db") as store:
        run_id, _ = fill(store)
        seen: list[tuple[str, object]] = []

        def note(_: object, __: object, statement: str, parameters: object, *___: object) -> None:
            seen.append((statement, parameters))

        event.listen(store._reads, "before_cursor_execute", note)
        store.find_verdicts(run_id, wanted)
        event.remove(store._reads, "before_cursor_execute", note)
        leading = [
            (sql, given) for sql, given in seen if sql.startswith("SELECT verdicts.number, ")
        ]
        assert leading
        with store._reading() as connection:
            for sql, parameters in leading:
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", parameters)  # type: ignore[arg-type]
                told = " ".join(row[3] for row in plan)
                assert index in told.partition(" SEARCH ")[0]
                assert "TEMP B-TREE FOR ORDER BY" not in told  # but for the few judges of an item
