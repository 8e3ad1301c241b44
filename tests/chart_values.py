"""Conclusions and rankings to draw, made without a store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.analyses.rank import RunRanking
from evenhand.contract.codes import WIN_A, WIN_B, OutcomeCounts
from evenhand.report.claims import ClaimedRate
from evenhand.report.conclusions import Conclusion, Conclusions, GroupRate, SideRate
from evenhand.stats.ranking.leaderboard import rank_battles
from evenhand.stats.ranking.result import Ranking
from evenhand.stats.rates.length_bias import length_effect
from evenhand.stats.rates.position_bias import position_bias
from evenhand.stats.rates.win_rate import WorstCase

HOSTILE_NAMES = [
    "x" * 5000,
    "two\nlines\x00\x1b[31m",
    "<script>alert(1)</script>",
    "]]>",
    "\u202eright to left\u2066",
    "datum.low + 'x'; 1",
    "${value}",
    '"]; throw 1; //',
    "__proto__",
    "中文模型",
    "\ud800 alone",
    "",
]
REASON = "not enough data: 3 pairs; at least 6 are needed"


def side_rate(
    rate: float | None = 0.573,
    *,
    half_width: float = 0.06,
    n: int = 805,
    invalid: int = 0,
    always_valid: bool = False,
) -> SideRate:
    """Side B's; `rate` None is too little data."""
    wins = round((rate or 0) * n)
    worst = None
    if invalid and rate is not None:
        worst = WorstCase(
            rate_if_lost=rate - 0.02, rate_if_won=rate + 0.02, low=rate - 0.1, high=rate + 0.1
        )
    return SideRate(
        side="B",
        counts=OutcomeCounts(
            wins_b=wins - 30, wins_a=n - wins - 25, ties=30, inconsistent=25, invalid=invalid
        )
        if rate is not None
        else OutcomeCounts.of_codes((0, 3, 0, 0, 0)),
        n=n if rate is not None else 3,
        prompts=n,
        rate=rate,
        low=None if rate is None else rate - half_width,
        high=None if rate is None else rate + half_width,
        level=0.95,
        method=None if rate is None else "score",
        always_valid=always_valid,
        clustered=False,
        ties="half",
        sign_test=None,
        worst_case=worst,
        reason=REASON if rate is None else None,
    )


def conclusion(
    rate: SideRate | None = None,
    *,
    judge: str = "gpt-x",
    model: str | None = "new",
    against: str | None = "old",
    criteria: Sequence[str] = (),
    tags: Sequence[str] = (),
    pairs: int = 200,
) -> Conclusion:
    rng = np.random.default_rng(len(judge) + pairs)
    outcomes = rng.choice([WIN_A, WIN_B], size=pairs, p=[0.6, 0.4])
    lengths = rng.integers(50, 500, size=(2, pairs))
    own = rate or side_rate()
    return Conclusion(
        judge=judge,
        side="B",
        model=model,
        against=against,
        pairs=pairs,
        pending=0,
        win_rate=own,
        claimed=ClaimedRate.of(own),
        decision=None,
        account=None,
        by_criterion=tuple(_groups(criteria, base=0.4)),
        by_tag=tuple(_groups(tags, base=0.6)),
        length=length_effect(outcomes, length_a=lengths[0], length_b=lengths[1]),
        position=position_bias(outcomes, outcomes),
    )


def _groups(names: Sequence[str], *, base: float) -> list[GroupRate]:
    """Rates that climb by two points; the last of several has too little data."""
    groups = [
        GroupRate(name=name, rate=side_rate(min(0.9, base + 0.02 * place), n=100 + place))
        for place, name in enumerate(names)
    ]
    if len(names) > 1:
        groups[-1] = GroupRate(name=names[-1], rate=side_rate(None))
    return groups


def conclusions(*found: Conclusion) -> Conclusions:
    return Conclusions(
        run="kitchen",
        store="runs.db",
        state="finished",
        stopped_by=None,
        whole=True,
        judges=tuple(dict.fromkeys(each.judge for each in found)),
        pairs=805,
        prompts=805,
        pending=0,
        skipped_rows=0,
        side="B",
        ties="half",
        level=0.95,
        conclusions=found,
        notes=(),
    )


def ranked(ranking: Ranking) -> RunRanking:
    return RunRanking(ranking=ranking, counts=OutcomeCounts.of_codes((ranking.games, 0, 0, 0, 0)))


def league(names: Sequence[str], *, games: int = 40, seed: int = 0) -> Ranking:
    """The earlier a model is named, the more it wins against the others."""
    rng = np.random.default_rng(seed)
    strengths = np.linspace(1.5, -1.5, len(names))
    first = rng.integers(0, len(names), games * len(names))
    second = (first + rng.integers(1, len(names), first.size)) % len(names)
    chance = 1 / (1 + np.exp(strengths[second] - strengths[first]))
    winners = np.where(rng.random(first.size) < chance, "A", "B")
    return rank_battles([names[i] for i in first], [names[i] for i in second], winners.tolist())
