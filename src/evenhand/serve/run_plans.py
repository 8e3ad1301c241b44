"""A client's wishes for a run, held to the server's limits: judges by their offers, and options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from evenhand.errors import InputError
from evenhand.runs import JudgePlan, RankAdaptive, RunOptions, StoppedBy, UntilDecided
from evenhand.serve.config import Limits
from evenhand.serve.offers import Offers
from evenhand.serve.values import StartRun

_N = TypeVar("_N", int, float)


def offered_names(offers: Offers, asked: StartRun) -> tuple[str, ...]:
    names = tuple(offers.offer(name).name for name in asked.named_judges)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f"judge {name} is given twice; name it once")
    return names


def judge_plans(offers: Offers, names: Sequence[str]) -> list[JudgePlan]:
    return [replace(offers.plan(name), price=offers.offer(name).price) for name in names]


def run_options(asked: StartRun, limits: Limits) -> RunOptions:
    """The caps are the lower of the client's and the server's."""
    return RunOptions(
        name=asked.name,
        max_calls=_lower(asked.max_calls, limits.run_max_calls),
        max_cost=_lower(asked.max_cost, limits.run_max_cost),
        fresh=asked.fresh,
        bad_rows=asked.bad_rows,
        keep_going_unread=asked.keep_going_unread,
        until_decided=_until_decided(asked),
        rank_adaptive=_rank_adaptive(asked),
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has taken so far, as far as it is known."""

    calls: int = 0
    cost_usd: float = 0.0


def capped(
    options: RunOptions, asked: StartRun, limits: Limits, *, spent: Spent, resumed_at: Spent
) -> RunOptions | StoppedBy:
    """What is left of the caps, or which of them is used up: a kill does not renew them.

    The client's count from the last time that it started or resumed the run, the server's from
    the run's beginning.
    """
    calls = _left(asked.max_calls, spent.calls - resumed_at.calls)
    calls = _lower(calls, _left(limits.run_max_calls, spent.calls))
    cost = _left(asked.max_cost, spent.cost_usd - resumed_at.cost_usd)
    cost = _lower(cost, _left(limits.run_max_cost, spent.cost_usd))
    if calls is not None and calls <= 0:
        return "max-calls"
    if cost is not None and cost <= 0:
        return "max-cost"
    return replace(options, max_calls=calls, max_cost=cost)


def _left(most: _N | None, used: _N) -> _N | None:
    return None if most is None else most - used


def _lower(asked: _N | None, most: _N | None) -> _N | None:
    given = [each for each in (asked, most) if each is not None]
    return min(given) if given else None


def _until_decided(asked: StartRun) -> UntilDecided | None:
    if not asked.until_decided:
        if asked.alpha is not None:
            raise InputError("alpha belongs to untilDecided; give both, or neither")
        if asked.seed is not None and not asked.rank_adaptive:
            raise InputError("seed belongs to untilDecided and rankAdaptive; leave it out")
        return None
    default = UntilDecided()
    alpha = default.alpha if asked.alpha is None else asked.alpha
    return UntilDecided(alpha, asked.seed or default.seed)


def _rank_adaptive(asked: StartRun) -> RankAdaptive | None:
    if not asked.rank_adaptive:
        for name, value in (("budget", asked.budget), ("certainty", asked.certainty)):
            if value is not None:
                raise InputError(f"{name} belongs to rankAdaptive; give both, or neither")
        return None
    if asked.budget is None:
        raise InputError("rankAdaptive needs budget, the most pairs to ask; give e.g. 2000")
    wanted = RankAdaptive(asked.budget, seed=asked.seed or 0)
    return wanted if asked.certainty is None else replace(wanted, certainty=asked.certainty)
