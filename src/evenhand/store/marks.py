"""Marks beside verdicts: all that a table of them is filtered and sorted by, as small numbers.

They are made behind the verdicts, some hundred items at a time, from whatever has none yet. So a
process may die at any time, several may do it at once, and a run of an older store gets them too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    delete,
    exists,
    func,
    insert,
    select,
    text,
    update,
)

from evenhand.contract import Winner
from evenhand.store.breakdowns import BreakdownWriter
from evenhand.store.bulk import insert_where_new
from evenhand.store.catalogue import judges_of_run
from evenhand.store.columns import INVALID
from evenhand.store.contests import add_contests, contest_key
from evenhand.store.criteria import CriteriaReader
from evenhand.store.rows import read_criteria
from evenhand.store.schema import (
    items,
    pairs,
    passes,
    run_indexes,
    verdict_marks,
    verdicts,
)

# Every outcome with every winner that it can have; a mark holds its place here.
ENDINGS: tuple[tuple[str, Winner | None], ...] = (
    ("win", "A"),
    ("win", "B"),
    ("tie", "TIE"),
    ("inconsistent", "TIE"),
    ("inconsistent", "A"),
    ("inconsistent", "B"),
    ("invalid", None),
)
_ENDING = {end: place for place, end in enumerate(ENDINGS)}
LABELLED, DISAGREES, JUDGES_DIFFER, NOTED, UNREAD, ABSTAINED = (1 << bit for bit in range(6))
# Two more bits: which label, where there is one.
LABELS: dict[str, int] = {"A": 1 << 6, "B": 2 << 6, "TIE": 3 << 6}
ANY_LABEL = 3 << 6
_PAGE_CHARACTERS = 4_000_000
_ADVANCED_AT_ONCE = 20_000
# Any number will do, as long as every evenhand takes the same one.
_TURN = 0x65766E6A

# Whether there is something to say of two responses: the rooms above know what.
Noted = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class IndexState:
    """How far what is filled behind a run has come."""

    marked_to: int = 0
    marked: int = 0
    stamp: str | None = None
    worded_to: int = 0


def index_state(connection: Connection, run_id: int) -> IndexState:
    found = connection.execute(select(run_indexes).where(run_indexes.c.run_id == run_id)).first()
    return IndexState(*found[1:]) if found else IndexState()


def begin_index(connection: Connection, run_id: int) -> IndexState:
    """Its state, for a transaction that goes on from there; others wait for their turn."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_TURN}, {run_id % 2**31})"))
    new = {"run_id": run_id, "marked_to": 0, "marked": 0, "worded_to": 0}
    insert_where_new(connection, run_indexes, new)
    return index_state(connection, run_id)


def set_index(connection: Connection, run_id: int, **values: Any) -> None:
    connection.execute(update(run_indexes).where(run_indexes.c.run_id == run_id).values(values))


def mark_verdicts(
    connection: Connection, run_id: int, *, noted: Noted, limit: int, stamp: str | None
) -> int:
    """Mark the verdicts on up to `limit` items; how many items that were, and 0 at the end.

    `stamp` is how the run was before this: where nothing is left, that is what was marked whole.
    """
    state = begin_index(connection, run_id)
    numbers = _unmarked(connection, run_id, state.marked_to, limit)
    if not numbers:
        set_index(connection, run_id, stamp=stamp)
        return 0
    marks = _Marking(connection, run_id, noted).marks(numbers)
    its_items = (verdict_marks.c.run_id == run_id) & verdict_marks.c.number.in_(numbers)
    gone = connection.execute(delete(verdict_marks).where(its_items)).rowcount
    connection.execute(insert(verdict_marks), marks)
    set_index(
        connection,
        run_id,
        marked=state.marked + len(marks) - gone,
        marked_to=_advanced(connection, run_id, state.marked_to),
        stamp=None,
    )
    return len(numbers)


def _unmarked(connection: Connection, run_id: int, after: int, limit: int) -> list[int]:
    """The first items with a verdict that has no mark, as many as fit into memory comfortably."""
    column = verdicts.c
    marked = exists().where(
        verdict_marks.c.run_id == column.run_id,
        verdict_marks.c.number == column.number,
        verdict_marks.c.judge_id == column.judge_id,
    )
    query = (
        select(column.number)
        .distinct()
        .where(column.run_id == run_id, column.number > after, ~marked)
        .order_by(column.number)
        .limit(limit)
    )
    found = list(connection.execute(query).scalars())
    if not found:
        return []
    lengths = select(items.c.number, items.c.length_a + items.c.length_b).where(
        items.c.run_id == run_id, items.c.number.in_(found)
    )
    numbers: list[int] = []
    characters = 0
    for number, length in sorted(tuple(row) for row in connection.execute(lengths)):
        characters += length
        if numbers and characters > _PAGE_CHARACTERS:
            break
        numbers.append(number)
    return numbers


def _advanced(connection: Connection, run_id: int, after: int) -> int:
    """The last item before the first that is not marked for every judge."""
    judges = len(judges_of_run(connection, run_id))
    column = verdict_marks.c
    query = (
        select(column.number, func.count())
        .where(column.run_id == run_id, column.number > after)
        .group_by(column.number)
        .order_by(column.number)
        .limit(_ADVANCED_AT_ONCE)
    )
    for number, count in connection.execute(query):
        if number != after + 1 or count < judges:
            break
        after = number
    return after


_VERDICTS = (
    select(
        verdicts.c.number,
        verdicts.c.judge_id,
        verdicts.c.outcome,
        verdicts.c.winner,
        verdicts.c.confidence,
        verdicts.c.samples,
        verdicts.c.abstained,
        verdicts.c.body,
        items.c.label,
        items.c.length_a,
        items.c.length_b,
        items.c.pair_id,
        items.c.model_a,
        items.c.model_b,
    )
    .join_from(
        verdicts,
        items,
        (items.c.run_id == verdicts.c.run_id) & (items.c.number == verdicts.c.number),
    )
    .order_by(verdicts.c.number, verdicts.c.judge_id)
)
_PAIRS = select(pairs.c.id, pairs.c.response_a, pairs.c.response_b, pairs.c.criteria)


class _Marking:
    """The marks of some items' verdicts."""

    def __init__(self, connection: Connection, run_id: int, noted: Noted) -> None:
        self._connection = connection
        self._run_id = run_id
        self._noted = noted
        self._read = CriteriaReader()
        self._breakdowns = BreakdownWriter(connection, run_id)

    def marks(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        found = _VERDICTS.where(verdicts.c.run_id == self._run_id, verdicts.c.number.in_(numbers))
        rows = self._connection.execute(found).mappings().all()
        noted: set[int] = set()
        criteria: dict[int, str] = {}
        wanted = _PAIRS.where(pairs.c.id.in_({row["pair_id"] for row in rows}))
        for pair_id, response_a, response_b, named in self._connection.execute(wanted):
            criteria[pair_id] = named
            if self._noted(response_a, response_b):
                noted.add(pair_id)
        unread = self._unread(rows)
        differing = _differing(rows)
        marks = []
        for row in rows:
            pair_id = row["pair_id"]
            flags = (
                _agreement(row)
                | (JUDGES_DIFFER if row["number"] in differing else 0)
                | (NOTED if pair_id in noted else 0)
                | (UNREAD if (pair_id, row["judge_id"]) in unread else 0)
                | (ABSTAINED if row["abstained"] else 0)
            )
            marks.append(
                {
                    "run_id": self._run_id,
                    "number": row["number"],
                    "judge_id": row["judge_id"],
                    "ending": _ENDING[row["outcome"], row["winner"]],
                    "flags": flags,
                    "confidence": row["confidence"],
                    "longer": row["length_b"] - row["length_a"],
                    "contest": contest_key((row["model_a"], row["model_b"])),
                    "breakdown": self._breakdown(row, criteria[pair_id]),
                }
            )
        self._breakdowns.write()
        met = {(row["model_a"], row["model_b"]) for row in rows}
        add_contests(self._connection, self._run_id, met)
        return marks

    def _breakdown(self, row: RowMapping, named: str) -> int:
        told: Iterable[tuple[str, int]] = self._read.criteria(row["outcome"], row["body"])
        return self._breakdowns.key(told or ((each.name, INVALID) for each in read_criteria(named)))

    def _unread(self, rows: Sequence[RowMapping]) -> set[tuple[int, int]]:
        """Looked for only where it can be: a valid verdict of one sample rests on ballots alone."""
        samples: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for row in rows:
            if row["outcome"] == "invalid" or row["samples"] > 1:
                samples[row["judge_id"]][row["pair_id"]] = row["samples"]
        found: set[tuple[int, int]] = set()
        for judge_id, of_pairs in samples.items():
            query = select(passes.c.pair_id, passes.c.sample).where(
                passes.c.pair_id.in_(of_pairs),
                passes.c.judge_id == judge_id,
                passes.c.status == "unread",
            )
            found |= {
                (pair_id, judge_id)
                for pair_id, sample in self._connection.execute(query)
                if sample <= of_pairs[pair_id]
            }
        return found


def _agreement(row: RowMapping) -> int:
    if row["label"] is None:
        return 0
    agrees = row["outcome"] in ("win", "tie") and row["winner"] == row["label"]
    return LABELS[row["label"]] | (LABELLED if agrees else LABELLED | DISAGREES)


def _differing(rows: Sequence[RowMapping]) -> set[int]:
    """Items on which two judges came to different ends; one without a verdict differs from none."""
    ends: defaultdict[int, set[tuple[str, str | None]]] = defaultdict(set)
    for row in rows:
        if row["outcome"] != "invalid":
            ends[row["number"]].add((row["outcome"], row["winner"]))
    return {number for number, found in ends.items() if len(found) > 1}


def forget_marks(connection: Connection, undone: Any) -> None:
    """Of items whose verdicts are about to go; `undone` selects their runs and numbers."""
    places = undone.subquery()
    touched = exists().where(
        places.c.run_id == verdict_marks.c.run_id, places.c.number == verdict_marks.c.number
    )
    firsts = select(places.c.run_id, func.min(places.c.number)).group_by(places.c.run_id)
    for run_id, first in sorted(tuple(row) for row in connection.execute(firsts)):
        state = begin_index(connection, run_id)
        its_own = verdict_marks.c.run_id == run_id
        gone = connection.execute(delete(verdict_marks).where(its_own, touched)).rowcount
        set_index(
            connection,
            run_id,
            marked=state.marked - gone,
            marked_to=min(state.marked_to, first - 1),
            stamp=None,
        )
