"""A run's verdicts as a table: filtered, sorted, counted and searched by page; and how many
verdicts each filter would show. Plain queries on `verdicts` and `items`: a hundred thousand rows
take some hundredths of a second.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, Literal, NamedTuple

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    func,
    or_,
    select,
    tuple_,
)

from evenhand.contract import Outcome, Winner
from evenhand.contract.codes import INVALID
from evenhand.store.columns import TIE_BY_RULE, criteria_codes, same_item
from evenhand.store.database import Subject
from evenhand.store.flags import flags_on
from evenhand.store.records import PairFlag
from evenhand.store.rows import in_slices, read_criteria
from evenhand.store.runs import judges_of_run
from evenhand.store.schema import SafeText, item_tags, items, pairs, verdicts
from evenhand.store.verdict_filter import (
    AGREES,
    COMPARED,
    LENGTH_DIFFERENCE,
    ORDERS,
    UNREAD,
    VerdictFilter,
    conditions,
)
from evenhand.store.votes import voted_labels

Sort = Literal["number", "confidence", "length"]
# The two models of a verdict, as A and B.
Models = tuple[str | None, str | None]
PROMPT_CHARACTERS = 240
# A run may have very many; filters offer the first.
MOST_TAGS = 1000
MOST_CRITERIA = 1000
MOST_CONTESTS = 1000


class TablePlace(NamedTuple):
    """A verdict's place in a table's order; `key` is the sort key."""

    key: float | None
    number: int
    judge_id: int


@dataclass(frozen=True, slots=True)
class TableRow:
    """`prompt` is its beginning; `length` sorts by `length_b - length_a`."""

    number: int
    id: str
    judge_id: int
    outcome: Outcome
    winner: Winner | None
    confidence: float | None
    label: Winner | None
    disagrees: bool | None  # None: no label, or no judge was asked
    label_voted: bool  # by people, where votes count; the data has none
    judges_differ: bool
    noted: bool
    unread: bool
    abstained: bool
    by_rule: bool
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    length_a: int
    length_b: int
    prompt: str
    place: TablePlace
    flag: PairFlag | None = None


class Neighbours(NamedTuple):
    """The pairs before and after one in a table, None at the ends; its place and their number, None
    if it is not in the table."""

    previous: int | None
    following: int | None
    standing: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class TablePage:
    """`next` and `previous` are for `after` and `before`; None at the ends."""

    rows: tuple[TableRow, ...]
    next: TablePlace | None
    previous: TablePlace | None


@dataclass(frozen=True, slots=True)
class VerdictMarks:
    """What a table filters a verdict by, besides its outcome. `orders` is agree, first, second or
    split; criteria have outcome codes."""

    judges_differ: bool
    noted: bool
    unread: bool
    abstained: bool
    by_rule: bool
    orders: str | None
    criteria: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TableCounts:
    """Verdicts by judge and kind (see `_KINDS`), and by criterion and outcome code."""

    kinds: dict[int, Counter[str]]
    criteria: dict[str, Counter[int]]
    tags: tuple[tuple[str, int], ...]  # items; the most frequent first, at most 1,000
    contests: tuple[Models, ...]  # A and B of the pairs; one more than a thousand at most


_V, _I = verdicts.c, items.c
_KEYS: dict[Sort, ColumnElement[Any]] = {
    "number": _V.number,
    "confidence": _V.confidence,
    "length": LENGTH_DIFFERENCE,
}
# What verdicts are counted by.
_KINDS: dict[str, ColumnElement[bool]] = {
    "wins_a": and_(_V.outcome == "win", _V.winner == "A"),
    "wins_b": and_(_V.outcome == "win", _V.winner == "B"),
    "ties": _V.outcome == "tie",
    "inconsistent": _V.outcome == "inconsistent",
    "invalid": _V.outcome == "invalid",
    "abstained": _V.abstained,
    "noted": _I.noted,
    "unread": UNREAD,
    "labelled": COMPARED,
    "disagrees": and_(COMPARED, ~AGREES),
    "orders_agree": ORDERS == "agree",
    "leans_first": ORDERS == "first",
    "leans_second": ORDERS == "second",
}


class TableStore(Subject):
    def browse(
        self,
        run_id: int,
        wanted: VerdictFilter,
        *,
        judge_ids: Collection[int] | None = None,
        sort: Sort = "number",
        descending: bool = False,
        after: TablePlace | None = None,
        before: TablePlace | None = None,
        limit: int = 50,
    ) -> TablePage:
        with self._reading() as connection:
            table = _Table(
                connection, run_id, wanted, judge_ids=judge_ids, sort=sort, descending=descending
            )
            backwards = before is not None and after is None
            start = before if backwards else after
            # One more than requested, to know whether this page is the last.
            places = table.walk(start, backwards=backwards, limit=limit + 1)
            reached = places[limit - 1] if len(places) > limit else None
            places = places[:limit]
            opposite = places[0] if places and start is not None else None
            if backwards:
                places.reverse()
                reached, opposite = opposite, reached
            rows = tuple(_rows(connection, run_id, places, counted=wanted.count_votes is True))
            return TablePage(rows, reached, opposite)

    def count(
        self, run_id: int, wanted: VerdictFilter, *, judge_ids: Collection[int] | None = None
    ) -> int:
        """How many verdicts a table has."""
        with self._reading() as connection:
            return _Table(connection, run_id, wanted, judge_ids=judge_ids).count()

    def neighbours(
        self,
        run_id: int,
        wanted: VerdictFilter,
        number: int,
        *,
        judge_ids: Collection[int] | None = None,
        sort: Sort = "number",
        descending: bool = False,
    ) -> Neighbours:
        """Of a pair in a filtered table, even if the table leaves it out."""
        with self._reading() as connection:
            table = _Table(
                connection, run_id, wanted, judge_ids=judge_ids, sort=sort, descending=descending
            )
            place = table.place_of(number)
            if place is None:
                return Neighbours(None, None, None)
            previous, following = (
                next((each.number for each in others), None)
                for others in (
                    table.walk(place, backwards=backwards, limit=1, without=number)
                    for backwards in (True, False)
                )
            )
            first = table.first_of(number)
            standing = None if first is None else table.standing(first)
            return Neighbours(previous, following, standing)

    def page_start(
        self,
        run_id: int,
        wanted: VerdictFilter,
        number: int,
        *,
        judge_ids: Collection[int] | None = None,
        sort: Sort = "number",
        descending: bool = False,
        limit: int = 50,
    ) -> TablePlace | None:
        """What the pair's page comes after; None for the first page, or a pair without a place."""
        with self._reading() as connection:
            table = _Table(
                connection, run_id, wanted, judge_ids=judge_ids, sort=sort, descending=descending
            )
            first = table.first_of(number)
            place = first or table.place_of(number)
            if place is None:
                return None
            at = table.rows_before(place)
            if first is None:  # it may come after all that is in the table
                at = min(at, table.count() - 1)
            start = at // limit * limit
            return table.walk(None, limit=1, offset=start - 1)[0] if start > 0 else None

    def marks(self, run_id: int, numbers: Sequence[int]) -> dict[tuple[int, int], VerdictMarks]:
        """Of these items' verdicts, by number and judge."""
        marks = {}
        with self._reading() as connection:
            for some in in_slices(numbers):
                differing = _differing(connection, run_id, some)
                query = _MARKS.where(_V.run_id == run_id, _V.number.in_(some))
                for row in connection.execute(query).mappings():
                    codes = criteria_codes(row["by_criterion"])
                    marks[row["number"], row["judge_id"]] = VerdictMarks(
                        judges_differ=row["number"] in differing,
                        noted=row["noted"],
                        unread=bool(row["unread"]),
                        abstained=row["abstained"],
                        by_rule=bool(row["by_rule"]),
                        orders=row["orders"],
                        criteria=codes or _all_invalid(row["criteria"]),
                    )
        return marks

    def count_kinds(self, run_id: int) -> TableCounts:
        """How many of the run's verdicts each filter would show."""
        with self._reading() as connection:
            return TableCounts(
                kinds=_kinds(connection, run_id),
                criteria=_criteria(connection, run_id),
                tags=_tags(connection, run_id),
                contests=tuple(_contests(connection, run_id, most=MOST_CONTESTS + 1)),
            )

    def models_met(self, run_id: int, *, most: int) -> list[Models]:
        """Which models meet as A and B."""
        with self._reading() as connection:
            return _contests(connection, run_id, most=most)


class _Table:
    """A run's filtered verdicts, in order. Rows without a key, possible only for confidence, come
    last in both directions."""

    def __init__(
        self,
        connection: Connection,
        run_id: int,
        wanted: VerdictFilter,
        *,
        judge_ids: Collection[int] | None = None,
        sort: Sort = "number",
        descending: bool = False,
    ) -> None:
        self._connection = connection
        self._run_id = run_id
        self._judge_ids = judge_ids
        self._sort: Sort = sort
        self._descending = descending
        self._key = _KEYS[sort]
        self._columns: tuple[ColumnElement[Any], ...] = (_V.number, _V.judge_id)
        if sort != "number":
            self._columns = (self._key, *self._columns)
        of_run = select(self._key.label("key"), _V.number, _V.judge_id).join_from(
            verdicts, items, same_item
        )
        self._any = of_run.where(_V.run_id == run_id)
        self._meeting = of_run.where(*conditions(connection, run_id, wanted, judge_ids))

    def walk(
        self,
        start: TablePlace | None,
        *,
        backwards: bool = False,
        limit: int,
        offset: int = 0,
        without: int | None = None,
    ) -> list[TablePlace]:
        """The next ones after or before a place; `without` a pair."""
        query = self._ordered(self._meeting, backwards=backwards)
        if start is not None:
            query = query.where(self._beyond(start, backwards=backwards))
        if without is not None:
            query = query.where(_V.number != without)
        return self._read(query.limit(limit).offset(offset) if offset else query.limit(limit))

    def first_of(self, number: int) -> TablePlace | None:
        """A pair's first matching verdict."""
        query = self._ordered(self._meeting.where(_V.number == number), backwards=False)
        return next(iter(self._read(query.limit(1))), None)

    def place_of(self, number: int) -> TablePlace | None:
        """By the first judge whose verdict matches, else by the first judge."""
        anyway = self._any
        if self._judge_ids is not None:
            anyway = anyway.where(_V.judge_id.in_(self._judge_ids))
        for query in (self._meeting, anyway):
            of_pair = query.where(_V.number == number).order_by(_V.judge_id).limit(1)
            if places := self._read(of_pair):
                return places[0]
        return None

    def count(self) -> int:
        query = self._meeting.with_only_columns(func.count())
        return self._connection.execute(query).scalar_one()

    def rows_before(self, place: TablePlace) -> int:
        before = self._meeting.where(self._beyond(place, backwards=True))
        return self._connection.execute(before.with_only_columns(func.count())).scalar_one()

    def standing(self, first: TablePlace) -> tuple[int, int]:
        """A pair's rank and the number of pairs, by first verdicts."""
        one_judge = len(judges_of_run(self._connection, self._run_id)) == 1
        count = func.count() if one_judge else func.count(_V.number.distinct())
        before = self._beyond(first, backwards=True)
        query = self._meeting.with_only_columns(count.filter(before), count)
        passed, total = self._connection.execute(query).one()
        return passed + 1, total

    def _ordered(self, query: Select[Any], *, backwards: bool) -> Select[Any]:
        falls = self._descending != backwards
        order = [each.desc() if falls else each for each in self._columns]
        if self._sort == "confidence":
            lacking = self._key.is_(None)
            order.insert(0, lacking.desc() if backwards else lacking)
        return query.order_by(*order)

    def _beyond(self, place: TablePlace, *, backwards: bool) -> ColumnElement[bool]:
        """After this place in the table, or before it."""
        falls = self._descending != backwards
        columns, at = self._columns, tuple(place)[-len(self._columns) :]
        if place.key is None:
            columns, at = columns[-2:], at[-2:]
        past = tuple_(*columns) < at if falls else tuple_(*columns) > at
        if self._sort != "confidence":
            return past
        lacking = self._key.is_(None)
        if place.key is None:
            return or_(~lacking, past) if backwards else and_(lacking, past)
        return past if backwards else or_(lacking, past)

    def _read(self, query: Select[Any]) -> list[TablePlace]:
        return [TablePlace(*row) for row in self._connection.execute(query)]


_MARKS = (
    select(
        *(_V.number, _V.judge_id, _V.abstained, _V.by_criterion, _I.noted, pairs.c.criteria),
        *(ORDERS.label("orders"), UNREAD.label("unread"), TIE_BY_RULE.label("by_rule")),
    )
    .join_from(verdicts, items, same_item)
    .join(pairs, pairs.c.id == _I.pair_id)
)
_ROWS = (
    select(
        *(_V.number, _V.judge_id, _V.outcome, _V.winner, _V.confidence, _V.abstained),
        *(UNREAD.label("unread"), TIE_BY_RULE.label("by_rule")),
        *(COMPARED.label("compared"), AGREES.label("agrees")),
        *(_I.key, _I.full_key, _I.label, _I.model_a, _I.model_b, _I.tags, _I.noted),
        *(_I.length_a, _I.length_b),
        func.substr(pairs.c.prompt, 1, PROMPT_CHARACTERS, type_=SafeText()).label("prompt"),
    )
    .join_from(verdicts, items, same_item)
    .join(pairs, pairs.c.id == _I.pair_id)
)


_AS_THEY_ARE = (
    *("number", "judge_id", "winner", "confidence", "noted", "abstained"),
    *("model_a", "model_b", "length_a", "length_b", "prompt"),
)


def _rows(
    connection: Connection, run_id: int, places: Sequence[TablePlace], *, counted: bool
) -> Iterator[TableRow]:
    """If votes are `counted`, most votes replace a missing label."""
    numbers = list(dict.fromkeys(place.number for place in places))
    voted = voted_labels(connection, run_id, numbers) if counted else {}
    flagged = flags_on(connection, run_id, numbers)
    rows: dict[tuple[int, int], RowMapping] = {}
    differing: set[int] = set()
    for some in in_slices(numbers):
        differing |= _differing(connection, run_id, some)
        query = _ROWS.where(_V.run_id == run_id, _V.number.in_(some))
        for row in connection.execute(query).mappings():
            rows[row["number"], row["judge_id"]] = row
    for place in places:
        if (place.number, place.judge_id) not in rows:  # judged anew meanwhile
            continue
        row = rows[place.number, place.judge_id]
        disagrees = not row["agrees"] if row["compared"] else None
        label = voted.get(place.number)
        if label is not None and not row["by_rule"]:
            disagrees = row["outcome"] not in ("win", "tie") or row["winner"] != label
        yield TableRow(
            id=row["full_key"] or row["key"],
            outcome=Outcome(row["outcome"]),
            label=label or row["label"],
            disagrees=disagrees,
            label_voted=label is not None,
            judges_differ=place.number in differing,
            unread=bool(row["unread"]),
            by_rule=bool(row["by_rule"]),
            tags=tuple(orjson.loads(row["tags"] or "[]")),
            place=place,
            flag=flagged.get(place.number),
            **{name: row[name] for name in _AS_THEY_ARE},
        )


def _differing(connection: Connection, run_id: int, numbers: Sequence[int]) -> set[int]:
    """Items on which two judges differ."""
    query = select(_V.number, _V.outcome, _V.winner).where(
        _V.run_id == run_id, _V.number.in_(numbers), _V.outcome != "invalid"
    )
    ends: defaultdict[int, set[tuple[str, str]]] = defaultdict(set)
    for number, *end in connection.execute(query):
        ends[number].add(tuple(end))
    return {number for number, distinct in ends.items() if len(distinct) > 1}


def _all_invalid(criteria: str) -> tuple[tuple[str, int], ...]:
    """For a verdict without a breakdown: its pair's criteria, all invalid."""
    return tuple((each.name, INVALID) for each in read_criteria(criteria))


def _kinds(connection: Connection, run_id: int) -> dict[int, Counter[str]]:
    counts = [func.count().filter(kind).label(name) for name, kind in _KINDS.items()]
    query = (
        select(_V.judge_id, *counts)
        .join_from(verdicts, items, same_item)
        .where(_V.run_id == run_id)
        .group_by(_V.judge_id)
    )
    kinds = {
        judge_id: Counter(dict(zip(_KINDS, each, strict=True)))
        for judge_id, *each in connection.execute(query)
    }
    differing = VerdictFilter(judges_differ=True)
    query = (
        select(_V.judge_id, func.count())
        .join_from(verdicts, items, same_item)
        .where(*conditions(connection, run_id, differing))
        .group_by(_V.judge_id)
    )
    for judge_id, count in connection.execute(query) if len(kinds) > 1 else ():
        kinds[judge_id]["judges_differ"] = count
    return kinds


def _criteria(connection: Connection, run_id: int) -> dict[str, Counter[int]]:
    """In order of first appearance."""
    first = func.min(_V.number)
    stated = (
        select(first, func.count(), _V.by_criterion)
        .where(_V.run_id == run_id, _V.by_criterion.is_not(None))
        .group_by(_V.by_criterion)
        .order_by(first)
    )
    silent = (
        select(first, func.count(), pairs.c.criteria)
        .join_from(verdicts, items, same_item)
        .join(pairs, pairs.c.id == _I.pair_id)
        .where(_V.run_id == run_id, _V.by_criterion.is_(None))
        .group_by(pairs.c.criteria)
        .order_by(first)
    )
    counts: dict[str, Counter[int]] = {}
    each = merge(
        (
            (number, count, criteria_codes(text))
            for number, count, text in connection.execute(stated)
        ),
        ((number, count, _all_invalid(text)) for number, count, text in connection.execute(silent)),
        key=lambda group: group[0],
    )
    for _, count, codes in each:
        for name, code in codes:
            if name in counts or len(counts) < MOST_CRITERIA:
                counts.setdefault(name, Counter())[code] += count
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


def _contests(connection: Connection, run_id: int, *, most: int) -> list[Models]:
    """In arbitrary order."""
    query = select(_I.model_a, _I.model_b).where(_I.run_id == run_id).distinct().limit(most)
    return [(model_a, model_b) for model_a, model_b in connection.execute(query)]
