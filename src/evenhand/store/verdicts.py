"""Verdicts read back: page by page, whole with their passes, one item at a time, or counted with
what they cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Table,
    func,
    select,
)

from evenhand.contract import Failure, Pair
from evenhand.contract.codes import INVALID
from evenhand.store.answers import find_answers, keys_before, prepares, written_before
from evenhand.store.columns import OUTCOMES, same_item
from evenhand.store.database import Subject
from evenhand.store.flags import flags_on
from evenhand.store.records import (
    ItemWhole,
    JudgedItem,
    JudgeRecord,
    Settled,
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
from evenhand.store.runs import judge_record, judges_of_run
from evenhand.store.schema import (
    items,
    judges,
    pairs,
    passes,
    replaced_passes,
    run_judges,
    shorten,
    skipped_rows,
    verdicts,
)
from evenhand.store.work import used_by

if TYPE_CHECKING:
    from evenhand.judging.preparation import GeneratedAnswer

_ITEM = [column for column in items.c if column.name != "run_id"]
_PAIR = [column for column in pairs.c if column.name not in ("id", "digest")]
_NOT_LIGHT = ("run_id", "number", "created_at", "by_criterion", "body")
_VERDICT = [column for column in verdicts.c if column.name not in _NOT_LIGHT]
_LIGHT = select(*_ITEM, *_VERDICT).join_from(verdicts, items, same_item)
_WHOLE = _LIGHT.add_columns(verdicts.c.by_criterion, verdicts.c.body, *_PAIR).join(
    pairs, pairs.c.id == items.c.pair_id
)

_PairAndJudge = tuple[int, int]


def _whole(connection: Connection, run_id: int, rows: Sequence[RowMapping]) -> list[WholeVerdict]:
    made = _passes_of(connection, passes, {(row["pair_id"], row["judge_id"]) for row in rows})
    flags = flags_on(connection, run_id, {row["number"] for row in rows})
    behind = [made[row["pair_id"], row["judge_id"]] for row in rows]
    judged = [
        (row["judge_id"], pair_of(row), settled_of(row, pair_passes))
        for row, pair_passes in zip(rows, behind, strict=True)
    ]
    settled_with = _with_artefacts(connection, judged)
    return [
        WholeVerdict(verdict_row(row), pair, settled, tuple(pair_passes), flags.get(row["number"]))
        for row, (_, pair, _), settled, pair_passes in zip(
            rows, judged, settled_with, behind, strict=True
        )
    ]


def _with_artefacts(
    connection: Connection, judged: Sequence[tuple[int, Pair, Settled]]
) -> list[Settled]:
    """With what was written before: looked up at once, and only for judges that prepare."""
    judge_ids = _preparing(connection, {judge_id for judge_id, _, _ in judged})
    wanted = [
        written_before(pair, judge_ids[judge_id]) if judge_id in judge_ids else []
        for judge_id, pair, _ in judged
    ]
    keys = {key for its in wanted for key, _ in its}
    stored = find_answers(connection, sorted(keys)) if keys else {}
    settled_with: list[Settled] = []
    for (_, _, settled), its in zip(judged, wanted, strict=True):
        prepared = [
            request.to_contract(stored[key], written_here=False)
            for key, request in its
            if key in stored
        ]
        if prepared and not isinstance(settled, Failure) and settled.passes:
            settled_with.append(replace(settled, artefacts=tuple(prepared)))
        else:
            settled_with.append(settled)
    return settled_with


def _preparing(connection: Connection, judge_ids: Collection[int]) -> dict[int, JudgeRecord]:
    query = select(judges).where(judges.c.id.in_(sorted(judge_ids)))
    records = [judge_record(row) for row in connection.execute(query).mappings()]
    return {judge.id: judge for judge in records if prepares(judge)}


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
    for pair_passes in made.values():
        pair_passes.sort(key=pass_key)
    return made


class VerdictPlace(NamedTuple):
    """Where a verdict stands in its run: by item, then by judge."""

    number: int
    judge_id: int


class VerdictStore(Subject):
    """Verdicts and items read back; runs tallied."""

    def tally(self, run_id: int, judge_id: int | None = None) -> Tally:
        with self._reading() as connection:
            judge_ids = _judges_of(run_id, judge_id)
            used = _spent(connection, passes, run_id, judge_ids)
            replaced = _spent(connection, replaced_passes, run_id, judge_ids)
            own = [row for row in used if row["run_id"] == run_id]
            return _verdicts(
                connection,
                run_id,
                judge_ids,
                unread_passes=sum(row["passes"] for row in used if row["status"] == "unread"),
                failed_passes=sum(row["passes"] for row in used if row["status"] == "failed"),
                reused_passes=sum(row["passes"] for row in used if row["run_id"] != run_id),
                used=_added(used),
                made=_added([*own, *(row for row in replaced if row["run_id"] == run_id)]),
            )

    def count(self, run_id: int, judge_id: int | None = None) -> Tally:
        """A tally of pairs and outcomes alone, which an index holds; the rest of it is empty."""
        with self._reading() as connection:
            return _verdicts(connection, run_id, _judges_of(run_id, judge_id))

    def at(self, run_id: int, places: Sequence[VerdictPlace]) -> list[VerdictRow]:
        with self._reading() as connection:
            return [verdict_row(row) for row in _rows_at(connection, _LIGHT, run_id, places)]

    def whole_at(self, run_id: int, places: Sequence[VerdictPlace]) -> list[WholeVerdict]:
        """These very verdicts, with everything behind them."""
        with self._reading() as connection:
            return _whole(connection, run_id, [*_rows_at(connection, _WHOLE, run_id, places)])

    def page(
        self, run_id: int, *, after: int = 0, limit: int = 500, judge_id: int | None = None
    ) -> list[VerdictRow]:
        """A page after item number `after`, by number, then judge; an empty one is the end."""
        with self._reading() as connection:
            rows = _page(connection, _LIGHT, run_id, after=after, limit=limit, judge_id=judge_id)
            return [verdict_row(row) for row in rows]

    def whole_page(
        self, run_id: int, *, after: int = 0, limit: int = 100, judge_id: int | None = None
    ) -> list[WholeVerdict]:
        """The same, each with its pair, its passes and its prose."""
        with self._reading() as connection:
            rows = _page(connection, _WHOLE, run_id, after=after, limit=limit, judge_id=judge_id)
            return _whole(connection, run_id, rows)

    def each(self, run_id: int, *, judge_id: int | None = None) -> Iterator[VerdictRow]:
        """All of them, a page in memory at a time."""
        after = 0
        while rows := self.page(run_id, after=after, judge_id=judge_id):
            yield from rows
            after = rows[-1].item.number

    def each_whole(self, run_id: int, *, judge_id: int | None = None) -> Iterator[WholeVerdict]:
        after = 0
        while rows := self.whole_page(run_id, after=after, judge_id=judge_id):
            yield from rows
            after = rows[-1].row.item.number

    def artefacts_behind(self, run_id: int, judge: JudgeRecord) -> list[GeneratedAnswer]:
        """Every text that was written before this judge's verdicts, whichever run had it written;
        one that pairs share, once."""
        keys: set[str] = set()
        for whole in self.each_whole(run_id, judge_id=judge.id):
            keys.update(keys_before(whole.pair, judge))
        with self._reading() as connection:
            return list(find_answers(connection, sorted(keys)).values())

    def item(self, run_id: int, key: str) -> ItemWhole | None:
        """One item with everything on it; `key` is the row's id."""
        with self._reading() as connection:
            query = (
                select(*_ITEM, *_PAIR)
                .join(pairs, pairs.c.id == items.c.pair_id)
                .where(items.c.run_id == run_id, items.c.key == shorten(key))
            )
            row = connection.execute(query).mappings().first()
            if row is None:
                return None
            item = item_record(row)
            query = _WHOLE.where(verdicts.c.run_id == run_id, verdicts.c.number == item.number)
            by_judge = {each["judge_id"]: each for each in connection.execute(query).mappings()}
            judge_ids = judges_of_run(connection, run_id)
            wanted = [(item.pair_id, judge.id) for judge in judge_ids]
            made = _passes_of(connection, passes, wanted)
            replaced = _passes_of(connection, replaced_passes, wanted)
            judged = []
            pair = pair_of(row)
            for judge in judge_ids:
                pair_passes = made[item.pair_id, judge.id]
                verdict = by_judge.get(judge.id)
                settled = None
                if verdict is not None:
                    own = settled_of(verdict, pair_passes)
                    (settled,) = _with_artefacts(connection, [(judge.id, pair, own)])
                judged.append(
                    JudgedItem(
                        judge=judge,
                        settled=settled,
                        passes=tuple(pair_passes),
                        replaced=tuple(replaced[item.pair_id, judge.id]),
                    )
                )
            flag = flags_on(connection, run_id, [item.number]).get(item.number)
            return ItemWhole(item, pair, tuple(judged), flag)


def _rows_at(
    connection: Connection, query: Select[Any], run_id: int, places: Sequence[VerdictPlace]
) -> Iterator[RowMapping]:
    """These very verdicts, by item, then by judge."""
    there = {*places}
    for some in in_slices(sorted({place.number for place in places})):
        of_items = query.where(verdicts.c.run_id == run_id, verdicts.c.number.in_(some))
        rows = connection.execute(of_items.order_by(verdicts.c.number, verdicts.c.judge_id))
        # Other judges of the same items are left out.
        yield from (row for row in rows.mappings() if (row["number"], row["judge_id"]) in there)


def _judges_of(run_id: int, judge_id: int | None) -> Select[tuple[int]]:
    """All of the run, or this one of them."""
    judge_ids = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
    return judge_ids if judge_id is None else judge_ids.where(run_judges.c.judge_id == judge_id)


def _verdicts(
    connection: Connection, run_id: int, judge_ids: Select[tuple[int]], **on_passes: Any
) -> Tally:
    codes = _counted(connection, run_id, judge_ids)
    pairs = count_items(connection, run_id)
    judges = connection.execute(select(func.count()).select_from(judge_ids.subquery())).scalar_one()
    skipped = select(func.count()).where(skipped_rows.c.run_id == run_id)
    return Tally.of_codes(
        codes,
        pairs=pairs,
        pending=pairs * judges - sum(codes),
        skipped_rows=connection.execute(skipped).scalar_one(),
        **on_passes,
    )


def _counted(connection: Connection, run_id: int, judge_ids: Any) -> list[int]:
    """By the outcomes' codes."""
    column = verdicts.c
    # By judge too, in the order of the index: then nothing has to be sorted.
    by_end = (column.judge_id, column.outcome, column.winner)
    query = (
        select(column.outcome, column.winner, func.count())
        .where(column.run_id == run_id, column.judge_id.in_(judge_ids))
        .group_by(*by_end)
    )
    codes = [0] * (INVALID + 1)
    for outcome, winner, count in connection.execute(query):
        codes[OUTCOMES[outcome, winner]] += count
    return codes


def _spent(connection: Connection, table: Table, run_id: int, judge_ids: Any) -> list[RowMapping]:
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
        .where(used_by(table, run_id), column.judge_id.in_(judge_ids))
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
