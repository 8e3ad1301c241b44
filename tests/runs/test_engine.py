"""A run from data to summary, in this process, against a real store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import Price, RunOptions, RunSummary
from evenhand.contract import Usage
from evenhand.errors import (
    DataError,
    InputError,
    JudgeAuthentication,
    JudgeRateLimited,
    JudgeRejected,
    JudgeServerError,
    StoreBusy,
)
from evenhand.judges.protocol import Completion, JudgeCall, Traits
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.config import JudgeConfig
from evenhand.store import open_store
from run_data import adds_up_here, sums, wins_b, write_lines
from scripted import ScriptedJudge, answer_json

QUICK = JudgeConfig(retry=RetryPolicy(attempts=3, base_s=0.001, cap_s=0.01))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def judged(
    pairs: Any, judge: Any, store: Path, *, config: JudgeConfig = QUICK, **options: Any
) -> RunSummary:
    return await evenhand.run(
        pairs,
        judge,
        config,
        criteria=["accuracy"],
        options=RunOptions(store=store, **options),
    )


async def test_every_pair_gets_its_verdict(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    summary = await judged(sums(60), judge, store)
    assert (summary.pairs, summary.wins_a, summary.wins_b) == (60, 40, wins_b(60))
    assert (summary.ties, summary.inconsistent, summary.invalid, summary.pending) == (0, 0, 0, 0)
    assert summary.calls == len(judge.calls) == 120
    assert summary.reused_passes == 0
    assert summary.stopped_by is None
    assert summary.input_tokens is None  # the judge did not say
    assert summary.cost_usd is None


async def test_the_same_call_again_does_nothing(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    first = await judged(sums(20), judge, store)
    again = await judged(sums(20), judge, store)
    assert len(judge.calls) == 40
    assert (again.run, again.wins_a, again.calls) == (first.run, first.wins_a, 0)
    assert again.total.calls == 40


async def test_more_data_is_another_run_that_shares_what_was_judged(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    first = await judged(sums(20), judge, store)
    more = await judged(sums(30), judge, store)
    assert more.run != first.run
    assert (more.pairs, more.reused_passes, more.calls) == (30, 40, 20)
    assert len(judge.calls) == 60


async def test_a_fresh_run_asks_everything_anew(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    await judged(sums(10), judge, store, name="one")
    fresh = await judged(sums(10), judge, store, name="one", fresh=True)
    assert (fresh.run, fresh.calls, fresh.reused_passes) == ("one-2", 20, 0)
    assert len(judge.calls) == 40


async def test_a_fresh_run_that_was_broken_off_goes_on(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    begun = await judged(sums(10), judge, store, fresh=True, max_calls=10)
    assert begun.stopped_by == "max-calls"
    rest = await judged(sums(10), judge, store, fresh=True)
    assert rest.run == begun.run
    assert rest.pending == 0
    assert len(judge.calls) == 20


async def test_identical_rows_are_counted_each_and_asked_once(store: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "id"} for row in sums(3)] * 5
    judge = ScriptedJudge(adds_up_here)
    summary = await judged(rows, judge, store)
    assert (summary.pairs, summary.wins_a + summary.wins_b) == (15, 15)
    assert len(judge.calls) == 6
    assert summary.reused_passes == 24


async def test_the_cap_on_calls_is_exact_and_the_same_command_goes_on(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    for made in (15, 30, 40):
        summary = await judged(sums(20), judge, store, max_calls=15)
        assert len(judge.calls) == made
    assert summary.stopped_by is None
    assert (summary.pending, summary.wins_a + summary.wins_b) == (0, 20)


def priced(call: JudgeCall) -> Completion:
    usage = Usage(input_tokens=1000, output_tokens=100, requests=1)
    return Completion(adds_up_here(call), usage=usage)


async def test_the_cap_on_cost_is_kept_and_the_spend_is_told(store: Path) -> None:
    judge = ScriptedJudge(priced)
    # 1,000 tokens at 1 and 100 at 10 dollars a million: 0.002 a call; 0.05 buys 25.
    price = Price(1.0, 10.0)
    summary = await judged(sums(50), judge, store, max_cost=0.05, price=price)
    assert summary.stopped_by == "max-cost"
    assert 20 <= summary.calls <= 25
    assert summary.cost_usd == pytest.approx(0.002 * summary.calls)
    assert (summary.input_tokens, summary.output_tokens) == (
        1000 * summary.calls,
        100 * summary.calls,
    )
    rest = await judged(sums(50), judge, store, price=price)
    assert rest.pending == 0
    assert rest.total.cost_usd == pytest.approx(0.002 * 100)
    assert len(judge.calls) == 100


async def test_a_cap_on_cost_needs_a_price(store: Path) -> None:
    judge = ScriptedJudge(priced)
    with pytest.raises(InputError, match="price"):
        await judged(sums(5), judge, store, max_cost=1.0)
    assert judge.calls == []


async def test_a_wrong_key_stops_at_the_first_call(store: Path) -> None:
    def refuses(call: JudgeCall) -> str:
        raise JudgeAuthentication("the key is wrong")

    judge = ScriptedJudge(refuses)
    with pytest.raises(JudgeAuthentication, match="the key is wrong"):
        await judged(sums(50), judge, store)
    assert len(judge.calls) == 1
    good = ScriptedJudge(adds_up_here)
    summary = await judged(sums(50), good, store)
    assert (summary.pending, summary.invalid) == (0, 0)  # nothing was held against the pairs


async def test_a_judge_that_fails_everything_stops_the_run_early(store: Path) -> None:
    def down(call: JudgeCall) -> str:
        raise JudgeServerError("it is down")

    judge = ScriptedJudge(down)
    with pytest.raises(JudgeServerError, match="failed 10 calls in a row"):
        await judged(sums(500), judge, store)
    assert len(judge.calls) < 100
    summary = await judged(sums(500), ScriptedJudge(adds_up_here), store)
    assert (summary.pairs, summary.invalid) == (500, 0)


async def test_a_judge_that_dies_half_way_fails_no_pairs(store: Path) -> None:
    answered = 0

    def dies(call: JudgeCall) -> str:
        nonlocal answered
        if answered >= 100:
            raise JudgeServerError("it is down")
        answered += 1
        return adds_up_here(call)

    with pytest.raises(JudgeServerError):
        await judged(sums(300), ScriptedJudge(dies), store)
    with open_store(store) as opened:
        tally = opened.verdicts.tally(opened.runs.all()[0].id)
    assert tally.invalid == 0
    assert tally.judged >= 40
    summary = await judged(sums(300), ScriptedJudge(adds_up_here), store)
    assert (summary.pending, summary.invalid, summary.wins_b) == (0, 0, wins_b(300))


async def test_one_pair_that_the_judge_rejects_is_invalid_with_its_reason(store: Path) -> None:
    def picky(call: JudgeCall) -> str:
        if "What is 7 plus" in call.messages[-1].text:
            raise JudgeRejected("too long for this model")
        return adds_up_here(call)

    judge = ScriptedJudge(picky)
    summary = await judged(sums(30), judge, store)
    assert (summary.invalid, summary.pending) == (1, 0)
    with open_store(store) as opened:
        run = opened.runs.all()[0]
        whole = opened.verdicts.item(run.id, "sum-7")
    assert whole is not None
    failure = whole.judged[0].settled
    assert isinstance(failure, evenhand.Failure)
    assert failure.error.message == "too long for this model"


async def test_failed_passes_alone_are_asked_again(store: Path) -> None:
    broken = True

    def moody(call: JudgeCall) -> str:
        if broken and call.order == "swapped" and "What is 7 plus" in call.messages[-1].text:
            raise JudgeServerError("a bad day")
        return adds_up_here(call)

    judge = ScriptedJudge(moody)
    first = await judged(sums(30), judge, store)
    assert first.invalid == 1
    made = len(judge.calls)
    assert (await judged(sums(30), judge, store)).invalid == 1  # finished: nothing is asked
    assert len(judge.calls) == made
    broken = False
    again = await judged(sums(30), judge, store, retry=("failed",))
    assert (again.invalid, again.calls, again.reused_passes) == (0, 1, 1)


async def test_unread_passes_alone_are_asked_again(store: Path) -> None:
    mumbles = True

    def mumbling(call: JudgeCall) -> str:
        if mumbles and "What is 7 plus" in call.messages[-1].text:
            return "hm"
        return adds_up_here(call)

    judge = ScriptedJudge(mumbling)
    first = await judged(sums(30), judge, store, config=JudgeConfig(repairs=0))
    assert (first.invalid, first.ties) == (1, 0)
    assert first.judges[0].unread_passes == 2
    mumbles = False
    again = await judged(sums(30), judge, store, config=JudgeConfig(repairs=0), retry=("unread",))
    assert (again.invalid, again.calls) == (0, 2)
    with open_store(store) as opened:
        run = opened.runs.all()[0]
        whole = opened.verdicts.item(run.id, "sum-7")
    assert whole is not None
    assert len(whole.judged[0].replaced) == 2  # what was paid for is kept


async def test_inconsistent_pairs_are_no_ties(store: Path) -> None:
    judge = ScriptedJudge(lambda call: answer_json("A", criteria=[("accuracy", "A")]))
    summary = await judged(sums(10), judge, store)
    assert (summary.inconsistent, summary.ties) == (10, 0)


async def test_several_judges_each_judge_every_pair(store: Path) -> None:
    good, other = ScriptedJudge(adds_up_here), ScriptedJudge(adds_up_here)
    other.name = "other"
    summary = await judged(sums(12), [good, other], store)
    assert [judge.judge for judge in summary.judges] == ["scripted", "other"]
    assert [judge.wins_a for judge in summary.judges] == [8, 8]
    assert (summary.pairs, summary.wins_a) == (12, 16)


async def test_samples_are_passes_of_their_own(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    await judged(sums(5), judge, store, config=JudgeConfig(samples=1))
    summary = await judged(sums(5), judge, store, config=JudgeConfig(samples=3))
    assert (summary.reused_passes, summary.calls) == (10, 20)


async def test_rate_limits_are_waited_out(store: Path) -> None:
    refusals = 0

    def limited(call: JudgeCall) -> str:
        nonlocal refusals
        if refusals < 30 and len(judge.calls) % 3 == 0:
            refusals += 1
            raise JudgeRateLimited("slow down", retry_after_s=0.01)
        return adds_up_here(call)

    judge = ScriptedJudge(limited)
    summary = await judged(sums(60), judge, store)
    assert (summary.pending, summary.invalid) == (0, 0)
    assert summary.calls == len(judge.calls) == 120 + refusals


async def test_a_judge_that_answers_one_at_a_time_sees_both_passes_in_a_row(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here, Traits(parallel=False))
    await judged(sums(10), judge, store)
    keys = [(call.pair.id, call.order) for call in judge.calls]
    assert keys == [(f"sum-{n}", order) for n in range(1, 11) for order in ("original", "swapped")]


async def test_both_passes_of_a_pair_are_made_close_together(store: Path) -> None:
    class Slow(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            completion = await super().ask(call)
            await asyncio.sleep(0.002)
            return completion

    judge = Slow(adds_up_here)
    await judged(sums(200), judge, store, concurrency=8)
    places: dict[str | None, list[int]] = {}
    for place, call in enumerate(judge.calls):
        places.setdefault(call.pair.id, []).append(place)
    # One may take the last place of a round, and the other the first of the next: with eight in
    # flight that is some eight calls apart, whatever the number of pairs.
    assert max(second - first for first, second in places.values()) <= 16


async def test_a_run_in_use_is_not_run_a_second_time(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    await judged(sums(5), judge, store, max_calls=2)
    with (
        open_store(store) as opened,
        opened.hold(opened.runs.all()[0].id),
        pytest.raises(StoreBusy, match="in use"),
    ):
        await judged(sums(5), judge, store)


async def test_a_name_stands_for_one_plan(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    await judged(sums(5), judge, store, name="nightly")
    with pytest.raises(InputError, match="other data"):
        await judged(sums(6), judge, store, name="nightly")
    with pytest.raises(InputError, match="other decision settings"):
        await judged(sums(5), judge, store, name="nightly", config=JudgeConfig(samples=3))
    judge.name = "another"
    with pytest.raises(InputError, match="other judges"):
        await judged(sums(5), judge, store, name="nightly")


async def test_a_bad_row_stops_before_anything_is_asked(store: Path, tmp_path: Path) -> None:
    rows = sums(5)
    del rows[3]["response_b"]
    path = write_lines(tmp_path / "pairs.jsonl", rows)
    judge = ScriptedJudge(adds_up_here)
    with pytest.raises(DataError, match=r"pairs\.jsonl, row 4: .*bad_rows skip"):
        await judged(path, judge, store)
    assert judge.calls == []
    with open_store(store) as opened:
        assert opened.runs.all() == []
    summary = await judged(path, judge, store, bad_rows="skip")
    assert (summary.pairs, summary.skipped_rows) == (4, 1)
    again = await judged(path, judge, store, bad_rows="skip")
    assert again.skipped_rows == 1


async def test_ids_that_clash_stop_before_anything_is_asked(store: Path) -> None:
    rows = sums(4)
    rows[3]["id"] = "sum-1"
    judge = ScriptedJudge(adds_up_here)
    with pytest.raises(DataError, match="sum-1"):
        await judged(rows, judge, store)
    assert judge.calls == []


async def test_the_progress_ends_with_everything_done(store: Path) -> None:
    seen: list[evenhand.Progress] = []
    judge = ScriptedJudge(adds_up_here)
    await evenhand.run(
        sums(30),
        judge,
        criteria=["accuracy"],
        options=RunOptions(store=store),
        on_progress=seen.append,
    )
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert (seen[-1].done, seen[-1].total, seen[-1].in_flight) == (30, 30, 0)
    watched = seen[-1].win_rate_b
    assert watched is not None
    assert watched.scores == 30
    assert watched.mean == pytest.approx(1 / 3)
    assert watched.low < 0.18  # wider than the 0.19 to 0.51 of an interval for one look
    assert watched.high > 0.53


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency is 0"),
        ({"max_calls": 1.5}, "max_calls is 1.5"),
        ({"rpm": 0}, "rpm is 0"),
        ({"max_cost": float("nan")}, "max_cost is nan"),
        ({"bad_rows": "drop"}, "bad_rows is 'drop'"),
        ({"retry": ("all",)}, "retry is 'all'"),
        ({"name": " "}, "name is blank"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RunOptions(**options)


async def test_what_is_no_judge_is_refused(store: Path) -> None:
    with pytest.raises(InputError, match="judge is 7"):
        await judged(sums(1), 7, store)
    with pytest.raises(InputError, match="no judge"):
        await judged(sums(1), [], store)


async def test_a_bug_in_a_judge_is_raised_and_not_swallowed(store: Path) -> None:
    def broken(call: JudgeCall) -> str:
        raise ZeroDivisionError("oh")

    with pytest.raises(ZeroDivisionError):
        await judged(sums(30), ScriptedJudge(broken), store)


async def test_a_list_of_file_names_is_told_what_to_do(store: Path) -> None:
    with pytest.raises(DataError, match="by itself"):
        await judged(["pairs.jsonl"], ScriptedJudge(adds_up_here), store)


async def test_no_pairs_at_all_is_an_error(store: Path) -> None:
    with pytest.raises(DataError, match=r"no rows|no pairs"):
        await judged([], ScriptedJudge(adds_up_here), store)


def test_the_sync_face_runs_the_same(store: Path) -> None:
    summary = evenhand.run_sync(
        sums(6), ScriptedJudge(adds_up_here), criteria=["accuracy"], options=RunOptions(store=store)
    )
    assert summary.wins_a + summary.wins_b == 6
