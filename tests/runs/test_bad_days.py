"""What went wrong once: outages, refusals, caps that cannot be kept, plans that look alike."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import Price, RunOptions, RunSummary
from evenhand.errors import (
    InputError,
    JudgeRateLimited,
    JudgeRejected,
    JudgeUnreachable,
    StoreError,
)
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.config import JudgeConfig
from evenhand.store import open_store
from evenhand.store.work import WorkStore
from run_data import adds_up_here, sums
from scripted import ScriptedJudge

QUICK = JudgeConfig(retry=RetryPolicy(attempts=2, base_s=0.001, cap_s=0.01))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def judged(
    pairs: Any, judge: Any, store: Path, *, config: JudgeConfig = QUICK, **options: Any
) -> RunSummary:
    work = evenhand.run(
        pairs,
        judge,
        config,
        criteria=["accuracy"],
        options=RunOptions(store=store, **options),
    )
    return await asyncio.wait_for(work, 30)


def number_of(call: JudgeCall) -> int:
    assert call.pair.id is not None
    return int(call.pair.id.removeprefix("sum-"))


def down(call: JudgeCall) -> str:
    raise JudgeUnreachable("nobody there")


async def test_a_store_that_fails_in_any_way_stops_the_run(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explodes(*_: object) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(WorkStore, "write", explodes)
    with pytest.raises(StoreError, match="MemoryError: no more"):
        await judged(sums(200), ScriptedJudge(adds_up_here), store, concurrency=8)


async def test_a_judge_that_asks_to_wait_a_day_is_not_waited_for(store: Path) -> None:
    def tomorrow(call: JudgeCall) -> str:
        raise JudgeRateLimited("come back tomorrow", retry_after_s=86_400)

    with pytest.raises(JudgeRateLimited, match="86400 s"):
        await judged(sums(40), ScriptedJudge(tomorrow), store)


async def test_an_outage_on_resume_makes_no_pair_invalid(store: Path) -> None:
    await judged(sums(20), ScriptedJudge(adds_up_here), store, max_calls=20)
    with pytest.raises(JudgeUnreachable):
        await judged(sums(20), ScriptedJudge(down), store)
    rest = await judged(sums(20), ScriptedJudge(adds_up_here), store)
    assert (rest.invalid, rest.pending, rest.calls) == (0, 0, 20)


async def test_passes_that_are_only_reused_do_not_speak_for_a_judge_that_is_gone(
    store: Path,
) -> None:
    every_second = [row for row in sums(20) if int(row["id"][4:]) % 2]
    await judged(every_second, ScriptedJudge(adds_up_here), store)
    with pytest.raises(JudgeUnreachable):
        await judged(sums(20), ScriptedJudge(down), store)
    rest = await judged(sums(20), ScriptedJudge(adds_up_here), store)
    assert (rest.invalid, rest.pending, rest.calls) == (0, 0, 20)


async def test_pairs_that_a_judge_refuses_one_after_the_other_do_not_stop_the_run(
    store: Path,
) -> None:
    def picky(call: JudgeCall) -> str:
        if 5 <= number_of(call) <= 150 or number_of(call) <= 3:
            raise JudgeRejected("too long")
        return adds_up_here(call)

    summary = await judged(sums(200), ScriptedJudge(picky), store, concurrency=8)
    assert (summary.invalid, summary.pending, summary.stopped_by) == (149, 0, None)


async def test_one_answered_and_one_failed_pass_a_pair_does_not_pile_up(store: Path) -> None:
    def half(call: JudgeCall) -> str:
        if call.order == "swapped":
            raise JudgeUnreachable("not this way round")
        return adds_up_here(call)

    summary = await judged(sums(60), ScriptedJudge(half), store)
    assert (summary.invalid, summary.pending) == (60, 0)


async def test_a_cap_on_cost_that_cannot_be_kept_stops_the_run(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)  # tells no tokens, so nobody knows what it took
    price = Price(1000, 1000)
    summary = await judged(sums(100), judge, store, max_cost=0.01, price=price, concurrency=4)
    assert summary.stopped_by == "max-cost"
    assert len(judge.calls) <= 8
    assert any("max_calls" in note for note in summary.notes)


async def test_fresh_goes_on_only_with_its_own_plan(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    one = await judged(sums(10), judge, store, fresh=True, max_calls=4)
    more = await judged(sums(10), judge, store, fresh=True, config=JudgeConfig(samples=2))
    assert more.run != one.run
    assert more.calls == 40


async def test_a_finished_fresh_run_can_be_tried_again(store: Path) -> None:
    broken = True

    def moody(call: JudgeCall) -> str:
        if broken and number_of(call) == 7:
            raise JudgeUnreachable("not now")
        return adds_up_here(call)

    judge = ScriptedJudge(moody)
    first = await judged(sums(10), judge, store, fresh=True)
    assert first.invalid == 1
    broken = False
    again = await judged(sums(10), judge, store, fresh=True, retry=("failed",))
    assert (again.run, again.invalid, again.calls) == (first.run, 0, 2)


async def test_the_same_judge_twice_is_refused(store: Path) -> None:
    judges = [ScriptedJudge(adds_up_here), ScriptedJudge(adds_up_here)]
    with pytest.raises(InputError, match="given twice"):
        await judged(sums(3), judges, store)
    assert judges[0].calls == judges[1].calls == []


async def test_a_failure_that_another_run_mended_can_be_tried_again(store: Path) -> None:
    broken = True

    def moody(call: JudgeCall) -> str:
        if broken and number_of(call) == 3:
            raise JudgeUnreachable("not now")
        return adds_up_here(call)

    judge = ScriptedJudge(moody)
    assert (await judged(sums(5), judge, store, name="one")).invalid == 1
    broken = False
    assert (await judged(sums(5), judge, store, name="two")).invalid == 0
    mended = await judged(sums(5), judge, store, name="one", retry=("failed",))
    assert (mended.invalid, mended.calls, mended.reused_passes) == (0, 0, 2)


async def test_trying_again_touches_only_what_the_run_uses(store: Path) -> None:
    mumbles = True

    def mumbling(call: JudgeCall) -> str | Completion:
        if mumbles and call.order == "swapped" and number_of(call) == 2:
            return "hm"
        return adds_up_here(call)

    judge = ScriptedJudge(mumbling)
    plain = JudgeConfig(repairs=0)
    await judged(sums(4), judge, store, name="both", config=plain)
    one_way = [{**row, "swapPositions": False} for row in sums(4)]
    await judged(one_way, judge, store, name="one-way", config=plain)
    again = await judged(one_way, judge, store, name="one-way", config=plain, retry=("unread",))
    assert again.calls == 0
    with open_store(store) as opened:
        both = opened.runs.find("both")
        assert both is not None
        tally = opened.verdicts.tally(both.id)
        assert (tally.invalid, tally.pending) == (1, 0)  # not undone by the other run


async def test_a_watcher_that_fails_does_not_stop_what_is_watched(store: Path) -> None:
    def closed(_: evenhand.Progress) -> None:
        raise BrokenPipeError

    summary = await evenhand.run(
        sums(5),
        ScriptedJudge(adds_up_here),
        criteria=["accuracy"],
        options=RunOptions(store=store),
        on_progress=closed,
    )
    assert summary.pending == 0


async def test_totals_of_nothing_are_nothing_and_not_unknown(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    await judged(sums(3), judge, store, name="one")
    shared = await judged(sums(3), judge, store, name="two")
    assert (shared.total.calls, shared.total.input_tokens, shared.total.cost_usd) == (0, 0, 0)
