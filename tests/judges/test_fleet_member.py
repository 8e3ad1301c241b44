"""One server of a fleet: when it is left alone, for how long, and what brings it back."""

from __future__ import annotations

import pytest

from evenhand.judges.fleet import ServerState
from fleets import ScriptedServer


@pytest.fixture
def member() -> ServerState:
    return ServerState(ScriptedServer("http://gpu-1:8000/v1"))


def fail(
    member: ServerState, now: float, *, at_once: bool = False, begun: float | None = None
) -> bool:
    turn = member.begin(now if begun is None else begun)
    left = member.failed(turn, now, why="it broke", at_once=at_once, slow=False)
    member.end(turn)
    return left


def answer(member: ServerState, now: float) -> bool:
    turn = member.begin(now)
    back = member.answered(turn, now)
    member.end(turn)
    return back


def test_three_failures_in_a_row_leave_it_alone(member: ServerState) -> None:
    assert not fail(member, 0.0)
    assert not fail(member, 0.0)
    assert member.is_ready(0.0)
    assert fail(member, 0.0)
    assert not member.is_ready(0.0)


def test_an_answer_between_failures_starts_the_count_anew(member: ServerState) -> None:
    for _ in range(5):
        assert not fail(member, 0.0)
        assert not fail(member, 0.0)
        answer(member, 0.0)
    assert member.is_ready(0.0)


def test_one_that_cannot_be_reached_is_left_alone_at_once(member: ServerState) -> None:
    assert fail(member, 0.0, at_once=True)
    assert not member.is_ready(0.0)


def test_checks_come_after_1_2_4_8_16_and_then_every_30_seconds(member: ServerState) -> None:
    now = 10.0
    fail(member, now, at_once=True)
    for wait_s in (1, 2, 4, 8, 16, 30, 30):
        assert member.out_s(now) == wait_s
        now += wait_s
        member.checked(now, well=False)


def test_after_a_good_check_one_call_proves_it_well(member: ServerState) -> None:
    fail(member, 0.0, at_once=True)
    member.checked(1.0, well=True)
    assert member.is_ready(1.0)
    trial = member.begin(1.0)
    assert not member.is_ready(1.0), "one call, until it is answered"
    assert member.answered(trial, 1.5)
    member.end(trial)
    assert member.is_ready(1.5)
    assert not member.is_out
    fail(member, 2.0, at_once=True)
    assert member.out_s(2.0) == 1.0, "it was well in between"


def test_a_trial_that_fails_costs_twice_the_time_and_is_the_same_trouble(
    member: ServerState,
) -> None:
    fail(member, 0.0, at_once=True)
    member.checked(1.0, well=True)
    assert fail(member, 1.0)
    assert member.out_s(1.0) == 2.0
    assert member.times_out == 1


def test_a_trial_that_its_caller_gives_up_leaves_room_for_another(member: ServerState) -> None:
    fail(member, 0.0, at_once=True)
    member.checked(1.0, well=True)
    member.end(member.begin(1.0))
    assert member.is_ready(1.0)


def test_calls_that_were_in_flight_when_it_went_down_are_one_event(member: ServerState) -> None:
    turns = [member.begin(0.0) for _ in range(20)]
    left = [member.failed(turn, 5.0, why="it broke", at_once=False, slow=False) for turn in turns]
    assert left.count(True) == 1
    assert member.out_s(5.0) == 1.0
    assert member.times_out == 1


def test_a_late_answer_from_before_does_not_bring_it_back(member: ServerState) -> None:
    late = member.begin(0.0)
    fail(member, 5.0, at_once=True)
    assert not member.answered(late, 6.0)
    assert not member.is_ready(6.0)


def test_an_answer_brings_it_back_where_all_were_left_alone_and_it_was_tried(
    member: ServerState,
) -> None:
    fail(member, 5.0, at_once=True)
    assert answer(member, 6.0)
    assert member.is_ready(6.0)


def test_it_rests_as_long_as_it_says(member: ServerState) -> None:
    turn = member.begin(0.0)
    member.told_to_wait(turn, 0.0, wait_s=20.0)
    assert not member.is_ready(19.9)
    assert member.rests_s(5.0) == 15.0
    assert member.is_ready(20.0)
    assert not member.is_out


def test_where_it_does_not_say_how_long_it_rests_longer_each_time(member: ServerState) -> None:
    """Half a second, then 1, 2, 4; those in flight together count once; an answer ends it."""
    now = 0.0
    for wait_s in (0.5, 1.0, 2.0, 4.0):
        together = [member.begin(now) for _ in range(3)]
        for turn in together:
            member.told_to_wait(turn, now + 0.01, wait_s=None)
        assert member.rests_s(now + 0.01) == pytest.approx(wait_s)
        now += 0.01 + wait_s
    answer(member, now)
    member.told_to_wait(member.begin(now), now, wait_s=None)
    assert member.rests_s(now) == pytest.approx(0.5)
