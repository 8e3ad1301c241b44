"""The sequential test over a stored run's settled prefix of its random order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.messages import Message
from evenhand.stats.stopping.sequential import SequentialDecision, SequentialPlan, SequentialTest
from evenhand.store import Store
from evenhand.store.records import PrefixColumns

_SCORE = {WIN_A: 1.0, WIN_B: 0.0, TIE: 0.5, INCONSISTENT: 0.5}


class SettledPrefix:
    """A run looks repeatedly, a report once; both see the same."""

    def __init__(self, store: Store, run_id: int, judge_id: int, test: SequentialTest) -> None:
        self._store = store
        self._run_id = run_id
        self._judge_id = judge_id
        self._place = 0
        self._whole = False
        self._missing = self._flips = self._wins = 0
        self._scores: Counter[float] = Counter()
        self.test = test

    @classmethod
    def of(
        cls, store: Store, run_id: int, judge_id: int, *, alpha: float, seed: int
    ) -> SettledPrefix:
        prompts = store.runs.survey(run_id).prompts
        plan = SequentialPlan(planned=prompts, alpha=alpha, seed=seed)
        return cls(store, run_id, judge_id, SequentialTest(plan))

    def look(self) -> SequentialDecision:
        columns = self._store.work.settled_prefix(self._run_id, self._judge_id, after=self._place)
        for place, score in _scores(columns):
            self._place = place
            self.test.add(score)
            if score is not None:
                self._scores[score] += 1
        counts = Counter(columns.outcome)
        self._missing += counts[INVALID]
        self._flips += counts[INCONSISTENT]  # averaged ones are among them
        self._wins += counts[WIN_A] + counts[WIN_B]
        self._whole = columns.is_whole
        return self.test.look()

    @property
    def decides(self) -> bool:
        """Whether a run may stop here: not if the orders mostly contradict each other, nor if
        missing verdicts, counted against the leader as in gates, leave it undecided."""
        decision = self.test.decision
        if decision is None or self.mostly_flips:
            return False
        if not self._missing:
            return True
        lost = Counter({0.0 if decision.decided == "A" else 1.0: self._missing})
        return self.test.would_decide(self._scores + lost)

    @property
    def mostly_flips(self) -> bool:
        return self._flips >= self._wins and self._flips > 0

    def conclusion(self) -> SequentialDecision:
        """At the end the final test decides, if no look did."""
        return self.test.final() if self._whole else self.test.look()

    def account(self) -> str:
        tally = self._store.verdicts.tally(self._run_id, self._judge_id)
        # With one row per prompt, calls are known; else the prefix's prompts count.
        one_each = tally.pairs == self.test.plan.planned
        return self.describe(self.conclusion(), asked=tally.judged if one_each else None)

    def describe(self, decision: SequentialDecision, *, asked: int | None) -> str:
        if decision.decided is not None and self.mostly_flips:
            return Message("stats.mostly_flips", flips=self._flips, decided=self._wins)
        return decision.account(asked=asked)


def _scores(columns: PrefixColumns) -> Iterator[tuple[int, float | None]]:
    """Each prompt's mean score for A; None if it has no verdict."""
    rows = zip(columns.place, columns.outcome, strict=True)
    for place, of_prompt in groupby(rows, key=lambda row: row[0]):
        scores = [_SCORE[outcome] for _, outcome in of_prompt if outcome != INVALID]
        yield place, sum(scores) / len(scores) if scores else None
