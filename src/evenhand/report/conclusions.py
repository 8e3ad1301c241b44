"""What a run says about its two sides: how often one wins, how sure that is, what else may be
behind it. One conclusion for each judge and each two models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.report.lookup import find_run
from evenhand.report.settled_prefix import SettledPrefix
from evenhand.stats.always_valid import always_valid_interval_of_scores
from evenhand.stats.length import LengthEffect, length_effect
from evenhand.stats.outcomes import INVALID, WIN_B, OutcomeCounts
from evenhand.stats.position import PositionBias, position_bias
from evenhand.stats.sequential import Decision
from evenhand.stats.sign_test import SignTest
from evenhand.stats.win_rate import Ties, WinRate, WorstCase, win_rate
from evenhand.store import CriterionColumns, JudgeRecord, OutcomeColumns, RunRecord, RunState, Store

Codes = NDArray[np.int8]

Side = Literal["A", "B"]
# How the interval of a rate was made: by the score test, also over prompts; or always valid, for
# a run that was not carried to its end.
Method = Literal["score", "clustered score", "betting", "t"]


class SideRate(Model):
    """One side's win rate. The counts keep their labels, whichever side it is."""

    side: Side
    counts: OutcomeCounts
    n: int
    prompts: int | None
    rate: float | None
    low: float | None
    high: float | None
    level: float
    method: Method | None
    always_valid: bool  # the interval holds however often somebody looked, and whenever it ended
    clustered: bool
    ties: Ties
    sign_test: SignTest | None
    worst_case: WorstCase | None
    reason: str | None


class GroupRate(Model):
    """The win rate of a part: a criterion, or a tag."""

    name: str
    rate: SideRate


class Conclusion(Model):
    """One judge on one two models; `model` is the side's, `against` the other's."""

    judge: str
    side: Side
    model: str | None
    against: str | None
    win_rate: SideRate
    decision: Decision | None  # of a run until it is decided
    by_criterion: tuple[GroupRate, ...]
    by_tag: tuple[GroupRate, ...]
    length: LengthEffect
    position: PositionBias


class Conclusions(Model):
    run: str
    store: str
    state: RunState
    stopped_by: str | None
    pairs: int
    pending: int
    skipped_rows: int
    ties: Ties
    level: float
    conclusions: tuple[Conclusion, ...]
    notes: tuple[str, ...]


def conclude(
    store: Store,
    name: str,
    *,
    side: Side = "B",
    ties: Ties = "half",
    level: float = 0.95,
    parts: bool = True,
) -> Conclusions:
    """What the run says of `side`; by its criteria and tags too, unless `parts` is False."""
    run = find_run(store, name)
    tally = store.tally(run.id)
    wanted = _Wanted(run, side, ties, level, parts, whole=tally.pending == 0)
    found = tuple(
        conclusion
        for judge in store.run_judges(run.id)
        for conclusion in _of_judge(store, judge, wanted)
    )
    return Conclusions(
        run=run.name,
        store=store.address,
        state=run.state,
        stopped_by=run.stopped_by,
        pairs=tally.pairs,
        pending=tally.pending,
        skipped_rows=tally.skipped_rows,
        ties=ties,
        level=level,
        conclusions=found,
        notes=tuple(_notes(run, wanted, found, skipped=tally.skipped_rows)),
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    run: RunRecord
    side: Side
    ties: Ties
    level: float
    parts: bool
    whole: bool  # nothing is pending

    @property
    def until_decided(self) -> dict[str, Any] | None:
        told = self.run.plan.get("until_decided")
        return told if isinstance(told, dict) else None


@dataclass(frozen=True, slots=True)
class _Rows:
    """The verdicts on one two models, A being the same model in all of them."""

    models: tuple[str | None, str | None]
    numbers: NDArray[np.int64]
    prompts: NDArray[np.int64]
    outcomes: Codes
    exchanged: NDArray[np.bool_]  # A and B have changed places against the data's row


def _of_judge(store: Store, judge: JudgeRecord, wanted: _Wanted) -> Iterator[Conclusion]:
    columns = store.outcome_columns(wanted.run.id, judge.id)
    criteria: tuple[CriterionColumns, ...] = ()
    if wanted.parts:
        criteria = store.criterion_columns(wanted.run.id, judge.id)
    decision = _decision(store, judge, wanted)
    for chosen, rows in _contests(columns):
        names = rows.models if wanted.side == "A" else rows.models[::-1]
        yield Conclusion(
            judge=judge.name,
            side=wanted.side,
            model=names[0],
            against=names[1],
            win_rate=_rate(rows.outcomes, rows.prompts, wanted, decision=decision),
            decision=decision,
            by_criterion=tuple(_by_criterion(criteria, rows, wanted)),
            by_tag=tuple(_by_tag(columns, chosen, rows, wanted)) if wanted.parts else (),
            length=_length(columns, chosen, rows, wanted),
            position=position_bias(
                np.asarray(columns.first_winner)[chosen],
                np.asarray(columns.second_winner)[chosen],
                prompts=rows.prompts,
                level=wanted.level,
            ),
        )


def _contests(columns: OutcomeColumns) -> Iterator[tuple[NDArray[np.intp], _Rows]]:
    """The rows of each two models, in the order in which they first meet."""
    model_a, model_b = np.asarray(columns.model_a), np.asarray(columns.model_b)
    low, high = np.minimum(model_a, model_b), np.maximum(model_a, model_b)
    size = len(columns.models) + 1
    _, first, which = np.unique(
        (low + 1).astype(np.int64) * size + high + 1, return_index=True, return_inverse=True
    )
    for kind in np.argsort(first, kind="stable"):
        chosen = np.flatnonzero(which == kind)
        a, b = int(model_a[first[kind]]), int(model_b[first[kind]])
        exchanged = (model_a[chosen] != a) if a != b else np.zeros(chosen.size, dtype=bool)
        outcomes = _exchanged(np.asarray(columns.outcome)[chosen], exchanged)
        yield (
            chosen,
            _Rows(
                models=(_name(columns, a), _name(columns, b)),
                numbers=np.asarray(columns.number)[chosen],
                prompts=np.asarray(columns.prompt_key)[chosen],
                outcomes=outcomes,
                exchanged=exchanged,
            ),
        )


def _name(columns: OutcomeColumns, code: int) -> str | None:
    return columns.models[code] if code >= 0 else None


def _exchanged(outcomes: NDArray[Any], where: NDArray[np.bool_] | bool) -> Codes:
    """The outcomes with A and B exchanged in these rows."""
    codes = np.asarray(outcomes, dtype=np.int8)
    won = codes <= WIN_B
    return np.where(won & where, WIN_B - codes, codes).astype(np.int8)


def _rate(
    outcomes: Codes,
    prompts: NDArray[np.int64],
    wanted: _Wanted,
    *,
    decision: Decision | None = None,
) -> SideRate:
    """`outcomes` are in the labels of the data; the rate is the side's."""
    own = _exchanged(outcomes, wanted.side == "B")
    found = win_rate(own, prompts=prompts, ties=wanted.ties, level=wanted.level)
    rate = _side_rate(found, wanted)
    if decision is not None and wanted.ties == "half":
        return _by_decision(rate, decision)
    if wanted.whole or found.rate is None:
        return rate
    return _while_it_runs(rate, own, prompts, wanted)


def _side_rate(found: WinRate, wanted: _Wanted) -> SideRate:
    counts, test = found.counts, found.sign_test
    if wanted.side == "B":
        counts = counts.model_copy(update={"wins_a": counts.wins_b, "wins_b": counts.wins_a})
        if test is not None:
            test = test.model_copy(update={"wins_a": test.wins_b, "wins_b": test.wins_a})
    return SideRate(
        side=wanted.side,
        counts=counts,
        n=found.n,
        prompts=found.prompts,
        rate=found.rate,
        low=found.low,
        high=found.high,
        level=found.level,
        method=found.method,
        always_valid=False,
        clustered=found.clustered,
        ties=found.ties,
        sign_test=test,
        worst_case=found.worst_case,
        reason=found.reason,
    )


def _by_decision(rate: SideRate, decision: Decision) -> SideRate:
    """A run until it is decided has one interval to believe: that of its test."""
    mean, low, high = decision.mean, decision.low, decision.high
    if rate.side == "B" and mean is not None and low is not None and high is not None:
        mean, low, high = 1 - mean, 1 - high, 1 - low
    return rate.model_copy(
        update={
            "rate": mean,
            "low": low,
            "high": high,
            "level": decision.level,
            "method": decision.method,
            "always_valid": True,
            "prompts": decision.scored,
            "reason": decision.reason,
        }
    )


def _while_it_runs(
    rate: SideRate, own: Codes, prompts: NDArray[np.int64], wanted: _Wanted
) -> SideRate:
    """Whoever ended the run may have looked before: only an interval that allows it will do."""
    scores = _prompt_scores(own, prompts, wanted.ties)
    interval = always_valid_interval_of_scores(scores, level=wanted.level)
    if interval is None:
        return rate
    return rate.model_copy(
        update={
            "rate": interval.mean,
            "low": interval.low,
            "high": interval.high,
            "method": interval.method,
            "always_valid": True,
        }
    )


_HALF: dict[Ties, float | None] = {"half": 0.5, "excluded": None, "wins": 0.0}


def _prompt_scores(own: Codes, prompts: NDArray[np.int64], ties: Ties) -> NDArray[np.float64]:
    half = _HALF[ties]
    counted = own < (INVALID if half is not None else WIN_B + 1)
    scores = np.array([1.0, 0.0, half or 0.0, half or 0.0])[own[counted]]
    _, which = np.unique(prompts[counted], return_inverse=True)
    rows = np.bincount(which)
    means: NDArray[np.float64] = np.bincount(which, weights=scores) / rows
    return means


def _decision(store: Store, judge: JudgeRecord, wanted: _Wanted) -> Decision | None:
    told = wanted.until_decided
    if told is None:
        return None
    prefix = SettledPrefix.of(
        store, wanted.run.id, judge.id, alpha=round(1 - wanted.level, 12), seed=told["seed"]
    )
    prefix.look()
    return prefix.conclusion()


def _by_criterion(
    criteria: tuple[CriterionColumns, ...], rows: _Rows, wanted: _Wanted
) -> Iterator[GroupRate]:
    for column in criteria:
        numbers = np.asarray(column.number)
        place = np.searchsorted(rows.numbers, numbers)
        place[place == rows.numbers.size] = 0
        here = rows.numbers[place] == numbers
        if not here.any():
            continue
        outcomes = _exchanged(np.asarray(column.outcome)[here], rows.exchanged[place[here]])
        prompts = np.asarray(column.prompt_key)[here]
        yield GroupRate(name=column.criterion, rate=_rate(outcomes, prompts, wanted))


def _by_tag(
    columns: OutcomeColumns, chosen: NDArray[np.intp], rows: _Rows, wanted: _Wanted
) -> Iterator[GroupRate]:
    sets = np.asarray(columns.tags)[chosen]
    names = sorted({tag for code in np.unique(sets) for tag in columns.tag_sets[int(code)]})
    for name in names:
        having = [code for code, tags in enumerate(columns.tag_sets) if name in tags]
        here = np.isin(sets, having)
        rate = _rate(rows.outcomes[here], rows.prompts[here], wanted)
        yield GroupRate(name=name, rate=rate)


def _length(
    columns: OutcomeColumns, chosen: NDArray[np.intp], rows: _Rows, wanted: _Wanted
) -> LengthEffect:
    first, second = (np.asarray(each)[chosen] for each in (columns.length_a, columns.length_b))
    turned = rows.exchanged ^ (wanted.side == "B")
    return length_effect(
        _exchanged(rows.outcomes, wanted.side == "B"),
        length_a=np.where(turned, second, first),
        length_b=np.where(turned, first, second),
        prompts=rows.prompts,
        level=wanted.level,
    )


def _notes(
    run: RunRecord, wanted: _Wanted, found: tuple[Conclusion, ...], *, skipped: int
) -> Iterator[str]:
    if wanted.until_decided is not None:
        yield (
            "this run looked at its verdicts while it ran: the interval is that of its sequential "
            "test, which allows for that"
        )
        if wanted.ties != "half":
            yield (
                f"the sequential test counts ties as half; with ties {wanted.ties} the interval is "
                "an always-valid one of all verdicts so far"
            )
    elif not wanted.whole:
        yield (
            f"run {run.name} is not finished: its intervals are always valid, which are wider but "
            "hold whenever somebody looks"
        )
    if skipped:
        rows = "1 row" if skipped == 1 else f"{skipped:,} rows"
        yield f"{rows} of the data could not be read as pairs and are in no figure"
    invalid = sum(each.win_rate.counts.invalid for each in found)
    if invalid:
        pairs = "1 pair is" if invalid == 1 else f"{invalid:,} pairs are"
        yield f"{pairs} invalid and in no rate; the worst case says what they could change"
    if any(each.position.favours for each in found):
        yield "a judge favours a place; its inconsistent verdicts count as half"
