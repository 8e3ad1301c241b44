"""A test of A against B that may stop at any look at its nominal error rate. Loads no NumPy before
the planned end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.stats.always_valid import (
    Bets,
    always_valid_interval_of_counts,
    log_mean,
    planned_bets,
)

Side = Literal["A", "B"]
_LOG10 = math.log(10)


class SequentialPlan(Model):
    """Fixed before the first pair goes out; a resumed run must have the same.

    `betting_share` of `alpha` is spent on looks, one after every prompt of the order that `seed`
    names, and the rest at the end. The null is that neither side is better.
    """

    planned: Annotated[int, Field(ge=1)]
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    betting_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    seed: int = 0

    @property
    def betting_alpha(self) -> float:
        return self.alpha * self.betting_share

    @property
    def bets(self) -> Bets:
        return planned_bets(self.planned)

    def announcement(self) -> str:
        """What it will do, announced before the start."""
        return (
            f"Up to {self.planned:,} prompts are judged in random order (seed {self.seed}). "
            "The run checks after every prompt and stops once it is clear whether A or B is "
            "better; otherwise a final test uses all of them. The chance of naming a winner when "
            f"there is none stays below {_percent(self.alpha)}."
        )


class SequentialDecision(Model):
    """The result of a look, or of the end.

    `low` and `high` are always-valid bounds for a look (`method` is "betting"), and the final
    test's at the end. `level` is of the whole procedure: in that share of runs the interval finally
    reported holds the true mean. `prompts` are those of the prefix, `scored` those of them with a
    verdict.
    """

    decided: Side | None
    final: bool
    prompts: int
    scored: int
    mean: float | None
    low: float | None
    high: float | None
    level: float
    method: Literal["betting", "score", "t"] | None
    p_value: float | None
    log10_e_value: float
    plan: SequentialPlan
    reason: Annotated[str, StringConstraints(min_length=1)] | None = None

    @property
    def stopped_early(self) -> bool:
        return self.decided is not None and not self.final

    def account(self, *, asked: int | None = None) -> str:
        """Its result, for the summary; `asked` are the prompts sent by then."""
        planned = self.plan.planned
        if not self.stopped_early:
            if self.decided:
                return Message("stats.all_prompts_needed", planned=planned, decided=self.decided)
            if self.final:
                return Message("stats.no_difference_shown", planned=planned)
            return Message("stats.undecided", prompts=self.prompts, planned=planned)
        spent = max(self.prompts, asked or 0)
        saved = max(0, planned - spent)
        values = {
            "prompts": self.prompts,
            "planned": planned,
            "side": self.decided,
            "saved": saved,
            "share": _percent(saved / planned),
        }
        if spent > self.prompts:
            return Message("stats.stopped_in_flight", more=spent - self.prompts, **values)
        return Message("stats.stopped", **values)


class SequentialTest:
    """Follows the scores of a prefix; depends on the plan and the prefix alone.

    After a crash, feed it the stored prefix again. `None` is a prompt without a valid verdict: it
    has its place in the order and moves nothing.
    """

    def __init__(self, plan: SequentialPlan) -> None:
        self.plan = plan
        self._bets = plan.bets
        self._enough = -math.log(plan.betting_alpha)
        self._counts: Counter[float] = Counter()
        self._on_a = [0.0] * len(self._bets.stakes)
        self._on_b = [0.0] * len(self._bets.stakes)
        self._prompts = 0
        self._log_capital = 0.0
        self._decision: SequentialDecision | None = None

    @property
    def prompts(self) -> int:
        return self._prompts

    @property
    def decision(self) -> SequentialDecision | None:
        """The first look that decided; later scores do not change it."""
        return self._decision

    def add(self, score: float | None) -> SequentialDecision | None:
        """The next prompt of the order; returns the decision, once there is one."""
        if self._decision is not None:
            return self._decision
        if self._prompts == self.plan.planned:
            raise InputError.of("stats.more_than_planned", planned=self.plan.planned)
        if score is not None:
            self._bet(float(score))
        self._prompts += 1
        self._log_capital = log_mean(self._on_a, self._on_b)
        if self._log_capital >= self._enough:
            self._decision = self._describe(self._leader())
        return self._decision

    def extend(self, scores: Iterable[float | None]) -> SequentialDecision | None:
        for score in scores:
            self.add(score)
        return self._decision

    def would_decide(self, scores: Mapping[float, int]) -> bool:
        """Whether a look at these scores would decide."""
        return self._bets.log_capital(scores, 0.5) >= self._enough

    def look(self) -> SequentialDecision:
        """The decision, or an always-valid interval without one."""
        return self._decision or self._describe(None)

    def final(self) -> SequentialDecision:
        """The decision of a look, or of the fixed test at the planned size."""
        if self._decision is not None:
            return self._decision
        if self._prompts < self.plan.planned:
            raise InputError.of(
                "stats.final_too_early", prompts=self._prompts, planned=self.plan.planned
            )
        return self._describe_end()

    def _bet(self, score: float) -> None:
        if not 0 <= score <= 1:
            raise InputError.of("stats.score_outside", score=score)
        self._counts[score] += 1
        if score == 0.5:  # a tie returns every stake as it was
            return
        gain_a, gain_b = 2 * score - 1, 2 * (1 - score) - 1
        stakes = self._bets.stakes
        self._on_a = [
            held + math.log1p(stake * gain_a)
            for held, stake in zip(self._on_a, stakes, strict=True)
        ]
        self._on_b = [
            held + math.log1p(stake * gain_b)
            for held, stake in zip(self._on_b, stakes, strict=True)
        ]

    def _leader(self) -> Side:
        return "A" if self._mean() > 0.5 else "B"

    def _mean(self) -> float:
        return math.fsum(s * times for s, times in self._counts.items()) / self._counts.total()

    def _describe(self, decided: Side | None) -> SequentialDecision:
        interval = always_valid_interval_of_counts(
            self._counts, level=1 - self.plan.betting_alpha, bets=self._bets
        )
        return SequentialDecision(
            decided=decided,
            final=decided is not None and self._prompts == self.plan.planned,
            prompts=self._prompts,
            scored=self._counts.total(),
            mean=interval and interval.mean,
            low=interval and interval.low,
            high=interval and interval.high,
            level=1 - self.plan.alpha,
            method="betting" if interval else None,
            p_value=math.exp(min(0.0, -self._log_capital)) if interval else None,
            log10_e_value=self._log_capital / _LOG10,
            plan=self.plan,
            reason=None if interval else Message("stats.no_scores"),
        )

    def _describe_end(self) -> SequentialDecision:
        # NumPy and SciPy load at the end of a run, not at its start.
        from evenhand.stats.stopping.final_test import AlphaSpending, run_final_test

        scored = self._counts.total()
        if scored < 2:
            return self._describe(None).model_copy(
                update={
                    "final": True,
                    "reason": Message("stats.few_scored", scored=scored),
                }
            )
        plan = self.plan
        test = run_final_test(
            self._counts, AlphaSpending(plan.alpha, plan.betting_alpha, self._bets)
        )
        decided = test.p_value <= plan.alpha and test.method != "betting"
        return SequentialDecision(
            decided=self._leader() if decided else None,
            final=True,
            prompts=self._prompts,
            scored=scored,
            mean=self._mean(),
            low=test.low,
            high=test.high,
            level=1 - plan.alpha,
            method=test.method,
            p_value=test.p_value,
            log10_e_value=self._log_capital / _LOG10,
            plan=plan,
        )


def follow(plan: SequentialPlan, scores: Iterable[float | None]) -> SequentialTest:
    """The test after a prefix, for a resumed run."""
    test = SequentialTest(plan)
    test.extend(scores)
    return test


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
