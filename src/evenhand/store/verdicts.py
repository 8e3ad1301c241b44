"""Verdicts read back: page by page, whole with their passes, one item at a time, by filter, or
counted with what they cost.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice, product
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    and_,
    func,
    select,
    tuple_,
)

from evenhand.contract import Outcome, Winner
from evenhand.store.database import Database
from evenhand.store.records import (
    ItemWhole,
    JudgedItem,
    Spending,
    StoredPass,
    Tally,
    VerdictRow,
    WholeVerdict,
)
from evenhand.store.rows import (
    count_items,
    in_slices,
    item_record,
    pair_of,
    pass_key,
    settled_of,
    stored_pass,
    verdict_row,
)
from evenhand.store.runs import judges_of_run
from evenhand.store.schema import (
    item_tags,
    items,
    pairs,
    passes,
    replaced_passes,
    run_judges,
    shorten,
    skipped_rows,
    verdicts,
)
from evenhand.store.work import used_by

# Verdicts read back: page by page for tables, whole with their passes, or one item at a time.

_ITEM = [column for column in items.c if column.name != "run_id"]
_PAIR = [column for column in pairs.c if column.name not in ("id", "digest")]
_VERDICT = [
    column for column in verdicts.c if column.name not in ("run_id", "number", "created_at", "body")
]
LIGHT = select(*_ITEM, *_VERDICT).join_from(
    verdicts,
    items,
    (items.c.run_id == verdicts.c.run_id) & (items.c.number == verdicts.c.number),
)
_WHOLE = LIGHT.add_columns(verdicts.c.body, *_PAIR).join(pairs, pairs.c.id == items.c.pair_id)

_PairAndJudge = tuple[int, int]
_T = TypeVar("_T")


def whole_of(
    connection: Connection, condition: ColumnElement[bool], places: Collection[tuple[int, int]]
) -> list[WholeVerdict]:
    """Those that meet the condition and stand at these places (item number, judge)."""
    query = _WHOLE.where(condition).order_by(verdicts.c.number, verdicts.c.judge_id)
    found = connection.execute(query).mappings()
    rows = [row for row in found if (row["number"], row["judge_id"]) in places]
    made = _passes_of(connection, passes, {(row["pair_id"], row["judge_id"]) for row in rows})
    return [_whole(row, made[row["pair_id"], row["judge_id"]]) for row in rows]


def _whole(row: RowMapping, made: Sequence[StoredPass]) -> WholeVerdict:
    return WholeVerdict(verdict_row(row), pair_of(row), settled_of(row, made), tuple(made))


def _page(
    connection: Connection,
    query: Select[Any],
    run_id: int,
    *,
    after: int,
    limit: int,
    judge_id: int | None,
) -> list[RowMapping]:
    """Whole items: where the last one has verdicts of further judges, they come with it."""
    query = query.where(verdicts.c.run_id == run_id)
    if judge_id is not None:
        query = query.where(verdicts.c.judge_id == judge_id)
    query = query.order_by(verdicts.c.number, verdicts.c.judge_id)
    first = query.where(verdicts.c.number > after).limit(limit)
    rows = list(connection.execute(first).mappings())
    if len(rows) == limit:
        last = rows[-1]
        rest = query.where(
            verdicts.c.number == last["number"], verdicts.c.judge_id > last["judge_id"]
        )
        rows += connection.execute(rest).mappings()
    return rows


def _passes_of(
    connection: Connection, table: Table, wanted: Iterable[_PairAndJudge]
) -> defaultdict[_PairAndJudge, list[StoredPass]]:
    """The passes of these pairs by these judges, original order first."""
    pair_ids: defaultdict[int, set[int]] = defaultdict(set)
    for pair_id, judge_id in wanted:
        pair_ids[judge_id].add(pair_id)
    made: defaultdict[_PairAndJudge, list[StoredPass]] = defaultdict(list)
    for judge_id, ids in pair_ids.items():
        query = select(table).where(table.c.pair_id.in_(sorted(ids)), table.c.judge_id == judge_id)
        for row in connection.execute(query.order_by(table.c.created_at)).mappings():
            made[row["pair_id"], judge_id].append(stored_pass(row))
    for found in made.values():
        found.sort(key=pass_key)
    return made


# Verdicts of a run that meet conditions, in the order of its items, page by page.
#
# An index leads to what may meet them; the rest is looked at, and never more than a bound in one
# call, so that a page takes as long in a run of a million pairs as in one of a thousand.

End = tuple[Outcome, Winner | None]
# Every outcome with every winner that it can have.
_ENDS: tuple[End, ...] = (
    (Outcome.WIN, "A"),
    (Outcome.WIN, "B"),
    (Outcome.TIE, "TIE"),
    (Outcome.INCONSISTENT, "TIE"),
    (Outcome.INCONSISTENT, "A"),
    (Outcome.INCONSISTENT, "B"),
    (Outcome.INVALID, None),
)


class VerdictPlace(NamedTuple):
    """Where a verdict stands in its run: by item, then by judge."""

    number: int
    judge_id: int


RUN_START = VerdictPlace(0, 0)


@dataclass(frozen=True, slots=True)
class VerdictFilter:
    """Every condition that is given must hold.

    `disagrees` is of labelled pairs alone: a verdict agrees where it is the label, and an
    inconsistent or invalid pair has none that could.
    """

    outcome: Outcome | None = None
    winner: Winner | None = None
    judge_ids: tuple[int, ...] | None = None
    tag: str | None = None
    disagrees: bool | None = None
    abstained: bool | None = None
    min_confidence: float | None = None
    max_confidence: float | None = None

    @property
    def ends(self) -> tuple[End, ...] | None:
        """How a pair may have come out; None where that is all one."""
        if self.outcome is None and self.winner is None:
            return None
        return tuple(
            end for end in _ENDS if self.outcome in (None, end[0]) and self.winner in (None, end[1])
        )

    @property
    def sifted(self) -> bool:
        """Whether an index leads to more than what meets the conditions."""
        by_index = (self.tag is not None, self.abstained is True, self.ends is not None)
        looked_at = (self.disagrees, self.min_confidence, self.max_confidence, self.judge_ids)
        return (
            sum(by_index) > 1
            or self.abstained is False
            or any(each is not None for each in looked_at)
        )


@dataclass(frozen=True, slots=True)
class FoundVerdicts:
    """`reached` is how far the search came, and None at the end; rows may be few before it."""

    rows: list[VerdictRow]
    reached: VerdictPlace | None


class VerdictStore(Database):
    """Verdicts and items read back; runs tallied."""

    def tally(self, run_id: int, judge_id: int | None = None) -> Tally:
        with self._reading() as connection:
            its_judges = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
            if judge_id is not None:
                its_judges = its_judges.where(run_judges.c.judge_id == judge_id)
            used = _spent(connection, passes, run_id, its_judges)
            replaced = _spent(connection, replaced_passes, run_id, its_judges)
            own = [row for row in used if row["run_id"] == run_id]
            return replace(
                _verdicts(connection, run_id, its_judges),
                ballot_passes=sum(row["passes"] for row in used if row["status"] == "ballot"),
                unread_passes=sum(row["passes"] for row in used if row["status"] == "unread"),
                failed_passes=sum(row["passes"] for row in used if row["status"] == "failed"),
                reused_passes=sum(row["passes"] for row in used if row["run_id"] != run_id),
                used=_added(used),
                made=_added([*own, *(row for row in replaced if row["run_id"] == run_id)]),
            )

    def count_verdicts(self, run_id: int) -> Tally:
        """A tally of pairs and outcomes alone, which an index holds; the rest of it is empty."""
        with self._reading() as connection:
            its_judges = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
            return _verdicts(connection, run_id, its_judges)

    def find_verdicts(
        self,
        run_id: int,
        wanted: VerdictFilter,
        *,
        after: VerdictPlace = RUN_START,
        limit: int = 100,
        look_at: int = 50_000,
    ) -> FoundVerdicts:
        """A page of those that meet conditions; at most `look_at` items are looked at for it."""
        with self._reading() as connection:
            last = count_items(connection, run_id)
            if wanted.sifted:
                last = min(last, after.number + look_at)
            # One more than is wanted: then the last page knows that it is the last.
            searches = list(_searches(connection, run_id, wanted, after, last))
            found = merge(*(_places(connection, each.limit(limit + 1)) for each in searches))
            places = list(islice(found, limit + 1))
            rows = rows_at(connection, run_id, places[:limit])
            if len(places) > limit:
                return FoundVerdicts(rows, places[limit - 1])
            if wanted.sifted and last < count_items(connection, run_id):
                return FoundVerdicts(rows, VerdictPlace(last + 1, 0))
            return FoundVerdicts(rows, None)

    def verdicts_at(self, run_id: int, places: Sequence[VerdictPlace]) -> list[VerdictRow]:
        with self._reading() as connection:
            return rows_at(connection, run_id, places)

    def whole_verdicts_at(self, run_id: int, places: Sequence[VerdictPlace]) -> list[WholeVerdict]:
        """These very verdicts, with everything behind them."""
        with self._reading() as connection:
            return whole_of(connection, _at(run_id, places), {*places})

    def verdicts(
        self, run_id: int, *, after: int = 0, limit: int = 500, judge_id: int | None = None
    ) -> list[VerdictRow]:
        """A page after item number `after`, by number, then judge; an empty one is the end."""
        with self._reading() as connection:
            rows = _page(connection, LIGHT, run_id, after=after, limit=limit, judge_id=judge_id)
            return [verdict_row(row) for row in rows]

    def whole_verdicts(
        self, run_id: int, *, after: int = 0, limit: int = 100, judge_id: int | None = None
    ) -> list[WholeVerdict]:
        """The same, each with its pair, its passes and its prose."""
        with self._reading() as connection:
            rows = _page(connection, _WHOLE, run_id, after=after, limit=limit, judge_id=judge_id)
            made = _passes_of(
                connection, passes, {(row["pair_id"], row["judge_id"]) for row in rows}
            )
            return [_whole(row, made[row["pair_id"], row["judge_id"]]) for row in rows]

    def each_verdict(self, run_id: int, *, judge_id: int | None = None) -> Iterator[VerdictRow]:
        """All of them, a page in memory at a time."""

        def page(after: int) -> list[VerdictRow]:
            return self.verdicts(run_id, after=after, judge_id=judge_id)

        return _each(page, lambda row: row.item.number)

    def each_whole_verdict(
        self, run_id: int, *, judge_id: int | None = None
    ) -> Iterator[WholeVerdict]:
        def page(after: int) -> list[WholeVerdict]:
            return self.whole_verdicts(run_id, after=after, judge_id=judge_id)

        return _each(page, lambda whole: whole.row.item.number)

    def item(self, run_id: int, key: str) -> ItemWhole | None:
        """One item with everything on it; `key` is the row's id."""
        with self._reading() as connection:
            found = (
                select(*_ITEM, *_PAIR)
                .join(pairs, pairs.c.id == items.c.pair_id)
                .where(items.c.run_id == run_id, items.c.key == shorten(key))
            )
            row = connection.execute(found).mappings().first()
            if row is None:
                return None
            item = item_record(row)
            query = _WHOLE.where(verdicts.c.run_id == run_id, verdicts.c.number == item.number)
            by_judge = {each["judge_id"]: each for each in connection.execute(query).mappings()}
            judges = judges_of_run(connection, run_id)
            wanted = [(item.pair_id, judge.id) for judge in judges]
            made = _passes_of(connection, passes, wanted)
            replaced = _passes_of(connection, replaced_passes, wanted)
            judged = []
            for judge in judges:
                its_passes = made[item.pair_id, judge.id]
                verdict = by_judge.get(judge.id)
                judged.append(
                    JudgedItem(
                        judge=judge,
                        settled=settled_of(verdict, its_passes) if verdict is not None else None,
                        passes=tuple(its_passes),
                        replaced=tuple(replaced[item.pair_id, judge.id]),
                    )
                )
            return ItemWhole(item, pair_of(row), tuple(judged))


def _each(page: Callable[[int], list[_T]], number: Callable[[_T], int]) -> Iterator[_T]:
    rows = page(0)
    while rows:
        yield from rows
        rows = page(number(rows[-1]))


def _searches(
    connection: Connection,
    run_id: int,
    wanted: VerdictFilter,
    after: VerdictPlace,
    last: int,
) -> Iterator[Select[Any]]:
    """Each by the index that leads to the fewest, in the order of the items."""
    judge_ids = [judge.id for judge in judges_of_run(connection, run_id)]
    if wanted.judge_ids is not None:
        judge_ids = [each for each in judge_ids if each in wanted.judge_ids]
    column = verdicts.c
    sifted = select(column.number, column.judge_id).where(
        column.run_id == run_id, *_conditions(wanted)
    )
    if wanted.disagrees is not None:
        its_item = and_(items.c.run_id == column.run_id, items.c.number == column.number)
        sifted = sifted.join(items, its_item)
    if wanted.tag is None and not wanted.abstained and wanted.ends is not None:
        up_to = sifted.where(column.number <= last).order_by(column.number)
        for judge_id, end in product(judge_ids, wanted.ends):
            yield up_to.where(*_of_end(judge_id, end, after))
        return
    # By the tags' own numbers, where there is one: the verdicts' would lead through all of them.
    number = column.number if wanted.tag is None else item_tags.c.number
    if wanted.tag is not None:
        has_tag = and_(item_tags.c.run_id == column.run_id, number == column.number)
        its_tag = and_(item_tags.c.run_id == run_id, item_tags.c.tag == shorten(wanted.tag))
        sifted = sifted.join(item_tags, has_tag).where(its_tag, number >= after.number)
    yield sifted.where(
        column.judge_id.in_(judge_ids),
        number <= last,
        tuple_(number, column.judge_id) > tuple(after),
    ).order_by(number, column.judge_id)


def _of_end(judge_id: int, end: End, after: VerdictPlace) -> Iterator[ColumnElement[bool]]:
    outcome, winner = end
    yield verdicts.c.judge_id == judge_id
    yield verdicts.c.outcome == str(outcome)
    yield verdicts.c.winner.is_(None) if winner is None else verdicts.c.winner == winner
    yield verdicts.c.number >= (after.number if judge_id > after.judge_id else after.number + 1)


def _places(connection: Connection, query: Select[Any]) -> Iterator[VerdictPlace]:
    return (VerdictPlace(*row) for row in connection.execute(query))


def rows_at(
    connection: Connection, run_id: int, places: Sequence[VerdictPlace]
) -> list[VerdictRow]:
    """These very verdicts, by item, then by judge."""
    rows: list[VerdictRow] = []
    for some in in_slices(places):
        query = LIGHT.where(_at(run_id, some)).order_by(verdicts.c.number, verdicts.c.judge_id)
        there = {*some}
        rows += [
            verdict_row(row)
            for row in connection.execute(query).mappings()
            if (row["number"], row["judge_id"]) in there
        ]
    return rows


def _at(run_id: int, places: Sequence[VerdictPlace]) -> ColumnElement[bool]:
    """With other judges of the same items, which the caller leaves out."""
    numbers = list(dict.fromkeys(place.number for place in places))
    return and_(verdicts.c.run_id == run_id, verdicts.c.number.in_(numbers))


def _conditions(wanted: VerdictFilter) -> Iterator[ColumnElement[bool]]:
    column = verdicts.c
    if wanted.ends is not None and (wanted.tag is not None or wanted.abstained):
        if wanted.outcome is not None:
            yield column.outcome == str(wanted.outcome)
        if wanted.winner is not None:
            yield column.winner == wanted.winner
    if wanted.abstained is not None:
        yield column.abstained if wanted.abstained else ~column.abstained
    if wanted.min_confidence is not None:
        yield column.confidence >= wanted.min_confidence
    if wanted.max_confidence is not None:
        yield column.confidence <= wanted.max_confidence
    if wanted.disagrees is not None:
        agrees = and_(column.outcome.in_(("win", "tie")), column.winner == items.c.label)
        yield items.c.label.is_not(None)
        yield ~agrees if wanted.disagrees else agrees


# A run in numbers: two sums over its verdicts and its passes.


def _verdicts(connection: Connection, run_id: int, its_judges: Select[tuple[int]]) -> Tally:
    counted = _counted(connection, run_id, its_judges)
    pairs = count_items(connection, run_id)
    judges = connection.execute(
        select(func.count()).select_from(its_judges.subquery())
    ).scalar_one()
    skipped = select(func.count()).where(skipped_rows.c.run_id == run_id)
    return Tally(
        pairs=pairs,
        wins_a=counted.get(("win", "A"), 0),
        wins_b=counted.get(("win", "B"), 0),
        ties=_of_outcome(counted, "tie"),
        inconsistent=_of_outcome(counted, "inconsistent"),
        invalid=_of_outcome(counted, "invalid"),
        pending=pairs * judges - sum(counted.values()),
        skipped_rows=connection.execute(skipped).scalar_one(),
    )


def _counted(
    connection: Connection, run_id: int, its_judges: Any
) -> dict[tuple[str, str | None], int]:
    column = verdicts.c
    # By judge too, in the order of the index: then nothing has to be sorted.
    by_end = (column.judge_id, column.outcome, column.winner)
    query = (
        select(column.outcome, column.winner, func.count())
        .where(column.run_id == run_id, column.judge_id.in_(its_judges))
        .group_by(*by_end)
    )
    counted: Counter[tuple[str, str | None]] = Counter()
    for outcome, winner, count in connection.execute(query):
        counted[outcome, winner] += count
    return counted


def _of_outcome(counted: dict[tuple[str, str | None], int], wanted: str) -> int:
    return sum(count for (outcome, _), count in counted.items() if outcome == wanted)


def _spent(connection: Connection, table: Table, run_id: int, its_judges: Any) -> list[RowMapping]:
    column = table.c
    query = (
        select(
            column.status,
            column.run_id,
            func.count().label("passes"),
            func.sum(column.requests).label("requests"),
            func.sum(column.input_tokens).label("input_tokens"),
            func.sum(column.output_tokens).label("output_tokens"),
            func.sum(column.cached_input_tokens).label("cached_input_tokens"),
            func.sum(column.cost_usd).label("cost_usd"),
            func.count(column.input_tokens + column.output_tokens).label("counted"),
            func.count(column.cost_usd).label("priced"),
            func.sum(column.time_ms).label("time_ms"),
        )
        .where(used_by(table, run_id), column.judge_id.in_(its_judges))
        .group_by(column.status, column.run_id)
    )
    return list(connection.execute(query).mappings())


def _added(rows: list[RowMapping]) -> Spending:
    count = sum(row["passes"] for row in rows)
    return Spending(
        passes=count,
        requests=int(sum(row["requests"] for row in rows)),
        input_tokens=_whole_sum(row["input_tokens"] for row in rows),
        output_tokens=_whole_sum(row["output_tokens"] for row in rows),
        cached_input_tokens=_whole_sum(row["cached_input_tokens"] for row in rows),
        cost_usd=_known_sum(row["cost_usd"] for row in rows),
        uncounted_passes=count - sum(row["counted"] for row in rows),
        unpriced_passes=count - sum(row["priced"] for row in rows),
        time_ms=sum(row["time_ms"] for row in rows),
    )


def _known_sum(values: Iterable[Any]) -> Any:
    there = [value for value in values if value is not None]
    return sum(there) if there else None


def _whole_sum(values: Iterable[Any]) -> int | None:
    # PostgreSQL's sum of whole numbers is a Decimal.
    total = _known_sum(values)
    return None if total is None else int(total)
