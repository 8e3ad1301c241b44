"""What is known of a judge's rows beside their outcomes: orders, lengths, positions, and whether
what a run has judged is a random part of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INVALID, WIN_B
from evenhand.report.win_rates import (
    ConclusionLimits,
    Matchup,
    OutcomeGroup,
    RateOptions,
    Rows,
    exchange,
)
from evenhand.stats.rates.length_bias import LengthEffect, PromptDifficulty, length_effect
from evenhand.stats.rates.position_bias import SPLIT, PositionBias, position_bias
from evenhand.stats.rates.win_rate import Circumstances
from evenhand.store import OutcomeColumns, RunRecord


def in_random_order(run: RunRecord) -> bool:
    """Whether what is judged of an unfinished run is a random part of it."""
    return until_decided(run) is not None or "rank_adaptive" in run.plan


def until_decided(run: RunRecord) -> dict[str, Any] | None:
    planned = run.plan.get("until_decided")
    return planned if isinstance(planned, dict) else None


class RowFacts:
    """What is known of a judge's rows beside their outcomes."""

    def __init__(self, columns: OutcomeColumns, limits: ConclusionLimits) -> None:
        first, second = (np.asarray(each) for each in (columns.first_winner, columns.second_winner))
        read_twice = (first >= 0) & (second >= 0)
        # An order whose samples split was read too, and agrees with nothing.
        self._flipped = read_twice & (first != second) | (first == SPLIT) | (second == SPLIT)
        # A judge panel's columns say nothing of orders, and so of drawn ones.
        self._drawn = np.asarray(columns.drawn_order) == 1
        self._by_rule = np.asarray(columns.by_rule) == 1
        self._one_order = np.asarray(columns.both_orders) == 0
        if self._by_rule.size:
            self._one_order &= ~self._by_rule  # a tie by rule depends on no order
        if self._drawn.size:
            self._one_order &= ~self._drawn
        self._limits = limits
        won = np.asarray(columns.outcome) <= WIN_B
        for others in (self._flipped, self._drawn):
            won = won & ~others if others.size else won
        # Prompts with a winner that both orders named.
        self.decided_twice = np.unique(np.asarray(columns.prompt_key)[won]).size

    def by_rule(self, group: Matchup | OutcomeGroup) -> int:
        return int(self._by_rule[group.rows].sum()) if self._by_rule.size else 0

    def in_one_order(self, matchup: Matchup) -> int:
        if not self._one_order.size:
            return 0
        return int((self._one_order[matchup.rows] & (matchup.outcomes != INVALID)).sum())

    def of(self, rows: Rows, *, flips: bool = True) -> Circumstances:
        one_order = None
        if self._one_order.size and not self._limits.allow_one_order:
            one_order = self._one_order[rows]
        return Circumstances(
            flipped=self._flipped[rows] if flips and self._flipped.size else None,
            one_order=one_order,
            drawn=self._drawn[rows] if self._drawn.size else None,
            missing=self._limits.missing,
        )


def prompt_difficulty(columns: OutcomeColumns) -> PromptDifficulty:
    """Where several models met: what the others tell of each prompt."""
    outcomes = np.asarray(columns.outcome)
    return PromptDifficulty(
        np.asarray(columns.model_a),
        np.asarray(columns.model_b),
        np.array([1.0, 0.0, 0.5, 0.5, 0.5])[outcomes],
        prompts=np.asarray(columns.prompt_key),
        valid=outcomes != INVALID,
    )


def measure_length(
    columns: OutcomeColumns,
    matchup: Matchup,
    wanted: RateOptions,
    difficulty: PromptDifficulty | None,
) -> LengthEffect:
    first, second = (
        np.asarray(each)[matchup.rows] for each in (columns.length_a, columns.length_b)
    )
    turned = matchup.exchanged ^ (wanted.side == "B")
    ease = None if difficulty is None else difficulty.of(matchup.rows)
    return length_effect(
        exchange(matchup.outcomes, wanted.side == "B"),
        length_a=np.where(turned, second, first),
        length_b=np.where(turned, first, second),
        prompts=matchup.prompts,
        difficulty=None if ease is None else np.where(turned, -ease, ease),
        side=wanted.side,
        level=wanted.level,
    )


def measure_position(
    columns: OutcomeColumns, rows: NDArray[np.intp] | None = None, *, level: float
) -> PositionBias:
    """Of all rows, or of these."""
    # Places are those of the data's rows, whichever model stands there. A pair that was asked in
    # one drawn order has no second one that could have gone unread, and a tie by rule has neither.
    if rows is None:
        rows = np.arange(len(columns.number))
    for others in (columns.drawn_order, columns.by_rule):
        if others:
            rows = rows[np.asarray(others)[rows] == 0]
    return position_bias(
        np.asarray(columns.first_winner)[rows],
        np.asarray(columns.second_winner)[rows],
        prompts=np.asarray(columns.prompt_key)[rows],
        level=level,
    )
