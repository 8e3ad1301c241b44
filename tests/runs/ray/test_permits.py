"""Permits: however they are asked for and used, no minute holds more than the rate."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.runs.ray.lease import LeasedPace
from evenhand.runs.ray.ledger import VALID_S, PermitIssuer
from evenhand.runs.ray.messages import Permits
from parts import examples


def most_in_a_minute(times: list[float]) -> int:
    return max((sum(1 for t in times if begun <= t < begun + 60) for begun in times), default=0)


@settings(max_examples=examples(60))
@given(
    st.sampled_from([1, 6, 10, 45, 60, 120, 600]),
    st.integers(1, 5),
    st.integers(0, 2**32),
)
def test_no_minute_holds_more_requests_than_the_rate(rate: int, workers: int, seed: int) -> None:
    """Workers want as many as they can get, use some late, and give some back."""
    random = Random(seed)
    office = PermitIssuer(requests=rate, tokens=None)
    used: list[float] = []
    held: dict[int, int] = dict.fromkeys(range(workers), 0)
    now = 0.0
    while now < 200:
        now += random.uniform(0.01, 0.3)
        worker = random.randrange(workers)
        office.take_back(Permits(requests=float(held[worker])))
        given_now = int(office.give(Permits(requests=random.randint(0, 20)), now).requests)
        late = random.randint(0, given_now)
        used += [now + random.uniform(0, VALID_S) for _ in range(late)]
        held[worker] = given_now - late
    # A meter of one machine lets one more in at the edge of a minute, too.
    assert most_in_a_minute(sorted(used)) <= rate + 1


def test_the_rate_is_nearly_used_up() -> None:
    office = PermitIssuer(requests=600, tokens=None)
    given_in_all = 0.0
    for step in range(1, 601):  # a minute, asked ten times a second
        given_in_all += office.give(Permits(requests=20), step / 10).requests
    # 60 s of the 62 that permits for a minute are spread over
    assert 0.95 * 600 <= given_in_all <= 600


def test_tokens_that_a_call_took_beyond_its_permits_are_waited_for() -> None:
    office = PermitIssuer(requests=None, tokens=6_000)  # about a hundred a second
    assert office.give(Permits(1, 1_000), 0.0).tokens == pytest.approx(1_000)
    assert office.give(Permits(1, 1_000), 5.0).tokens == 0.0
    office.take_back(Permits(tokens=-500))
    assert office.give(Permits(1, 1_000), 10.0).tokens == 0.0
    assert office.give(Permits(1, 1_000), 15.5).tokens > 0


def test_a_pace_without_permits_waits_and_one_with_them_does_not() -> None:
    pace = LeasedPace(by_requests=True, by_tokens=True)
    assert pace.wait_s(0.0) > 0
    pace.accept(Permits(2, 1_500), 0.0)
    assert pace.wait_s(0.1) == 0.0
    guessed = pace.take(600, 0.1)
    assert guessed == 1_000  # and four hundred for an answer of the usual length
    assert pace.wait_s(0.2) == 0.0
    pace.correct(guessed, used=1_600, output=1_000, requests=1)
    assert pace.wait_s(0.3) > 0  # a hundred tokens too many
    assert pace.give_back() == Permits(1, -100)


def test_a_permit_that_is_not_used_in_time_is_none() -> None:
    pace = LeasedPace(by_requests=True, by_tokens=False)
    pace.accept(Permits(5, 0), 0.0)
    assert pace.wait_s(VALID_S - 0.01) == 0.0
    assert pace.wait_s(VALID_S) > 0
