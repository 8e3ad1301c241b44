"""Runs that end once it is settled which of two is better."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import RunOptions, RunSummary
from evenhand.errors import InputError
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.runs.options import UntilDecided
from evenhand.runs.settled_prefix import SettledPrefix
from evenhand.stats.stopping.sequential import SequentialDecision, SequentialPlan, follow
from evenhand.store import open_store
from evenhand.store.work import WorkStore
from run_data import adds_up_here, sums
from scripted import ScriptedJudge, answer_json


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def decided(
    pairs: Any, judge: Any, store: Path, *, alpha: float = 0.05, seed: int = 0, **options: Any
) -> RunSummary:
    return await evenhand.run(
        pairs,
        judge,
        criteria=["accuracy"],
        options=RunOptions(
            store=store, until_decided=UntilDecided(alpha, seed), concurrency=4, **options
        ),
    )


@pytest.mark.slow
async def test_a_clear_winner_ends_the_run_early(store: Path) -> None:
    """A is right in two thirds of the pairs."""
    judge = ScriptedJudge(adds_up_here)
    summary = await decided(sums(600), judge, store)
    assert summary.stopped_by == "decided"
    assert summary.finished
    decision = summary.decision
    assert decision is not None
    assert (decision.decided, decision.final, decision.method) == ("A", False, "betting")
    assert decision.low is not None
    assert decision.low > 0.5
    assert decision.prompts < 300
    assert summary.pending > 200
    assert len(judge.calls) == 2 * (600 - summary.pending)
    assert any("saved" in note for note in summary.notes)


@pytest.mark.slow
async def test_little_is_under_way_when_the_decision_falls(store: Path) -> None:
    """Without a concurrency of the user's own: an eighth of what the last look knew, however fast
    the judge is."""
    summary = await evenhand.run(
        sums(600),
        ScriptedJudge(adds_up_here),
        criteria=["accuracy"],
        options=RunOptions(store=store, until_decided=UntilDecided()),
    )
    assert summary.decision is not None
    needed = summary.decision.prompts
    assert summary.pairs - summary.pending <= needed + max(4, needed // 8) + 4


@pytest.mark.slow
async def test_a_look_knows_no_more_than_the_store(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a slow disk counts as under way."""
    write = WorkStore.write

    def slowly(work: WorkStore, *what: Any) -> None:
        time.sleep(0.06)
        write(work, *what)

    monkeypatch.setattr(WorkStore, "write", slowly)
    summary = await evenhand.run(
        sums(600),
        ScriptedJudge(adds_up_here),
        criteria=["accuracy"],
        options=RunOptions(store=store, until_decided=UntilDecided()),
    )
    assert summary.decision is not None
    needed = summary.decision.prompts
    assert summary.pairs - summary.pending <= needed + max(4, needed // 8) + 4


async def test_a_look_that_fails_ends_the_run(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs go out by what the last look knew: without another one they would wait for ever."""
    looks = iter(range(100))
    look = SettledPrefix.look

    def fails_at_last(prefix: SettledPrefix) -> SequentialDecision:
        if next(looks) > 1:
            raise ZeroDivisionError("of a look")
        return look(prefix)

    monkeypatch.setattr(SettledPrefix, "look", fails_at_last)
    running = evenhand.run(
        sums(600),
        ScriptedJudge(adds_up_here),
        criteria=["accuracy"],
        options=RunOptions(store=store, until_decided=UntilDecided()),
    )
    async with asyncio.timeout(30) as patience:
        with pytest.raises(ZeroDivisionError, match="of a look"):
            await running
    assert not patience.expired()


@pytest.mark.slow
async def test_the_same_command_again_asks_nothing_and_says_the_same(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    first = await decided(sums(600), judge, store)
    calls = len(judge.calls)
    again = await decided(sums(600), judge, store)
    assert len(judge.calls) == calls
    assert again.stopped_by == "decided"
    assert (again.run, again.decision) == (first.run, first.decision)


@pytest.mark.slow
async def test_a_broken_off_run_comes_to_the_same_decision(store: Path, tmp_path: Path) -> None:
    whole = await decided(sums(600), ScriptedJudge(adds_up_here), tmp_path / "other.db")
    judge = ScriptedJudge(adds_up_here)
    for _ in range(3):
        part = await decided(sums(600), judge, store, max_calls=30)
        assert part.stopped_by == "max-calls"
    rest = await decided(sums(600), judge, store)
    assert rest.decision == whole.decision


async def test_a_broken_off_run_tells_all_that_is_settled(store: Path) -> None:
    """Also what came after the last look."""
    summary = await decided(sums(600), ScriptedJudge(adds_up_here), store, max_calls=40)
    assert (summary.stopped_by, summary.pairs - summary.pending) == ("max-calls", 20)
    assert summary.decision is not None
    with open_store(store) as opened:
        run = opened.runs.find(summary.run)
        assert run is not None
        (judge,) = opened.runs.judges(run.id)
        prefix = SettledPrefix.of(opened, run.id, judge.id, alpha=0.05, seed=0)
        assert summary.decision == prefix.look()


async def test_the_decision_is_that_of_the_stored_prefix(store: Path) -> None:
    """A second way to the same: the verdicts in the queue's order, through the test alone."""
    summary = await decided(sums(600), ScriptedJudge(adds_up_here), store, seed=7)
    with open_store(store) as opened:
        run = opened.runs.find(summary.run)
        assert run is not None
        judge = opened.runs.judges(run.id)[0]
        prefix = opened.work.settled_prefix(run.id, judge.id)
    scores = [{0: 1.0, 1: 0.0}[outcome] for outcome in prefix.outcome]
    decision = follow(SequentialPlan(planned=600, seed=7), scores).decision
    assert decision == summary.decision


async def test_what_is_answered_fast_does_not_decide(store: Path) -> None:
    """B's wins come at once and A's late: by arrival B leads for long."""

    class Slow(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            completion = await super().ask(call)
            right_is_a = call.pair.id is not None and int(call.pair.id.split("-")[1]) % 3
            await asyncio.sleep(0.02 if right_is_a else 0)
            return completion

    summary = await evenhand.run(
        sums(300),
        Slow(adds_up_here),
        criteria=["accuracy"],
        options=RunOptions(store=store, until_decided=UntilDecided(), concurrency=64),
    )
    assert summary.decision is not None
    assert summary.decision.decided == "A"


async def test_equal_sides_are_asked_to_the_end_and_stay_undecided(store: Path) -> None:
    judge = ScriptedJudge(lambda call: answer_json("TIE", criteria=[("accuracy", "TIE")]))
    summary = await decided(sums(40), judge, store)
    assert (summary.ties, summary.pending, summary.stopped_by) == (40, 0, None)
    assert summary.decision is not None
    assert (summary.decision.decided, summary.decision.final) == (None, True)
    assert summary.decision.mean == 0.5


async def test_the_prompt_is_the_unit(store: Path) -> None:
    """Five rows of each prompt are one score: 100 rows are 20 prompts."""
    rows = [dict(row, id=f"{row['id']}-{n}") for row in sums(20) for n in range(5)]
    rows = [dict(row, response_a=f"{row['response_a']} ({row['id']})") for row in rows]
    summary = await decided(rows, ScriptedJudge(adds_up_here), store)
    assert summary.decision is not None
    assert summary.decision.plan.planned == 20


async def test_another_alpha_is_another_run(store: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    first = await decided(sums(60), judge, store)
    stricter = await decided(sums(60), judge, store, alpha=0.01)
    assert first.run != stricter.run


async def test_rows_of_several_models_are_refused(store: Path) -> None:
    rows = sums(4, model_a="x", model_b="y") + sums(4, begin=5, model_a="y", model_b="x")
    with pytest.raises(InputError, match=r"the rows have x against y and y against x; use"):
        await decided(rows, ScriptedJudge(adds_up_here), store)


async def test_several_judges_are_refused(store: Path) -> None:
    with pytest.raises(InputError, match="until_decided works with one judge, but 2 are given"):
        await decided(sums(4), [ScriptedJudge(adds_up_here), "baseline:longer"], store)
