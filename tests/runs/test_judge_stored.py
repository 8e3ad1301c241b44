"""A run whose rows are in the store is judged without its sources, by its own judges alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import evenhand
from evenhand import Price, RunOptions
from evenhand.errors import InputError
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.config import JudgeConfig
from evenhand.runs import JudgePlan, judge_stored
from evenhand.runs.plan import apply_price
from evenhand.store import Store, open_store
from run_data import adds_up_here, sums, wins_b, write_lines
from scripted import ScriptedJudge

QUICK = JudgeConfig(retry=RetryPolicy(attempts=3, base_s=0.001, cap_s=0.01))


async def begun(folder: Path, judge: ScriptedJudge, *, max_calls: int = 10) -> str:
    """A run of 30 pairs that stopped early, and whose file is gone."""
    data = write_lines(folder / "sums.jsonl", sums(30))
    options = RunOptions(store=folder / "s.db", max_calls=max_calls)
    summary = await evenhand.run(data, judge, QUICK, criteria=["accuracy"], options=options)
    data.unlink()
    return summary.run


async def stored(store: Store, name: str, plan: JudgePlan) -> evenhand.RunSummary:
    run = store.runs.find(name)
    assert run is not None
    with store.hold(run.id):
        return await judge_stored(run, [plan], RunOptions(), store=store)


async def test_it_goes_on_without_its_file(tmp_path: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    name = await begun(tmp_path, judge)
    with open_store(tmp_path / "s.db") as store:
        summary = await stored(store, name, JudgePlan(judge, QUICK))
        again = await stored(store, name, JudgePlan(judge, QUICK))
    assert (summary.run, summary.wins_b, summary.pending) == (name, wins_b(30), 0)
    assert summary.finished
    assert again.calls == 0
    assert len(judge.calls) == 60
    assert again.total.calls == 60


async def test_another_judge_or_another_way_to_decide_is_refused(tmp_path: Path) -> None:
    judge = ScriptedJudge(adds_up_here)
    name = await begun(tmp_path, judge)
    asked = len(judge.calls)
    other = ScriptedJudge(adds_up_here)
    other.name = "another"
    with open_store(tmp_path / "s.db") as store:
        for plan, why in (
            (JudgePlan(other, QUICK), "other judges"),
            (JudgePlan(judge, JudgeConfig(locale="zh")), "another prompt"),
            (JudgePlan(judge, JudgeConfig(samples=3)), "other decision settings"),
        ):
            with pytest.raises(InputError, match=f"was started with {why}"):
                await stored(store, name, plan)
    assert (len(judge.calls), len(other.calls)) == (asked, 0)


def test_a_judges_own_price_goes_before_the_runs() -> None:
    judge = ScriptedJudge(adds_up_here)
    own, of_run = Price(1, 2), Price(3, 4)
    options = RunOptions(price=of_run, max_cost=1)
    assert apply_price(JudgePlan(judge, QUICK, own), options).price == own
    assert apply_price(JudgePlan(judge, QUICK), options).price == of_run
    with pytest.raises(InputError, match="max_cost cannot be enforced"):
        apply_price(JudgePlan(judge, QUICK), RunOptions(max_cost=1))
