"""Judges of a contestant's family: who is of whose, and how much that has to do with the verdicts
(`stats/rates/family_effect.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.judges.families import Families, few
from evenhand.messages import Message, chained
from evenhand.stats.columns import Floats
from evenhand.stats.estimates import EstimatedValue
from evenhand.stats.rates.family_effect import adjusted_difference, preference_difference
from evenhand.store import JudgeRecord, OutcomeColumns, RunRecord, Store

# Of A, by the code of an outcome: what is inconsistent prefers neither, what is invalid says
# nothing. And by that of a label, the last of which is none.
_SCORES = np.array([1.0, 0.0, 0.5, 0.5, np.nan])
_LABELS = np.array([1.0, 0.0, 0.5, np.nan])

Mask = NDArray[np.bool_]


class FamilyEffect(Model):
    """How much more often a family's judges prefer its models than `others` do on the same pairs,
    from -1 to 1: judges of other families, or, where `others` is empty, the data's labels.

    `adjusted` is the difference in differences: it allows for how the two relate on other pairs,
    and is null where these are too few or too even. `neutral` is false where the other judges are
    all of the other contestant's family: then both preferences are in the figures.
    """

    family: str
    judges: tuple[str, ...]
    models: tuple[str, ...]
    compared_with: Literal["judges", "labels"]
    others: tuple[str, ...] = ()
    neutral: bool = True
    pairs: int
    prompts: int
    difference: EstimatedValue
    adjusted: EstimatedValue | None


def judge_families(
    store: Store,
    run: RunRecord,
    judges: Sequence[JudgeRecord],
    models: Iterable[str | None],
    families: Families,
) -> dict[int, frozenset[str]]:
    """By a judge's id; by its name, or else by the models that its answers name, which are looked
    for only where a contestant has a family."""
    known = {judge.id: families.of(judge.name) for judge in judges}
    if not all(known.values()) and any(map(families.of, models)):
        served = store.runs.served_models(run.id)
        for judge in judges:
            known[judge.id] = families.of_judge(judge.name, served.get(judge.key, ()))
    return known


@dataclass(frozen=True, slots=True)
class _Table:
    """The verdicts of several judges on the same pairs: `scores` are of A, NaN where there is
    none, with a column a judge; so are `labels`."""

    models: tuple[str, ...]
    model_a: NDArray[np.int64]  # a place in `models`, -1 where it is not named
    model_b: NDArray[np.int64]
    prompts: NDArray[np.int64]
    labels: Floats
    scores: Floats

    @classmethod
    def of(cls, columns: Sequence[OutcomeColumns]) -> _Table:
        numbers = np.unique(np.concatenate([np.asarray(each.number) for each in columns]))
        models = {name: None for each in columns for name in each.models}
        place = {name: code for code, name in enumerate(models)}
        model_a, model_b, prompts = (np.full(numbers.size, -1, np.int64) for _ in range(3))
        labels = np.full(numbers.size, np.nan)
        scores = np.full((numbers.size, len(columns)), np.nan)
        for judge, each in enumerate(columns):
            rows = np.searchsorted(numbers, np.asarray(each.number))
            codes = np.array([*(place[name] for name in each.models), -1], dtype=np.int64)
            model_a[rows] = codes[np.asarray(each.model_a)]
            model_b[rows] = codes[np.asarray(each.model_b)]
            prompts[rows] = np.asarray(each.prompt_key)
            labels[rows] = _LABELS[np.asarray(each.label)]
            scores[rows, judge] = _SCORES[np.asarray(each.outcome)]
        return cls(tuple(models), model_a, model_b, prompts, labels, scores)


def family_effects(
    store: Store,
    run: RunRecord,
    judges: Sequence[JudgeRecord],
    kin: Mapping[int, frozenset[str]],
    *,
    models: Iterable[str | None],
    families: Families,
    level: float,
) -> Iterator[FamilyEffect | Message]:
    """One for each family that has both judges and models in the run; by other judges and by
    labels, or a message that neither is there. `kin` are the judges' families."""
    of_models = {name: families.of(name) for name in models if name is not None}
    contested = frozenset[str]().union(*of_models.values()) if of_models else frozenset()
    of_judges = frozenset[str]().union(*kin.values()) if kin else frozenset()
    if not contested & of_judges:
        return
    known = [judge for judge in judges if kin[judge.id]]
    table = _Table.of([store.columns.outcomes(run.id, judge.id).asked() for judge in known])
    for family in sorted(contested & of_judges):
        reader = _Family(family, known, kin, table, families)
        if reader.own.any():
            yield from reader.effects(level)


class _Family:
    def __init__(
        self,
        family: str,
        judges: Sequence[JudgeRecord],
        kin: Mapping[int, frozenset[str]],
        table: _Table,
        families: Families,
    ) -> None:
        self._family = family
        self._judges = judges
        self._kin = kin
        self._table = table
        self._own_judges = np.array([family in kin[judge.id] for judge in judges])
        # Code -1, of a model without a name, is the last.
        self._of_models = [*(families.of(name) for name in table.models), frozenset[str]()]
        of_family = np.array([family in each for each in self._of_models])
        self._is_a, is_b = of_family[table.model_a], of_family[table.model_b]
        self.own: Mask = self._is_a ^ is_b
        self._scores = self._of_side(table.scores)
        self._mine = _mean(self._scores[:, self._own_judges])

    def _of_side(self, scores: Floats) -> Floats:
        """Of the family's side; of B where neither is."""
        a = self._is_a if scores.ndim == 1 else self._is_a[:, np.newaxis]
        return np.where(a, scores, 1 - scores)

    def effects(self, level: float) -> Iterator[FamilyEffect | Message]:
        found = [each for each in (self._by_judges(level), self._by_labels(level)) if each]
        if found:
            yield from found
            return
        yield Message(
            "report.family_effect_unknown",
            family=self._family,
            judges=few(self._names),
            models=few(self._models),
        )

    @property
    def _names(self) -> list[str]:
        own = zip(self._judges, self._own_judges, strict=True)
        return list(dict.fromkeys(judge.name for judge, of_family in own if of_family))

    @property
    def _models(self) -> list[str]:
        of_each = zip(self._table.models, self._of_models, strict=False)
        return [name for name, own in of_each if self._family in own]

    def _by_judges(self, level: float) -> FamilyEffect | None:
        others = np.flatnonzero(~self._own_judges)
        scores = self._scores[:, others]
        rival = np.where(self._is_a, self._table.model_b, self._table.model_a)
        unrelated = scores.copy()
        for place, judge in enumerate(others.tolist()):
            kin = self._kin[self._judges[judge].id]
            related = np.array([bool(kin & each) for each in self._of_models])
            unrelated[self.own & related[rival], place] = np.nan
        for neutral, counted in ((True, unrelated), (False, scores)):
            theirs = _mean(counted)
            rows = self.own & ~np.isnan(self._mine) & ~np.isnan(theirs)
            if rows.any():
                voted = others[(~np.isnan(counted[rows])).any(axis=0)]
                names = dict.fromkeys(self._judges[place].name for place in voted.tolist())
                return self._effect(theirs, level, others=tuple(names), neutral=neutral)
        return None

    def _by_labels(self, level: float) -> FamilyEffect | None:
        labels = self._of_side(self._table.labels)
        if not (self.own & ~np.isnan(self._mine) & ~np.isnan(labels)).any():
            return None
        return self._effect(labels, level)

    def _effect(
        self, theirs: Floats, level: float, *, others: tuple[str, ...] = (), neutral: bool = True
    ) -> FamilyEffect:
        """Both scores are there in the rows that count, and both models named in other pairs."""
        table = self._table
        both = ~np.isnan(self._mine) & ~np.isnan(theirs)
        rows = both & self.own
        named = (table.model_a >= 0) & (table.model_b >= 0) & (table.model_a != table.model_b)
        low, high = (pick(table.model_a, table.model_b) for pick in (np.minimum, np.maximum))
        matchups = np.where(self.own, -1, low * len(table.models) + high)
        counted = both & (self.own | named)
        # Of other pairs, the score of the model that comes first in the table.
        turned = ~self.own & (self._is_a != (table.model_a < table.model_b))
        mine, theirs = (np.where(turned, 1 - each, each) for each in (self._mine, theirs))
        return FamilyEffect(
            family=self._family,
            judges=tuple(self._names),
            models=tuple(self._models),
            compared_with="judges" if others else "labels",
            others=others,
            neutral=neutral,
            pairs=int(rows.sum()),
            prompts=int(np.unique(table.prompts[rows]).size),
            difference=preference_difference(
                mine[rows], theirs[rows], prompts=table.prompts[rows], level=level
            ),
            adjusted=adjusted_difference(
                mine[counted],
                theirs[counted],
                matchups=matchups[counted],
                prompts=table.prompts[counted],
                level=level,
            ),
        )


def _mean(scores: Floats) -> Floats:
    """Of each row's scores, NaN where it has none."""
    there = ~np.isnan(scores)
    count = there.sum(axis=1)
    total = np.where(there, scores, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def effect_notes(effects: Iterable[FamilyEffect], *, level: float) -> Iterator[Message]:
    for each in effects:
        plain = _points(each.difference, level)
        if plain is None:
            reason = each.difference.reason
            yield Message("report.family_effect_missing", family=each.family, reason=reason)
            continue
        code = "labels" if each.compared_with == "labels" else "judges"
        values: dict[str, Any] = {"judges": few(each.judges), "models": few(each.models)}
        if each.others:
            values["others"] = few(each.others)
        note = Message(
            f"report.family_effect_{code}",
            family=each.family,
            pairs=each.pairs,
            difference=plain,
            **values,
        )
        adjusted = each.adjusted and _points(each.adjusted, level)
        parts = [note, adjusted and Message("report.family_effect_adjusted", difference=adjusted)]
        if not each.neutral:
            parts.append(Message("report.family_effect_both"))
        yield chained(part for part in parts if part)


def _points(value: EstimatedValue, level: float) -> Message | None:
    if value.value is None or value.low is None or value.high is None:
        return None
    low, points, high = (100 * each for each in (value.low, value.value, value.high))
    return Message("report.points", points=points, low=low, high=high, level=level)
