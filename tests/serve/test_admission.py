from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import ServerBusy
from evenhand.serve.comparisons import Admission


async def hold(admission: Admission, let_go: asyncio.Event) -> None:
    async with admission.admitted():
        await let_go.wait()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_so_many_are_let_in_so_many_wait_and_the_next_is_sent_away() -> None:
    admission, let_go = Admission(2, 3), asyncio.Event()
    held = [asyncio.create_task(hold(admission, let_go)) for _ in range(5)]
    await settle()
    assert (admission.in_flight, admission.waiting) == (2, 3)
    with pytest.raises(ServerBusy, match="2 comparisons are running and 3 are waiting") as refused:
        async with admission.admitted():
            pass
    assert refused.value.retry_after_s >= 1
    let_go.set()
    await asyncio.gather(*held)
    assert (admission.in_flight, admission.waiting) == (0, 0)
    assert await admission.drained(0.1)


async def test_who_came_first_is_let_in_first() -> None:
    admission, entered = Admission(1, 10), []

    async def come(number: int) -> None:
        async with admission.admitted():
            entered.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(come(number) for number in range(10)))
    assert entered == list(range(10))


async def test_one_who_leaves_the_queue_leaves_its_place() -> None:
    admission, let_go = Admission(1, 1), asyncio.Event()
    inside = asyncio.create_task(hold(admission, let_go))
    await settle()
    waiting = asyncio.create_task(hold(admission, let_go))
    await settle()
    waiting.cancel()
    await settle()
    assert admission.waiting == 0
    let_go.set()
    await inside
    assert await admission.drained(0.1)


async def test_a_slot_that_came_with_the_cancellation_is_handed_on() -> None:
    admission, let_go, other = Admission(1, 2), asyncio.Event(), asyncio.Event()
    inside = asyncio.create_task(hold(admission, let_go))
    await settle()
    leaving = asyncio.create_task(hold(admission, other))
    staying = asyncio.create_task(hold(admission, other))
    await settle()
    let_go.set()
    await inside  # its slot has gone to `leaving`, which has not run since
    leaving.cancel()
    other.set()
    await asyncio.wait_for(staying, 1)
    assert (admission.in_flight, admission.waiting) == (0, 0)


async def test_a_closed_one_lets_nobody_in_and_those_inside_finish() -> None:
    admission, let_go = Admission(1, 1), asyncio.Event()
    inside = asyncio.create_task(hold(admission, let_go))
    await settle()
    waiting = asyncio.create_task(hold(admission, let_go))
    await settle()
    admission.close()
    with pytest.raises(ServerBusy, match="shutting down"):
        await waiting
    with pytest.raises(ServerBusy, match="shutting down"):
        async with admission.admitted():
            pass
    assert not await admission.drained(0.01)
    let_go.set()
    await inside
    assert await admission.drained(0.1)


@given(
    slots=st.integers(1, 4),
    queue=st.integers(1, 4),
    steps=st.lists(st.sampled_from(["come", "leave", "cancel"]), max_size=60),
)
def test_it_never_holds_more_than_it_may_and_loses_no_slot(
    slots: int, queue: int, steps: list[str]
) -> None:
    async def play() -> None:
        admission = Admission(slots, queue)
        held: list[tuple[asyncio.Task[None], asyncio.Event]] = []
        for step in steps:
            if step == "come":
                let_go = asyncio.Event()
                held.append((asyncio.create_task(hold(admission, let_go)), let_go))
            elif held and step == "leave":
                held[0][1].set()
            elif held:
                held[-1][0].cancel()
            await settle()
            held = [each for each in held if not each[0].done()]
            assert admission.in_flight == min(slots, len(held))
            assert admission.waiting == len(held) - admission.in_flight <= queue
        for task, let_go in held:
            let_go.set()
            await task
        assert admission.in_flight == admission.waiting == 0

    async def with_refusals_taken() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)  # the refused tasks' ServerBusy
        await play()

    asyncio.run(with_refusals_taken())
