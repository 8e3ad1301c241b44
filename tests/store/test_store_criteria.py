"""Each criterion's outcomes come out of the verdicts' JSON, in whichever form it was kept."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_facts import configs, moody, pairs

from evenhand.contract import (
    CriterionOutcome,
    CriterionVerdict,
    Facts,
    Metadata,
    Outcome,
    Pair,
    Verdict,
    Winner,
)
from evenhand.judging.comparison import decide, settle
from evenhand.judging.config import JudgeConfig
from evenhand.store import NewItem, NewVerdict, Settled, Store, open_store
from evenhand.store.intake import prompt_key
from parts import examples
from store_values import begin, failure, item, win

_numbers = count(1)


def came(name: str, outcome: Outcome, *choices: Winner | None) -> CriterionOutcome:
    first, second = (*choices, None, None)[:2]
    return CriterionOutcome(
        criterion=name, outcome=outcome, first_pass_winner=first, second_pass_winner=second
    )


def facts(*criteria: CriterionOutcome, **more: Any) -> Facts:
    return Facts(Outcome.WIN, "A", 0.5, "stated", "A", "A", criteria=criteria, passes=2, **more)


def whole(*criteria: tuple[CriterionOutcome, Winner | None]) -> Verdict:
    comparison = tuple(
        CriterionVerdict(
            criterion=each.criterion, winner=winner, reasoning="r", a_strength="", b_strength=""
        )
        for each, winner in criteria
    )
    metadata = Metadata(
        outcome=Outcome.WIN, confidence_source="stated", criteria=tuple(c for c, _ in criteria)
    )
    return win("A", []).model_copy(update={"comparison": comparison, "metadata": metadata})


def read(store: Store, *settled: Settled, criteria: tuple[str, ...] = ("one", "two")) -> Any:
    """By criterion: the rows as (number, outcome), and the numbers that are untold."""
    number = next(_numbers)
    items = [item(f"k{n}", prompt=f"p{n}", criteria=list(criteria)) for n in range(len(settled))]
    begun = begin(store, *items, name=f"run {number}", judge=f"judge {number}")
    store.write(
        [],
        [
            NewVerdict(begun.run_id, place, begun.judge_id, each)
            for place, each in enumerate(settled, start=1)
        ],
    )
    columns = store.criterion_columns(begun.run_id, begun.judge_id)
    for each in columns:
        keys = [prompt_key(f"p{number - 1}", None) for number in each.number]
        assert each.prompt_key.tolist() == keys
    return {
        each.criterion: (list(zip(each.number, each.outcome, strict=True)), each.untold.tolist())
        for each in columns
    }


def test_criteria_are_read_from_facts(store: Store) -> None:
    found = read(
        store,
        facts(came("one", Outcome.WIN, "A", "A"), came("two", Outcome.WIN, "B", "B")),
        facts(came("one", Outcome.WIN, "B"), came("two", Outcome.TIE, "TIE", "TIE")),
        facts(came("one", Outcome.INCONSISTENT, "A", "B"), came("two", Outcome.INVALID, "A")),
    )
    assert found == {
        "one": ([(1, 0), (2, 1), (3, 3)], []),
        "two": ([(1, 1), (2, 2), (3, 4)], []),
    }


def test_a_win_on_averages_is_untold_where_the_orders_chose_differently(store: Store) -> None:
    found = read(
        store,
        facts(came("one", Outcome.WIN, "A", "TIE"), came("two", Outcome.WIN, "B", "B")),
        facts(came("one", Outcome.WIN, "A", "A"), came("two", Outcome.WIN, "TIE", "TIE")),
    )
    assert found == {"one": ([(2, 0)], [1]), "two": ([(1, 1)], [2])}


def test_whole_verdicts_tell_whose_win_it_is(store: Store) -> None:
    found = read(
        store,
        whole((came("one", Outcome.WIN, "A", "TIE"), "B"), (came("two", Outcome.TIE), "TIE")),
        whole((came("one", Outcome.INCONSISTENT, "A", "B"), "TIE")),
    )
    assert found == {"one": ([(1, 1), (2, 3)], []), "two": ([(1, 2)], [])}


def test_a_verdict_that_says_nothing_of_its_criteria_is_invalid_on_each(store: Store) -> None:
    identical = Facts(Outcome.TIE, "TIE", None, "none")
    judged = facts(came("two", Outcome.WIN, "A", "A"), came("one", Outcome.WIN, "A", "A"))
    found = read(store, failure([]), identical, judged)
    assert found == {
        "one": ([(1, 4), (2, 4), (3, 0)], []),
        "two": ([(1, 4), (2, 4), (3, 0)], []),
    }
    assert list(found) == ["one", "two"]


def test_a_name_that_looks_like_the_json_around_it_is_a_name(store: Store) -> None:
    names = (',"criteria":[["one","win","B","B"]]', '"]]}}', "\x00\x1a", '{"facts":')
    told = [came(name, Outcome.WIN, "A", "A") for name in names]
    slow = facts(*told, evaluation_time_ms=1e300, decided_by="confidence")
    assert read(store, facts(*told), slow) == {name: ([(1, 0), (2, 0)], []) for name in names}


def test_what_was_read_once_is_forgotten_before_it_fills_the_memory(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.store.columns._MOST_REMEMBERED", 2)
    ways: list[Winner] = ["A", "B", "TIE", "A", "B", "TIE"]
    outcomes = [Outcome.TIE if way == "TIE" else Outcome.WIN for way in ways]
    settled = [facts(came("one", o, w, w)) for o, w in zip(outcomes, ways, strict=True)]
    assert read(store, *settled, criteria=("one",)) == {
        "one": ([(1, 0), (2, 1), (3, 2), (4, 0), (5, 1), (6, 2)], [])
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
def test_facts_tell_what_the_whole_verdict_tells(
    one_store: Store, pair: Pair, config: JudgeConfig, salt: int
) -> None:
    """The whole verdict names each criterion's winner: it is the yardstick."""
    in_full = asyncio.run(settle(pair, moody(salt), config))
    briefly = asyncio.run(decide(pair, moody(salt), config))
    kept: list[Settled] = [
        in_full if isinstance(in_full, Verdict) else in_full[0],
        briefly if isinstance(briefly, Facts) else briefly[0],
    ]
    number = next(_numbers)
    begun = begin(one_store, name=f"facts {number}", judge=f"facts judge {number}")
    rows = [NewItem(key, pair, "s", 1) for key in ("in full", "briefly")]
    one_store.add_items(begun.run_id, rows)
    one_store.write(
        [], [NewVerdict(begun.run_id, n, begun.judge_id, each) for n, each in enumerate(kept, 1)]
    )
    columns = one_store.criterion_columns(begun.run_id, begun.judge_id)
    assert [each.criterion for each in columns] == [each.name for each in pair.criteria]
    for each in columns:
        told = dict(zip(each.number, each.outcome, strict=True))
        assert 1 in told
        if each.untold:
            assert each.untold.tolist() == [2]
            assert told[1] in (0, 1)
        else:
            assert told[2] == told[1]
