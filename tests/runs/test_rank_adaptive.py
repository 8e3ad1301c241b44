"""Runs that rank many models and ask where it matters."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import Progress, RunOptions, RunSummary
from evenhand.errors import InputError
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.runs.options import RankAdaptive
from evenhand.runs.stop_rules import RankingRule
from evenhand.store import open_store
from run_data import sums
from scripted import ScriptedJudge, answer_json

STRENGTH = {"ada": 2.4, "bob": 1.6, "cyd": 0.8, "dee": 0.0, "eve": -0.8, "fay": -1.6}
_ANSWER = re.compile(r"Answer of (\w+)\.")


def battles(prompts: int) -> list[dict[str, Any]]:
    """Every two models on every prompt."""
    return [
        {
            "id": f"{n}-{a}-{b}",
            "prompt": f"Question {n}?",
            "response_a": f"Answer of {a}.",
            "response_b": f"Answer of {b}.",
            "model_a": a,
            "model_b": b,
        }
        for n in range(prompts)
        for a, b in itertools.combinations(sorted(STRENGTH), 2)
    ]


def by_strength(call: JudgeCall) -> str:
    """The stronger wins by chance, the same chance in both orders."""
    shown = [_ANSWER.findall(text)[0] for text in (call.pair.response_a, call.pair.response_b)]
    first, second = sorted(shown)
    chance = 1 / (1 + math.exp(STRENGTH[second] - STRENGTH[first]))
    drawn = random.Random(f"{call.pair.prompt} {first} {second}").random()
    winner = first if drawn < chance else second
    place = shown.index(winner)
    if call.order == "swapped":
        place = 1 - place
    return answer_json("AB"[place], criteria=[("accuracy", "AB"[place])])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def ranked(
    pairs: Any, judge: Any, store: Path, *, budget: int, certainty: float = 0.95, **options: Any
) -> RunSummary:
    return await evenhand.run(
        pairs,
        judge,
        criteria=["accuracy"],
        options=RunOptions(
            store=store, rank_adaptive=RankAdaptive(budget, certainty), concurrency=8, **options
        ),
    )


async def test_it_ends_once_the_order_is_certain(store: Path) -> None:
    judge = ScriptedJudge(by_strength)
    summary = await ranked(battles(60), judge, store, budget=900)
    assert summary.stopped_by == "certain"
    assert summary.finished
    ranking = summary.ranking
    assert ranking is not None
    assert ranking.expected_tau >= 0.95
    assert ranking.models[0] == "ada"
    assert ranking.models[-1] == "fay"
    judged = summary.pairs - summary.pending
    # Not before the uniform share is complete: two thirds of 900.
    assert 600 <= ranking.asked == judged < 900
    assert len(judge.calls) == 2 * judged


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_the_end_is_certain_also_after_what_was_in_flight(store: Path, seed: int) -> None:
    """With answers in any order, what comes in last may undo what the look before it found."""
    wait = random.Random(seed)

    class UnevenJudge(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            await asyncio.sleep(0.03 * wait.random() ** 3)
            return await super().ask(call)

    summary = await ranked(battles(60), UnevenJudge(by_strength), store, budget=900, certainty=0.9)
    assert summary.stopped_by == "certain"
    assert summary.ranking is not None
    assert summary.ranking.expected_tau >= 0.9
    again = await ranked(battles(60), ScriptedJudge(by_strength), store, budget=900, certainty=0.9)
    assert (again.calls, again.stopped_by) == (0, "certain")


async def test_it_asks_more_where_models_are_close(store: Path) -> None:
    summary = await ranked(
        battles(60), ScriptedJudge(by_strength), store, budget=300, certainty=0.999
    )
    with open_store(store) as opened:
        run = opened.runs.find(summary.run)
        assert run is not None
        judge = opened.runs.judges(run.id)[0]
        contests = {frozenset(c.models): c for c in opened.work.contests(run.id, judge.id)}
    asked = {models: 60 - contest.pending for models, contest in contests.items()}
    # Two thirds of 300 are even, 13 or 14 for each of the 15; all even would be 20 for each.
    assert min(asked.values()) in (13, 14)
    assert asked[frozenset({"ada", "fay"})] <= 14
    assert asked[frozenset({"cyd", "dee"})] > 20


async def test_the_budget_is_never_exceeded(store: Path) -> None:
    judge = ScriptedJudge(by_strength)
    summary = await ranked(battles(40), judge, store, budget=50, certainty=0.999)
    assert summary.stopped_by == "budget"
    assert summary.pairs - summary.pending == 50
    assert len(judge.calls) == 100


async def test_progress_is_towards_the_budget(store: Path) -> None:
    seen: list[Progress] = []
    for budget in (20, 30):
        await evenhand.run(
            battles(40),
            ScriptedJudge(by_strength),
            criteria=["accuracy"],
            options=RunOptions(store=store, rank_adaptive=RankAdaptive(budget, 0.999)),
            on_progress=seen.append,
        )
        assert (seen[-1].done, seen[-1].total) == (budget, budget)


class SlowJudge(ScriptedJudge):
    """Slower than the run looks, so that a look falls while pairs wait for their turn."""

    async def ask(self, call: JudgeCall) -> Completion:
        await asyncio.sleep(0.15)
        return await super().ask(call)


@pytest.mark.slow
async def test_the_last_pairs_of_the_budget_get_their_verdicts(store: Path) -> None:
    judge = SlowJudge(by_strength)
    summary = await ranked(battles(40), judge, store, budget=30, certainty=0.999)
    assert (summary.stopped_by, summary.pairs - summary.pending) == ("budget", 30)
    assert len(judge.calls) == 60
    assert summary.ranking is not None
    assert summary.ranking.asked == 30


async def test_what_was_broken_off_is_not_told_as_asked(store: Path) -> None:
    summary = await ranked(
        battles(40), SlowJudge(by_strength), store, budget=60, certainty=0.999, max_calls=11
    )
    assert summary.stopped_by == "max-calls"
    assert summary.ranking is not None
    assert summary.ranking.asked == summary.pairs - summary.pending < 6


async def test_it_goes_on_where_it_was_broken_off(store: Path) -> None:
    judge = ScriptedJudge(by_strength)
    part = await ranked(battles(40), judge, store, budget=60, certainty=0.999, max_calls=40)
    assert part.stopped_by == "max-calls"
    rest = await ranked(battles(40), judge, store, budget=60, certainty=0.999)
    assert rest.stopped_by == "budget"
    assert rest.pairs - rest.pending == 60
    again = await ranked(battles(40), judge, store, budget=60, certainty=0.999)
    assert (again.calls, again.stopped_by) == (0, "budget")


async def test_ranges_are_the_same_after_a_stop(tmp_path: Path) -> None:
    """They rest on what was drawn before the first verdict: 40 of 60 pairs."""
    judge = ScriptedJudge(by_strength)
    whole, parts = tmp_path / "whole.db", tmp_path / "parts.db"
    once = await ranked(battles(40), judge, whole, budget=60, certainty=0.999)
    for calls in (10, 30, 60, None):
        again = await ranked(battles(40), judge, parts, budget=60, certainty=0.999, max_calls=calls)
    assert once.run == again.run
    rankings = [evenhand.rank(once.run, store=path) for path in (whole, parts)]
    assert rankings[0].ranking == rankings[1].ranking
    first = rankings[0].ranking
    assert first is not None
    assert first.games == 40
    assert rankings[0].adaptive is not None
    assert (rankings[0].adaptive.planned, rankings[0].adaptive.verdicts) == (40, 60)


async def test_an_exhausted_run_counts_every_verdict(store: Path) -> None:
    """Where all pairs are judged, none was chosen."""
    summary = await ranked(
        battles(4), ScriptedJudge(by_strength), store, budget=60, certainty=0.999
    )
    assert summary.pending == 0
    result = evenhand.rank(summary.run, store=store)
    assert result.ranking is not None
    assert (result.ranking.games, result.adaptive) == (60, None)


async def test_a_larger_budget_goes_on_with_the_same_run(store: Path) -> None:
    judge = ScriptedJudge(by_strength)
    first = await ranked(battles(40), judge, store, budget=30, certainty=0.999)
    more = await ranked(battles(40), judge, store, budget=45, certainty=0.999)
    assert first.run == more.run
    assert more.pairs - more.pending == 45


async def test_all_pairs_may_be_too_few(store: Path) -> None:
    summary = await ranked(
        battles(1), ScriptedJudge(by_strength), store, budget=900, certainty=0.999
    )
    assert (summary.pairs, summary.pending, summary.stopped_by) == (15, 0, None)


async def test_rows_without_models_are_refused(store: Path) -> None:
    with pytest.raises(InputError, match="needs rows that name their two models; give outputs"):
        await ranked(sums(4), ScriptedJudge(by_strength), store, budget=4)


@pytest.mark.parametrize("budget", [0, -1, 1.5])
def test_a_budget_is_a_number_of_pairs(budget: Any) -> None:
    with pytest.raises(InputError, match="give a number of pairs of at least 1"):
        RankAdaptive(budget)


async def test_contests_are_kept_by_what_came_since(store: Path) -> None:
    """Whichever of two models is A in a row, and whatever comes of it."""

    def by_chance(call: JudgeCall) -> str:
        drawn = random.Random(f"{call.pair.response_a} {call.pair.response_b} {call.pair.prompt}")
        kind = drawn.choice(["A", "B", "TIE", "same place", "no answer"])
        if kind == "no answer":
            return "I would rather not say."
        if kind in ("A", "B") and call.order == "swapped":
            kind = "AB"[kind == "A"]
        return answer_json({"same place": "A"}.get(kind, kind), criteria=[("accuracy", "TIE")])

    rows = battles(12)
    for row in rows[::2]:
        row["response_a"], row["response_b"] = row["response_b"], row["response_a"]
        row["model_a"], row["model_b"] = row["model_b"], row["model_a"]
    judge = ScriptedJudge(by_chance)
    some = await ranked(rows, judge, store, budget=40, certainty=0.999)
    with open_store(store) as opened:
        run = opened.runs.find(some.run)
        assert run is not None
        judge_id = opened.runs.judges(run.id)[0].id
        pursuit = RankingRule(opened, run.id, judge_id, RankAdaptive(180, 0.999))
        before = pursuit._contests()
        await ranked(rows, judge, store, budget=180, certainty=0.999)
        assert pursuit._contests() == opened.work.contests(run.id, judge_id) != before
    kinds = [sum(counts) for counts in zip(*(each.wins for each in before), strict=True)]
    kinds += [sum(each.ties for each in before), sum(each.inconsistent for each in before)]
    assert all(kinds)
