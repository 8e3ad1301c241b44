"""A judge's verdicts by the two models they are about, A being the same model in all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.report.side_rate import Codes, Keys, exchange
from evenhand.store import CriterionColumns, OutcomeColumns
from evenhand.store.survey import Survey

Models = tuple[str | None, str | None]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Part:
    """Outcomes of some rows, with A and B as in their matchup."""

    name: str
    outcomes: Codes
    prompts: Keys
    rows: Rows  # in the columns


@dataclass(frozen=True, slots=True)
class Matchup:
    """Two models; A is the one that is A in their first row of the data, judged or not, so that
    the sides do not change while a run goes on."""

    models: Models
    pairs: int  # rows of the data, whether judged or not
    rows: Rows  # in the columns
    prompts: Keys
    outcomes: Codes
    exchanged: NDArray[np.bool_]  # A and B have changed places against the data's row
    criteria: tuple[Part, ...]
    untold: int  # verdicts on criteria of which the winner is not known


def matchups(
    columns: OutcomeColumns, criteria: tuple[CriterionColumns, ...], survey: Survey
) -> Iterator[Matchup]:
    """In the order in which the models first meet in the data."""
    table = _Table(survey)
    of_row, exchanged = table.placed(columns)
    count = len(table.models)
    outcomes = exchange(np.asarray(columns.outcome), exchanged)
    prompts = np.asarray(columns.prompt_key)
    parts: list[list[Part]] = [[] for _ in range(count)]
    untold = np.zeros(count, dtype=np.int64)
    numbers = np.asarray(columns.number)
    for column in criteria:
        where, known = _found(numbers, np.asarray(column.number))
        codes = exchange(np.asarray(column.outcome)[known], exchanged[where])
        keys = np.asarray(column.prompt_key)[known]
        for member, rows in _grouped(of_row[where], count):
            parts[member].append(Part(column.criterion, codes[rows], keys[rows], where[rows]))
        missing, _ = _found(numbers, np.asarray(column.untold))
        untold += np.bincount(of_row[missing], minlength=count)
    rows_of = dict(_grouped(of_row, count))
    for member, models in enumerate(table.models):
        rows = rows_of.get(member, np.zeros(0, dtype=np.intp))
        yield Matchup(
            models=models,
            pairs=max(table.pairs[member], rows.size),
            rows=rows,
            prompts=prompts[rows],
            outcomes=outcomes[rows],
            exchanged=exchanged[rows],
            criteria=tuple(parts[member]),
            untold=int(untold[member]),
        )


def by_tag(columns: OutcomeColumns, matchup: Matchup) -> Iterator[Part]:
    """A row with two tags is in both."""
    sets = np.asarray(columns.tags)[matchup.rows]
    present = [int(code) for code in np.unique(sets)]
    names = sorted({tag for code in present for tag in columns.tag_sets[code]})
    places = {name: place for place, name in enumerate(names)}
    rows_of = dict(_grouped(sets, len(columns.tag_sets)))
    tagged = [
        (places[tag], rows_of[code]) for code in present for tag in set(columns.tag_sets[code])
    ]
    rows_by_name: list[list[Rows]] = [[] for _ in names]
    for place, rows in tagged:
        rows_by_name[place].append(rows)
    for name, its_rows in zip(names, rows_by_name, strict=True):
        rows = np.sort(np.concatenate(its_rows))
        yield Part(name, matchup.outcomes[rows], matchup.prompts[rows], matchup.rows[rows])


class _Table:
    def __init__(self, survey: Survey) -> None:
        self.models: list[Models] = []
        self.pairs: list[int] = []
        self._places: dict[Models, tuple[int, bool]] = {}
        for model_a, model_b, count in survey.models:
            member, _ = self._place((model_a, model_b))
            self.pairs[member] += count

    def _place(self, models: Models) -> tuple[int, bool]:
        """The matchup of a row's models, and whether they are exchanged there."""
        if models not in self._places:
            member = len(self.models)
            self._places[models[::-1]] = member, True
            self._places[models] = member, False
            self.models.append(models)
            self.pairs.append(0)
        return self._places[models]

    def placed(self, columns: OutcomeColumns) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Of each row, the matchup and whether A and B are exchanged."""
        # The name of code -1 stands last.
        names: tuple[str | None, ...] = (*columns.models, None)
        size = len(names)
        codes = (np.asarray(columns.model_a).astype(np.int64) % size) * size
        codes += np.asarray(columns.model_b) % size
        kinds, which = np.unique(codes, return_inverse=True)
        places = [self._place((names[kind // size], names[kind % size])) for kind in kinds.tolist()]
        members = np.array([member for member, _ in places], dtype=np.intp)
        turned = np.array([exchanged for _, exchanged in places], dtype=np.bool_)
        return members[which], turned[which]


def _found(numbers: NDArray[Any], wanted: NDArray[Any]) -> tuple[Rows, Rows]:
    """Where these numbers stand in an ascending column, and which of them do: a run that goes on
    may have verdicts that the column has not."""
    if not numbers.size or not wanted.size:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    place = np.minimum(np.searchsorted(numbers, wanted), numbers.size - 1)
    known = np.flatnonzero(numbers[place] == wanted)
    return place[known], known


def _grouped(members: NDArray[Any], count: int) -> Iterator[tuple[int, Rows]]:
    """The rows of each member that has any, in their order."""
    order = np.argsort(members, kind="stable")
    sizes = np.bincount(members, minlength=count)
    ends = np.cumsum(sizes)
    for member in np.flatnonzero(sizes).tolist():
        yield member, order[ends[member] - sizes[member] : ends[member]]
