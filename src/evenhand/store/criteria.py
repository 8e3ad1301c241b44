"""Each criterion's outcomes in one judge's verdicts, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from sqlalchemy import Connection, bindparam, select

from evenhand.store.coding import OUTCOMES
from evenhand.store.columns import INVALID, TIE, CriterionColumns
from evenhand.store.paging import of_its_item, on_page, pages
from evenhand.store.rows import read_criteria
from evenhand.store.schema import items, pairs, verdicts

_BODIES = (
    select(verdicts.c.number, items.c.prompt_key, verdicts.c.outcome, verdicts.c.body)
    .join_from(verdicts, items, of_its_item)
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
UNTOLD = -1  # won on averaged probabilities: by whom, only the passes tell
# As `rows` writes them.
_FACTS = '{"facts":'
_TIME = '{"facts":{"time_ms":'
_CRITERIA = ',"criteria":'
_MOST_REMEMBERED = 4096

# A criterion's name and the code of its outcome.
_Told = tuple[tuple[str, int], ...]


def criterion_columns(
    connection: Connection, run_id: int, judge_id: int
) -> tuple[CriterionColumns, ...]:
    """In the order in which they first come. A verdict that says nothing of its criteria, an
    invalid one or one on identical responses, counts as invalid on each of them."""
    found: dict[str, CriterionColumns] = {}
    read = CriteriaReader()
    for page in pages(connection, _BODIES, run_id, {"judge": judge_id}):
        told = list(map(read.criteria, page[2], page[3]))
        silent = [number for number, each in zip(page[0], told, strict=True) if not each]
        named = dict(_named(connection, run_id, silent))
        for number, prompt_key, each in zip(page[0], page[1], told, strict=True):
            for name, code in each or named[number]:
                columns = found.get(name)
                if columns is None:
                    columns = found[name] = CriterionColumns(name)
                if code == UNTOLD:
                    columns.untold.append(number)
                    continue
                columns.number.append(number)
                columns.prompt_key.append(prompt_key)
                columns.outcome.append(code)
    return tuple(found.values())


def _named(connection: Connection, run_id: int, numbers: list[int]) -> Iterator[tuple[int, _Told]]:
    for start in range(0, len(numbers), _NAMED_AT_ONCE):
        some = numbers[start : start + _NAMED_AT_ONCE]
        for number, criteria in connection.execute(
            _CRITERIA_OF_PAIRS, {"run": run_id, "numbers": some}
        ):
            yield number, tuple((each.name, INVALID) for each in read_criteria(criteria))


class CriteriaReader:
    """Reads verdicts' JSON. What stands behind the time is the same in many, and read once."""

    def __init__(self) -> None:
        self._remembered: dict[str, _Told] = {}

    def criteria(self, outcome: str, body: str) -> _Told:
        """Empty where they are to be had from the pair."""
        if outcome == "invalid":
            return ()
        if not body.startswith(_FACTS):
            return _of_whole(orjson.loads(body))
        if not body.startswith(_TIME):
            return _of_facts(orjson.loads(body)["facts"].get("criteria", ()))
        # The time is a number, so that what comes first is no part of a name.
        rest = body.partition(_CRITERIA)[2]
        told = self._remembered.get(rest)
        if told is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            told = self._remembered[rest] = _of_facts(
                orjson.loads(body)["facts"].get("criteria", ())
            )
        return told


def _of_facts(criteria: Iterable[Any]) -> _Told:
    return tuple((name, _code(outcome, first, second)) for name, outcome, first, second in criteria)


def _code(outcome: str, first: str | None, second: str | None) -> int:
    if outcome == "win":
        # One order alone has no second choice. Where both chose the same, so does their mean.
        if first in ("A", "B") and second in (first, None):
            return OUTCOMES["win", first]
        return UNTOLD
    return OUTCOMES[outcome, None if outcome == "invalid" else "TIE"]


def _of_whole(verdict: dict[str, Any]) -> _Told:
    winners = {each["criterion"]: each["winner"] for each in verdict["comparison"]}
    told = {}
    for each in verdict["metadata"].get("criteria", ()):
        name, outcome = each["criterion"], each["outcome"]
        winner = winners.get(name)
        if outcome == "win" and winner in ("A", "B"):
            told[name] = OUTCOMES["win", winner]
        else:
            first, second = each.get("firstPassWinner"), each.get("secondPassWinner")
            told[name] = _code(outcome, first, second)
    # Identical responses that nobody was asked about: all stand in the comparison, none was judged.
    for name, winner in winners.items():
        told.setdefault(name, TIE if winner == "TIE" else INVALID)
    return tuple(told.items())
