"""Counts by models in one query, and verdicts as columns: the same verdicts either way."""

from __future__ import annotations

import math
from collections import Counter
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.contract import Failure, Outcome, PositionConsistency, Winner
from evenhand.data.records import Record
from evenhand.errors import StoreError
from evenhand.store import BattleCount, NewJudge, NewVerdict, Settled, Store
from evenhand.store.intake import prompt_key
from store_values import Begun, begin, decided, failure, item, read_pass, unread_pass

_numbers = count(1)

# What a verdict can be, and its code.
KINDS: list[tuple[Outcome, Winner | None, int]] = [
    (Outcome.WIN, "A", 0),
    (Outcome.WIN, "B", 1),
    (Outcome.TIE, "TIE", 2),
    (Outcome.INCONSISTENT, "TIE", 3),
    (Outcome.INCONSISTENT, "A", 3),
    (Outcome.INCONSISTENT, "B", 3),
    (Outcome.INVALID, None, 4),
]


def rule(begun: Begun, number: int, kind: int, *, judge_id: int | None = None) -> None:
    outcome, winner, _ = KINDS[kind]
    settled = (
        failure([]) if winner is None else decided(outcome, winner, 0.5, "stated", winner, winner)
    )
    judge_id = judge_id or begun.judge_id
    begun.store.work.write([], [NewVerdict(begun.run_id, number, judge_id, settled)])


def battle(key: str, model_a: str | None, model_b: str | None, *, prompt: str = "p") -> Record:
    return item(key, prompt=prompt, response_a=key, model_a=model_a, model_b=model_b)


def test_battles_are_counted_by_models_outcome_and_winner(store: Store) -> None:
    begun = begin(
        store,
        *(battle(f"x{n}", "x", "y") for n in range(3)),
        battle("back", "y", "x"),
        battle("odd", "\x00\x1a", "y"),
        battle("nameless", None, None),
        battle("pending", "x", "y"),
    )
    for number, kind in enumerate((0, 0, 3, 1, 6, 2), start=1):
        rule(begun, number, kind)
    assert store.columns.battle_counts([begun.run_id]) == [
        BattleCount(None, None, Outcome.TIE, "TIE", 1),
        BattleCount("\x00\x1a", "y", Outcome.INVALID, None, 1),
        BattleCount("x", "y", Outcome.INCONSISTENT, "TIE", 1, flipped=1),
        BattleCount("x", "y", Outcome.WIN, "A", 2),
        BattleCount("y", "x", Outcome.WIN, "B", 1),
    ]
    columns = store.columns.battles([begun.run_id])
    assert columns.models == ("x", "y", "\x00\x1a")
    assert columns.model_a.tolist() == [0, 0, 0, 1, 2, -1]
    assert columns.model_b.tolist() == [1, 1, 1, 0, 1, -1]
    assert columns.outcome.tolist() == [0, 0, 3, 1, 4, 2]
    assert columns.prompt_key.tolist() == [prompt_key("p", None)] * 6
    assert columns.flipped.tolist() == [0, 0, 1, 0, 0, 0]


def test_averaged_orders_that_chose_differently_are_flips(store: Store) -> None:
    chosen: list[tuple[Winner | None, Winner | None]] = [("A", "B"), ("A", "TIE"), ("A", "A")]
    chosen += [(None, None), (None, "A")]
    begun = begin(store, *(battle(f"x{n}", "x", "y") for n in range(len(chosen))))
    for number, (first, second) in enumerate(chosen, start=1):
        facts = decided(Outcome.WIN, "A", 0.6, "logprobs", first, second)
        store.work.write([], [NewVerdict(begun.run_id, number, begun.judge_id, facts)])
    # One order alone, or one that did not speak, has not changed its mind.
    assert store.columns.battles([begun.run_id]).flipped.tolist() == [1, 1, 0, 0, 0]
    assert store.columns.battle_counts([begun.run_id]) == [
        BattleCount("x", "y", Outcome.WIN, "A", 5, flipped=2)
    ]


def test_several_runs_and_judges_are_counted_together_or_one_by_one(store: Store) -> None:
    first = begin(store, battle("a", "x", "y"), battle("b", "x", "y", prompt="q"), name="1")
    other = store.runs.add_judge(NewJudge("other", "other"))
    store.runs.set_judges(first.run_id, [first.judge_id, other])
    second = begin(store, battle("a", "x", "z"), name="2")
    rule(first, 1, 0)
    rule(first, 1, 1, judge_id=other)
    rule(first, 2, 2, judge_id=other)
    rule(second, 1, 3)
    runs = [first.run_id, second.run_id]
    assert [each.verdicts for each in store.columns.battle_counts(runs)] == [1, 1, 1, 1]
    both = store.columns.battles(runs)
    assert both.judges == (first.judge_id, other)
    assert both.judge.tolist() == [0, 1, 1, 0]
    assert both.outcome.tolist() == [0, 1, 2, 3]
    assert both.prompt_key[2] == prompt_key("q", None)
    one = store.columns.battles(runs, judge_ids=[other])
    assert (one.judges, one.outcome.tolist(), one.models) == ((other,), [1, 2], ("x", "y"))
    assert store.columns.battle_counts(runs, judge_ids=[other]) == [
        BattleCount("x", "y", Outcome.TIE, "TIE", 1),
        BattleCount("x", "y", Outcome.WIN, "B", 1),
    ]
    assert store.columns.battle_counts([]) == store.columns.battle_counts(runs, judge_ids=[]) == []
    assert store.columns.battles([]).outcome.tolist() == []


def test_a_split_order_is_told_from_one_that_was_not_asked_or_not_read(store: Store) -> None:
    begun = begin(
        store,
        item("both split"),
        item("one order", swap_positions=False),
        item("unread"),
        item("forbidden tie"),
        item("forbidden tie, one split"),
    )

    def undecided(first: Winner | None, second: Winner | None) -> Failure:
        found = failure([read_pass("original"), read_pass("swapped")])
        orders = PositionConsistency(
            first_pass_winner=first, second_pass_winner=second, consistent=False
        )
        metadata = found.metadata.model_copy(update={"position_consistency": orders})
        return found.model_copy(update={"metadata": metadata})

    unread = failure([read_pass("original"), unread_pass("swapped")])
    asked = decided(Outcome.INCONSISTENT, "TIE", 0.5, "rule", samples=2, passes=2)
    settled: list[Settled] = [asked, asked, unread]
    settled += [undecided("A", "B"), undecided(None, "B")]
    store.work.write(
        [],
        [
            NewVerdict(begun.run_id, number, begun.judge_id, each)
            for number, each in enumerate(settled, start=1)
        ],
    )
    columns = store.columns.outcomes(begun.run_id, begun.judge_id)
    assert columns.outcome.tolist() == [3, 3, 4, 4, 4]
    assert columns.first_winner.tolist() == [-2, -1, -1, 0, -2]
    assert columns.second_winner.tolist() == [-2, -1, -1, 1, 1]
    assert columns.both_orders.tolist() == [1, 0, 1, 1, 1]


def test_outcomes_come_with_all_that_statistics_need(store: Store) -> None:
    begun = begin(
        store,
        item("x", prompt="p", response_a="𝄞é", response_b="\x00", model_a="m", tags=("t", "u")),
        item("y", prompt="p", context="c", response_b="", tags=("t", "u")),
        item("z", prompt="p", response_a=""),
        item("pending"),
    )
    facts = decided(Outcome.INCONSISTENT, "B", None, "none", "A", "B")
    single = decided(Outcome.WIN, "A", 0.25, "stated")
    split = decided(Outcome.TIE, "TIE", 1.0, "votes", None, "TIE", samples=2, passes=4)
    store.work.write(
        [],
        [
            NewVerdict(begun.run_id, number, begun.judge_id, each)
            for number, each in enumerate((facts, single, split), start=1)
        ],
    )
    columns = store.columns.outcomes(begun.run_id, begun.judge_id)
    assert columns.number.tolist() == [1, 2, 3]
    assert columns.outcome.tolist() == [3, 0, 2]
    # The second was not asked in two orders; the third was, and its first order split.
    assert columns.first_winner.tolist() == [0, -1, -2]
    assert columns.second_winner.tolist() == [1, -1, 2]
    assert math.isnan(columns.confidence[0])
    assert columns.confidence.tolist()[1:] == [0.25, 1.0]
    assert columns.length_a.tolist()[::2] == [2, 0]
    assert columns.length_b.tolist()[:2] == [1, 0]
    assert columns.models == ("m",)
    assert columns.model_a.tolist() == [0, -1, -1]
    assert columns.model_b.tolist() == [-1, -1, -1]
    assert [columns.tag_sets[code] for code in columns.tags] == [("t", "u"), ("t", "u"), ()]
    keys = columns.prompt_key
    assert keys[0] == keys[2] == prompt_key("p", None)
    assert keys[1] == prompt_key("p", "c") != keys[0]


def test_columns_are_read_page_by_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.store.columns._PAGE_ITEMS", 2)
    begun = begin(store, *(battle(f"k{n}", "x", f"m{n}") for n in range(1, 8)))
    for number in (1, 2, 5, 7):  # the page of 3 and 4 is empty
        rule(begun, number, 0)
    columns = store.columns.outcomes(begun.run_id, begun.judge_id)
    assert columns.number.tolist() == [1, 2, 5, 7]
    assert columns.models == ("x", "m1", "m2", "m5", "m7")
    assert columns.model_b.tolist() == [1, 2, 3, 4]


def test_an_outcome_that_cannot_be_is_told_and_not_counted_as_another(store: Store) -> None:
    begun = begin(store, item("x"))
    impossible = decided(Outcome.WIN, "TIE", None, "none")
    store.work.write([], [NewVerdict(begun.run_id, 1, begun.judge_id, impossible)])
    with pytest.raises(StoreError, match="outcome 'win' and the winner 'TIE'"):
        store.columns.outcomes(begun.run_id, begun.judge_id)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25
)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["x", "y", "z", None]),
            st.sampled_from(["x", "y", "z", None]),
            st.none() | st.integers(0, len(KINDS) - 1),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_counts_columns_and_tally_agree(
    store: Store, rows: list[tuple[str | None, str | None, int | None]]
) -> None:
    number = next(_numbers)
    begun = begin(
        store,
        *(battle(f"k{n}", a, b) for n, (a, b, _) in enumerate(rows)),
        name=f"run {number}",
        judge=f"judge {number}",
    )
    expected: Counter[tuple[str | None, str | None, int]] = Counter()
    for place, (model_a, model_b, kind) in enumerate(rows, start=1):
        if kind is not None:
            rule(begun, place, kind)
            expected[model_a, model_b, KINDS[kind][2]] += 1

    code_of = {(outcome, winner): code for outcome, winner, code in KINDS}
    counted: Counter[tuple[str | None, str | None, int]] = Counter()
    for each in store.columns.battle_counts([begun.run_id]):
        counted[each.model_a, each.model_b, code_of[each.outcome, each.winner]] += each.verdicts
    assert counted == expected

    columns = store.columns.battles([begun.run_id])
    names = (*columns.models, None)  # -1 is the last
    triples = zip(columns.model_a, columns.model_b, columns.outcome, strict=True)
    assert Counter((names[a], names[b], code) for a, b, code in triples) == expected

    outcomes = Counter(store.columns.outcomes(begun.run_id, begun.judge_id).outcome)
    tally = store.verdicts.tally(begun.run_id)
    assert [outcomes[code] for code in range(5)] == [
        *(tally.wins_a, tally.wins_b, tally.ties, tally.inconsistent, tally.invalid),
    ]
    assert sum(outcomes.values()) == tally.judged
