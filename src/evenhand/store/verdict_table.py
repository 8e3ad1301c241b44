"""A run's verdicts by filter: in the order of its items, from the verdicts themselves; or as a
table with sorting and counts, from the verdict index beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
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
    or_,
    select,
    tuple_,
)

from evenhand.contract import Outcome, Winner
from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.store.database import Database
from evenhand.store.full_text import items_with, pairs_with, phrases_of
from evenhand.store.records import VerdictRow
from evenhand.store.rows import count_items, in_slices
from evenhand.store.runs import judges_of_run
from evenhand.store.schema import (
    SafeText,
    item_tags,
    items,
    pairs,
    shorten,
    verdict_marks,
    verdicts,
)
from evenhand.store.verdict_index import (
    ABSTAINED,
    ANY_LABEL,
    DISAGREES,
    ENDINGS,
    JUDGES_DIFFER,
    LABELLED,
    LABELS,
    NOTED,
    UNREAD,
    Named,
    between,
    came_out,
    criteria_places,
    with_model_as,
)
from evenhand.store.verdicts import VerdictPlace, rows_at
from evenhand.store.votes import voted_for, voted_labels

Sort = Literal["number", "confidence", "length"]
# How a criterion came out: a winner, by its label or as the model that was asked for or the other
# one; or what is none.
CriterionEnd = Literal["A", "B", "TIE", "inconsistent", "invalid", "model", "other"]
# Several outcomes at once: any but invalid; a win or a tie; neither of them.
Ends = Literal["valid", "decided", "undecided"]
LabelIs = Literal["A", "B", "TIE", "any", "none"]
_ENDS: dict[Ends, frozenset[str]] = {
    "valid": frozenset({"win", "tie", "inconsistent"}),
    "decided": frozenset({"win", "tie"}),
    "undecided": frozenset({"inconsistent", "invalid"}),
}


@dataclass(frozen=True, slots=True)
class VerdictFilter:
    """Every condition that is given must hold.

    `disagrees` is of labelled pairs alone: a verdict agrees where it is the label, and an
    inconsistent or invalid pair has none that could. `query` are words that must all stand in the
    prompt or the responses. `model` is one of the pair's two, wherever it stands, and `against`
    the other one; `model_wins` is whether it won, or else the other one did.
    """

    outcome: Outcome | None = None
    winner: Winner | None = None
    ending: Ends | None = None
    judge_ids: tuple[int, ...] | None = None
    tag: str | None = None
    disagrees: bool | None = None
    abstained: bool | None = None
    min_confidence: float | None = None
    max_confidence: float | None = None
    # What only the index tells:
    criterion: str | None = None
    criterion_end: CriterionEnd | None = None
    judges_differ: bool | None = None  # another judge of the run has another verdict on the pair
    noted: bool | None = None  # with a note on the pair: a much longer response, talk to the judge
    unread: bool | None = None  # an answer behind it could not be read
    query: str | None = None
    label: LabelIs | None = None
    model: str | None = None
    against: str | None = None
    named: Named | None = None
    model_wins: bool | None = None
    count_votes: bool | None = None  # where the data has no label, what most people voted is one

    @property
    def needs_index(self) -> bool:
        names = fields(self)[[each.name for each in fields(self)].index("criterion") :]
        return any(getattr(self, each.name) is not None for each in names)

    @property
    def ends(self) -> tuple[int, ...] | None:
        """How a pair may have come out, as places in ENDINGS; None where that is all one."""
        if (self.outcome, self.winner, self.ending) == (None, None, None):
            return None
        return tuple(
            place
            for place, (outcome, winner) in enumerate(ENDINGS)
            if self.outcome in (None, outcome)
            and self.winner in (None, winner)
            and (self.ending is None or outcome in _ENDS[self.ending])
        )

    @property
    def sifted(self) -> bool:
        """Whether an index of the verdicts leads to more than what meets the conditions."""
        by_index = (self.tag is not None, self.abstained is True, self.ends is not None)
        looked_at = (self.disagrees, self.min_confidence, self.max_confidence, self.judge_ids)
        return (
            sum(by_index) > 1
            or self.abstained is False
            or any(each is not None for each in looked_at)
        )


RUN_START = VerdictPlace(0, 0)


@dataclass(frozen=True, slots=True)
class FoundVerdicts:
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
    disagrees: bool | None  # None: no label
    label_voted: bool  # by people, where votes count; the data has none
    judges_differ: bool
    noted: bool
    unread: bool
    abstained: bool
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    length_a: int
    length_b: int
    prompt: str
    place: TablePlace


@dataclass(frozen=True, slots=True)
class CountUpTo:
    """`more`: there are more than were counted, so that it reads "10,000+"."""

    count: int
    more: bool


@dataclass(frozen=True, slots=True)
class TablePage:
    """`next` and `previous` go into `after` and `before`; None at the ends. Where words are looked
    for, rows may be few before an end: the search goes on from `next`."""

    rows: tuple[TableRow, ...]
    next: TablePlace | None
    previous: TablePlace | None
    count: CountUpTo


Side = Literal["A", "B"]
_SIDES: dict[Side, int] = {"A": WIN_A, "B": WIN_B}
_CODES: dict[str, int] = {
    "A": WIN_A,
    "B": WIN_B,
    "TIE": TIE,
    "inconsistent": INCONSISTENT,
    "invalid": INVALID,
}
_MARK = verdict_marks.c


def _flagged(flags: int, value: int | None = None) -> ColumnElement[bool]:
    return _MARK.flags.bitwise_and(flags) == (flags if value is None else value)


def _conditions(wanted: VerdictFilter, source: _Source) -> Iterator[ColumnElement[bool]]:
    """What the verdicts and the index tell alike."""
    if wanted.judge_ids is not None:
        yield source.judge_id.in_(list(wanted.judge_ids))
    if wanted.ends is not None:
        yield source.ended(wanted.ends)
    if wanted.abstained is not None:
        yield source.abstained if wanted.abstained else ~source.abstained
    if wanted.min_confidence is not None:
        yield source.confidence >= wanted.min_confidence
    if wanted.max_confidence is not None:
        yield source.confidence <= wanted.max_confidence
    if wanted.disagrees is not None and not wanted.count_votes:
        # Of pairs without a label nobody knows whether the verdict agrees.
        yield source.disagrees if wanted.disagrees else source.agrees


@dataclass(frozen=True, slots=True)
class _Source:
    """Where conditions look."""

    judge_id: ColumnElement[int]
    confidence: ColumnElement[float]
    abstained: ColumnElement[bool]
    agrees: ColumnElement[bool]
    disagrees: ColumnElement[bool]
    ended: Callable[[Sequence[int]], ColumnElement[bool]]


def _ended(places: Sequence[int]) -> ColumnElement[bool]:
    return or_(false(), *(and_(*_of_end(place)) for place in places))


def _of_end(place: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    outcome, winner = ENDINGS[place]
    column = verdicts.c
    named = column.winner.is_(None) if winner is None else column.winner == winner
    return column.outcome == outcome, named


_AGREES = and_(verdicts.c.outcome.in_(("win", "tie")), verdicts.c.winner == items.c.label)
_BY_VERDICTS = _Source(
    judge_id=verdicts.c.judge_id,
    confidence=verdicts.c.confidence,
    abstained=verdicts.c.abstained,
    agrees=and_(items.c.label.is_not(None), _AGREES),
    disagrees=and_(items.c.label.is_not(None), ~_AGREES),
    ended=_ended,
)
_BY_INDEX = _Source(
    judge_id=_MARK.judge_id,
    confidence=_MARK.confidence,
    abstained=_flagged(ABSTAINED),
    agrees=_flagged(LABELLED | DISAGREES, LABELLED),
    disagrees=_flagged(LABELLED | DISAGREES),
    ended=_MARK.ending.in_,
)


def _index_conditions(run_id: int, wanted: VerdictFilter) -> Iterator[ColumnElement[bool]]:
    yield from _conditions(wanted, _BY_INDEX)
    counted = wanted.count_votes is True
    for flag, value in (
        (JUDGES_DIFFER, wanted.judges_differ),
        (NOTED, wanted.noted),
        (UNREAD, wanted.unread),
    ):
        if value is not None:
            yield _flagged(flag, flag if value else 0)
    if wanted.disagrees is not None and counted:
        by_data = _BY_INDEX.disagrees if wanted.disagrees else _BY_INDEX.agrees
        yield or_(by_data, _against_votes(run_id, wanted.disagrees))
    if wanted.label is not None:
        yield _labelled(run_id, wanted.label, counted=counted)


def _labelled(run_id: int, label: LabelIs, *, counted: bool) -> ColumnElement[bool]:
    """By the data; and where votes are counted, by what most people say of a pair without one."""
    known = _MARK.flags.bitwise_and(ANY_LABEL)
    if label == "none":
        bare = known == 0
        return and_(bare, _MARK.number.not_in(voted_for(run_id))) if counted else bare
    by_data = known != 0 if label == "any" else known == LABELS[label]
    if not counted:
        return by_data
    said = voted_for(run_id) if label == "any" else voted_for(run_id, label)
    return or_(by_data, _MARK.number.in_(said))


def _against_votes(run_id: int, disagrees: bool) -> ColumnElement[bool]:
    """Whether what most people say of a pair is another end than the verdict's, or the same."""
    ends: dict[Winner, int] = {
        "A": ENDINGS.index(("win", "A")),
        "B": ENDINGS.index(("win", "B")),
        "TIE": ENDINGS.index(("tie", "TIE")),
    }
    return or_(
        *(
            and_(
                _MARK.number.in_(voted_for(run_id, said)),
                _MARK.ending != end if disagrees else _MARK.ending == end,
            )
            for said, end in ends.items()
        )
    )


def about_models(
    contest: ColumnElement[int], run_id: int, wanted: VerdictFilter
) -> Iterator[ColumnElement[bool]]:
    """`contest` is the column, or an expression of it that no index leads by."""
    yield from between(
        contest, run_id, model=wanted.model, against=wanted.against, named=wanted.named
    )
    if wanted.model is not None and wanted.model_wins is not None:
        sides: tuple[Side, Side] = ("A", "B") if wanted.model_wins else ("B", "A")
        yield or_(
            *(
                and_(
                    with_model_as(contest, run_id, wanted.model, stands),
                    _MARK.ending == ENDINGS.index(("win", wins)),
                )
                for stands, wins in zip(_SIDES, sides, strict=True)
            )
        )


def on_criterion(
    breakdown: ColumnElement[int], connection: Connection, run_id: int, wanted: VerdictFilter
) -> Iterator[ColumnElement[bool]]:
    """`breakdown` is the column, or an expression of it that no index leads by."""
    name, end, model = wanted.criterion, wanted.criterion_end, wanted.model
    if name is None and end is None:
        return
    place = None if name is None else criteria_places(connection, run_id).get(name)
    if name is not None and place is None:
        yield false()
    elif end not in ("model", "other"):
        yield came_out(breakdown, run_id, place, None if end is None else [_CODES[end]])
    elif model is None:
        yield came_out(breakdown, run_id, place, _SIDES.values())
    else:
        codes = _SIDES.values() if end == "model" else reversed(_SIDES.values())
        yield or_(
            *(
                and_(
                    with_model_as(_MARK.contest + 0, run_id, model, side),
                    came_out(breakdown, run_id, place, [code]),
                )
                for side, code in zip(_SIDES, codes, strict=True)
            )
        )


# Pages of a table of verdicts, by the marks beside them.
#
# What meets the conditions is gathered first, up to ten thousand. Where that is all of it, it is
# sorted here. Where there is more it is frequent, and a walk along the index of the order comes
# upon a page of it soon.

COUNTED_UP_TO = 10_000
_PROMPT_CHARACTERS = 240
# Of a walk where words are looked for: so many rows are looked at for one page.
_LOOKED_AT = 2_000
_WALKED_AT_ONCE = 500

_KEYS: dict[Sort, Any] = {
    "number": _MARK.number,
    "confidence": _MARK.confidence,
    "length": _MARK.longer,
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
    ) -> FoundVerdicts:
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
            found = merge(*(_places(connection, each.limit(limit + 1)) for each in searches))
            places = list(islice(found, limit + 1))
            rows = rows_at(connection, run_id, places[:limit])
            if len(places) > limit:
                return FoundVerdicts(rows, places[limit - 1])
            return FoundVerdicts(rows, VerdictPlace(last + 1, 0) if last < whole else None)

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
        count_to: int | None = None,
    ) -> TablePage:
        """A page of the verdicts that are marked, and how many there are in all, up to 10,000, or
        up to `count_to`."""
        with self._reading() as connection:
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

    def count_up_to(
        self, run_id: int, wanted: VerdictFilter, most: int = COUNTED_UP_TO
    ) -> CountUpTo:
        with self._reading() as connection:
            return _Search(connection, run_id, wanted, "number").gathered(most)[1]

    def place_of(
        self,
        run_id: int,
        number: int,
        *,
        judge_ids: Sequence[int] | None = None,
        sort: Sort = "number",
    ) -> TablePlace | None:
        """Where a pair stands in a table, by the first of these judges with a verdict on it."""
        with self._reading() as connection:
            query = select(_KEYS[sort], _MARK.number, _MARK.judge_id).where(
                _MARK.run_id == run_id, _MARK.number == number
            )
            if judge_ids is not None:
                query = query.where(_MARK.judge_id.in_(list(judge_ids)))
            row = connection.execute(query.order_by(_MARK.judge_id)).first()
            return TablePlace(*row) if row else None


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
            *_conditions(replace(wanted, outcome=None, winner=None, ending=None), _BY_VERDICTS),
            column.number <= last,
        )
        for judge_id, place in product(judge_ids, wanted.ends):
            yield sifted.where(
                *_of_end(place),
                column.judge_id == judge_id,
                column.number >= after.number + (0 if judge_id > after.judge_id else 1),
            ).order_by(column.number)
        return
    sifted = of_run.where(*_conditions(wanted, _BY_VERDICTS), column.judge_id.in_(judge_ids))
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


def _sorted_page(
    found: list[TablePlace], order: _Order, start: TablePlace | None, limit: int
) -> tuple[list[TablePlace], TablePlace | None]:
    ahead = [place for place in found if start is None or order.rank(place) > order.rank(start)]
    ahead.sort(key=order.rank)
    return ahead[:limit], ahead[limit - 1] if len(ahead) > limit else None


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
        self, connection: Connection, run_id: int, wanted: VerdictFilter, sort: Sort
    ) -> None:
        self._connection = connection
        self._run_id = run_id
        self._tag = None if wanted.tag is None else shorten(wanted.tag)
        self._phrases = None if wanted.query is None else phrases_of(wanted.query)
        conditions = list(_index_conditions(run_id, wanted))
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
