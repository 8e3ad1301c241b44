"""Each criterion's outcomes come out of the verdicts' JSON, in whichever form it was kept."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.contract import Outcome, Pair, Winner
from evenhand.data.records import Record
from evenhand.judging.comparison import Failed, judge_pair
from evenhand.judging.config import JudgeConfig
from evenhand.judging.decision import CriterionDecision, Judged
from evenhand.judging.explanation import explain
from evenhand.store import NewVerdict, Settled, Store, columns, open_store
from evenhand.store.intake import prompt_key
from explained import CONTEXT
from parts import examples
from scripted import configs, moody, pairs
from store_values import begin, decided, failure, item

_numbers = count(1)


def came(name: str, outcome: Outcome, *winners: Winner | None) -> CriterionDecision:
    """Its winner, and what each order chose."""
    return CriterionDecision(name, outcome, *winners or (None,))


def facts(*criteria: CriterionDecision, **more: Any) -> Judged:
    return decided(Outcome.WIN, "A", 0.5, "stated", "A", "A", criteria=criteria, **more)


def read(store: Store, *settled: Settled, criteria: tuple[str, ...] = ("one", "two")) -> Any:
    """By criterion: the rows as (number, outcome)."""
    number = next(_numbers)
    items = [item(f"k{n}", prompt=f"p{n}", criteria=list(criteria)) for n in range(len(settled))]
    begun = begin(store, *items, name=f"run {number}", judge=f"judge {number}")
    store.work.write(
        [],
        [
            NewVerdict(begun.run_id, place, begun.judge_id, each)
            for place, each in enumerate(settled, start=1)
        ],
    )
    columns = store.columns.criteria(begun.run_id, begun.judge_id)
    for each in columns:
        keys = [prompt_key(f"p{number - 1}", None) for number in each.number]
        assert each.prompt_key.tolist() == keys
    return {each.criterion: list(zip(each.number, each.outcome, strict=True)) for each in columns}


def test_criteria_are_read_from_decisions(store: Store) -> None:
    found = read(
        store,
        facts(came("one", Outcome.WIN, "A", "A", "A"), came("two", Outcome.WIN, "B", "B", "B")),
        facts(came("one", Outcome.WIN, "B", "B"), came("two", Outcome.TIE, "TIE", "TIE", "TIE")),
        facts(
            came("one", Outcome.INCONSISTENT, "TIE", "A", "B"),
            came("two", Outcome.INVALID, None, "A"),
        ),
    )
    assert found == {"one": [(1, 0), (2, 1), (3, 3)], "two": [(1, 1), (2, 2), (3, 4)]}


def test_a_win_on_averages_counts_for_its_winner_where_the_orders_chose_differently(
    store: Store,
) -> None:
    found = read(
        store,
        facts(came("one", Outcome.WIN, "A", "A", "TIE"), came("two", Outcome.WIN, "B", "B", "B")),
        facts(came("one", Outcome.WIN, "B", "A", "B"), came("two", Outcome.WIN, "A", "TIE", "TIE")),
    )
    assert found == {"one": [(1, 0), (2, 1)], "two": [(1, 1), (2, 0)]}


def test_a_verdict_that_says_nothing_of_its_criteria_is_invalid_on_each(store: Store) -> None:
    identical = decided(Outcome.TIE, "TIE")
    judged = facts(came("two", Outcome.WIN, "A", "A", "A"), came("one", Outcome.WIN, "A", "A", "A"))
    found = read(store, failure([]), identical, judged)
    assert found == {
        "one": [(1, 4), (2, 4), (3, 0)],
        "two": [(1, 4), (2, 4), (3, 0)],
    }
    assert list(found) == ["one", "two"]


def test_a_name_that_looks_like_the_json_around_it_is_a_name(store: Store) -> None:
    names = (',"criteria":[["one","win","B","B","B"]]', '"]]}}', "\x00\x1a", '{"time_ms":')
    told = [came(name, Outcome.WIN, "A", "A", "A") for name in names]
    slow = facts(*told, time_ms=1e300, decided_by="confidence")
    assert read(store, facts(*told), slow) == {name: [(1, 0), (2, 0)] for name in names}


def test_what_was_read_once_is_forgotten_before_it_fills_the_memory(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert columns.criteria_codes.cache_info().maxsize is not None
    few = lru_cache(maxsize=2)(columns.criteria_codes.__wrapped__)
    monkeypatch.setattr(columns, "criteria_codes", few)
    ways: list[Winner] = ["A", "B", "TIE", "A", "B", "TIE"]
    outcomes = [Outcome.TIE if way == "TIE" else Outcome.WIN for way in ways]
    settled = [facts(came("one", o, w, w, w)) for o, w in zip(outcomes, ways, strict=True)]
    assert read(store, *settled, criteria=("one",)) == {
        "one": [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1), (6, 2)]
    }


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("criteria") / "store.db"
    with open_store(path) as store:
        yield store


@settings(
    deadline=None,
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pair=pairs, config=configs, salt=st.integers(0, 1000))
def test_columns_hold_the_winners_that_the_verdict_names(
    one_store: Store, pair: Pair, config: JudgeConfig, salt: int
) -> None:
    judged = asyncio.run(judge_pair(pair, moody(salt), config))
    number = next(_numbers)
    begun = begin(one_store, name=f"facts {number}", judge=f"facts judge {number}")
    one_store.items.add(begun.run_id, [Record("x", pair, "s", 1)])
    settled = judged.failure if isinstance(judged, Failed) else judged
    one_store.work.write([], [NewVerdict(begun.run_id, 1, begun.judge_id, settled)])
    columns = one_store.columns.criteria(begun.run_id, begun.judge_id)
    assert [each.criterion for each in columns] == [each.name for each in pair.criteria]
    told = [each.outcome[0] for each in columns]
    if isinstance(judged, Failed):
        assert told == [4] * len(pair.criteria)
        return
    verdict = explain(pair, judged, CONTEXT)
    outcomes = [each.outcome for each in verdict.metadata.criteria] or [Outcome.INVALID] * len(told)
    for code, outcome, entry in zip(told, outcomes, verdict.comparison, strict=True):
        by_winner = {"A": 0, "B": 1, "TIE": 2, None: 4}
        assert code == (3 if outcome == "inconsistent" else by_winner[entry.winner])
