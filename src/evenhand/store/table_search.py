"""Pages of a table of verdicts, by the marks beside them.

What meets the conditions is gathered first, up to ten thousand. Where that is all of it, it is
sorted here. Where there is more it is frequent, and a walk along the index of the order comes upon
a page of it soon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    and_,
    exists,
    func,
    select,
    tuple_,
)

from evenhand.contract import Outcome
from evenhand.store.full_text import items_with, pairs_with
from evenhand.store.intake import in_slices
from evenhand.store.marks import (
    ABSTAINED,
    DISAGREES,
    ENDINGS,
    JUDGES_DIFFER,
    LABELLED,
    NOTED,
    UNREAD,
)
from evenhand.store.schema import item_tags, items, pairs, verdict_marks
from evenhand.store.table_conditions import about_models, conditions_of, on_criterion
from evenhand.store.texts import SafeText, shorten
from evenhand.store.verdict_table import (
    CountUpTo,
    Sort,
    TableFilter,
    TablePage,
    TablePlace,
    TableRow,
)
from evenhand.store.voted_labels import voted_labels
from evenhand.store.words import phrases_of

COUNTED_UP_TO = 10_000
_PROMPT_CHARACTERS = 240
# Of a walk where words are looked for: so many rows are looked at for one page.
_LOOKED_AT = 2_000
_WALKED_AT_ONCE = 500
_MARK = verdict_marks.c
_KEYS: dict[Sort, Any] = {
    "number": _MARK.number,
    "confidence": _MARK.confidence,
    "length": _MARK.longer,
}


def browse(
    connection: Connection,
    run_id: int,
    wanted: TableFilter,
    *,
    sort: Sort,
    descending: bool,
    after: TablePlace | None,
    before: TablePlace | None,
    limit: int,
    count_to: int | None = None,
) -> TablePage:
    """After a place, or before one; `before` is left out where both are given."""
    backwards = before is not None and after is None
    start = before if backwards else after
    order = _Order(sort, descending=descending, backwards=backwards)
    search = _Search(connection, run_id, wanted, sort)
    found, count = search.gathered(COUNTED_UP_TO if count_to is None else count_to)
    if count.more:
        places, reached = search.walked(order, start, limit)
    else:
        places, reached = _sorted_page(found, order, start, limit)
    came_from = places[0] if places and start is not None else None
    if backwards:
        places.reverse()
        reached, came_from = came_from, reached
    rows = tuple(_rows(connection, run_id, places, counted=wanted.count_votes is True))
    return TablePage(rows, reached, came_from, count)


def _sorted_page(
    found: list[TablePlace], order: _Order, start: TablePlace | None, limit: int
) -> tuple[list[TablePlace], TablePlace | None]:
    ahead = [place for place in found if start is None or order.rank(place) > order.rank(start)]
    ahead.sort(key=order.rank)
    return ahead[:limit], ahead[limit - 1] if len(ahead) > limit else None


def count_up_to(
    connection: Connection, run_id: int, wanted: TableFilter, *, most: int
) -> CountUpTo:
    return _Search(connection, run_id, wanted, "number").gathered(most)[1]


def place_of(
    connection: Connection, run_id: int, number: int, *, judge_ids: Sequence[int] | None, sort: Sort
) -> TablePlace | None:
    """Where a pair stands: by the first of these judges that has a verdict on it."""
    query = select(_KEYS[sort], _MARK.number, _MARK.judge_id).where(
        _MARK.run_id == run_id, _MARK.number == number
    )
    if judge_ids is not None:
        query = query.where(_MARK.judge_id.in_(list(judge_ids)))
    row = connection.execute(query.order_by(_MARK.judge_id)).first()
    return TablePlace(*row) if row else None


class _Order:
    """Verdicts without a key, which confidence alone may lack, come last in both directions."""

    def __init__(self, sort: Sort, *, descending: bool, backwards: bool) -> None:
        self._backwards = backwards
        self._sign = -1 if descending else 1
        self.falls = descending != backwards
        self.columns: list[Any] = [_KEYS[sort], _MARK.number, _MARK.judge_id]
        if sort == "number":
            del self.columns[0]
        # With a key, without one, in the order in which they are walked.
        keyed: tuple[bool, ...] = (True, False) if sort == "confidence" else (True,)
        self._segments = keyed[::-1] if backwards else keyed

    def rank(self, place: TablePlace) -> tuple[float, ...]:
        sign = self._sign
        key = (1, 0) if place.key is None else (0, sign * place.key)
        rank = (*key, sign * place.number, sign * place.judge_id)
        return tuple(-each for each in rank) if self._backwards else rank

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
        self, connection: Connection, run_id: int, wanted: TableFilter, sort: Sort
    ) -> None:
        self._connection = connection
        self._run_id = run_id
        self._tag = None if wanted.tag is None else shorten(wanted.tag)
        self._phrases = None if wanted.query is None else phrases_of(wanted.query)
        conditions = list(conditions_of(run_id, wanted))
        # Led by one index to what is gathered, and along another one where it is walked: there it
        # may only be looked at.
        contest, breakdown = _MARK.contest, _MARK.breakdown
        of_models = list(about_models(contest, run_id, wanted))
        by_models = bool(of_models)
        led = [
            *of_models,
            *on_criterion(breakdown + 0 if by_models else breakdown, connection, run_id, wanted),
        ]
        looked_at = [
            *about_models(contest + 0, run_id, wanted),
            *on_criterion(breakdown + 0, connection, run_id, wanted),
        ]
        self._unconditional = not conditions and not led and self._tag is None
        of_run = select(_KEYS[sort].label("key"), _MARK.number, _MARK.judge_id).where(
            _MARK.run_id == run_id, *conditions
        )
        self._meeting = of_run.where(*led)
        self._walking = of_run.where(*looked_at)

    def gathered(self, most: int) -> tuple[list[TablePlace], CountUpTo]:
        """All of them in no order, where they are no more than `most`."""
        query = self._tagged(self._meeting)
        numbers = self._few(most)
        if numbers is None:
            found = self._read(query.limit(most + 1))
            return found, CountUpTo(min(len(found), most), more=len(found) > most)
        # Of more than these nobody knows how many meet the other conditions: some will do.
        looked_at = sorted(numbers)[: None if len(numbers) <= most else _LOOKED_AT]
        found = [
            place
            for some in in_slices(looked_at)
            for place in self._read(query.where(_MARK.number.in_(some)))
        ]
        more = len(numbers) > most or len(found) > most
        count = most if self._unconditional and more else min(len(found), most)
        return found, CountUpTo(count, more=more)

    def _few(self, most: int) -> list[int] | None:
        """The items that have the words, or the tag where it is a rare one; None where that would
        lead no further than looking at all of them."""
        if self._phrases is not None:
            return items_with(self._connection, self._run_id, self._phrases, most=most + 1)
        if self._tag is None:
            return None
        tag = item_tags.c
        query = select(tag.number).where(tag.run_id == self._run_id, tag.tag == self._tag)
        numbers = list(self._connection.execute(query.limit(most + 1)).scalars())
        return numbers if len(numbers) <= most else None

    def walked(
        self, order: _Order, start: TablePlace | None, limit: int
    ) -> tuple[list[TablePlace], TablePlace | None]:
        """The next of them, and the place from which to go on, unless that was all."""
        if self._phrases is not None:
            return self._walked_by_words(order, start, limit)
        found: list[TablePlace] = []
        for query in order.segments(self._tagged(self._walking), start):
            found += self._read(query.limit(limit + 1 - len(found)))
            if len(found) > limit:
                return found[:limit], found[limit - 1]
        return found, None

    def _walked_by_words(
        self, order: _Order, start: TablePlace | None, limit: int
    ) -> tuple[list[TablePlace], TablePlace | None]:
        pair_id = items.c.pair_id
        its_item = and_(items.c.run_id == _MARK.run_id, items.c.number == _MARK.number)
        with_pairs = self._tagged(self._walking).add_columns(pair_id).join(items, its_item)
        found: list[TablePlace] = []
        reached = start
        for _ in range(_LOOKED_AT // _WALKED_AT_ONCE):
            rows: list[Any] = []
            for query in order.segments(with_pairs, reached):
                rows += self._connection.execute(query.limit(_WALKED_AT_ONCE - len(rows)))
                if len(rows) == _WALKED_AT_ONCE:
                    break
            here = pairs_with(self._connection, {row[3] for row in rows}, self._phrases or [])
            found += [TablePlace(*row[:3]) for row in rows if row[3] in here]
            if len(found) > limit:
                return found[:limit], found[limit - 1]
            if len(rows) < _WALKED_AT_ONCE:
                return found, None
            reached = TablePlace(*rows[-1][:3])
        return found, reached

    def _tagged(self, query: Select[Any]) -> Select[Any]:
        if self._tag is None:
            return query
        tag = item_tags.c
        return query.where(
            exists().where(
                tag.run_id == self._run_id, tag.tag == self._tag, tag.number == _MARK.number
            )
        )

    def _read(self, query: Select[Any]) -> list[TablePlace]:
        return [TablePlace(*row) for row in self._connection.execute(query)]


_ROWS = (
    select(
        *(_MARK.number, _MARK.judge_id, _MARK.ending, _MARK.flags, _MARK.confidence),
        *(items.c.key, items.c.full_key, items.c.label, items.c.model_a, items.c.model_b),
        *(items.c.tags, items.c.length_a, items.c.length_b),
        func.substr(pairs.c.prompt, 1, _PROMPT_CHARACTERS, type_=SafeText()).label("prompt"),
    )
    .join_from(
        verdict_marks,
        items,
        and_(items.c.run_id == _MARK.run_id, items.c.number == _MARK.number),
    )
    .join(pairs, pairs.c.id == items.c.pair_id)
)


def _rows(
    connection: Connection, run_id: int, places: Sequence[TablePlace], *, counted: bool
) -> Iterator[TableRow]:
    """Where votes are `counted`, with what most people say for a label that the data lack."""
    numbers = [place.number for place in places]
    voted = voted_labels(connection, run_id, numbers) if counted else {}
    found: dict[tuple[int, int], RowMapping] = {}
    for some in in_slices(numbers):
        query = _ROWS.where(_MARK.run_id == run_id, _MARK.number.in_(some))
        for row in connection.execute(query).mappings():
            found[row["number"], row["judge_id"]] = row
    for place in places:
        row = found[place.number, place.judge_id]
        outcome, winner = ENDINGS[row["ending"]]
        flags = row["flags"]
        disagrees = bool(flags & DISAGREES) if flags & LABELLED else None
        said = voted.get(place.number)
        if said is not None:
            disagrees = outcome not in ("win", "tie") or winner != said
        yield TableRow(
            number=place.number,
            id=row["full_key"] or row["key"],
            judge_id=place.judge_id,
            outcome=Outcome(outcome),
            winner=winner,
            confidence=row["confidence"],
            label=said or row["label"],
            disagrees=disagrees,
            label_voted=said is not None,
            judges_differ=bool(flags & JUDGES_DIFFER),
            noted=bool(flags & NOTED),
            unread=bool(flags & UNREAD),
            abstained=bool(flags & ABSTAINED),
            model_a=row["model_a"],
            model_b=row["model_b"],
            tags=tuple(orjson.loads(row["tags"])) if row["tags"] else (),
            length_a=row["length_a"],
            length_b=row["length_b"],
            prompt=row["prompt"],
            place=place,
        )
