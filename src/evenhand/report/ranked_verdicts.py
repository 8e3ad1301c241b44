"""The rows that a ranking counts: verdicts of stored runs, or battles of a file, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INCONSISTENT, INVALID
from evenhand.data.battles import BattleFile
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.report.lookup import nearest
from evenhand.store import BattleCount, JudgeRecord, OutcomeColumns, RunRecord, Store
from evenhand.store.columns import OUTCOMES

Column = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run, and those of its judges whose verdicts count."""

    run: RunRecord
    judges: tuple[JudgeRecord, ...]


@dataclass(frozen=True, slots=True)
class RankedVerdicts:
    """One row a verdict, or a kind of verdict with how many there are of it.

    Models are places in `models`, which are sorted, and -1 where none is named. `flipped` of a
    row's verdicts changed with the order of the responses, averaged or not; `one_order` were asked
    in one that nobody drew. `planned` says which pairs no earlier verdict chose; None is all.
    """

    models: tuple[str, ...]
    model_a: Column
    model_b: Column
    outcome: Column
    flipped: Column
    one_order: Column
    prompt: Column | None = None
    count: Column | None = None
    planned: NDArray[np.bool_] | None = None

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

    def between_models(self) -> RankedVerdicts:
        """Without those that name no two models."""
        wanted = (self.model_a != self.model_b) & (self.model_a >= 0) & (self.model_b >= 0)
        return self.chosen(wanted)

    def planned_only(self) -> RankedVerdicts:
        return self if self.planned is None else self.chosen(self.planned)

    def valid(self) -> RankedVerdicts:
        return self.chosen(self.outcome != INVALID)

    def consistent(self) -> RankedVerdicts:
        """Without those that changed with the order."""
        if self.count is None:
            return self.chosen(self.flipped == 0)
        kept = self.count - self.flipped
        nothing = np.zeros_like(kept)
        # None of those in one order can have changed with it.
        return replace(self, count=kept, flipped=nothing).chosen(kept > 0)

    def chosen(self, wanted: NDArray[np.bool_]) -> RankedVerdicts:
        if wanted.all():
            return self
        return RankedVerdicts(
            self.models,
            self.model_a[wanted],
            self.model_b[wanted],
            self.outcome[wanted],
            self.flipped[wanted],
            self.one_order[wanted],
            None if self.prompt is None else self.prompt[wanted],
            None if self.count is None else self.count[wanted],
            None if self.planned is None else self.planned[wanted],
        )

    def _sum(self, wanted: NDArray[np.bool_]) -> int:
        counted = wanted if self.count is None else self.count[wanted]
        return int(counted.sum())


def count_verdicts(store: Store, judged_runs: Sequence[JudgedRun]) -> RankedVerdicts:
    """By one grouped query."""
    return _of_counts(
        store.columns.battle_counts(_runs(judged_runs), judge_ids=_judges(judged_runs))
    )


def read_verdicts(store: Store, judged_runs: Sequence[JudgedRun]) -> RankedVerdicts:
    """Verdict by verdict, with their prompts; by run, pair and judge."""
    chose = [judged for judged in judged_runs if chose_pairs(store, judged.run)]
    others = [judged for judged in judged_runs if judged not in chose]
    parts = [_planned(store, judged.run, judge)[0] for judged in chose for judge in judged.judges]
    if others or not parts:
        read = store.columns.battles(_runs(others), judge_ids=_judges(others))
        parts.append(
            RankedVerdicts(
                read.models,
                np.asarray(read.model_a),
                np.asarray(read.model_b),
                np.asarray(read.outcome),
                np.asarray(read.flipped),
                np.asarray(read.one_order),
                prompt=np.asarray(read.prompt_key),
            )
        )
    return _joined(parts)


def chose_pairs(store: Store, run: RunRecord) -> bool:
    """Whether earlier verdicts chose some of its pairs. Where all are judged, none was chosen."""
    return "rank_adaptive" in run.plan and store.verdicts.count(run.id).pending > 0


def _planned(
    store: Store, run: RunRecord, judge: JudgeRecord
) -> tuple[RankedVerdicts, OutcomeColumns]:
    """A judge's verdicts, and which of them were planned, of a run that chose its pairs."""
    read = store.columns.outcomes(run.id, judge.id)
    first, second = np.asarray(read.first_winner), np.asarray(read.second_winner)
    flipped = (first != second) & (first >= 0) & (second >= 0)
    flipped |= np.asarray(read.outcome) == INCONSISTENT
    alone = (np.asarray(read.both_orders) == 0) & (np.asarray(read.drawn_order) == 0)
    planned = None
    if chose_pairs(store, run):
        share = store.work.uniform_share(run.id)
        planned = np.fromiter((n in share for n in read.number), dtype=bool, count=len(read.number))
    rows = RankedVerdicts(
        read.models,
        np.asarray(read.model_a),
        np.asarray(read.model_b),
        np.asarray(read.outcome),
        flipped.astype(np.int8),
        alone.astype(np.int8),
        prompt=np.asarray(read.prompt_key),
        planned=planned,
    )
    return rows, read


def read_tagged(
    store: Store, judged_runs: Sequence[JudgedRun], tag: str
) -> tuple[RankedVerdicts, int]:
    """Those whose pair has the tag, and how many there are in all; by run, judge and pair."""
    parts: list[RankedVerdicts] = []
    there: set[str] = set()
    total = 0
    for judged in judged_runs:
        for judge in judged.judges:
            whole, read = _planned(store, judged.run, judge)
            total += len(read.outcome)
            there.update(each for tags in read.tag_sets for each in tags)
            has_it = np.array([tag in tags for tags in read.tag_sets], dtype=bool)
            if len(read.outcome):
                parts.append(whole.chosen(has_it[np.asarray(read.tags)]))
    if tag not in there:
        raise InputError(unknown_tag(tag, sorted(there)))
    return _joined(parts), total


def unknown_tag(tag: str, there: Sequence[str]) -> str:
    if not there:
        return Message("report.no_tags", tag=tag)
    near = nearest(tag, there)
    if near:
        return Message("report.tag_unknown_near", tag=tag, near=" or ".join(near))
    if len(there) > 5:
        return Message("report.tag_unknown_of_many", tag=tag, tags=there[:5], n=len(there) - 5)
    return Message("report.tag_unknown", tag=tag, tags=there)


def _runs(judged_runs: Sequence[JudgedRun]) -> list[int]:
    return [judged.run.id for judged in judged_runs]


def _judges(judged_runs: Sequence[JudgedRun]) -> set[int]:
    return {judge.id for judged in judged_runs for judge in judged.judges}


def _of_counts(counts: Sequence[BattleCount]) -> RankedVerdicts:
    named = {name for each in counts for name in (each.model_a, each.model_b) if name is not None}
    models = tuple(sorted(named))
    places: dict[str | None, int] = {name: place for place, name in enumerate(models)}
    places[None] = -1
    return RankedVerdicts(
        models,
        np.array([places[each.model_a] for each in counts], dtype=np.int64),
        np.array([places[each.model_b] for each in counts], dtype=np.int64),
        np.array([OUTCOMES[each.outcome, each.winner] for each in counts], dtype=np.int64),
        np.array([each.flipped for each in counts], dtype=np.int64),
        np.array([each.one_order for each in counts], dtype=np.int64),
        count=np.array([each.verdicts for each in counts], dtype=np.int64),
    )


def _joined(parts: Sequence[RankedVerdicts]) -> RankedVerdicts:
    """One table of those models that are in the rows, by name: where two models are equal the
    ranking keeps their order, and it should not be of arrival."""
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

    planned = None
    if any(part.planned is not None for part in parts):
        each_planned = (
            np.ones(len(part.outcome), bool) if part.planned is None else part.planned
            for part in parts
        )
        planned = np.concatenate(list(each_planned))
    return RankedVerdicts(
        models,
        column("model_a", coded=True),
        column("model_b", coded=True),
        column("outcome"),
        column("flipped"),
        column("one_order"),
        prompt=column("prompt"),
        planned=planned,
    )


def _places(codes: Column) -> set[int]:
    return {place for place in np.unique(codes).tolist() if place >= 0}


# The rows of a file of battles that a ranking takes.


@dataclass(frozen=True, slots=True)
class RankedBattles:
    """Models are places in `models`, which are sorted; `preference` is A's score, from 0 to 1."""

    models: tuple[str, ...]
    model_a: NDArray[Any]
    model_b: NDArray[Any]
    preference: NDArray[np.float64]
    prompt: NDArray[Any] | None
    weight: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, read: BattleFile, tag: str | None) -> RankedBattles:
        rows = np.asarray if tag is None else _tagged_rows(read, tag)
        a, b = rows(read.model_a), rows(read.model_b)
        used = sorted(np.union1d(a, b).tolist(), key=read.models.__getitem__)
        place = np.zeros(len(read.models), dtype=np.int32)
        place[used] = np.arange(len(used))
        return cls(
            tuple(read.models[each] for each in used),
            place[a],
            place[b],
            rows(read.preference),
            None if read.prompt is None else rows(read.prompt),
            None if read.weight is None else rows(read.weight),
        )

    def outcomes(self) -> tuple[int, int, int]:
        """How many rows are B's win, a tie, and A's win; the others are graded."""
        lost, tied, won = (int((self.preference == score).sum()) for score in (0.0, 0.5, 1.0))
        return lost, tied, won


_Rows = Callable[[Any], NDArray[Any]]


def _tagged_rows(read: BattleFile, tag: str) -> _Rows:
    there = sorted({each for tags in read.tag_sets for each in tags})
    if read.tags is None or tag not in there:
        raise InputError(unknown_tag(tag, there))
    has_it = np.array([tag in tags for tags in read.tag_sets])
    wanted = has_it[np.asarray(read.tags)]
    return lambda column: np.asarray(column)[wanted]
