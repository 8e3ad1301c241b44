"""What is left to judge, by number or in a queue; writing passes and verdicts; retiring passes; the
state of a queue's contests.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, TypeVar

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    CursorResult,
    FromClause,
    RowMapping,
    Select,
    Table,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
    union,
    update,
)

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.errors import InputError
from evenhand.store.answers import NewAnswer, add_answers
from evenhand.store.batches import PassAsked, forget
from evenhand.store.columns import OUTCOMES, fill, same_item
from evenhand.store.database import Subject
from evenhand.store.records import (
    QUEUE_START,
    Contest,
    NewPass,
    NewVerdict,
    PassKey,
    PrefixColumns,
    Queued,
    QueuePlace,
    StoredPass,
    WorkItem,
)
from evenhand.store.rows import (
    OF_ITEM,
    PASS_COLUMNS,
    VERDICT_COLUMNS,
    count_items,
    insert_new,
    pair_of,
    pass_key,
    pass_values,
    stored_pass,
    verdict_values,
)
from evenhand.store.runs import refuse_forgotten
from evenhand.store.schema import (
    items,
    pairs,
    passes,
    queue,
    replaced_passes,
    run_judges,
    runs,
    verdicts,
)

_Query = TypeVar("_Query", bound=Select[Any])

_has_no_verdict = (
    ~select(literal(1))
    .where(
        verdicts.c.run_id == items.c.run_id,
        verdicts.c.number == items.c.number,
        verdicts.c.judge_id == bindparam("judge"),
    )
    .exists()
)
_earlier = items.alias()
_repeats_another = (
    select(literal(1))
    .where(
        _earlier.c.run_id == items.c.run_id,
        _earlier.c.pair_id == items.c.pair_id,
        _earlier.c.number < items.c.number,
    )
    .exists()
)
_PENDING = (
    select(items.c.number, *OF_ITEM, pairs)
    .join(pairs, pairs.c.id == items.c.pair_id)
    .where(items.c.run_id == bindparam("run"), items.c.number > bindparam("after"))
    .where(_has_no_verdict)
    .order_by(items.c.number)
    .limit(bindparam("most"))
)
_PENDING_UP_TO = _PENDING.where(items.c.number <= bindparam("up_to"))
_PENDING_NUMBERS = (
    select(items.c.number)
    .where(items.c.run_id == bindparam("run"), items.c.number > bindparam("after"))
    .where(items.c.number <= bindparam("up_to"), _has_no_verdict)
    .order_by(items.c.number)
    .limit(bindparam("most"))
)
_PASSES_OF_PENDING = (
    select(items.c.number, passes)
    .join(passes, passes.c.pair_id == items.c.pair_id)
    .where(items.c.run_id == bindparam("run"))
    .where(items.c.number.between(bindparam("first"), bindparam("last")))
    .where(passes.c.judge_id == bindparam("judge"))
    .where(_has_no_verdict)
)


_LAST_OF_ALL = 2**62


class WorkStore(Subject):
    """Pending pairs go out; passes and verdicts come in."""

    def pending(
        self,
        run_id: int,
        judge_id: int,
        *,
        after: int,
        limit: int,
        up_to: int | None = None,
        firsts: bool | None = None,
    ) -> list[WorkItem]:
        """Items after number `after` without this judge's verdict, by number.

        `firsts`: of items with the same content only the first, or only the others.
        """
        with self._reading() as connection:
            refuse_forgotten(connection, run_id)
            asked = {"run": run_id, "judge": judge_id, "after": after, "most": limit}
            query = _PENDING
            if up_to is not None:
                query, asked["up_to"] = _PENDING_UP_TO, up_to
            rows = connection.execute(_only(query, firsts), asked).mappings().all()
            if not rows:
                return []
            reach = {"run": run_id, "judge": judge_id}
            reach |= {"first": rows[0]["number"], "last": rows[-1]["number"]}
            made = _passes_by("number", connection.execute(_PASSES_OF_PENDING, reach))
            return [_work_item(row, made.get(row["number"], {})) for row in rows]

    def pending_span(
        self,
        run_id: int,
        judge_id: int,
        *,
        after: int,
        limit: int,
        up_to: int | None = None,
        firsts: bool | None = None,
    ) -> tuple[int, int, int] | None:
        """Their first number, last number and count, without texts."""
        with self._reading() as connection:
            each = _only(_PENDING_NUMBERS, firsts).subquery().c.number
            asked = {"run": run_id, "judge": judge_id, "after": after, "most": limit}
            asked["up_to"] = _LAST_OF_ALL if up_to is None else up_to
            first, last, count = connection.execute(
                select(func.min(each), func.max(each), func.count(each)), asked
            ).one()
            return (first, last, count) if count else None

    def count_pending_texts(self, run_id: int, judge_id: int) -> tuple[int, int, int]:
        """Of pairs without a verdict: the number of distinct prompts, prompts without a reference,
        and responses; two responses a pair if models have no names."""
        asked = {"run": run_id, "judge": judge_id}
        pending = items.c.run_id == bindparam("run"), _has_no_verdict
        of_pair = select(pairs.c.prompt, pairs.c.context).join(items, items.c.pair_id == pairs.c.id)
        prompts = of_pair.where(*pending).distinct()
        sides = [
            select(items.c.prompt_key, items.c[f"model_{side}"], items.c[f"length_{side}"])
            for side in "ab"
        ]
        unnamed = or_(items.c.model_a.is_(None), items.c.model_b.is_(None))
        with self._reading() as connection:

            def count(query: Select[Any] | CompoundSelect[Any]) -> int:
                counted = select(func.count()).select_from(query.subquery())
                return connection.execute(counted, asked).scalar_one()

            every, without = count(prompts), count(prompts.where(pairs.c.reference.is_(None)))
            keys = count(select(items.c.prompt_key).where(*pending).distinct())
            # Different prompts of one cluster share a key, which then says too little.
            if keys == every and not count(select(literal(1)).where(*pending, unnamed).limit(1)):
                return every, without, count(union(*[side.where(*pending) for side in sides]))
            return every, without, 2 * count(select(items.c.number).where(*pending))

    def write(
        self,
        new_passes: Sequence[NewPass],
        new_verdicts: Sequence[NewVerdict],
        *,
        answers: Sequence[NewAnswer] = (),
        settled: Sequence[PassAsked] = (),
    ) -> None:
        """Atomic and idempotent. `settled` passes and artefacts no longer need their batches'
        answers."""
        now = time.time()
        # In a fixed order, so that two processes cannot deadlock.
        pass_rows = sorted([pass_values(new, now) for new in new_passes], key=lambda row: row[:4])
        verdict_rows = [verdict_values(new, now) for new in new_verdicts]
        with self._writing() as connection:
            insert_new(connection, passes, PASS_COLUMNS, pass_rows)
            insert_new(connection, verdicts, VERDICT_COLUMNS, verdict_rows)
            if answers:
                add_answers(connection, answers)
            forget(connection, settled)
        self._database.note_growth("passes, verdicts", len(pass_rows))

    def retire(self, run_id: int, statuses: Collection[Literal["failed", "unread"]]) -> int:
        """Set such passes of the run aside, and drop the verdicts that rest on them."""
        with self._writing() as connection:
            retired = and_(
                passes.c.status.in_(sorted(statuses)),
                passes.c.judge_id.in_(
                    select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
                ),
                used_by(passes, run_id),
            )
            moved = [passes.c[name] for name in PASS_COLUMNS]
            copy = select(literal(time.time()), *moved).where(retired)
            connection.execute(
                insert(replaced_passes).from_select(["replaced_at", *PASS_COLUMNS], copy)
            )
            rests_on = (
                select(verdicts.c.run_id, verdicts.c.number, verdicts.c.judge_id)
                .select_from(passes)
                .join(items, items.c.pair_id == passes.c.pair_id)
                .join(
                    verdicts,
                    and_(
                        verdicts.c.run_id == items.c.run_id,
                        verdicts.c.number == items.c.number,
                        verdicts.c.judge_id == passes.c.judge_id,
                    ),
                )
                .where(retired, passes.c.sample <= verdicts.c.samples)
                .where(shown_in(items, passes.c.shown_order))
            )
            key = tuple_(verdicts.c.run_id, verdicts.c.number, verdicts.c.judge_id)
            undone = rests_on.subquery()
            touched = runs.c.id.in_(select(undone.c.run_id))
            now = time.time()
            connection.execute(update(runs).where(touched).values(state="stopped", updated_at=now))
            connection.execute(delete(verdicts).where(key.in_(rests_on)))
            if "failed" in statuses:
                # Another run may have made the failed pass since.
                judge_failed = and_(verdicts.c.run_id == run_id, verdicts.c.error_kind != "invalid")
                connection.execute(delete(verdicts).where(judge_failed))
            return connection.execute(delete(passes).where(retired)).rowcount

    def fill_queue(self, run_id: int, *, seed: int, by_models: bool = False) -> None:
        """Queue the run's prompts in a seeded random order, together, or by contest.

        Call once all items are stored. A filled queue stays as it is, whatever the seed.
        """
        with self._writing() as connection:
            there = select(func.count()).where(queue.c.run_id == run_id)
            filled = count_items(connection, run_id)
            if connection.execute(there).scalar_one() == filled:
                return
            connection.execute(delete(queue).where(queue.c.run_id == run_id))
            contests: dict[frozenset[str], int] | None = {} if by_models else None
            for page in _items(connection, run_id):
                rows = [
                    (run_id, _contest(contests, number, *models), _place(seed, key), number)
                    for number, key, *models in page
                ]
                insert_new(connection, queue, _COLUMNS, sorted(rows))
        self._database.note_growth("queue", filled)

    def queued(
        self,
        run_id: int,
        judge_id: int,
        *,
        contest: int = 0,
        after: QueuePlace = QUEUE_START,
        limit: int,
    ) -> list[Queued]:
        """Items after this place without the judge's verdict, in queue order.

        `contest` is 0 if the queue ignores models, and for its uniform share.
        """
        with self._reading() as connection:
            asked = {"run": run_id, "judge": judge_id, "contest": contest, "most": limit}
            asked |= {"place": after.place, "number": after.number}
            rows = connection.execute(_QUEUED, asked).mappings().all()
            if not rows:
                return []
            of_pairs = passes.c.pair_id.in_({row["id"] for row in rows})
            query = select(passes).where(of_pairs, passes.c.judge_id == judge_id)
            made = _passes_by("pair_id", connection.execute(query))
            return [
                Queued(
                    QueuePlace(row["place"], row["number"]),
                    (row["model_a"], row["model_b"]),
                    _work_item(row, made.get(row["id"], {})),
                )
                for row in rows
            ]

    def draw_uniform_share(self, run_id: int, judge_id: int, *, number: int, seed: int) -> None:
        """Fill the uniform share of a queue up to `number` items: pending ones at random, every
        contest equally often. It is contest 0, in the order to ask."""
        share: list[dict[str, Any]] = []
        with self._writing() as connection:
            if (there := connection.execute(_SHARE_SIZE, {"run": run_id}).scalar_one()) >= number:
                return
            rows = connection.execute(_DRAWABLE, {"run": run_id, "judge": judge_id}).all()
            drawn = Counter(frozenset(models) for contest, _, _, *models, _ in rows if not contest)
            pending = [row for row in rows if row.contest and row.pending]
            pending.sort(key=lambda row: _draw(seed, row.number))
            ranked: list[tuple[int, int, int, int, int]] = []
            for contest, place, item, *models, _ in pending:
                ranked.append((drawn[frozenset(models)], len(ranked), contest, place, item))
                drawn[frozenset(models)] += 1
            ranked.sort()
            for at, (_, _, contest, place, item) in enumerate(ranked[: number - there], there + 1):
                share.append({"run": run_id, "of": contest, "was": place, "item": item, "at": at})
            if share:
                connection.execute(_MOVE_TO_SHARE, share)

    def uniform_share(self, run_id: int) -> set[int]:
        """The items of a run's uniform share, by number."""
        with self._reading() as connection:
            return set(connection.execute(_SHARE, {"run": run_id}).scalars())

    def settled_prefix(self, run_id: int, judge_id: int, *, after: int = 0) -> PrefixColumns:
        """The verdicts on the prompts after place `after`, up to the first that lacks one."""
        with self._reading() as connection:
            asked = {"run": run_id, "judge": judge_id, "contest": 0, "after": after}
            pending = connection.execute(_FIRST_PENDING, asked).scalar()
            query = _PREFIX if pending is None else _PREFIX.where(queue.c.place < pending)
            columns = PrefixColumns(is_whole=pending is None)
            answer = connection.execute(query, asked)
            names, rows = answer.keys(), answer.all()
            if rows:
                fill(columns, dict(zip(names, zip(*rows, strict=True), strict=True)))
            return columns

    def contests(self, run_id: int, judge_id: int) -> list[Contest]:
        """The queue's contests, by the order of their items."""
        with self._reading() as connection:
            if not connection.execute(_HAS_CONTESTS, {"run": run_id}).scalar():
                return []
            counted_rows = connection.execute(_CONTESTS, {"run": run_id, "judge": judge_id})
            # Numbered as in the queue: by the first item of each.
            rows = sorted(counted_rows, key=lambda row: row[-1])
            numbers: dict[frozenset[str], int] = {}
            models: dict[int, tuple[str, str]] = {}
            counted: defaultdict[int, Counter[int]] = defaultdict(Counter)
            for model_a, model_b, outcome, winner, count, _ in rows:
                contest = contest_of(numbers, model_a, model_b)
                first, _ = models.setdefault(contest, (model_a, model_b))
                code = _WITHOUT_VERDICT if outcome is None else OUTCOMES[outcome, winner]
                if model_a != first:
                    code = _EXCHANGED.get(code, code)
                counted[contest][code] += count
            return [
                Contest(
                    contest=contest,
                    models=names,
                    pending=counted[contest][_WITHOUT_VERDICT],
                    wins=(counted[contest][WIN_A], counted[contest][WIN_B]),
                    ties=counted[contest][TIE],
                    inconsistent=counted[contest][INCONSISTENT],
                    invalid=counted[contest][INVALID],
                )
                for contest, names in sorted(models.items())
            ]


def _only(query: _Query, firsts: bool | None) -> _Query:
    if firsts is None:
        return query
    return query.where(~_repeats_another if firsts else _repeats_another)


def _passes_by(
    column: str, answer: CursorResult[Any]
) -> defaultdict[int, dict[PassKey, StoredPass]]:
    made: defaultdict[int, dict[PassKey, StoredPass]] = defaultdict(dict)
    for row in answer.mappings():
        stored = stored_pass(row)
        made[row[column]][pass_key(stored)] = stored
    return made


def _work_item(row: RowMapping, made: Mapping[PassKey, StoredPass]) -> WorkItem:
    return WorkItem(
        number=row["number"],
        key=row["full_key"] or row["key"],
        pair_id=row["id"],
        pair=pair_of(row),
        passes=made,
    )


def shown_in(asked: FromClause, order: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether an item is asked in this order: `Pair.orders` in SQL."""
    alone = func.coalesce(asked.c.drawn_order, "original")
    return or_(asked.c.swap_positions, alone == order)


def used_by(table: Table, run_id: int) -> ColumnElement[bool]:
    """The passes that verdicts of this run rest on: another run may have asked for more samples, or
    both orders."""
    its_pairs = select(items.c.pair_id).where(items.c.run_id == run_id)
    each = items.alias()
    # Without OR around the selection: PostgreSQL would scan a list for every pass; with a million
    # pairs it did not finish in ten minutes. SQLite finds the passes by the IN.
    shown = exists().where(
        each.c.run_id == run_id,
        each.c.pair_id == table.c.pair_id,
        shown_in(each, table.c.shown_order),
    )
    most = select(func.max(verdicts.c.samples)).where(verdicts.c.run_id == run_id)
    return and_(
        table.c.pair_id.in_(its_pairs),
        shown,
        table.c.sample <= func.coalesce(most.scalar_subquery(), table.c.sample),
    )


# Queues: prompts in seeded random order, or contests between two models. A prompt's place is a
# digest of the seed and its key only, so the order is the same in every store, and after a resume.

_COLUMNS = ("run_id", "contest", "place", "number")
_AT_ONCE = 5_000

queued_item = and_(items.c.run_id == queue.c.run_id, items.c.number == queue.c.number)
queued_verdict = and_(
    verdicts.c.run_id == queue.c.run_id,
    verdicts.c.number == queue.c.number,
    verdicts.c.judge_id == bindparam("judge"),
)
is_pending = ~select(literal(1)).where(queued_verdict).exists()
in_contest = and_(queue.c.run_id == bindparam("run"), queue.c.contest == bindparam("contest"))


def _contest(
    numbers: dict[frozenset[str], int] | None,
    number: int,
    model_a: str | None,
    model_b: str | None,
) -> int:
    """0 without contests."""
    if numbers is None:
        return 0
    if model_a is None or model_b is None:
        raise InputError.of("store.models_unnamed", number=number)
    return contest_of(numbers, model_a, model_b)


def contest_of(numbers: dict[frozenset[str], int], model_a: str, model_b: str) -> int:
    """From 1, by first item."""
    return numbers.setdefault(frozenset((model_a, model_b)), len(numbers) + 1)


def _items(connection: Connection, run_id: int) -> Iterator[list[Any]]:
    column = items.c
    query = (
        select(column.number, column.prompt_key, column.model_a, column.model_b)
        .where(column.run_id == run_id)
        .order_by(column.number)
        .limit(_AT_ONCE)
    )
    after = 0
    while rows := list(connection.execute(query.where(column.number > after))):
        yield rows
        after = rows[-1].number


# The rows of a prompt are adjacent, or prompts repeat with every model.
@lru_cache(maxsize=65_536)
def _place(seed: int, prompt_key: int) -> int:
    named = b"place 1;%d;%d" % (seed, prompt_key)
    # Above 0, so that 0 precedes the first.
    return int.from_bytes(blake2b(named, digest_size=8).digest(), "little") >> 1 or 1


def _draw(seed: int, number: int) -> bytes:
    """By item, so that the share spreads over as many prompts as possible."""
    return blake2b(b"share 1;%d;%d" % (seed, number), digest_size=8).digest()


_OF_SHARE = and_(queue.c.run_id == bindparam("run"), queue.c.contest == 0)
_SHARE = select(queue.c.number).where(_OF_SHARE)
_SHARE_SIZE = select(func.count()).where(_OF_SHARE)
_DRAWABLE = (
    select(
        *(queue.c.contest, queue.c.place, queue.c.number, items.c.model_a, items.c.model_b),
        is_pending.label("pending"),
    )
    .join_from(queue, items, queued_item)
    .where(queue.c.run_id == bindparam("run"))
)
_MOVE_TO_SHARE = (
    update(queue)
    .where(
        *(queue.c.run_id == bindparam("run"), queue.c.contest == bindparam("of")),
        *(queue.c.place == bindparam("was"), queue.c.number == bindparam("item")),
    )
    .values(contest=0, place=bindparam("at"))
)
_QUEUED = (
    select(queue.c.place, items.c.number, items.c.model_a, items.c.model_b, *OF_ITEM, pairs)
    .join_from(queue, items, queued_item)
    .join(pairs, pairs.c.id == items.c.pair_id)
    .where(in_contest, is_pending)
    .where(
        tuple_(queue.c.place, queue.c.number)
        > tuple_(bindparam("place", type_=queue.c.place.type), bindparam("number"))
    )
    .order_by(queue.c.place, queue.c.number)
    .limit(bindparam("most"))
)


_FIRST_PENDING = (
    select(queue.c.place)
    .where(in_contest, queue.c.place > bindparam("after"), is_pending)
    .order_by(queue.c.place)
    .limit(1)
)
# An average of disagreeing orders: no gate counts it as decided.
_AVERAGED = and_(
    verdicts.c.outcome.in_(("win", "tie")),
    verdicts.c.first_pass_winner != verdicts.c.second_pass_winner,
)
_COUNTED = case((_AVERAGED, "inconsistent"), else_=verdicts.c.outcome).label("outcome")
_PREFIX = (
    select(queue.c.place, queue.c.number, items.c.prompt_key, _COUNTED, verdicts.c.winner)
    .join_from(queue, items, queued_item)
    .join(verdicts, queued_verdict)
    .where(in_contest, queue.c.place > bindparam("after"))
    .order_by(queue.c.place, queue.c.number)
)


# Via the items, not the queue, whose order defeats caching.
_CONTESTS = (
    select(
        items.c.model_a,
        items.c.model_b,
        verdicts.c.outcome,
        verdicts.c.winner,
        func.count(),
        func.min(items.c.number),
    )
    .outerjoin_from(items, verdicts, same_item & (verdicts.c.judge_id == bindparam("judge")))
    .where(items.c.run_id == bindparam("run"))
    .group_by(items.c.model_a, items.c.model_b, verdicts.c.outcome, verdicts.c.winner)
)
_HAS_CONTESTS = select(
    select(literal(1)).where(queue.c.run_id == bindparam("run"), queue.c.contest > 0).exists()
)
_WITHOUT_VERDICT = -1
_EXCHANGED = {WIN_A: WIN_B, WIN_B: WIN_A}
