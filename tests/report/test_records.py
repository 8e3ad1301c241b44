from __future__ import annotations

import asyncio
import re

import pytest

from evenhand.contract import Failure, Outcome, Verdict
from evenhand.errors import InputError
from evenhand.judging.comparison import judge_pair
from evenhand.judging.config import JudgeConfig
from evenhand.judging.decision import Judged
from evenhand.report.records import CriterionResult, RunRow, read_run
from evenhand.store import NewPass, NewVerdict, Store
from evenhand.store.verdicts import VerdictStore
from scripted import ScriptedJudge, make_pair
from stored_runs import ROWS, Row, item_of, make_run, says


@pytest.fixture
def rows(store: Store) -> dict[str, RunRow]:
    make_run(store, "first", ROWS)
    return {row.id: row for row in read_run(store, "first")}


def test_every_judged_pair_has_a_row_in_the_order_of_the_data(rows: dict[str, RunRow]) -> None:
    assert list(rows) == ["q1", "q2", "q3", "q4", "q5", "q6", "q7"]  # q8 is pending


def test_row_tells_where_its_pair_came_from(rows: dict[str, RunRow]) -> None:
    row = rows["q1"]
    assert (row.run, row.judge, row.source, row.row) == ("first", "scripted", "pairs.jsonl", 2)
    assert (row.prompt, row.response_a, row.response_b) == ("Question q1?", "one", "two")
    assert (row.label, row.model_a, row.model_b, row.tags) == ("A", "old", "new", ("math", "easy"))
    assert (rows["q2"].label, rows["q2"].model_a, rows["q2"].tags) == (None, None, ())


def test_win_has_its_winner_and_what_it_took(rows: dict[str, RunRow]) -> None:
    row = rows["q3"]
    assert (row.outcome, row.winner, row.confidence) == (Outcome.WIN, "B", 0.8)
    assert (row.confidence_source, row.consistent) == ("stated", True)
    assert (row.first_pass_winner, row.second_pass_winner) == ("B", "B")
    (criterion,) = row.criteria
    assert criterion == CriterionResult(criterion="accuracy", winner="B", outcome=Outcome.WIN)
    # two passes of 100 tokens in, 20 out, a quarter of a dollar
    assert (row.input_tokens, row.output_tokens, row.cost_usd) == (200, 40, 0.5)
    assert (row.error_kind, row.error_message) == (None, None)
    assert isinstance(row.verdict, Verdict)
    assert row.reasoning == row.verdict.overall_reasoning


def test_inconsistent_is_neither_a_tie_nor_a_win(rows: dict[str, RunRow]) -> None:
    row = rows["q5"]
    assert (row.outcome, row.winner, row.consistent) == (Outcome.INCONSISTENT, "TIE", False)
    assert (row.first_pass_winner, row.second_pass_winner) == ("A", "B")
    assert (row.confidence, row.confidence_source) == (0.5, "rule")
    assert row.criteria[0].outcome is Outcome.INCONSISTENT
    tie = rows["q4"]
    assert (tie.outcome, tie.winner, tie.consistent) == (Outcome.TIE, "TIE", True)


@pytest.mark.parametrize(
    ("key", "kind", "tokens"),
    [("q6", "invalid", 200), ("q7", "judge", None)],  # unread answers cost tokens; none, nothing
)
def test_invalid_pair_has_a_reason_and_no_winner(
    rows: dict[str, RunRow], key: str, kind: str, tokens: int | None
) -> None:
    row = rows[key]
    assert (row.outcome, row.winner, row.confidence) == (Outcome.INVALID, None, None)
    assert (row.consistent, row.reasoning, row.error_kind) == (None, "", kind)
    assert row.error_message
    assert isinstance(row.verdict, Failure)
    assert row.input_tokens == tokens


def test_each_judge_has_a_row_of_its_own(store: Store) -> None:
    make_run(store, "two", ROWS[:2], judges=("strict", "kind"))
    told = [(row.id, row.judge) for row in read_run(store, "two")]
    assert told == [("q1", "strict"), ("q1", "kind"), ("q2", "strict"), ("q2", "kind")]


def test_identical_responses_tie_by_rule_on_every_criterion(
    store: Store,
) -> None:
    run_id = make_run(store, "same", [Row("s1", says("A"), judged=False)])
    (judge,) = store.runs.judges(run_id)
    pair = make_pair(response_a="x", response_b="x", id="s1")
    judged = asyncio.run(judge_pair(pair, ScriptedJudge(says("A")), JudgeConfig()))
    assert isinstance(judged, Judged)
    store.work.write([], [NewVerdict(run_id, 1, judge.id, judged)])
    (row,) = read_run(store, "same")
    assert (row.outcome, row.winner, row.consistent, row.time_ms) == (Outcome.TIE, "TIE", None, 0)
    assert [(each.winner, each.outcome) for each in row.criteria] == [("TIE", Outcome.TIE)]


def test_pages_shrink_where_texts_are_long_and_no_row_is_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    read_page = VerdictStore.whole_page

    def spied(self: VerdictStore, run_id: int, *, after: int = 0, limit: int = 100) -> object:
        asked.append(limit)
        return read_page(self, run_id, after=after, limit=limit)

    run_id = make_run(store, "long", [Row("r1", says("A"))])
    (seed,) = store.verdicts.whole_page(run_id)
    judge_id = seed.row.judge_id
    rows = [
        Row(
            f"r{n}", says("A"), pair={"response_a": f"{n}", "response_b": "y" * (n // 30 * 999_999)}
        )
        for n in range(1, 45)
    ]
    store.items.add(run_id, [item_of(row, n, "pairs.jsonl") for n, row in enumerate(rows[1:], 2)])
    work = store.work.pending(run_id, judge_id, after=0, limit=100)
    store.work.write(
        [NewPass(w.pair_id, judge_id, run_id, made.made) for w in work for made in seed.passes],
        [NewVerdict(run_id, w.number, judge_id, seed.settled) for w in work],
    )
    monkeypatch.setattr(VerdictStore, "whole_page", spied)
    assert [row.id for row in read_run(store, "long")] == [f"r{n}" for n in range(1, 45)]
    # Twice as many each time. The last 13 rows have a million characters each and some more, and
    # a page of 8 million has room for 7 of them.
    assert asked == [1, 2, 4, 8, 16, 32, 7]


def test_unknown_run_is_refused_at_once_with_the_nearest_names(store: Store) -> None:
    none = re.escape(f"no run 'alpha': {store.address} has no runs yet; ")
    with pytest.raises(InputError, match=none):
        read_run(store, "alpha")
    for name in ("pairs-3fa2c1", "pairs-77ab01", "other"):
        make_run(store, name, ())
    with pytest.raises(InputError, match=r"did you mean pairs-3fa2c1"):
        read_run(store, "Pairs-3fa2c")
    with pytest.raises(InputError, match=r"did you mean pairs-\w+ or pairs-\w+\?$"):
        read_run(store, "pairs")
    with pytest.raises(InputError, match=r"'zzz'; evenhand runs lists the 3 there are$"):
        read_run(store, "zzz")
