"""The verdicts of stored runs as the columns that a ranking takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.report.lookup import nearest
from evenhand.store import BattleCount, JudgeRecord, RunRecord, Store
from evenhand.store.coding import OUTCOMES
from evenhand.store.columns import INCONSISTENT, INVALID

Column = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Seat:
    """A run, and those of its judges whose verdicts count."""

    run: RunRecord
    judges: tuple[JudgeRecord, ...]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One row a verdict, or a kind of verdict with how many there are of it.

    Models are places in `models`, which are sorted, and -1 where none is named. `flipped` of a
    row's verdicts changed with the order of the responses, averaged or not.
    """

    models: tuple[str, ...]
    model_a: Column
    model_b: Column
    outcome: Column
    flipped: Column
    prompt: Column | None = None
    count: Column | None = None

    @property
    def total(self) -> int:
        return self._sum(np.ones(len(self.outcome), dtype=bool))

    @property
    def unnamed(self) -> int:
        return self._sum((self.model_a < 0) | (self.model_b < 0))

    @property
    def against_itself(self) -> int:
        return self._sum((self.model_a == self.model_b) & (self.model_a >= 0))

    def outcomes(self) -> NDArray[np.int64]:
        """How many there are of each outcome."""
        counts = np.bincount(self.outcome, weights=self.count, minlength=INVALID + 1)
        return counts.round().astype(np.int64)

    def between_models(self) -> Verdicts:
        """Without those that name no two models."""
        wanted = (self.model_a != self.model_b) & (self.model_a >= 0) & (self.model_b >= 0)
        return self.chosen(wanted)

    def valid(self) -> Verdicts:
        return self.chosen(self.outcome != INVALID)

    def consistent(self) -> Verdicts:
        """Without those that changed with the order."""
        if self.count is None:
            return self.chosen(self.flipped == 0)
        kept = self.count - self.flipped
        nothing = np.zeros_like(kept)
        return replace(self, count=kept, flipped=nothing).chosen(kept > 0)

    def chosen(self, wanted: NDArray[np.bool_]) -> Verdicts:
        if wanted.all():
            return self
        return Verdicts(
            self.models,
            self.model_a[wanted],
            self.model_b[wanted],
            self.outcome[wanted],
            self.flipped[wanted],
            None if self.prompt is None else self.prompt[wanted],
            None if self.count is None else self.count[wanted],
        )

    def _sum(self, wanted: NDArray[np.bool_]) -> int:
        counted = wanted if self.count is None else self.count[wanted]
        return int(counted.sum())


def count_verdicts(store: Store, seats: Sequence[Seat]) -> Verdicts:
    """By one grouped query."""
    return _of_counts(store.battle_counts(_runs(seats), judge_ids=_judges(seats)))


def read_verdicts(store: Store, seats: Sequence[Seat]) -> Verdicts:
    """Verdict by verdict, with their prompts; by run, pair and judge."""
    read = store.battle_columns(_runs(seats), judge_ids=_judges(seats))
    return _sorted(
        Verdicts(
            read.models,
            np.asarray(read.model_a),
            np.asarray(read.model_b),
            np.asarray(read.outcome),
            np.asarray(read.flipped),
            prompt=np.asarray(read.prompt_key),
        )
    )


def read_tagged(store: Store, seats: Sequence[Seat], tag: str) -> tuple[Verdicts, int]:
    """Those whose pair has the tag, and how many there are in all; by run, judge and pair."""
    parts: list[Verdicts] = []
    there: set[str] = set()
    total = 0
    for seat in seats:
        for judge in seat.judges:
            read = store.outcome_columns(seat.run.id, judge.id)
            total += len(read.outcome)
            there.update(each for tags in read.tag_sets for each in tags)
            first, second = np.asarray(read.first_winner), np.asarray(read.second_winner)
            flipped = (first != second) & (first >= 0) & (second >= 0)
            flipped |= np.asarray(read.outcome) == INCONSISTENT
            has_it = np.array([tag in tags for tags in read.tag_sets], dtype=bool)
            whole = Verdicts(
                read.models,
                np.asarray(read.model_a),
                np.asarray(read.model_b),
                np.asarray(read.outcome),
                flipped.astype(np.int8),
                prompt=np.asarray(read.prompt_key),
            )
            if len(read.outcome):
                parts.append(whole.chosen(has_it[np.asarray(read.tags)]))
    if tag not in there:
        raise InputError(unknown_tag(tag, sorted(there)))
    return _joined(parts), total


def unknown_tag(tag: str, there: Sequence[str]) -> str:
    if not there:
        return f"no row has the tag {tag!r}, or any other; leave --tag out"
    near = nearest(tag, there)
    if near:
        return f"no row has the tag {tag!r}; did you mean {' or '.join(near)}?"
    some = ", ".join(there[:5])
    more = f" and {len(there) - 5} more" if len(there) > 5 else ""
    return f"no row has the tag {tag!r}; the tags are {some}{more}"


def _runs(seats: Sequence[Seat]) -> list[int]:
    return [seat.run.id for seat in seats]


def _judges(seats: Sequence[Seat]) -> set[int]:
    return {judge.id for seat in seats for judge in seat.judges}


def _of_counts(counts: Sequence[BattleCount]) -> Verdicts:
    named = {name for each in counts for name in (each.model_a, each.model_b) if name is not None}
    models = tuple(sorted(named))
    places: dict[str | None, int] = {name: place for place, name in enumerate(models)}
    places[None] = -1
    return Verdicts(
        models,
        np.array([places[each.model_a] for each in counts], dtype=np.int64),
        np.array([places[each.model_b] for each in counts], dtype=np.int64),
        np.array([OUTCOMES[each.outcome, each.winner] for each in counts], dtype=np.int64),
        np.array([each.flipped for each in counts], dtype=np.int64),
        count=np.array([each.verdicts for each in counts], dtype=np.int64),
    )


def _sorted(read: Verdicts) -> Verdicts:
    """Where two models are equal the ranking keeps their order: it should not be of arrival."""
    return _joined([read])


def _joined(parts: Sequence[Verdicts]) -> Verdicts:
    """One table of those models that are in the rows."""
    used = [
        {part.models[place] for place in _places(part.model_a) | _places(part.model_b)}
        for part in parts
    ]
    models = tuple(sorted(set().union(*used)))
    at = {name: place for place, name in enumerate(models)}
    tables = [np.array([*(at.get(n, -1) for n in part.models), -1]) for part in parts]
    nothing: Column = np.zeros(0, dtype=np.int64)

    def column(name: str, *, coded: bool = False) -> Column:
        columns = [getattr(part, name) for part in parts]
        if coded:
            columns = [table[each] for table, each in zip(tables, columns, strict=True)]
        return columns[0] if len(columns) == 1 else np.concatenate([nothing, *columns])

    return Verdicts(
        models,
        column("model_a", coded=True),
        column("model_b", coded=True),
        column("outcome"),
        column("flipped"),
        prompt=column("prompt"),
    )


def _places(codes: Column) -> set[int]:
    return {place for place in np.unique(codes).tolist() if place >= 0}
