"""Asking where it matters: what is chosen, when it stops, and what it refuses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.ranking.adaptive import PairCounts, choose_pairs, count_pairs, know_strengths
from naive_ranking import all_pairs, half_point_tables, played_league
from parts import examples

Floats = NDArray[np.float64]
NAMES = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu")


def league(scores: Any, *, unasked: Any = 100, **more: Any) -> PairCounts:
    table = np.array(scores, dtype=float)
    models = len(table)
    room = all_pairs(models, count=unasked) if isinstance(unasked, int) else unasked
    return count_pairs(NAMES[:models], table, unasked=room, **more)


@st.composite
def leagues(draw: st.DrawFn) -> PairCounts:
    scores, ties = draw(half_point_tables())
    models = len(scores)
    tables = []
    for most in (3, 5):
        table = np.zeros((models, models), dtype=np.int64)
        for i in range(models):
            for j in range(i + 1, models):
                table[i, j] = table[j, i] = draw(st.integers(0, most))
        tables.append(table)
    known = ties if draw(st.booleans()) else None
    return count_pairs(NAMES[:models], scores, unasked=tables[0], in_flight=tables[1], ties=known)


@settings(max_examples=examples(60))
@given(leagues(), st.integers(1, 40), st.integers(0, 600), st.integers(0, 9))
def test_choice_never_exceeds_batch_budget_or_what_is_unasked(
    counts: PairCounts, batch: int, budget: int, seed: int
) -> None:
    choice = choose_pairs(counts, batch=batch, budget=budget, seed=seed)
    known = counts.completed + counts.waiting
    assert len(choice.pairs) == max(0, min(batch, budget - known, counts.open))
    place = {name: index for index, name in enumerate(counts.models)}
    for (a, b), number in Counter(choice.pairs).items():
        assert place[a] < place[b]
        assert number <= counts.unasked[place[a], place[b]]
    assert (choice.stop is None) == bool(choice.pairs)
    assert (choice.reason is None) == bool(choice.pairs)


@settings(max_examples=examples(40))
@given(leagues(), st.integers(1, 30), st.integers(0, 9), st.randoms(use_true_random=False))
def test_choice_does_not_hang_on_the_order_of_the_models(
    counts: PairCounts, batch: int, seed: int, random: Any
) -> None:
    order = list(range(len(counts.models)))
    random.shuffle(order)
    there = choose_pairs(counts, batch=batch, seed=seed)
    here = choose_pairs(counts.reordered(np.array(order)), batch=batch, seed=seed)
    assert [frozenset(pair) for pair in here.pairs] == [frozenset(pair) for pair in there.pairs]
    assert here.certainty == there.certainty


@settings(max_examples=examples(30))
@given(leagues(), st.integers(1, 30), st.integers(0, 9))
def test_same_counts_and_seed_give_the_same_choice(
    counts: PairCounts, batch: int, seed: int
) -> None:
    again = counts.reordered(np.arange(len(counts.models)))
    assert choose_pairs(counts, batch=batch, seed=seed) == choose_pairs(
        again, batch=batch, seed=seed
    )


def test_renamed_models_are_chosen_by_their_results_and_not_by_their_names() -> None:
    scores = played_league(6, games=400)
    choice = choose_pairs(league(scores), batch=40)
    others = tuple(name.upper() for name in NAMES[:6])
    renamed = count_pairs(others, scores, unasked=all_pairs(6, count=100))
    upper = choose_pairs(renamed, batch=40)
    assert [(a.upper(), b.upper()) for a, b in choice.pairs] == list(upper.pairs)


def test_first_batch_joins_all_models() -> None:
    choice = choose_pairs(league(np.zeros((7, 7))), batch=10)
    assert choice.linking == 6
    assert {name for pair in choice.pairs[:6] for name in pair} == set(NAMES)


def test_seed_decides_between_equals() -> None:
    firsts = {choose_pairs(league(np.zeros((7, 7))), batch=1, seed=s).pairs[0] for s in range(20)}
    assert len(firsts) > 5


def test_models_never_asked_are_joined_first_and_have_no_certainty() -> None:
    scores = np.zeros((4, 4))
    scores[0, 1], scores[1, 0] = 8, 2
    choice = choose_pairs(league(scores), batch=3)
    assert choice.linking == 2
    assert {"cat", "dog"} <= {name for pair in choice.pairs[:2] for name in pair}
    # Both have strength 0 and lie between the other two, next to each other.
    assert choice.certainty.models == ("ant", "cat", "dog", "bee") or (
        choice.certainty.models == ("ant", "dog", "cat", "bee")
    )
    assert choice.certainty.neighbours[1] == pytest.approx(0.5)


def test_links_in_flight_are_not_asked_again() -> None:
    in_flight = all_pairs(3, count=0)
    in_flight[0, 1] = in_flight[1, 0] = 1
    in_flight[1, 2] = in_flight[2, 1] = 1
    assert choose_pairs(league(np.zeros((3, 3)), in_flight=in_flight), batch=3).linking == 0


def test_unbeaten_model_keeps_finite_numbers() -> None:
    choice = choose_pairs(league([[0, 50, 50], [0, 0, 20], [0, 30, 0]]), batch=5)
    assert choice.certainty.models[0] == "ant"
    assert np.isfinite(choice.certainty.log_odds).all()
    assert choice.certainty.neighbours[0] < 1.0


def test_two_models_have_one_pair_to_ask() -> None:
    choice = choose_pairs(league(np.zeros((2, 2))), batch=3)
    assert choice.pairs == (("ant", "bee"),) * 3


def test_all_ties_never_become_certain() -> None:
    ties = all_pairs(3, count=500)
    counts = league(ties / 2, ties=ties)
    choice = choose_pairs(counts, batch=4, certain_at=0.5)
    assert choice.stop is None
    assert choice.certainty.expected_tau == pytest.approx(0.0, abs=1e-6)
    assert know_strengths(counts).dispersion[0] < 0.1


def test_ties_make_the_same_score_surer_than_coin_tosses_would() -> None:
    scores = np.array([[0.0, 60.0], [40.0, 0.0]])
    ties = np.array([[0, 60], [60, 0]])
    tossed = choose_pairs(league(scores), batch=1).certainty
    tied = choose_pairs(league(scores, ties=ties), batch=1).certainty
    assert tied.expected_tau > tossed.expected_tau


def test_stops_once_the_order_is_sure() -> None:
    # 80 to 20: gaps of ln 4 = 1.39 with deviations of at most √(1 / (100 · 0.8 · 0.2)) = 1/4.
    sure = choose_pairs(league([[0, 80, 94], [20, 0, 80], [6, 20, 0]]), batch=2, certain_at=0.95)
    assert (sure.stop, sure.pairs) == ("certain", ())
    assert sure.reason is not None
    assert sure.reason.endswith("; 0.95 was requested")
    # 6 to 4: a gap of ln 1.5 = 0.41, less than one deviation.
    unsure = choose_pairs(league([[0, 6, 6], [4, 0, 6], [4, 4, 0]]), batch=2, certain_at=0.95)
    assert unsure.stop is None
    assert len(unsure.pairs) == 2


def test_budget_of_nothing_asks_nothing() -> None:
    choice = choose_pairs(league(np.zeros((3, 3))), batch=5, budget=0)
    assert (choice.pairs, choice.stop) == ((), "budget")
    assert choice.reason == "all 0 pairs of the budget are used"


def test_pairs_without_a_verdict_count_towards_the_budget() -> None:
    counts = league([[0, 3], [2, 0]])
    assert len(choose_pairs(counts, batch=9, budget=10).pairs) == 5
    assert len(choose_pairs(counts, batch=9, budget=10, asked=8).pairs) == 2


def test_exhausted_pairs_leave_the_others() -> None:
    room = all_pairs(3, count=4)
    room[0, 1] = room[1, 0] = 0
    choice = choose_pairs(league([[0, 5, 9], [5, 0, 9], [1, 1, 0]], unasked=room), batch=99)
    assert Counter(choice.pairs) == {("ant", "cat"): 4, ("bee", "cat"): 4}


def test_everything_exhausted_says_so() -> None:
    choice = choose_pairs(league([[0, 5], [5, 0]], unasked=0), batch=9)
    assert (choice.pairs, choice.stop) == ((), "exhausted")
    assert choice.reason == "no pair is left after 10"


def test_groups_that_cannot_be_joined_are_still_asked_within() -> None:
    room = all_pairs(4, count=0)
    for first, second in ((0, 1), (2, 3)):
        room[first, second] = room[second, first] = 9
    choice = choose_pairs(league(np.zeros((4, 4)), unasked=room), batch=6)
    assert set(choice.pairs) == {("ant", "bee"), ("cat", "dog")}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 0}, "batch is 0; give at least 1"),
        ({"budget": -1}, "budget is -1; give at least 0"),
        (
            {"asked": 4},
            "asked is 4, but 10 pairs are completed or in flight; count all that were sent",
        ),
        ({"certain_at": 1.0}, "certainty is 1.0; give a share between 0 and 1"),
        ({"certain_at": float("nan")}, "certainty is nan; give a share"),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        choose_pairs(league([[0, 5], [5, 0]]), **{"batch": 1, **change})
    assert caught.value.message.startswith(message)
