"""The verdict index: for each verdict the small numbers by which a table filters, sorts and counts
(outcome, flags, models, criteria). It is filled behind the verdicts, in pieces that several
processes may share.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
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
from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.store.columns import (
    FIRST_CHOICE,
    SECOND_CHOICE,
    SPLIT,
    TIE_BY_RULE,
    criteria_codes,
)
from evenhand.store.database import Database
from evenhand.store.faults import rows_read
from evenhand.store.rows import in_slices, insert_new, insert_where_new, read_criteria
from evenhand.store.runs import judges_of_run
from evenhand.store.schema import (
    escape_or_none,
    item_tags,
    items,
    pairs,
    passes,
    run_breakdowns,
    run_contests,
    run_criteria,
    run_indexes,
    verdict_index,
    verdicts,
)

# Which two models a verdict is about, as one number: what tables are filtered by models with.
Models = tuple[str | None, str | None]
_CONTEST = run_contests.c


class IndexStore(Database):
    """The index of verdicts, filled and counted."""

    def index_verdicts(
        self, run_id: int, *, noted: Noted, limit: int = 500, stamp: str | None = None
    ) -> int:
        """Those on up to `limit` further items; how many items that were, 0 at the end.

        `stamp` is how the run was before this: where nothing is left, all of that is indexed.
        """
        with rows_read(self.address), self._writing() as connection:
            state = begin_index(connection, run_id)
            numbers = _unindexed(connection, run_id, state.indexed_to, limit)
            if not numbers:
                set_index(connection, run_id, stamp=stamp)
                return 0
            rows = _index_rows(connection, run_id, numbers, noted)
            its_items = (verdict_index.c.run_id == run_id) & verdict_index.c.number.in_(numbers)
            gone = connection.execute(delete(verdict_index).where(its_items)).rowcount
            connection.execute(insert(verdict_index), rows)
            set_index(
                connection,
                run_id,
                indexed=state.indexed + len(rows) - gone,
                indexed_to=_advanced(connection, run_id, state.indexed_to),
                stamp=None,
            )
        if self._growth:
            self._growth.note("verdict_index", len(numbers))
        return len(numbers)

    def verdict_marks(
        self, run_id: int, numbers: Sequence[int], *, noted: Noted
    ) -> dict[tuple[int, int], VerdictMarks]:
        """Of these items' verdicts, by number and judge, as they would be indexed."""
        with self._reading() as connection:
            marked = _marked(connection, run_id, numbers, noted)
            return {(row["number"], row["judge_id"]): marks for row, marks in marked}

    def index_state(self, run_id: int) -> IndexState:
        with self._reading() as connection:
            return index_state(connection, run_id)

    def count_indexed(self, run_id: int) -> IndexCounts:
        """The run's verdicts by all that tables are filtered by, in grouped queries."""
        with self._reading() as connection:
            return IndexCounts(
                outcomes=_outcomes(connection, run_id),
                endings=_endings(connection, run_id),
                criteria=_criteria(connection, run_id),
                tags=_tags(connection, run_id),
                contests=tuple(_contests_of(connection, run_id, most=MOST_CONTESTS + 1)),
            )

    def models_met(self, run_id: int, *, most: int) -> list[Models]:
        """Which models meet as A and B, as far as verdicts are indexed."""
        with self._reading() as connection:
            return _contests_of(connection, run_id, most=most)


def name_key(name: str) -> int:
    """Names may be long."""
    return _digest(name.encode())


def contest_key(models: Models) -> int:
    """Of a pair's two models in their order; the other order is another contest."""
    return _digest(b"".join(b"-" if name is None else _sized(name) for name in models))


def _sized(name: str) -> bytes:
    encoded = name.encode()
    return b"%d:%s" % (len(encoded), encoded)


def _digest(text: bytes) -> int:
    """Of a text of any length, in 64 bits."""
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little", signed=True)


def _add_contests(connection: Connection, run_id: int, new: Iterable[Models]) -> None:
    """Those that are new. Whoever adds them has the run's turn, so that nobody else does."""
    by_key = {contest_key(models): models for models in new}
    known: set[int] = set()
    for some in in_slices(list(by_key)):
        there = select(_CONTEST.contest).where(
            _CONTEST.run_id == run_id, _CONTEST.contest.in_(some)
        )
        known.update(connection.execute(there).scalars())
    rows = [
        (
            *(run_id, key),
            *(None if name is None else name_key(name) for name in models),
            *map(escape_or_none, models),
        )
        for key, models in by_key.items()
        if key not in known
    ]
    insert_new(connection, run_contests, tuple(_CONTEST.keys()), rows)


def _contests_of(connection: Connection, run_id: int, *, most: int) -> list[Models]:
    """Who meets whom in a run, as far as its verdicts are indexed; in no order that means much."""
    query = (
        select(_CONTEST.model_a, _CONTEST.model_b)
        .where(_CONTEST.run_id == run_id)
        .order_by(_CONTEST.contest)
        .limit(most)
    )
    return [(model_a, model_b) for model_a, model_b in connection.execute(query)]


# How a verdict came out on each of its criteria, as one number: what tables are filtered by
# criteria with. Few of the ways in which criteria can come out together occur in a run, so that a
# filter looks at those first, and by an index at the verdicts that came out so.

# A run whose rows have criteria of their own may have very many; filters offer the first of them.
MOST_CRITERIA = 1000
CRITERION_LETTERS = {WIN_A: "a", WIN_B: "b", TIE: "t", INCONSISTENT: "i", INVALID: "x"}
_CODES = {letter: code for code, letter in CRITERION_LETTERS.items()}
_BREAKDOWN = run_breakdowns.c


class _BreakdownWriter:
    """Names criteria by their places in the run, and what they came to by a letter each.

    Whoever writes has the run's turn, so that nobody else gives a place.
    """

    def __init__(self, connection: Connection, run_id: int) -> None:
        self._connection = connection
        self._run_id = run_id
        self._places = criteria_places(connection, run_id)
        self._placed = len(self._places)
        self._written: dict[int, str] = {}

    def key(self, criteria: Iterable[tuple[str, int]]) -> int:
        """Of criteria with the codes of their outcomes."""
        parts = []
        for name, code in criteria:
            place = self._places.get(name)
            if place is None:
                if len(self._places) == MOST_CRITERIA:
                    continue
                place = self._places[name] = len(self._places)
            parts.append(f"{place}{CRITERION_LETTERS[code]},")
        outcomes = f",{''.join(parts)}"
        key = _digest(outcomes.encode())
        self._written[key] = outcomes
        return key

    def write(self) -> None:
        """The places and the breakdowns that are new."""
        new = list(self._places.items())[self._placed :]
        if new:
            rows = [{"run_id": self._run_id, "place": place, "name": name} for name, place in new]
            self._connection.execute(insert(run_criteria), rows)
            self._placed = len(self._places)
        known: set[int] = set()
        for some in in_slices(list(self._written)):
            there = _BREAKDOWN.run_id == self._run_id, _BREAKDOWN.breakdown.in_(some)
            known.update(
                self._connection.execute(select(_BREAKDOWN.breakdown).where(*there)).scalars()
            )
        rows_new = [
            (self._run_id, key, text) for key, text in self._written.items() if key not in known
        ]
        insert_new(self._connection, run_breakdowns, tuple(_BREAKDOWN.keys()), rows_new)
        self._written.clear()


def criteria_places(connection: Connection, run_id: int) -> dict[str, int]:
    """The run's criteria so far, in the order in which they first came."""
    query = select(run_criteria.c.name, run_criteria.c.place).where(run_criteria.c.run_id == run_id)
    return {row.name: row.place for row in connection.execute(query.order_by(run_criteria.c.place))}


def _breakdowns_of(connection: Connection, run_id: int) -> dict[int, tuple[tuple[str, int], ...]]:
    """Criteria with the codes of their outcomes, by the number of the breakdown."""
    names = {place: name for name, place in criteria_places(connection, run_id).items()}
    query = select(_BREAKDOWN.breakdown, _BREAKDOWN.outcomes).where(_BREAKDOWN.run_id == run_id)
    return {
        key: tuple(
            (names[int(each[:-1])], _CODES[each[-1]]) for each in text.strip(",").split(",") if each
        )
        for key, text in connection.execute(query)
    }


# Rows are made behind the verdicts, some hundred items at a time, from whatever has none yet: a
# process may die at any time, and several may do it at once.

# Every outcome with every winner that it can have; the index holds a place here.
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
# Three more: what the two orders of a pair came to, where both were read.
ORDERS: dict[str, int] = {"agree": 1 << 8, "first": 2 << 8, "second": 3 << 8, "split": 4 << 8}
ANY_ORDERS = 7 << 8
BY_RULE = 1 << 11  # a tie of identical responses; it neither agrees with a label nor disagrees
# What an order gives A, in halves: it leans first where A gains by being shown first.
_HALVES = {"A": 2, "TIE": 1, "B": 0}
_PAGE_CHARACTERS = 4_000_000
_ADVANCED_AT_ONCE = 20_000
# Any number will do, as long as every evenhand takes the same one.
_TURN = 0x65766E6A

# Whether there is something to say of two responses: the rooms above know what.
Noted = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class IndexState:
    """How far what is filled behind a run has come."""

    indexed_to: int = 0
    indexed: int = 0
    stamp: str | None = None
    words_to: int = 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far an index is: of verdicts, or of pairs."""

    done: int
    total: int

    @property
    def whole(self) -> bool:
        return self.done >= self.total


def index_state(connection: Connection, run_id: int) -> IndexState:
    row = connection.execute(select(run_indexes).where(run_indexes.c.run_id == run_id)).first()
    return IndexState(*row[1:]) if row else IndexState()


def begin_index(connection: Connection, run_id: int) -> IndexState:
    """Its state, for a transaction that goes on from there; others wait for their turn."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_TURN}, {run_id % 2**31})"))
    new = {"run_id": run_id, "indexed_to": 0, "indexed": 0, "words_to": 0}
    insert_where_new(connection, run_indexes, new)
    return index_state(connection, run_id)


def set_index(connection: Connection, run_id: int, **values: Any) -> None:
    connection.execute(update(run_indexes).where(run_indexes.c.run_id == run_id).values(values))


def _unindexed(connection: Connection, run_id: int, after: int, limit: int) -> list[int]:
    """The first items with a verdict that is not indexed, as many as fit into memory."""
    column = verdicts.c
    indexed = exists().where(
        verdict_index.c.run_id == column.run_id,
        verdict_index.c.number == column.number,
        verdict_index.c.judge_id == column.judge_id,
    )
    query = (
        select(column.number)
        .distinct()
        .where(column.run_id == run_id, column.number > after, ~indexed)
        .order_by(column.number)
        .limit(limit)
    )
    first = list(connection.execute(query).scalars())
    if not first:
        return []
    lengths = select(items.c.number, items.c.length_a + items.c.length_b).where(
        items.c.run_id == run_id, items.c.number.in_(first)
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
    """The last item before the first that is not indexed for every judge."""
    judges = len(judges_of_run(connection, run_id))
    column = verdict_index.c
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
        verdicts.c.by_criterion,
        FIRST_CHOICE.label("first"),
        SECOND_CHOICE.label("second"),
        TIE_BY_RULE.label("by_rule"),
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


@dataclass(frozen=True, slots=True)
class VerdictMarks:
    """What a table filters a verdict by, beside its outcome: flags as they are below, and criteria
    with the codes of their outcomes."""

    flags: int
    criteria: tuple[tuple[str, int], ...]


def _index_rows(
    connection: Connection, run_id: int, numbers: Sequence[int], noted: Noted
) -> list[dict[str, Any]]:
    breakdowns = _BreakdownWriter(connection, run_id)
    indexed = []
    met: set[Models] = set()
    for row, marks in _marked(connection, run_id, numbers, noted):
        models = row["model_a"], row["model_b"]
        met.add(models)
        indexed.append(
            {
                "run_id": run_id,
                "number": row["number"],
                "judge_id": row["judge_id"],
                "ending": _ENDING[row["outcome"], row["winner"]],
                "flags": marks.flags,
                "confidence": row["confidence"],
                "longer": row["length_b"] - row["length_a"],
                "contest": contest_key(models),
                "breakdown": breakdowns.key(marks.criteria),
            }
        )
    breakdowns.write()
    _add_contests(connection, run_id, met)
    return indexed


def _marked(
    connection: Connection, run_id: int, numbers: Sequence[int], noted: Noted
) -> Iterator[tuple[RowMapping, VerdictMarks]]:
    query = _VERDICTS.where(verdicts.c.run_id == run_id, verdicts.c.number.in_(numbers))
    rows = connection.execute(query).mappings().all()
    with_notes: set[int] = set()
    named: dict[int, str] = {}
    wanted = _PAIRS.where(pairs.c.id.in_({row["pair_id"] for row in rows}))
    for pair_id, response_a, response_b, criteria in connection.execute(wanted):
        named[pair_id] = criteria
        if noted(response_a, response_b):
            with_notes.add(pair_id)
    unread = _unread(connection, rows)
    differing = _differing(rows)
    for row in rows:
        pair_id = row["pair_id"]
        flags = (
            _agreement(row)
            | _orders(row["first"], row["second"])
            | (JUDGES_DIFFER if row["number"] in differing else 0)
            | (NOTED if pair_id in with_notes else 0)
            | (UNREAD if (pair_id, row["judge_id"]) in unread else 0)
            | (ABSTAINED if row["abstained"] else 0)
            | (BY_RULE if row["by_rule"] else 0)
        )
        codes = criteria_codes(row["by_criterion"])
        none = () if codes else read_criteria(named[pair_id])
        yield row, VerdictMarks(flags, codes or tuple((each.name, INVALID) for each in none))


def _unread(connection: Connection, rows: Sequence[RowMapping]) -> set[tuple[int, int]]:
    """Looked for only where it can be: a valid verdict of one sample rests on ballots alone."""
    samples: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in rows:
        if row["outcome"] == "invalid" or row["samples"] > 1:
            samples[row["judge_id"]][row["pair_id"]] = row["samples"]
    unread: set[tuple[int, int]] = set()
    for judge_id, of_pairs in samples.items():
        query = select(passes.c.pair_id, passes.c.sample).where(
            passes.c.pair_id.in_(of_pairs),
            passes.c.judge_id == judge_id,
            passes.c.status == "unread",
        )
        unread |= {
            (pair_id, judge_id)
            for pair_id, sample in connection.execute(query)
            if sample <= of_pairs[pair_id]
        }
    return unread


def _agreement(row: RowMapping) -> int:
    if row["label"] is None:
        return 0
    if row["by_rule"]:
        return LABELS[row["label"]]
    agrees = row["outcome"] in ("win", "tie") and row["winner"] == row["label"]
    return LABELS[row["label"]] | (LABELLED if agrees else LABELLED | DISAGREES)


def _orders(first: str | None, second: str | None) -> int:
    if first is None or second is None:
        return 0
    if SPLIT in (first, second):
        return ORDERS["split"]
    gain = _HALVES[first] - _HALVES[second]
    return ORDERS["agree" if gain == 0 else "first" if gain > 0 else "second"]


def _differing(rows: Sequence[RowMapping]) -> set[int]:
    """Items on which two judges came to different ends; one without a verdict differs from none."""
    ends: defaultdict[int, set[tuple[str, str | None]]] = defaultdict(set)
    for row in rows:
        if row["outcome"] != "invalid":
            ends[row["number"]].add((row["outcome"], row["winner"]))
    return {number for number, its_ends in ends.items() if len(its_ends) > 1}


def unindex_verdicts(connection: Connection, undone: Any) -> None:
    """Of items whose verdicts are about to go; `undone` selects their runs and numbers."""
    places = undone.subquery()
    touched = exists().where(
        places.c.run_id == verdict_index.c.run_id, places.c.number == verdict_index.c.number
    )
    firsts = select(places.c.run_id, func.min(places.c.number)).group_by(places.c.run_id)
    for run_id, first in sorted(tuple(row) for row in connection.execute(firsts)):
        state = begin_index(connection, run_id)
        its_own = verdict_index.c.run_id == run_id
        gone = connection.execute(delete(verdict_index).where(its_own, touched)).rowcount
        set_index(
            connection,
            run_id,
            indexed=state.indexed - gone,
            indexed_to=min(state.indexed_to, first - 1),
            stamp=None,
        )


# How many verdicts of a run each filter of its table would show: grouped queries over the index.

MOST_TAGS = 1000
MOST_CONTESTS = 1000


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """By judge, then by outcome and winner, of all verdicts; of those that are indexed, by judge,
    then by ending and flags, and by criterion and judge, then by its outcome's code."""

    outcomes: dict[int, Counter[tuple[str, str | None]]]
    endings: dict[int, Counter[tuple[int, int]]]
    criteria: dict[str, dict[int, Counter[int]]]
    tags: tuple[tuple[str, int], ...]  # items; the most frequent first, at most 1,000
    contests: tuple[Models, ...]  # A and B of the pairs; one more than a thousand at most


def _outcomes(connection: Connection, run_id: int) -> dict[int, Counter[tuple[str, str | None]]]:
    column = verdicts.c
    kind = (column.judge_id, column.outcome, column.winner)
    query = select(*kind, func.count()).where(column.run_id == run_id).group_by(*kind)
    counts: defaultdict[int, Counter[tuple[str, str | None]]] = defaultdict(Counter)
    for judge_id, outcome, winner, count in connection.execute(query):
        counts[judge_id][outcome, winner] = count
    return dict(counts)


def _endings(connection: Connection, run_id: int) -> dict[int, Counter[tuple[int, int]]]:
    column = verdict_index.c
    kind = (column.judge_id, column.ending, column.flags)
    query = select(*kind, func.count()).where(column.run_id == run_id).group_by(*kind)
    counts: defaultdict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for judge_id, ending, flags, count in connection.execute(query):
        counts[judge_id][ending, flags] = count
    return dict(counts)


def _criteria(connection: Connection, run_id: int) -> dict[str, dict[int, Counter[int]]]:
    column = verdict_index.c
    kind = (column.breakdown, column.judge_id)
    query = select(*kind, func.count()).where(column.run_id == run_id).group_by(*kind)
    breakdowns = _breakdowns_of(connection, run_id)
    counts: dict[str, dict[int, Counter[int]]] = {
        name: {} for name in criteria_places(connection, run_id)
    }
    for breakdown, judge_id, count in connection.execute(query):
        for name, code in breakdowns[breakdown]:
            counts[name].setdefault(judge_id, Counter())[code] += count
    return counts


def _tags(connection: Connection, run_id: int) -> tuple[tuple[str, int], ...]:
    column = item_tags.c
    count = func.count()
    query = (
        select(column.tag, count)
        .where(column.run_id == run_id)
        .group_by(column.tag)
        .order_by(count.desc(), column.tag)
        .limit(MOST_TAGS)
    )
    return tuple((tag, number) for tag, number in connection.execute(query))
