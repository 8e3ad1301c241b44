"""A lease: calls wait for leave, and none begins after its end."""

from __future__ import annotations

import asyncio

import pytest

from evenhand.runs.pacing import Stopped
from evenhand.runs.ray.lease import Lease
from evenhand.runs.ray.messages import Grant


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def lease(*, calls: bool = False, cost: bool = False) -> tuple[Lease, Clock]:
    clock = Clock()
    return Lease(capped_calls=calls, capped_cost=cost, clock=clock), clock


async def begun(lease: Lease, count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(lease.take()) for _ in range(count)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_calls_begin_as_far_as_they_are_leased_and_the_rest_with_the_next_lease() -> None:
    leased, _ = lease(calls=True)
    leased.accept(Grant(20, calls=2))
    tasks = await begun(leased, 5)
    assert (leased.in_flight, leased.waiting, leased.calls) == (2, 3, 2)
    leased.accept(Grant(20, calls=3))
    await asyncio.gather(*tasks)
    assert (leased.in_flight, leased.waiting, leased.calls) == (5, 0, 5)


async def test_a_call_of_several_requests_takes_as_many_from_the_lease() -> None:
    leased, _ = lease(calls=True)
    leased.accept(Grant(20, calls=3))
    await leased.take()
    leased.settle(requests=3, cost_usd=None)
    assert leased.calls == 3
    (waiting,) = await begun(leased, 1)
    assert leased.starves
    leased.close()
    with pytest.raises(Stopped):
        await waiting


async def test_nothing_begins_after_the_end_of_a_lease() -> None:
    leased, clock = lease()
    leased.accept(Grant(20))
    await leased.take()
    clock.now += 20
    assert leased.is_expired
    (waiting,) = await begun(leased, 1)
    assert leased.waiting == 1
    leased.accept(Grant(20))
    await waiting


async def test_the_first_call_finds_out_what_one_costs() -> None:
    leased, _ = lease(cost=True)
    leased.accept(Grant(20, cost_usd=0.10))
    tasks = await begun(leased, 3)
    assert (leased.in_flight, leased.waiting) == (1, 2)
    leased.settle(requests=1, cost_usd=0.04)
    # Six cents are left, and one call more at four: not two.
    assert (leased.in_flight, leased.waiting) == (1, 1)
    leased.settle(requests=1, cost_usd=0.04)
    assert leased.starves
    leased.give_back()
    assert leased.returned_cost_usd == pytest.approx(0.02)
    leased.close()
    assert isinstance((await asyncio.gather(*tasks, return_exceptions=True))[-1], Stopped)


async def test_what_is_given_back_cannot_be_used() -> None:
    leased, _ = lease(calls=True)
    leased.accept(Grant(20, calls=4))
    await leased.take()
    leased.give_back()
    assert leased.returned_calls == 3
    (waiting,) = await begun(leased, 1)
    assert leased.waiting == 1
    leased.accept(Grant(20, calls=1))
    await waiting
