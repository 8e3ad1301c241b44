"""A run's verdicts by filter: in the order of its items, from the verdicts themselves; or as a
table with sorting and counts, from the verdict index beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice, product
from typing import Any, Literal, NamedTuple

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    exists,
    false,
    func,
    literal,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from evenhand.contract import Outcome, Winner
from evenhand.store.database import Database
from evenhand.store.flags import flags_on
from evenhand.store.full_text import items_with, pairs_with, phrases_of
from evenhand.store.records import PairFlag, VerdictRow
from evenhand.store.rows import among, count_items, in_slices
from evenhand.store.runs import judges_of_run
from evenhand.store.schema import (
    SafeText,
    item_tags,
    items,
    pairs,
    shorten,
    verdict_index,
    verdicts,
)
from evenhand.store.verdict_filter import (
    BY_VERDICTS,
    VerdictFilter,
    conditions,
    index_conditions,
    of_ending,
    on_criterion,
    on_models,
)
from evenhand.store.verdict_index import (
    ABSTAINED,
    BY_RULE,
    DISAGREES,
    ENDINGS,
    JUDGES_DIFFER,
    LABELLED,
    NOTED,
    UNREAD,
)
from evenhand.store.verdicts import VerdictPlace, rows_at
from evenhand.store.votes import voted_labels

Sort = Literal["number", "confidence", "length"]
RUN_START = VerdictPlace(0, 0)


@dataclass(frozen=True, slots=True)
class VerdictSlice:
    """`reached` is how far the search came, and None at the end; rows may be few before it."""

    rows: list[VerdictRow]
    reached: VerdictPlace | None


class TablePlace(NamedTuple):
    """Where a verdict stands in a table's order; `key` is what the table is sorted by."""

    key: float | None
    number: int
    judge_id: int


@dataclass(frozen=True, slots=True)
class TableRow:
    """`prompt` is its beginning; `length_b - length_a` is what `length` sorts by."""

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


@dataclass(frozen=True, slots=True)
class CountUpTo:
    """`more`: there are more than were counted, so that it reads "10,000+"."""

    count: int
    more: bool


class Neighbours(NamedTuple):
    """The pairs before and after one in a table, None at the ends; and its place among how many,
    None where it is not among them or there are too many to count."""

    previous: int | None
    following: int | None
    standing: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class TablePage:
    """`next` and `previous` go into `after` and `before`; None at the ends. Where words are looked
    for, rows may be few before an end: the search goes on from `next`."""

    rows: tuple[TableRow, ...]
    next: TablePlace | None
    previous: TablePlace | None
    count: CountUpTo


# What meets the conditions is gathered first, up to ten thousand, in order. Where that is not all
# of it, it is frequent, and a walk along the index of the order comes upon a page of it soon.
#
# It is gathered as one text: SQLite's driver lets go of the interpreter at every row, and beside a
# busy thread it waits for it each time. Measured: a page of 20 ms took 550 beside an export.

COUNTED_UP_TO = 10_000
PROMPT_CHARACTERS = 240
# Of a walk where words are looked for: so many rows are looked at for one page.
_LOOKED_AT = 2_000
_WALKED_AT_ONCE = 500

_INDEX = verdict_index.c
_KEYS: dict[Sort, Any] = {
    "number": _INDEX.number,
    "confidence": _INDEX.confidence,
    "length": _INDEX.longer,
}


class TableStore(Database):
    """Verdicts filtered, sorted and searched, a page at a time."""

    def find_verdicts(
        self,
        run_id: int,
        wanted: VerdictFilter,
        *,
        after: VerdictPlace = RUN_START,
        limit: int = 100,
        look_at: int = 50_000,
    ) -> VerdictSlice:
        """A page in the order of the items, of a filter that needs no index.

        What may meet the conditions is led to by an index of the verdicts; the rest is looked at,
        and never more than `look_at` items in one call, so that a page takes as long in a run of a
        million pairs as in one of a thousand.
        """
        with self._reading() as connection:
            last = whole = count_items(connection, run_id)
            if wanted.sifted:
                last = min(whole, after.number + look_at)
            # One more than is wanted: then the last page knows that it is the last.
            searches = list(_searches(connection, run_id, wanted, after, last))
            merged = merge(*(_places(connection, each.limit(limit + 1)) for each in searches))
            places = list(islice(merged, limit + 1))
            rows = rows_at(connection, run_id, places[:limit])
            if len(places) > limit:
                return VerdictSlice(rows, places[limit - 1])
            return VerdictSlice(rows, VerdictPlace(last + 1, 0) if last < whole else None)

    def browse(
        self,
        run_id: int,
        wanted: VerdictFilter,
        *,
        sort: Sort = "number",
        descending: bool = False,
        after: TablePlace | None = None,
        before: TablePlace | None = None,
        limit: int = 50,
    ) -> TablePage:
        """A page of the verdicts that are indexed, and how many there are in all, up to 10,000."""
        with self._reading() as connection:
            backwards = before is not None and after is None
            start = before if backwards else after
            order = _Order(sort, descending=descending, backwards=backwards)
            search = _Search(connection, run_id, wanted, sort)
            found = search.gathered(descending, start)
            if found.count.more:
                places, reached = search.walked(order, start, limit)
            else:
                ahead = found.before[::-1] if backwards else found.after
                places = search.places_at(ahead[:limit])
                reached = places[-1] if places and len(ahead) > limit else None
            came_from = places[0] if places and start is not None else None
            if backwards:
                places.reverse()
                reached, came_from = came_from, reached
            rows = tuple(_rows(connection, run_id, places, counted=wanted.count_votes is True))
            return TablePage(rows, reached, came_from, found.count)

    def neighbours(
        self,
        run_id: int,
        wanted: VerdictFilter,
        number: int,
        *,
        sort: Sort = "number",
        descending: bool = False,
    ) -> Neighbours:
        """Of a pair in a filtered table: also of one that the table leaves out."""
        with self._reading() as connection:
            search = _Search(connection, run_id, wanted, sort)
            place = search.place_of(number)
            if place is None:
                return Neighbours(None, None, None)
            found = search.gathered(descending, place)
            if found.count.more:
                # The pair's own verdicts, one of each judge, may come first.
                most = len(judges_of_run(connection, run_id)) + 1
                orders = (_Order(sort, descending=descending, backwards=b) for b in (True, False))
                walked = (search.walked(order, place, most)[0] for order in orders)
                previous, following = (
                    _other((each.number for each in places), number) for places in walked
                )
                return Neighbours(previous, following, None)
            numbers = list(dict.fromkeys(each for each, _ in found.keys))
            return Neighbours(
                _other((each for each, _ in reversed(found.before)), number),
                _other((each for each, _ in found.after), number),
                (numbers.index(number) + 1, len(numbers)) if number in numbers else None,
            )

    def page_start(
        self,
        run_id: int,
        wanted: VerdictFilter,
        number: int,
        *,
        sort: Sort = "number",
        descending: bool = False,
        limit: int = 50,
    ) -> TablePlace | None:
        """What the page with a pair comes after; None: it is the first one, or the pair has no
        place. Of a table too long to be counted, a page that has the pair in its middle."""
        with self._reading() as connection:
            search = _Search(connection, run_id, wanted, sort)
            place = search.place_of(number)
            if place is None:
                return None
            found = search.gathered(descending, place)
            if found.count.more:
                back = _Order(sort, descending=descending, backwards=True)
                half = max(1, limit // 2)
                before, _ = search.walked(back, place, half)
                return before[-1] if len(before) == half else None
            numbers = [each for each, _ in found.keys]
            at = numbers.index(number) if number in numbers else len(found.before)
            start = min(at, len(numbers) - 1) // limit * limit
            return search.places_at([found.keys[start - 1]])[0] if start > 0 else None


def _other(numbers: Iterable[int], number: int) -> int | None:
    return next((each for each in numbers if each != number), None)


def _searches(
    connection: Connection,
    run_id: int,
    wanted: VerdictFilter,
    after: VerdictPlace,
    last: int,
) -> Iterator[Select[Any]]:
    """Each by the index of the verdicts that leads to the fewest, in the order of the items."""
    column = verdicts.c
    judge_ids = [judge.id for judge in judges_of_run(connection, run_id)]
    of_run = select(column.number, column.judge_id).where(column.run_id == run_id)
    if wanted.disagrees is not None:
        its_item = and_(items.c.run_id == column.run_id, items.c.number == column.number)
        of_run = of_run.join(items, its_item)
    if wanted.tag is None and not wanted.abstained and wanted.ends is not None:
        sifted = of_run.where(
            *conditions(replace(wanted, outcome=None, winner=None, ending=None), BY_VERDICTS),
            column.number <= last,
        )
        for judge_id, place in product(judge_ids, wanted.ends):
            yield sifted.where(
                *of_ending(place),
                column.judge_id == judge_id,
                column.number >= after.number + (0 if judge_id > after.judge_id else 1),
            ).order_by(column.number)
        return
    sifted = of_run.where(*conditions(wanted, BY_VERDICTS), column.judge_id.in_(judge_ids))
    # By the tags' own numbers, where there is one: the verdicts' would lead through all of them.
    number = column.number if wanted.tag is None else item_tags.c.number
    if wanted.tag is not None:
        has_tag = and_(item_tags.c.run_id == column.run_id, number == column.number)
        its_tag = and_(item_tags.c.run_id == run_id, item_tags.c.tag == shorten(wanted.tag))
        sifted = sifted.join(item_tags, has_tag).where(its_tag, number >= after.number)
    yield sifted.where(number <= last, tuple_(number, column.judge_id) > tuple(after)).order_by(
        number, column.judge_id
    )


def _places(connection: Connection, query: Select[Any]) -> Iterator[VerdictPlace]:
    return (VerdictPlace(*row) for row in connection.execute(query))


_Key = tuple[int, int]  # of a verdict: its item's number, and its judge


@dataclass(frozen=True, slots=True)
class _Gathered:
    """All that meets the conditions, in the table's order, unless there is more; those `before` and
    `after` the place that was asked for."""

    keys: list[_Key]
    before: list[_Key]
    after: list[_Key]
    count: CountUpTo


class _Order:
    """Verdicts without a key, which confidence alone may lack, come last in both directions."""

    def __init__(self, sort: Sort, *, descending: bool, backwards: bool) -> None:
        self.falls = descending != backwards
        self.columns: list[Any] = [_KEYS[sort], _INDEX.number, _INDEX.judge_id]
        if sort == "number":
            del self.columns[0]
        # With a key, without one, in the order in which they are walked.
        keyed: tuple[bool, ...] = (True, False) if sort == "confidence" else (True,)
        self._segments = keyed[::-1] if backwards else keyed

    def segments(self, query: Select[Any], start: TablePlace | None) -> Iterator[Select[Any]]:
        """What is to be walked one after the other, from a place on."""
        begin = None if start is None else start.key is not None
        walked = self._segments
        if begin in walked:
            walked = walked[walked.index(begin) :]
        for keyed in walked:
            columns = self.columns if keyed else self.columns[1:]
            part = query
            if len(self._segments) > 1:
                key = self.columns[0]
                part = part.where(key.is_not(None) if keyed else key.is_(None))
            if start is not None and keyed == begin:
                at = tuple(start)[-len(columns) :]
                place = tuple_(*columns)
                part = part.where(place < at if self.falls else place > at)
            # By the key too where all of them lack one: PostgreSQL knows its index by that alone.
            yield part.order_by(*(each.desc() if self.falls else each for each in self.columns))


class _Search:
    def __init__(
        self, connection: Connection, run_id: int, wanted: VerdictFilter, sort: Sort
    ) -> None:
        self._connection = connection
        self._run_id = run_id
        self._tag = None if wanted.tag is None else shorten(wanted.tag)
        self._phrases = None if wanted.query is None else phrases_of(wanted.query)
        conditions = list(index_conditions(run_id, wanted))
        # Led by one index to what is gathered, and along another one where it is walked: there it
        # may only be looked at.
        contest, breakdown = _INDEX.contest, _INDEX.breakdown
        of_models = list(on_models(contest, run_id, wanted))
        by_models = bool(of_models)
        led = [
            *of_models,
            *on_criterion(breakdown + 0 if by_models else breakdown, connection, run_id, wanted),
        ]
        looked_at = [
            *on_models(contest + 0, run_id, wanted),
            *on_criterion(breakdown + 0, connection, run_id, wanted),
        ]
        self._unconditional = not conditions and not led and self._tag is None
        of_run = select(_KEYS[sort].label("key"), _INDEX.number, _INDEX.judge_id).where(
            _INDEX.run_id == run_id, *conditions
        )
        self._meeting = of_run.where(*led)
        self._walking = of_run.where(*looked_at)
        self._any = select(*of_run.selected_columns).where(_INDEX.run_id == run_id)
        if wanted.judge_ids is not None:
            self._any = self._any.where(_INDEX.judge_id.in_(list(wanted.judge_ids)))

    def place_of(self, number: int) -> TablePlace | None:
        """By the first verdict that meets the conditions, else by the first."""
        for query in (self._tagged(self._meeting), self._any):
            of_pair = query.where(_INDEX.number == number).order_by(_INDEX.judge_id).limit(1)
            if found := self._read(of_pair):
                return found[0]
        return None

    def gathered(self, descending: bool, place: TablePlace | None) -> _Gathered:
        most = COUNTED_UP_TO
        query = self._tagged(self._meeting)
        numbers = self._few(most)
        many = numbers is not None and len(numbers) > most
        if numbers is not None:
            # Of more than these nobody knows how many meet the other conditions: some will do.
            looked_at = sorted(numbers)[: _LOOKED_AT if many else None]
            query = query.where(among(_INDEX.number, self._connection, looked_at))
        keys, before, upto = self._packed(query.limit(most + 1), descending, place)
        more = many or len(keys) > most
        count = most if self._unconditional and many else min(len(keys), most)
        return _Gathered(keys, keys[:before], keys[upto:], CountUpTo(count, more=more))

    def _packed(
        self, query: Select[Any], descending: bool, place: TablePlace | None
    ) -> tuple[list[_Key], int, int]:
        """In order, how many of them come before the place, and how many up to it. Without a key,
        which confidence alone may lack, they come last in both directions."""
        found = query.subquery()
        key, number, judge_id = found.c
        keyed = key.is_not(None)
        order = [key.is_(None), *(each.desc() if descending else each for each in found.c)]
        before: ColumnElement[bool] = false()
        upto: ColumnElement[bool] = false()
        if place is not None:
            own = tuple_(*((number, judge_id) if place.key is None else (key, number, judge_id)))
            at = tuple(place)[-(2 if place.key is None else 3) :]
            passed, reached = (own > at, own >= at) if descending else (own < at, own <= at)
            if place.key is None:
                before, upto = or_(keyed, passed), or_(keyed, reached)
            else:
                before, upto = and_(keyed, passed), and_(keyed, reached)
        if self._connection.dialect.name == "postgresql":
            line = func.concat(number, " ", judge_id)
            lines = func.string_agg(line, aggregate_order_by(literal(" "), *order))
            packed = select(lines, func.count().filter(before), func.count().filter(upto))
        else:
            told = (number, judge_id, before.label("before"), upto.label("upto"))
            ranked = select(*told).order_by(*order).subquery()
            numbers = func.printf("%d %d", ranked.c.number, ranked.c.judge_id)
            packed = select(
                func.group_concat(numbers, " "),
                func.count().filter(ranked.c.before),
                func.count().filter(ranked.c.upto),
            )
        text, *passed_over = self._connection.execute(packed).one()
        values = list(map(int, (text or "").split()))
        return list(zip(values[::2], values[1::2], strict=True)), passed_over[0], passed_over[1]

    def places_at(self, keys: Sequence[_Key]) -> list[TablePlace]:
        there = among(_INDEX.number, self._connection, [number for number, _ in keys])
        found = {place[1:]: place for place in self._read(self._any.where(there))}
        return [found[key] for key in keys if key in found]  # one may be judged anew meanwhile

    def _few(self, most: int) -> list[int] | None:
        """The items that have the words, or the tag where it is a rare one; None where that would
        lead no further than looking at all of them."""
        if self._phrases is not None:
            return items_with(self._connection, self._run_id, self._phrases, most=most + 1)
        if self._tag is None:
            return None
        tag = item_tags.c
        query = select(tag.number).where(tag.run_id == self._run_id, tag.tag == self._tag)
        some = select(func.count()).select_from(query.limit(most + 1).subquery())
        if self._connection.execute(some).scalar_one() > most:
            return None
        return list(self._connection.execute(query).scalars())

    def walked(
        self, order: _Order, start: TablePlace | None, limit: int
    ) -> tuple[list[TablePlace], TablePlace | None]:
        """The next of them, and the place from which to go on, unless that was all."""
        if self._phrases is not None:
            return self._walked_by_words(order, start, limit)
        places: list[TablePlace] = []
        for query in order.segments(self._tagged(self._walking), start):
            places += self._read(query.limit(limit + 1 - len(places)))
            if len(places) > limit:
                return places[:limit], places[limit - 1]
        return places, None

    def _walked_by_words(
        self, order: _Order, start: TablePlace | None, limit: int
    ) -> tuple[list[TablePlace], TablePlace | None]:
        pair_id = items.c.pair_id
        its_item = and_(items.c.run_id == _INDEX.run_id, items.c.number == _INDEX.number)
        with_pairs = self._tagged(self._walking).add_columns(pair_id).join(items, its_item)
        places: list[TablePlace] = []
        reached = start
        for _ in range(_LOOKED_AT // _WALKED_AT_ONCE):
            rows: list[Any] = []
            for query in order.segments(with_pairs, reached):
                rows += self._connection.execute(query.limit(_WALKED_AT_ONCE - len(rows)))
                if len(rows) == _WALKED_AT_ONCE:
                    break
            here = pairs_with(self._connection, {row[3] for row in rows}, self._phrases or [])
            places += [TablePlace(*row[:3]) for row in rows if row[3] in here]
            if len(places) > limit:
                return places[:limit], places[limit - 1]
            if len(rows) < _WALKED_AT_ONCE:
                return places, None
            reached = TablePlace(*rows[-1][:3])
        return places, reached

    def _tagged(self, query: Select[Any]) -> Select[Any]:
        if self._tag is None:
            return query
        tag = item_tags.c
        return query.where(
            exists().where(
                tag.run_id == self._run_id, tag.tag == self._tag, tag.number == _INDEX.number
            )
        )

    def _read(self, query: Select[Any]) -> list[TablePlace]:
        return [TablePlace(*row) for row in self._connection.execute(query)]


_ROWS = (
    select(
        *(_INDEX.number, _INDEX.judge_id, _INDEX.ending, _INDEX.flags, _INDEX.confidence),
        *(items.c.key, items.c.full_key, items.c.label, items.c.model_a, items.c.model_b),
        *(items.c.tags, items.c.length_a, items.c.length_b),
        func.substr(pairs.c.prompt, 1, PROMPT_CHARACTERS, type_=SafeText()).label("prompt"),
    )
    .join_from(
        verdict_index,
        items,
        and_(items.c.run_id == _INDEX.run_id, items.c.number == _INDEX.number),
    )
    .join(pairs, pairs.c.id == items.c.pair_id)
)


def _rows(
    connection: Connection, run_id: int, places: Sequence[TablePlace], *, counted: bool
) -> Iterator[TableRow]:
    """Where votes are `counted`, with what most people say for a label that the data lack."""
    numbers = [place.number for place in places]
    voted = voted_labels(connection, run_id, numbers) if counted else {}
    flagged = flags_on(connection, run_id, numbers)
    rows: dict[tuple[int, int], RowMapping] = {}
    for some in in_slices(numbers):
        query = _ROWS.where(_INDEX.run_id == run_id, _INDEX.number.in_(some))
        for row in connection.execute(query).mappings():
            rows[row["number"], row["judge_id"]] = row
    for place in places:
        if (place.number, place.judge_id) not in rows:  # judged anew meanwhile
            continue
        row = rows[place.number, place.judge_id]
        outcome, winner = ENDINGS[row["ending"]]
        flags = row["flags"]
        disagrees = bool(flags & DISAGREES) if flags & LABELLED else None
        label = voted.get(place.number)
        if label is not None and not flags & BY_RULE:
            disagrees = outcome not in ("win", "tie") or winner != label
        yield TableRow(
            number=place.number,
            id=row["full_key"] or row["key"],
            judge_id=place.judge_id,
            outcome=Outcome(outcome),
            winner=winner,
            confidence=row["confidence"],
            label=label or row["label"],
            disagrees=disagrees,
            label_voted=label is not None,
            judges_differ=bool(flags & JUDGES_DIFFER),
            noted=bool(flags & NOTED),
            unread=bool(flags & UNREAD),
            abstained=bool(flags & ABSTAINED),
            by_rule=bool(flags & BY_RULE),
            model_a=row["model_a"],
            model_b=row["model_b"],
            tags=tuple(orjson.loads(row["tags"])) if row["tags"] else (),
            length_a=row["length_a"],
            length_b=row["length_b"],
            prompt=row["prompt"],
            place=place,
            flag=flagged.get(place.number),
        )
