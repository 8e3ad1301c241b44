"""Win rates as a report states them: one side's rate with the interval that its run allows, and
verdicts grouped by the two models they are about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand.analysis_options import ClaimOptions
from evenhand.contract.codes import TIE, WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.stats.intervals import sign_test_p
from evenhand.stats.proportions import wilson_interval
from evenhand.stats.rates.win_rate import (
    FEWEST_DECIDED,
    Circumstances,
    Missing,
    TestedMean,
    Ties,
    WinRate,
    win_rate,
)
from evenhand.stats.stopping.sequential import SequentialDecision
from evenhand.store import CriterionColumns, JudgeRecord, OutcomeColumns, RunRecord, Store
from evenhand.store.runs import Survey

Codes = NDArray[np.int8]
Keys = NDArray[np.int64]

Side = Literal["A", "B"]


class SideRate(WinRate):
    """One side's win rate. The counts keep their labels, whichever side it is.

    The sign test is of a planned end alone. With a decision, the rate is of the prompts up to it
    and the counts are of all verdicts.
    """

    side: Side
    always_valid: bool  # the interval is valid however often you look, and whenever the run ends
    matchups: int = 1  # of the run, whose intervals hold at `level` all together

    @property
    def won_and_lost(self) -> tuple[int, int]:
        wins = self.counts.wins_a, self.counts.wins_b
        return wins if self.side == "A" else wins[::-1]


@dataclass(frozen=True, slots=True)
class RateOptions:
    """`planned`: the run came to the end that it was begun for, and nobody looked on the way.
    `matchups`: how many claims the run makes, which share the error 1 - level."""

    side: Side
    ties: Ties
    level: float
    planned: bool
    matchups: int = 1

    @property
    def level_of_each(self) -> float:
        """By Bonferroni, so that a claim is wrong in any of them as rarely as in one."""
        return 1 - (1 - self.level) / self.matchups if self.matchups > 1 else self.level


def side_rate(
    outcomes: Codes,
    prompts: Keys,
    wanted: RateOptions,
    *,
    decision: SequentialDecision | None = None,
    circumstances: Circumstances | None = None,
) -> SideRate:
    """`outcomes` are in the labels of the two sides; the rate is the wanted side's."""
    rate = win_rate(
        exchange(outcomes, wanted.side == "B"),
        prompts=prompts,
        ties=wanted.ties,
        level=wanted.level_of_each,
        circumstances=circumstances,
        always_valid=not wanted.planned,
        tested=_tested(decision, wanted),
    )
    return _of_side(rate, wanted, decision)


def exchange(outcomes: NDArray[Any], where: NDArray[np.bool_] | bool) -> Codes:
    """The outcomes with A and B exchanged in these rows."""
    codes = np.asarray(outcomes, dtype=np.int8)
    return np.where((codes <= WIN_B) & where, WIN_B - codes, codes).astype(np.int8)


def _tested(decision: SequentialDecision | None, wanted: RateOptions) -> TestedMean | None:
    """A run until it is decided has one interval to believe: that of its test."""
    if decision is None or wanted.planned or decision.method is None:
        return None
    mean, low, high = decision.mean, decision.low, decision.high
    if mean is None or low is None or high is None:
        return None
    if wanted.side == "B":
        mean, low, high = 1 - mean, 1 - high, 1 - low
    return TestedMean(mean=mean, low=low, high=high, method=decision.method)


def _of_side(rate: WinRate, wanted: RateOptions, decision: SequentialDecision | None) -> SideRate:
    counts, test = rate.counts, rate.sign_test
    if wanted.side == "B":
        counts = counts.model_copy(update={"wins_a": counts.wins_b, "wins_b": counts.wins_a})
        if test is not None:
            test = test.model_copy(update={"wins_a": test.wins_b, "wins_b": test.wins_a})
    prompts = rate.prompts
    if decision is not None and not wanted.planned and wanted.ties == "half":
        prompts = decision.scored
    return SideRate.of_parts(
        rate,
        counts=counts,
        prompts=prompts,
        sign_test=test,
        level=wanted.level,
        matchups=wanted.matchups,
        side=wanted.side,
        always_valid=not wanted.planned and rate.rate is not None,
    )


# A judge's verdicts by the two models they are about, A being the same model in all of them.

Models = tuple[str | None, str | None]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class OutcomeGroup:
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
    criteria: tuple[OutcomeGroup, ...] = ()

    def only(self, kept: NDArray[np.bool_]) -> Matchup:
        """Of these of its rows."""
        return Matchup(
            models=self.models,
            pairs=int(kept.sum()),
            rows=self.rows[kept],
            prompts=self.prompts[kept],
            outcomes=self.outcomes[kept],
            exchanged=self.exchanged[kept],
        )


def matchups(
    columns: OutcomeColumns, criteria: tuple[CriterionColumns, ...], survey: Survey
) -> Iterator[Matchup]:
    """In the order in which the models first meet in the data."""
    table = _Table(survey)
    of_row, exchanged = table.placed(columns)
    count = len(table.models)
    outcomes = exchange(np.asarray(columns.outcome), exchanged)
    prompts = np.asarray(columns.prompt_key)
    parts: list[list[OutcomeGroup]] = [[] for _ in range(count)]
    numbers = np.asarray(columns.number)
    for column in criteria:
        where, known = _found(numbers, np.asarray(column.number))
        codes = exchange(np.asarray(column.outcome)[known], exchanged[where])
        keys = np.asarray(column.prompt_key)[known]
        for member, rows in _grouped(of_row[where], count):
            parts[member].append(
                OutcomeGroup(column.criterion, codes[rows], keys[rows], where[rows])
            )
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
        )


def by_tag(columns: OutcomeColumns, matchup: Matchup) -> Iterator[OutcomeGroup]:
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
        yield OutcomeGroup(name, matchup.outcomes[rows], matchup.prompts[rows], matchup.rows[rows])


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


# What a conclusion uses besides the verdicts: the caller's limits, and human labels.


class ConclusionLimits(Model):
    """What a conclusion assumes, and what prevents one.

    `max_invalid` and `max_skipped` are shares of all pairs: if more verdicts are invalid, or more
    rows were skipped or have no counterpart, nothing is concluded. Below that, missing pairs count
    against every claim, unless the caller sets `missing` to "half". `allow_one_order` accepts pairs
    judged in one fixed order, `allow_length` accepts that longer answers may win by their length.
    `smallest_effect` is the smallest difference from one half that matters. `growing`: more rows
    will follow, so every interval must stay valid for any number of looks. `labels_are_random`
    vouches that labels of unknown sampling are from a random draw; `require_labels` requires a rate
    that labels correct. `topic` names the column whose values are a sample of topics;
    `these_topics` limits the claim to these.
    """

    max_invalid: float | None = None
    max_skipped: float | None = None
    missing: Missing = "against"
    allow_one_order: bool = False
    allow_length: bool = False
    labels_are_random: bool = False
    require_labels: bool = False
    smallest_effect: float | None = None
    growing: bool = False
    topic: str | None = None
    these_topics: bool = False

    @classmethod
    def of(cls, options: ClaimOptions, *, require_labels: bool = False) -> ConclusionLimits:
        given = {
            name: getattr(options, name) for name in cls.model_fields if hasattr(options, name)
        }
        return cls(
            **given | {"missing": options.missing or "against"},
            labels_are_random=options.labels_are is not None,
            require_labels=require_labels,
        )

    def checked(self) -> ConclusionLimits:
        for name in ("max_invalid", "max_skipped"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise InputError(
                    Message("report.share_outside", name=name.replace("_", "-"), self=share)
                )
        if self.missing not in get_args(Missing):
            raise InputError(
                Message(
                    "stats.choice_unknown",
                    value=self.missing,
                    name="missing",
                    taken=list(get_args(Missing)),
                )
            )
        if self.smallest_effect is not None and not 0 < self.smallest_effect < 0.5:
            raise InputError(
                Message("report.smallest_effect_outside", smallest_effect=self.smallest_effect)
            )
        return self


# What labels have to rule out before they say that a judge is hardly better than a coin; the second
# where they do not show that it is better at all.
_HARDLY_BETTER, _PERHAPS_BETTER = 0.55, 0.6
_RUNS_NAMED = 3


class LabelRecord(Model):
    """Of the labelled pairs of the store that a judge named a winner of, on how many it named the
    label's, and on how many the other one; the 95% interval of its share by Wilson (1927). A pair
    counts once, whatever runs judged it and however many people voted on it."""

    right: int
    wrong: int
    low: float
    high: float
    other_runs: tuple[str, ...] = ()  # that all the labels are from, where none is of these runs

    @classmethod
    def of(
        cls, store: Store, judges: Iterable[JudgeRecord], runs: Iterable[RunRecord]
    ) -> LabelRecord | None:
        """Of all of them together, in these runs and in all that are at rest."""
        runs = tuple(runs)
        ids = {judge.id for judge in judges}, {run.id for run in runs}
        right, wrong = store.votes.right_and_wrong(*ids)
        ends = wilson_interval(right, right + wrong)
        if ends is None:
            return None
        names = store.votes.labelled_runs(*ids)
        own = {run.name for run in runs}
        others = () if own & set(names) else names
        return cls(right=right, wrong=wrong, low=ends[0], high=ends[1], other_runs=others)

    @property
    def tells_apart(self) -> bool:
        """They show that it is right more often than a coin."""
        return self.right > self.wrong and sign_test_p(self.right, self.wrong) < 0.05

    @property
    def is_no_better(self) -> bool:
        """They show that it is hardly better than one."""
        bound = _HARDLY_BETTER if self.tells_apart else _PERHAPS_BETTER
        return self.right + self.wrong >= FEWEST_DECIDED and self.high < bound

    @property
    def values(self) -> dict[str, Message]:
        """What they say of the judge, and what that means, for a sentence."""
        n = self.right + self.wrong
        where = Message("coin.of_this_run")
        if self.other_runs:
            where = Message("coin.of_other_runs", runs=self.other_runs[:_RUNS_NAMED])
        shown = {"n": n, "share": self.right / n, "low": self.low, "high": self.high}
        meaning = "far_worse" if self.high < 0.5 else "no_better"
        if self.tells_apart:
            meaning = "hardly_better"
        return {
            "record": Message("coin.record", where=where, **shown),
            "meaning": Message(f"coin.{meaning}"),
        }

    @property
    def is_open(self) -> bool:
        """Enough of them to say that they do not show it either way."""
        enough = self.right + self.wrong >= FEWEST_DECIDED
        return enough and not self.tells_apart and not self.is_no_better


# Runs that are looked through for probes, the newest first, and the probes that pad an answer.
_LOOKED_THROUGH = 1000
_PADDING = ("padded", "longer")
# A language's probes with empty phrases; fewer show nothing.
_FEWEST_PADDED = 12


class PaddingRecord(Model):
    """Of the probes that show a judge a good answer against the same in more words, how many it
    did not fall for in its latest run of them."""

    run: str
    resisted: int
    cases: int

    @property
    def passed(self) -> bool:
        return self.resisted == self.cases >= _FEWEST_PADDED

    @classmethod
    def of(cls, store: Store, judge: JudgeRecord) -> PaddingRecord | None:
        for run in store.runs.page(limit=_LOOKED_THROUGH):
            if "probes" not in run.plan.get("data", {}):
                continue
            if judge.id not in [each.id for each in store.runs.judges(run.id)]:
                continue
            columns = store.columns.outcomes(run.id, judge.id)
            padded = [bool(set(_PADDING) & set(tags)) for tags in columns.tag_sets]
            rows = np.flatnonzero(np.asarray(padded, dtype=np.bool_)[np.asarray(columns.tags)])
            if rows.size:
                codes = np.asarray(columns.outcome)[rows]
                longer = np.asarray(columns.length_b)[rows] > np.asarray(columns.length_a)[rows]
                resisted = (codes == TIE) | (codes == np.where(longer, WIN_A, WIN_B))
                return cls(run=run.name, resisted=int(resisted.sum()), cases=int(rows.size))
        return None
