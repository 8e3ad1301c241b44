"""The limit on calls in flight, told what happened by a simulated judge."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.runs.pacing import AdaptiveLimit


def simulate(
    limit: AdaptiveLimit,
    latency_s: Callable[[int], float],
    *,
    calls: int,
    refuses_above: int = 10**9,
) -> tuple[float, list[int]]:
    """Keep the judge as busy as the limit allows; how long it took, and the limit over time."""
    now, begun, answered = 0.0, 0, 0
    flying: list[tuple[float, float, bool]] = []
    seen = []
    while answered < calls:
        while len(flying) < limit.current:
            begun += 1
            refused = len(flying) >= refuses_above
            wait = 0.01 if refused else latency_s(len(flying) + 1)
            heapq.heappush(flying, (now + wait, now, refused))
        busy = len(flying) >= limit.current
        now, call_begun, refused = heapq.heappop(flying)
        if refused:
            limit.overloaded(now, started=call_begun)
        else:
            limit.answered(now, busy=busy)
            answered += 1
        seen.append(limit.current)
    return now, seen


def test_a_judge_that_scales_is_given_all_there_is() -> None:
    limit = AdaptiveLimit(8, 512)
    simulate(limit, lambda flying: 1.0, calls=5000)
    assert limit.current == 512


def test_a_judge_with_four_slots_is_not_flooded() -> None:
    # Four at a time, one second each: more in flight only wait longer.
    limit = AdaptiveLimit(8, 512)
    simulate(limit, lambda flying: max(1.0, flying / 4), calls=2000)
    assert limit.current <= 32


def test_a_named_limit_is_held_from_the_start() -> None:
    limit = AdaptiveLimit(128, 128, insist=True)
    assert limit.current == 128
    simulate(limit, lambda flying: max(1.0, flying / 4), calls=2000)
    assert limit.current == 128


def refuse(limit: AdaptiveLimit, times: int, *, now: float, started: float) -> None:
    for _ in range(times):
        limit.overloaded(now, started=started)


def test_trouble_halves_it_once_for_calls_begun_before_the_cut() -> None:
    limit = AdaptiveLimit(64, 64, insist=True)
    refuse(limit, 64, now=10.0, started=9.0)  # all that was in flight
    assert limit.current == 32
    refuse(limit, 64, now=10.1, started=9.5)  # begun before the cut at 10.0: the same event
    assert limit.current == 32
    refuse(limit, 32, now=11.0, started=10.5)
    assert limit.current == 16


def test_a_named_limit_is_regained_after_trouble() -> None:
    limit = AdaptiveLimit(64, 64, insist=True)
    refuse(limit, 64, now=0.0, started=0.0)
    assert limit.current == 32
    simulate(limit, lambda flying: 1.0, calls=3000)
    assert limit.current == 64


def test_a_call_in_ten_that_fails_at_random_does_not_bring_it_down() -> None:
    limit = AdaptiveLimit(64, 64, insist=True)
    rng = random.Random(1)
    now = 0.0
    for _ in range(5000):
        now += 0.01
        if rng.random() < 0.1:
            limit.overloaded(now, started=now - 0.5)
        else:
            limit.answered(now, busy=True)
    assert limit.current == 64


def test_it_settles_below_what_the_judge_refuses() -> None:
    limit = AdaptiveLimit(8, 512)
    _, seen = simulate(limit, lambda flying: 1.0, calls=20_000, refuses_above=40)
    settled = seen[len(seen) // 2 :]
    assert 15 <= sum(settled) / len(settled) <= 45


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0, 10)), max_size=300))
def test_it_stays_within_its_bounds_whatever_happens(
    events: list[tuple[bool, bool, float]],
) -> None:
    limit = AdaptiveLimit(8, 100)
    now = 0.0
    for good, busy, wait in events:
        now += wait
        if good:
            limit.answered(now, busy=busy)
        else:
            limit.overloaded(now, started=now - wait)
        assert 1 <= limit.current <= 100


def test_an_idle_limit_does_not_grow() -> None:
    limit = AdaptiveLimit(8, 512)
    for moment in range(1000):
        limit.answered(float(moment), busy=False)
    assert limit.current == 8


@pytest.mark.parametrize(("start", "most", "current"), [(0, 5, 1), (8, 3, 3), (4, 4, 4)])
def test_the_start_is_within_the_bounds(start: int, most: int, current: int) -> None:
    assert AdaptiveLimit(start, most).current == current
