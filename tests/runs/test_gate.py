"""The gate before a judge."""

from __future__ import annotations

import asyncio

import pytest

from evenhand.errors import JudgeRateLimited
from evenhand.runs.pacing import AdaptiveLimit, CallGate, CallSlot, Pace, Stopped


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def gate_of(limit: int, *, clock: Clock | None = None, pace: Pace | None = None) -> CallGate:
    return CallGate(
        AdaptiveLimit(limit, limit, insist=True), pace or Pace(), clock=clock or Clock()
    )


def answer(gate: CallGate, turn: CallSlot) -> None:
    gate.answered(turn, used=None, output=None, requests=1)


async def turns(gate: CallGate, count: int) -> list[asyncio.Task[CallSlot]]:
    tasks = [asyncio.create_task(gate.enter(0)) for _ in range(count)]
    await settle()
    return tasks


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def inside(tasks: list[asyncio.Task[CallSlot]]) -> list[bool]:
    return [task.done() for task in tasks]


async def test_the_first_call_goes_alone_and_then_the_others() -> None:
    gate = gate_of(3)
    tasks = await turns(gate, 5)
    assert inside(tasks) == [True, False, False, False, False]
    answer(gate, tasks[0].result())
    await settle()
    assert inside(tasks) == [True, True, True, True, False]
    assert gate.in_flight == 3
    gate.stop()
    with pytest.raises(Stopped):
        await tasks[4]


async def test_a_first_call_that_takes_too_long_does_not_hold_up_the_rest() -> None:
    clock = Clock()
    gate = gate_of(3, clock=clock)
    first = await turns(gate, 1)
    clock.now = 5.1
    assert inside(await turns(gate, 2)) == [True, True]
    assert inside(first) == [True]


async def test_they_go_in_in_the_order_in_which_they_came() -> None:
    gate = gate_of(1)
    went: list[int] = []

    async def call(number: int) -> None:
        turn = await gate.enter(0)
        went.append(number)
        await asyncio.sleep(0)
        answer(gate, turn)

    await asyncio.gather(*(call(number) for number in range(20)))
    assert went == list(range(20))
    assert gate.in_flight == 0


async def test_a_cancelled_call_gives_its_place_to_the_next() -> None:
    gate = gate_of(1)
    first, second, third = await turns(gate, 3)
    second.cancel()
    await settle()
    answer(gate, first.result())
    await settle()
    assert third.done()
    assert gate.in_flight == 1


async def test_a_call_cancelled_just_as_it_is_let_in_leaves_again() -> None:
    gate = gate_of(1)
    first, second, third = await turns(gate, 3)
    answer(gate, first.result())  # lets the second in, which has not run yet
    second.cancel()
    await settle()
    assert third.done()
    assert gate.in_flight == 1


async def test_a_pause_that_the_judge_asked_for_holds_everyone() -> None:
    clock = Clock()
    gate = gate_of(4, clock=clock)
    (first,) = await turns(gate, 1)
    gate.failed(first.result(), JudgeRateLimited("slow down", retry_after_s=0.05))
    waiting = await turns(gate, 1)
    assert inside(waiting) == [False]
    assert gate.paused_s() == 0.05
    clock.now = 0.06
    await asyncio.sleep(0.1)
    assert inside(waiting) == [True]


async def test_overload_lowers_the_limit() -> None:
    gate = gate_of(8)
    # One in sixteen counts for each: the share passes a fifth with the fourth.
    for limit in (8, 8, 8, 4):
        (turn,) = await turns(gate, 1)
        gate.failed(turn.result(), JudgeRateLimited("slow down"))
        assert gate.limit == limit


async def test_the_pace_is_kept() -> None:
    loop = asyncio.get_running_loop()
    gate = CallGate(
        AdaptiveLimit(100, 100, insist=True), Pace(requests=60 * 50), clock=loop.time
    )  # one each 20 ms
    begun = loop.time()

    async def call() -> None:
        answer(gate, await gate.enter(0))

    await asyncio.gather(*(call() for _ in range(10)))
    # Nine waits of 20 ms, less what may be caught up on (50 ms).
    assert loop.time() - begun >= 9 * 0.02 - 0.05 - 0.005


async def test_stopping_wakes_who_waits_and_who_rests() -> None:
    gate = gate_of(1)
    tasks = await turns(gate, 2)
    resting = asyncio.create_task(gate.rest(1000))
    await settle()
    gate.stop()
    with pytest.raises(Stopped):
        await tasks[1]
    with pytest.raises(Stopped):
        await resting
    with pytest.raises(Stopped):
        await gate.enter(0)
    with pytest.raises(Stopped):
        await gate.rest(0)
    answer(gate, tasks[0].result())  # what was in flight comes home
    assert gate.in_flight == 0


async def test_a_rest_ends_by_itself_and_not_before() -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await asyncio.wait_for(gate_of(1).rest(0.05), 30)
    assert loop.time() - begun >= 0.049  # a timer may be early by the clock's resolution
