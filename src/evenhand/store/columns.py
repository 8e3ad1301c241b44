"""A judge's verdicts as columns for statistics, a few thousand items at a time."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    tuple_,
)

from evenhand.contract import ORDERS, Outcome
from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.errors import NotRecorded, StoreError
from evenhand.store.database import Subject
from evenhand.store.records import (
    BattleColumns,
    BattleCount,
    CriterionColumns,
    ItemColumns,
    OutcomeColumns,
    PassColumns,
    whole_numbers,
)
from evenhand.store.rows import count_items, read_criteria
from evenhand.store.schema import items, pairs, passes, run_judges, unescape, verdicts

WINNERS: dict[str | None, int] = {"A": 0, "B": 1, "TIE": 2, None: -1}
# Not a winner: an order that was read and whose samples split evenly.
SPLIT = "split"
CHOICES = WINNERS | {SPLIT: -2}


class _Outcomes(dict[tuple[str, str | None], int]):
    def __missing__(self, pair: tuple[str, str | None]) -> int:
        raise StoreError.of("store.outcome_unknown", outcome=pair[0], winner=pair[1])


OUTCOMES = _Outcomes(
    {
        ("win", "A"): WIN_A,
        ("win", "B"): WIN_B,
        ("tie", "TIE"): TIE,
        ("inconsistent", "TIE"): INCONSISTENT,
        # Has a winner if ties were not allowed, but stays inconsistent.
        ("inconsistent", "A"): INCONSISTENT,
        ("inconsistent", "B"): INCONSISTENT,
        ("invalid", None): INVALID,
    }
)


class Coded(dict[str | None, int]):
    """Codes for texts by first appearance, from 0; None is -1."""

    def __init__(self) -> None:
        super().__init__({None: -1})

    def __missing__(self, text: str | None) -> int:
        code = self[text] = len(self) - 1
        return code

    @property
    def table(self) -> tuple[str, ...]:
        return tuple(unescape(text) for text in self if text is not None)


# Some thousand items at a time, for constant memory.

_PAGE_ITEMS = 5_000
# Rows at a time: more would trigger a garbage collection each time, a fifth of a report.
_AT_ONCE = 500

same_item = (items.c.run_id == verdicts.c.run_id) & (items.c.number == verdicts.c.number)
# Bounds on both sides: PostgreSQL then reads a range of each table and merges them.
on_page = (
    (verdicts.c.run_id == bindparam("run"))
    & verdicts.c.number.between(bindparam("first"), bindparam("last"))
    & (items.c.run_id == bindparam("run"))
    & items.c.number.between(bindparam("first"), bindparam("last"))
)


def pages(
    connection: Connection, query: Select[Any], run_id: int, **more: Any
) -> Iterator[dict[str, Sequence[Any]]]:
    """Some hundred rows at a time, as columns by name. `query` is restricted to items from `first`
    to `last` of the run."""
    names = query.selected_columns.keys()
    last = count_items(connection, run_id)
    for first in range(1, last + 1, _PAGE_ITEMS):
        reach = {"run": run_id, "first": first, "last": first + _PAGE_ITEMS - 1}
        # Plain tuples with texts still escaped: SQLAlchemy's rows take a third longer.
        answer = connection.execute(query, {**reach, **more})
        while answer.cursor and (rows := answer.cursor.fetchmany(_AT_ONCE)):
            yield dict(zip(names, zip(*rows, strict=True), strict=True))
        answer.close()


def _nan_for_none(value: float | None) -> float:
    return math.nan if value is None else value


_CODES: dict[str, Callable[[Any], float]] = {
    **dict.fromkeys(("first_winner", "second_winner"), CHOICES.__getitem__),
    **dict.fromkeys(("label", "winner"), WINNERS.__getitem__),
    **dict.fromkeys(("confidence", "chance"), _nan_for_none),
    "order": ORDERS.index,
}


def fill(columns: Any, page: Mapping[str, Sequence[Any]], **texts: Mapping[Any, int]) -> None:
    """Append a page to the columns of the same names, with texts coded. An outcome is coded
    together with its winner."""
    codes = _CODES | {name: numbers.__getitem__ for name, numbers in texts.items()}
    for name, values in page.items():
        if name == "outcome":
            outcomes = zip(values, page["winner"], strict=True)
            columns.outcome.extend(map(OUTCOMES.__getitem__, outcomes))
        elif name != "winner" or "outcome" not in page:
            coded = map(codes[name], values) if name in codes else values
            getattr(columns, name).extend(coded)


def _choice(order: ColumnElement[str], other: ColumnElement[str]) -> ColumnElement[str]:
    """One order's choice. None is stored if it split, was unread, or was not asked. It split if
    both orders were asked and read, as in every valid verdict, and in an invalid one with either
    choice stored."""
    read = or_(verdicts.c.outcome != "invalid", other.is_not(None))
    asked = and_(items.c.swap_positions, verdicts.c.passes > 0)
    return case((and_(order.is_(None), read, asked), SPLIT), else_=order)


_FIRST, _SECOND = verdicts.c.first_pass_winner, verdicts.c.second_pass_winner
FIRST_CHOICE, SECOND_CHOICE = _choice(_FIRST, _SECOND), _choice(_SECOND, _FIRST)
# Identical responses: no judge was asked.
TIE_BY_RULE = and_(
    verdicts.c.outcome == str(Outcome.TIE), verdicts.c.passes == 0, verdicts.c.confidence.is_(None)
)
_OUTCOMES = (
    select(
        verdicts.c.number,
        items.c.prompt_key,
        verdicts.c.outcome,
        verdicts.c.winner,
        FIRST_CHOICE.label("first_winner"),
        SECOND_CHOICE.label("second_winner"),
        items.c.swap_positions.label("both_orders"),
        case((items.c.drawn_order.is_(None), 0), else_=1).label("drawn_order"),
        verdicts.c.confidence,
        items.c.length_a,
        items.c.length_b,
        items.c.model_a,
        items.c.model_b,
        func.coalesce(items.c.tags, "[]").label("tags"),
        items.c.label,
        case((TIE_BY_RULE, 1), else_=0).label("by_rule"),
    )
    .join_from(verdicts, items, same_item)
    .where(on_page, verdicts.c.judge_id == bindparam("judge"))
    .order_by(verdicts.c.number)
)
OF_RUN = (items.c.run_id == bindparam("run")) & items.c.number.between(
    bindparam("first"), bindparam("last")
)
_ITEMS = (
    select(
        *(items.c.number, items.c.pair_id, items.c.prompt_key),
        *(items.c.length_a, items.c.length_b, items.c.model_a, items.c.model_b),
    )
    .where(OF_RUN)
    .order_by(items.c.number)
)
_ITEM_IDS = (
    select(items.c.key, items.c.full_key, items.c.prompt_key).where(OF_RUN).order_by(items.c.number)
)


class ColumnStore(Subject):
    """Verdicts as columns, for statistics."""

    def battle_counts(
        self, run_ids: Sequence[int], *, judge_ids: Collection[int] | None = None
    ) -> list[BattleCount]:
        """By models, outcome and winner, in one query; of all judges by default."""
        with self._reading() as connection:
            wanted = _seats(connection, run_ids, judge_ids)
            if not wanted:
                return []
            kind = (items.c.model_a, items.c.model_b, verdicts.c.outcome, verdicts.c.winner)
            query = (
                select(*kind, func.count(), func.sum(_FLIPPED), func.sum(_ONE_ORDER))
                .join_from(verdicts, items, same_item)
                .where(tuple_(verdicts.c.run_id, verdicts.c.judge_id).in_(wanted))
                .group_by(*kind)
            )
            counted = [
                BattleCount(model_a, model_b, Outcome(outcome), winner, *counts)
                for model_a, model_b, outcome, winner, *counts in connection.execute(query)
            ]
            # The engines order texts and nulls differently.
            return sorted(counted, key=lambda each: tuple(part or "" for part in each[:4]))

    def battles(
        self, run_ids: Sequence[int], *, judge_ids: Collection[int] | None = None
    ) -> BattleColumns:
        """The same verdict by verdict, with their prompts."""
        with self._reading() as connection:
            wanted = _seats(connection, run_ids, judge_ids)
            judges = {
                judge_id: place
                for place, judge_id in enumerate(dict.fromkeys(j for _, j in wanted))
            }
            models = Coded()
            columns = BattleColumns((), tuple(judges))
            for run_id in dict.fromkeys(run_id for run_id, _ in wanted):
                seated = [judge_id for run, judge_id in wanted if run == run_id]
                for page in pages(connection, _BATTLES, run_id, judges=seated):
                    fill(columns, page, model_a=models, model_b=models, judge=judges)
            return replace(columns, models=models.table)

    def items(self, run_id: int) -> ItemColumns:
        with self._reading() as connection:
            models = Coded()
            columns = ItemColumns(())
            for page in pages(connection, _ITEMS, run_id):
                fill(columns, page, model_a=models, model_b=models)
            return replace(columns, models=models.table)

    def item_ids(self, run_id: int) -> array[int]:
        """A digest of each item's id and prompt, by item number; 0 if it has no id."""
        numbers = whole_numbers()
        with self._reading() as connection:
            for page in pages(connection, _ITEM_IDS, run_id):
                numbers.extend(map(_id_digest, *page.values()))
        return numbers

    def outcomes(self, run_id: int, judge_id: int) -> OutcomeColumns:
        with self._reading() as connection:
            models, tag_sets = Coded(), Coded()
            columns = OutcomeColumns((), ())
            for page in pages(connection, _OUTCOMES, run_id, judge=judge_id):
                fill(columns, page, model_a=models, model_b=models, tags=tag_sets)
            read = tuple(tuple(orjson.loads(text)) for text in tag_sets if text is not None)
            return replace(columns, models=models.table, tag_sets=read)

    def criteria(self, run_id: int, judge_id: int) -> tuple[CriterionColumns, ...]:
        """One per criterion, in order of first appearance."""
        with self._reading() as connection:
            by_name: dict[str, CriterionColumns] = {}
            for page in pages(connection, _BY_CRITERION, run_id, judge=judge_id):
                numbers, prompt_keys, by_criterion = page.values()
                codes = list(map(criteria_codes, by_criterion))
                silent = [number for number, each in zip(numbers, codes, strict=True) if not each]
                named = dict(_named(connection, run_id, silent))
                rows = (
                    (number, prompt_key, *_apart(each or named[number]))
                    for number, prompt_key, each in zip(numbers, prompt_keys, codes, strict=True)
                )
                # Consecutive rows mostly have the same criteria.
                for names, alike in groupby(rows, key=itemgetter(2)):
                    item_numbers, prompts, _, outcomes = zip(*alike, strict=True)
                    for name, outcome in zip(names, zip(*outcomes, strict=True), strict=True):
                        columns = by_name.setdefault(name, CriterionColumns(name))
                        columns.number.extend(item_numbers)
                        columns.prompt_key.extend(prompts)
                        columns.outcome.extend(outcome)
            return tuple(by_name.values())

    def passes(self, run_id: int, judge_id: int) -> PassColumns:
        """Every stored pass on the run's pairs, by sample."""
        with self._reading() as connection:
            columns = PassColumns()
            for page in pages(connection, _PASSES, run_id, judge=judge_id):
                fill(columns, page)
            return columns


def _id_digest(key: str, full_key: str | None, prompt: int) -> int:
    if key.startswith("#"):  # `#7` is the seventh row of a file, and no id
        return 0
    digest = blake2b(f"{prompt} {full_key or key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


# An averaged verdict whose orders disagreed is a flip too.
_FLIPPED = case(
    (
        or_(
            verdicts.c.outcome == str(Outcome.INCONSISTENT),
            verdicts.c.first_pass_winner != verdicts.c.second_pass_winner,
        ),
        1,
    ),
    else_=0,
)
_ONE_ORDER = case(
    (or_(items.c.swap_positions, items.c.drawn_order.is_not(None)), 0),
    else_=1,
)


def _seats(
    connection: Connection, run_ids: Sequence[int], judge_ids: Collection[int] | None
) -> list[tuple[int, int]]:
    """Each run with each of its judges."""
    runs = list(dict.fromkeys(run_ids))
    if judge_ids is not None:
        return [(run_id, judge_id) for run_id in runs for judge_id in sorted(set(judge_ids))]
    query = (
        select(run_judges.c.run_id, run_judges.c.judge_id)
        .where(run_judges.c.run_id.in_(runs))
        .order_by(run_judges.c.run_id, run_judges.c.place)
    )
    return [(run_id, judge_id) for run_id, judge_id in connection.execute(query)]


_BATTLES = (
    select(
        items.c.prompt_key,
        items.c.model_a,
        items.c.model_b,
        verdicts.c.outcome,
        verdicts.c.winner,
        verdicts.c.judge_id.label("judge"),
        _FLIPPED.label("flipped"),
        _ONE_ORDER.label("one_order"),
    )
    .join_from(verdicts, items, same_item)
    .where(on_page)
    .where(verdicts.c.judge_id.in_(bindparam("judges", expanding=True)))
    .order_by(verdicts.c.number, verdicts.c.judge_id)
)


_BY_CRITERION = (
    select(verdicts.c.number, items.c.prompt_key, verdicts.c.by_criterion)
    .join_from(verdicts, items, same_item)
    .where(on_page, verdicts.c.judge_id == bindparam("judge"))
    .order_by(verdicts.c.number)
)
_CRITERIA_OF_PAIRS = (
    select(items.c.number, pairs.c.criteria)
    .join(pairs, pairs.c.id == items.c.pair_id)
    .where(
        items.c.run_id == bindparam("run"), items.c.number.in_(bindparam("numbers", expanding=True))
    )
)
_NAMED_AT_ONCE = 500
# A criterion's name and the code of its outcome.
_CodedCriteria = tuple[tuple[str, int], ...]


def _named(
    connection: Connection, run_id: int, numbers: list[int]
) -> Iterator[tuple[int, _CodedCriteria]]:
    for start in range(0, len(numbers), _NAMED_AT_ONCE):
        some = numbers[start : start + _NAMED_AT_ONCE]
        for number, criteria in connection.execute(
            _CRITERIA_OF_PAIRS, {"run": run_id, "numbers": some}
        ):
            yield number, tuple((each.name, INVALID) for each in read_criteria(criteria))


# Criteria come out in few combinations in a run.
@lru_cache(maxsize=4096)
def criteria_codes(by_criterion: str | None) -> _CodedCriteria:
    """Empty if the pair's own criteria apply."""
    return tuple(
        (name, OUTCOMES[outcome, winner])
        for name, outcome, winner, *_ in orjson.loads(by_criterion or "[]")
    )


@lru_cache(maxsize=4096)
def _apart(rest: _CodedCriteria) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return tuple(name for name, _ in rest), tuple(code for _, code in rest)


_PASSES = (
    select(
        items.c.number,
        items.c.prompt_key,
        passes.c.shown_order.label("order"),
        passes.c.sample,
        passes.c.winner,
        case((passes.c.reason == NotRecorded.kind, 1), else_=0).label("not_recorded"),
    )
    .join_from(items, passes, passes.c.pair_id == items.c.pair_id)
    .where(OF_RUN, passes.c.judge_id == bindparam("judge"))
)
