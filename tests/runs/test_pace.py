"""Requests and tokens a minute."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.runs.pacing import Meter, Pace


def moments(meter: Meter, amounts: list[float]) -> list[float]:
    """When each could be taken, asking as early as possible."""
    now, taken = 0.0, []
    for amount in amounts:
        now += meter.wait_s(now)
        taken.append(now)
        meter.take(amount, now)
    return taken


def test_requests_are_spread_evenly() -> None:
    # 120 a minute is one each half second.
    assert moments(Meter(120), [1] * 5) == [0.0, 0.45, 0.95, 1.45, 1.95]


@given(st.integers(1, 600), st.lists(st.floats(0, 5), min_size=1, max_size=100))
def test_no_minute_holds_more_than_its_rate(rate: int, idle: list[float]) -> None:
    meter, now, taken = Meter(rate), 0.0, []
    for pause in idle:
        now += pause
        now += meter.wait_s(now)
        taken.append(now)
        meter.take(1, now)
    for begin in taken:
        within = sum(begin <= moment < begin + 60 for moment in taken)
        # What may be caught up on, and the one at the very beginning.
        assert within <= rate + 1 + 0.05 * rate / 60


def test_tokens_are_corrected_by_what_was_used() -> None:
    pace = Pace(tokens=600)  # ten a second
    guessed = pace.take(100, 0.0)
    assert guessed == 100 + 400  # the prompt, and a usual answer
    pace.correct(guessed, used=200, output=100, requests=1)
    assert abs(pace.wait_s(0.0) - 19.95) < 1e-9  # 200 tokens at ten a second, less the catch-up
    assert pace.take(100, 0.0) == 200  # and answers are now reckoned at 100


def test_further_requests_of_one_call_count() -> None:
    pace = Pace(requests=60)
    pace.correct(pace.take(0, 0.0), used=None, output=None, requests=3)
    assert abs(pace.wait_s(0.0) - 2.95) < 1e-9


def test_without_limits_nothing_waits() -> None:
    pace = Pace()
    for _ in range(1000):
        pace.take(1e9, 0.0)
    assert pace.wait_s(0.0) == 0


def test_no_call_counts_for_more_than_a_minutes_tokens() -> None:
    pace = Pace(tokens=600)
    pace.correct(pace.take(100, 0.0), used=10_000_000, output=10_000_000, requests=1)
    assert abs(pace.wait_s(0.0) - 59.95) < 1e-9  # 600 at ten a second, less the catch-up
    assert pace.take(100, 0.0) == 700  # and the next answer is reckoned at 600
