"""How a verdict came out on each of its criteria, as one number: what tables are filtered by
criteria with. Few of the ways in which criteria can come out together occur in a run, so that a
filter looks at those first, and by an index at the verdicts that came out so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import ColumnElement, Connection, insert, or_, select

from evenhand.store.bulk import insert_new
from evenhand.store.columns import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.store.contests import numbered
from evenhand.store.criteria import UNTOLD
from evenhand.store.intake import in_slices
from evenhand.store.schema import run_breakdowns, run_criteria

# A run whose rows have criteria of their own may have very many; filters offer the first of them.
MOST_CRITERIA = 1000
_LETTERS = {WIN_A: "a", WIN_B: "b", TIE: "t", INCONSISTENT: "i", INVALID: "x", UNTOLD: "u"}
_CODES = {letter: code for code, letter in _LETTERS.items()}
_COLUMN = run_breakdowns.c


class BreakdownWriter:
    """Names criteria by their places in the run, and what they came to by a letter each.

    Whoever writes has the run's turn, so that nobody else gives a place.
    """

    def __init__(self, connection: Connection, run_id: int) -> None:
        self._connection = connection
        self._run_id = run_id
        self._places = criteria_places(connection, run_id)
        self._placed = len(self._places)
        self._told: dict[int, str] = {}

    def key(self, criteria: Iterable[tuple[str, int]]) -> int:
        """Of criteria with the codes of their outcomes."""
        written = []
        for name, code in criteria:
            place = self._places.get(name)
            if place is None:
                if len(self._places) == MOST_CRITERIA:
                    continue
                place = self._places[name] = len(self._places)
            written.append(f"{place}{_LETTERS[code]},")
        told = f",{''.join(written)}"
        key = numbered(told.encode())
        self._told[key] = told
        return key

    def write(self) -> None:
        """The places and the breakdowns that are new."""
        new = list(self._places.items())[self._placed :]
        if new:
            rows = [{"run_id": self._run_id, "place": place, "name": name} for name, place in new]
            self._connection.execute(insert(run_criteria), rows)
            self._placed = len(self._places)
        known: set[int] = set()
        for some in in_slices(list(self._told)):
            there = _COLUMN.run_id == self._run_id, _COLUMN.breakdown.in_(some)
            known.update(
                self._connection.execute(select(_COLUMN.breakdown).where(*there)).scalars()
            )
        rows_new = [
            (self._run_id, key, told) for key, told in self._told.items() if key not in known
        ]
        insert_new(self._connection, run_breakdowns, tuple(_COLUMN.keys()), rows_new)
        self._told.clear()


def criteria_places(connection: Connection, run_id: int) -> dict[str, int]:
    """The run's criteria so far, in the order in which they first came."""
    query = select(run_criteria.c.name, run_criteria.c.place).where(run_criteria.c.run_id == run_id)
    return {row.name: row.place for row in connection.execute(query.order_by(run_criteria.c.place))}


def breakdowns_of(connection: Connection, run_id: int) -> dict[int, tuple[tuple[str, int], ...]]:
    """Criteria with the codes of their outcomes, by the number of the breakdown."""
    names = {place: name for name, place in criteria_places(connection, run_id).items()}
    query = select(_COLUMN.breakdown, _COLUMN.told).where(_COLUMN.run_id == run_id)
    return {
        key: tuple(
            (names[int(each[:-1])], _CODES[each[-1]]) for each in told.strip(",").split(",") if each
        )
        for key, told in connection.execute(query)
    }


def came_out(
    breakdown: ColumnElement[int],
    run_id: int,
    place: int | None,
    codes: Iterable[int] | None,
) -> ColumnElement[bool]:
    """That the criterion at this place, or any, came out in one of these ways, or in any."""
    ends: Iterator[str] = iter("_") if codes is None else (_LETTERS[code] for code in codes)
    start = "%" if place is None else f"%,{place}"
    such = or_(*(_COLUMN.told.like(f"{start}{end},%") for end in ends))
    return breakdown.in_(select(_COLUMN.breakdown).where(_COLUMN.run_id == run_id, such))
