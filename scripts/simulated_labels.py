"""Judges that people's labels in the same store correct or contradict: labels on every pair, on
pairs drawn at random, and on pairs that somebody happened to label; and what the label rules cost.
Used by `scripts.verify_conclusions --labels`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import NO_WINNER, WIN_A, WIN_B
from evenhand.report.conclusions import Concluder, Conclusion
from evenhand.report.label_samples import Drawn, LabelSample
from evenhand.report.labelled import RunLabels
from evenhand.report.win_rates import ConclusionLimits, Matchup, RateOptions
from evenhand.store import JudgeRecord, OutcomeColumns, RunRecord, Store

MOST_T1, LEAST_COVERAGE = 0.05, 0.93
Codes = NDArray[np.int8]
# How a pair comes to be labelled; the last two are nobody's draw. "easy": the judge is right on
# them. "theirs": people gave them to B twice as often as all pairs.
Design = Literal["every pair", "at random", "unknown, fair", "unknown, easy", "unknown, theirs"]


@dataclass(frozen=True, slots=True)
class Labelled:
    """The judge does not look at a share `blind` of the pairs, and gives `to_a` of these to A."""

    design: Design
    pairs: int
    labels: int
    rate: float  # people's
    blind: float
    to_a: float

    @property
    def held(self) -> bool:
        """By a rule: labels of unknown origin show no bias of the judge for certain."""
        return not self.design.startswith("unknown") or self.to_a == 0.5

    def __str__(self) -> str:
        size = f"{self.labels:4} of {self.pairs:4} pairs labelled"
        judge = f"blind in {self.blind:3.0%}, then {self.to_a:3.0%} to A"
        return f"{self.design:15} {size}, {judge}, people at {self.rate:.2f}"


@dataclass(slots=True)
class _Labels:
    """The store as far as a conclusion asks for it: nothing grew, and how often the judge is right
    on what is labelled."""

    right: int = 0
    wrong: int = 0
    run: str = field(default="simulated")

    @property
    def runs(self) -> _Labels:
        return self

    @property
    def votes(self) -> _Labels:
        return self

    def grown_from(self, run_id: int, judge_id: int) -> tuple[str, ...]:
        return ()

    def right_and_wrong(self, judges: set[int], runs: set[int]) -> tuple[int, int]:
        return self.right, self.wrong

    def labelled_runs(self, judges: set[int], runs: set[int]) -> tuple[str, ...]:
        return (self.run,)


def _record(kind: type[Any], **known: Any) -> Any:
    """A stored row of which the rest does not matter."""
    names = [name for name in kind.__dataclass_fields__ if name not in known]
    return kind(**dict.fromkeys(names), **known)


_NOW = datetime.now(UTC)
_RUN: RunRecord = _record(RunRecord, id=1, name="simulated", plan={}, summary={}, created_at=_NOW)
_JUDGE: JudgeRecord = _record(JudgeRecord, id=1, name="simulated")


def draw(rng: np.random.Generator, case: Labelled) -> tuple[Codes, Codes, Codes]:
    """The judge's winners, people's, and people's where they are labelled."""
    people = np.where(rng.random(case.pairs) < case.rate, WIN_A, WIN_B).astype(np.int8)
    guesses = np.where(rng.random(case.pairs) < case.to_a, WIN_A, WIN_B)
    blind = rng.random(case.pairs) < case.blind
    judge = np.where(blind, guesses, people).astype(np.int8)
    weights = np.ones(case.pairs)
    if case.design == "unknown, easy":
        weights = np.where(judge == people, 1.0, 1e-9)
    elif case.design == "unknown, theirs":
        weights = np.where(people == WIN_B, 2.0, 1.0)
    chosen = rng.choice(case.pairs, case.labels, replace=False, p=weights / weights.sum())
    labels = np.full(case.pairs, NO_WINNER, dtype=np.int8)
    labels[chosen] = people[chosen]
    return judge, people, labels


def conclude(judge: Codes, labels: Codes, design: Design) -> Conclusion:
    """As a report does."""
    pairs, rows = judge.size, np.flatnonzero(labels != NO_WINNER)
    both = array("b", bytes(pairs))
    columns = OutcomeColumns(
        ("a", "b"),
        ((),),
        number=array("q", range(1, pairs + 1)),
        prompt_key=array("q", range(pairs)),
        outcome=array("b", judge.tobytes()),
        first_winner=array("b", judge.tobytes()),
        second_winner=array("b", judge.tobytes()),
        both_orders=array("b", bytes([1]) * pairs),
        drawn_order=both,
        confidence=array("d", [float("nan")] * pairs),
        length_a=array("i", [100] * pairs),
        length_b=array("i", [100] * pairs),
        model_a=array("i", [0] * pairs),
        model_b=array("i", [1] * pairs),
        tags=array("i", [0] * pairs),
        label=array("b", labels.tobytes()),
        by_rule=both,
    )
    drawn: Drawn = "every pair" if rows.size == pairs else "at random"
    sample = LabelSample(
        rows=rows,
        scores=(labels[rows] == WIN_A).astype(np.float64),
        decided=np.ones(rows.size, dtype=np.bool_),
        escalated=np.zeros(rows.size, dtype=np.bool_),
        chances=None,
        drawn=drawn,
        people=1,
        left_out=(),
        notes=(),
    )
    known = None if design.startswith("unknown") else sample
    right = int((judge[rows] == labels[rows]).sum())
    concluder = Concluder(
        cast("Store", _Labels(right, rows.size - right)),
        columns,
        [(_RUN, _JUDGE)],
        people=RunLabels(labels, sample=known),
        wanted=RateOptions("A", "half", 0.95, planned=True),
        limits=ConclusionLimits(),
    )
    matchup = Matchup(
        models=("a", "b"),
        pairs=pairs,
        rows=np.arange(pairs),
        prompts=np.arange(pairs),
        outcomes=judge,
        exchanged=np.zeros(pairs, dtype=np.bool_),
    )
    circumstances = concluder.circumstances(matchup, absent=0, pending=0)
    return concluder.conclude(matchup, ("a", "b"), circumstances)


def claim_of(conclusion: Conclusion) -> int:
    """1 that A is better, -1 that it is worse, 0 neither."""
    claimed = conclusion.claimed
    if not claimed.excludes_half or conclusion.blocks("claim"):
        return 0
    return 1 if (claimed.low or 0.0) > 0.5 else -1


@dataclass(frozen=True, slots=True)
class Cell:
    better: float
    worse: float
    judge_better: float  # by the judge's verdicts alone
    lost: float  # of its claims that people share, those that the labels made undecided
    covered: float
    corrected: float  # runs whose claim is of people's rate

    def wrong(self, rate: float) -> float:
        """Claims on the wrong side of one half; at one half, the likelier of both."""
        if rate == 0.5:
            return max(self.better, self.worse)
        return self.better if rate < 0.5 else self.worse


def cell(rng: np.random.Generator, case: Labelled, replicates: int) -> Cell:
    better = worse = alone = true = lost = covered = corrected = 0
    for _ in range(replicates):
        judge, _, labels = draw(rng, case)
        conclusion = conclude(judge, labels, case.design)
        claim, rate, claimed = claim_of(conclusion), conclusion.win_rate, conclusion.claimed
        own = 0
        if rate.shows_difference:
            own = 1 if (rate.low or 0.0) > 0.5 else -1
        better += claim == 1
        worse += claim == -1
        alone += own == 1
        if own and own == np.sign(case.rate - 0.5):
            true += 1
            lost += claim == 0
        low, high = claimed.low or 0.0, claimed.high if claimed.high is not None else 1.0
        covered += low <= case.rate <= high
        corrected += conclusion.by_people
    return Cell(
        better=better / replicates,
        worse=worse / replicates,
        judge_better=alone / replicates,
        lost=lost / max(1, true),
        covered=covered / replicates,
        corrected=corrected / replicates,
    )


def cases(*, quick: bool) -> Iterator[Labelled]:
    judges = ((0.3, 0.5), (0.6, 0.5), (0.3, 1.0), (0.6, 0.9))
    designs: list[tuple[Design, int, int]] = [
        ("every pair", 100, 100),
        ("every pair", 300, 300),
        ("at random", 300, 60),
        ("at random", 1000, 100),
        ("unknown, fair", 300, 90),
        ("unknown, easy", 300, 90),
        ("unknown, theirs", 300, 90),
    ]
    for design, pairs, labels in designs:
        for blind, to_a in judges:
            for rate in (0.5, 0.6) if quick else (0.4, 0.5, 0.6):
                yield Labelled(design, pairs, labels, rate, blind, to_a)


def holds(rng: np.random.Generator, *, replicates: int, quick: bool) -> bool:
    """Prints every cell; False where a rule's cell is wrong in more than 5%, or where a corrected
    rate covers people's in less than 93%, each with three standard errors to spare."""
    good = True
    for case in cases(quick=quick):
        found = cell(rng, case, replicates)
        wrong = found.wrong(case.rate)
        note = "" if case.held else "  (no draw: no rule holds this)"
        print(
            f"  {case!s:95}: better {found.better:6.1%}, worse {found.worse:6.1%}; judge alone "
            f"better {found.judge_better:6.1%}; undecided of its true claims {found.lost:6.1%}; "
            f"covered {found.covered:6.1%}{note}",
            flush=True,
        )
        if case.held:
            good &= wrong <= MOST_T1 + 3 * (MOST_T1 * (1 - MOST_T1) / replicates) ** 0.5
        if found.corrected == 1.0:
            good &= found.covered >= LEAST_COVERAGE - 3 * (0.065 / replicates) ** 0.5
    return good
