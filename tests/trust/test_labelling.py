"""A person's way through a run: which pairs, which sides, undoing, and going on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.contract import Order
from evenhand.data.votes import DrawnRow
from evenhand.errors import DataError
from evenhand.store import NewJudge, NewVote, Store
from evenhand.trust.labelling import (
    Choice,
    Labelling,
    PairSelection,
    begin_drawn,
    begin_labelling,
    winner_of,
)
from parts import examples
from store_values import Begun, begin, item, read_pass, win
from stored_runs import ROWS, Row, make_run, says

CHOICES: tuple[Choice, ...] = ("first", "second", "tie", "skip")


def many(store: Store, count: int = 20, name: str = "run") -> Begun:
    return begin(
        store,
        *(item(str(n), row=n, response_a=f"a{n}", response_b=f"b{n}") for n in range(count)),
        name=name,
    )


def numbers(labelling: Labelling) -> list[int]:
    return [asked.number for asked in labelling.queue]


def stored(store: Store, run_id: int, who: str = "Ann") -> dict[str, str | None]:
    return {key: vote.verdict for _, key, vote in store.votes.each(run_id) if vote.who == who}


def test_a_choice_is_mapped_back_from_the_shown_sides() -> None:
    assert [winner_of(choice, "original") for choice in CHOICES] == ["A", "B", "TIE", None]
    assert [winner_of(choice, "swapped") for choice in CHOICES] == ["B", "A", "TIE", None]


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(-5, 2**70),
    who=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
        lambda name: bool(name.strip())
    ),
    choices=st.lists(st.sampled_from(CHOICES), min_size=4, max_size=4),
)
def test_whatever_is_shown_first_the_vote_is_for_the_response_that_was_chosen(
    store: Store, seed: int, who: str, choices: list[Choice]
) -> None:
    name = f"run {len(store.runs.all())}"
    begun = begin(
        store,
        *(
            item(f"{name} {n}", row=n, response_a=f"the a of {n}", response_b=f"the b of {n}")
            for n in range(4)
        ),
        name=name,
    )
    labelling = begin_labelling(store, begun.run_id, who, seed=seed)
    expected = {}
    for choice in choices:
        asked = labelling.next()
        assert asked is not None
        shown = labelling.pair(asked)
        liked = {"first": shown.response_a, "second": shown.response_b}.get(choice)
        letter = None if liked is None else liked.split()[1].upper()
        expected[shown.id] = {"tie": "TIE", "skip": None}.get(choice, letter)
        labelling.vote(asked, choice)
    assert labelling.next() is None
    assert stored(store, begun.run_id, who) == expected


def test_order_and_sides_are_random_and_named_by_the_seed(store: Store) -> None:
    begun = many(store)
    first = begin_labelling(store, begun.run_id, "Ann")
    assert sorted(numbers(first)) == list(range(1, 21))
    assert numbers(first) != sorted(numbers(first))
    assert first.queue == begin_labelling(store, begun.run_id, "Ann").queue
    other = begin_labelling(store, begun.run_id, "Ann", seed=1)
    assert numbers(other) != numbers(first)
    # Everybody is asked about the same pairs first, each with sides of their own.
    bobs = begin_labelling(store, begun.run_id, "Bob")
    assert numbers(bobs) == numbers(first)
    sides: list[list[Order]] = [[asked.order for asked in each.queue] for each in (first, bobs)]
    assert sides[0] != sides[1]
    for own in sides:
        assert {"original", "swapped"} == set(own)


def test_what_is_voted_is_stored_at_once_and_another_sitting_goes_on(store: Store) -> None:
    begun = many(store)
    labelling = begin_labelling(store, begun.run_id, "Ann", number=3)
    first = labelling.next()
    assert first is not None
    labelling.vote(first, "skip")
    assert list(stored(store, begun.run_id).values()) == [None]
    again = begin_labelling(store, begun.run_id, "Ann", number=3)
    assert again.queue == labelling.queue
    assert again.voted == 1
    assert again.next() == labelling.queue[1]
    for _ in range(2):
        asked = again.next()
        assert asked is not None
        again.vote(asked, "first")
    assert again.next() is None
    assert begin_labelling(store, begun.run_id, "Ann", number=3).next() is None
    assert begin_labelling(store, begun.run_id, "Ann", number=4).next() is not None


def test_undo_takes_back_the_last_vote_also_of_an_earlier_sitting(store: Store) -> None:
    begun = many(store, 3)
    labelling = begin_labelling(store, begun.run_id, "Ann")
    assert labelling.undo() is False
    for _ in range(2):
        asked = labelling.next()
        assert asked is not None
        labelling.vote(asked, "tie")
    again = begin_labelling(store, begun.run_id, "Ann")
    assert again.next() == again.queue[2]
    assert again.undo() is True
    assert again.next() == again.queue[1]
    assert again.undo() is True
    assert again.undo() is False
    assert again.next() == again.queue[0]
    assert stored(store, begun.run_id) == {}


def test_a_vote_says_how_the_pair_was_drawn_and_shown(store: Store) -> None:
    begun = many(store, 2)
    drawn: tuple[tuple[str, PairSelection], ...] = (("Ann", "random"), ("Bob", "unlabelled"))
    for who, only in drawn:
        labelling = begin_labelling(store, begun.run_id, who, only=only, number=1)
        asked = labelling.next()
        assert asked is not None
        labelling.vote(asked, "first")
        vote = next(row.vote for row in store.votes.each(begun.run_id) if row.vote.who == who)
        assert (vote.origin, vote.shown_order) == ("terminal", asked.order)
        assert vote.draw == ("random" if only == "random" else "chosen")


def drawn(*pairs: str, **more: Any) -> list[DrawnRow]:
    about: dict[str, Any] = {"draw": "weighted", "chance": 0.25, "origin": None} | more
    return [DrawnRow(pair=pair, row=row, **about) for row, pair in enumerate(pairs, 1)]


def test_a_draw_is_asked_from_its_top_and_voted_with_its_chance(store: Store) -> None:
    begun = many(store, 5)
    labelling = begin_drawn(store, begun.run_id, "Ann", rows=drawn("3", "0", "4", "0"), number=2)
    by_number = {each.number: each.key for each in store.items.all(begun.run_id)}
    assert [by_number[number] for number in numbers(labelling)] == ["3", "0"]
    asked = labelling.next()
    assert asked is not None
    labelling.vote(asked, "tie")
    (vote,) = (each.vote for each in store.votes.each(begun.run_id))
    assert (vote.verdict, vote.draw, vote.chance) == ("TIE", "weighted", 0.25)
    assert (vote.origin, vote.shown_order) == ("terminal", asked.order)
    again = begin_drawn(store, begun.run_id, "Ann", rows=drawn("3", "0"))
    assert (again.voted, again.next()) == (1, labelling.queue[1])


def test_a_vote_on_a_chosen_pair_is_asked_for_again_by_a_draw(store: Store) -> None:
    begun = many(store, 4)
    by_key = {each.key: each.pair_id for each in store.items.all(begun.run_id)}
    store.votes.add(
        [
            NewVote(by_key["0"], "Ann", "A", draw="chosen"),
            NewVote(by_key["1"], "Ann", "A", draw="random"),
            NewVote(by_key["2"], "Ann", "A", draw="random", origin="escalation"),
        ]
    )
    labelling = begin_drawn(store, begun.run_id, "Ann", rows=drawn("0", "1", "2", "3"))
    assert labelling.voted == 1
    while (asked := labelling.next()) is not None:
        labelling.vote(asked, "first")
    votes = {key: vote for _, key, vote in store.votes.each(begun.run_id)}
    assert {key: vote.draw for key, vote in votes.items()} == {
        "0": "weighted",
        "1": "random",
        "2": "weighted",
        "3": "weighted",
    }
    assert votes["2"].origin == "terminal"


def test_what_was_left_for_people_stays_an_escalation(store: Store) -> None:
    begun = many(store, 2)
    rows = drawn("1", draw=None, chance=None, origin="escalation")
    labelling = begin_drawn(store, begun.run_id, "Ann", rows=rows)
    asked = labelling.next()
    assert asked is not None
    labelling.vote(asked, "first")
    (vote,) = (each.vote for each in store.votes.each(begun.run_id))
    assert (vote.origin, vote.draw, vote.chance) == ("escalation", None, None)


def test_a_draw_of_another_run_is_refused(store: Store) -> None:
    begun = many(store, 2)
    with pytest.raises(DataError, match="row 2 names pair 'moon', which is not in the run"):
        begin_drawn(store, begun.run_id, "Ann", rows=drawn("0", "moon"))


def keys_of(store: Store, run_id: int, who: str, only: PairSelection) -> list[str]:
    by_number = {each.number: each.key for each in store.items.all(run_id)}
    labelling = begin_labelling(store, run_id, who, only=only)
    return sorted(by_number[asked.number] for asked in labelling.queue)


def test_pairs_are_chosen_by_what_judges_and_people_said(store: Store) -> None:
    rows = (
        *ROWS,
        Row("q9", says("A"), label="B"),
    )
    run_id = make_run(store, "run", rows)
    by_key = {each.key: each.pair_id for each in store.items.all(run_id)}
    # q2: the judge says A, and Bob and Eve that it is B. q3: the judge and Bob say B.
    store.votes.add(
        [
            NewVote(by_key["q2"], "Bob", "B"),
            NewVote(by_key["q2"], "Eve", "B"),
            NewVote(by_key["q3"], "Bob", "B"),
            NewVote(by_key["q4"], "Bob", None),
        ]
    )
    assert keys_of(store, run_id, "Ann", "inconsistent") == ["q5"]
    assert keys_of(store, run_id, "Ann", "disagreements") == ["q2", "q9"]
    assert keys_of(store, run_id, "Ann", "unlabelled") == ["q4", "q5", "q6", "q7", "q8"]
    # Their own votes do not change which pairs are theirs to vote on.
    assert keys_of(store, run_id, "Bob", "unlabelled") == ["q3", "q4", "q5", "q6", "q7", "q8"]
    assert keys_of(store, run_id, "Bob", "disagreements") == ["q2", "q9"]


def test_judges_that_differ_disagree(store: Store) -> None:
    begun = begin(store, item("x"), item("y", row=2))
    begun.judge_all("A")
    second = begun.store.runs.add_judge(NewJudge("second", "second"))
    store.runs.set_judges(begun.run_id, [begun.judge_id, second])
    begun_by_second = Begun(store, begun.run_id, second, "run")
    first, other = begun_by_second.work()
    begun_by_second.write(first, made := [read_pass("original", "B")], win("B", made))
    begun_by_second.write(other, made := [read_pass("original", "A")], win("A", made))
    assert keys_of(store, begun.run_id, "Ann", "disagreements") == ["x"]


def test_rows_of_one_pair_are_asked_once(store: Store) -> None:
    same: dict[str, Any] = {"prompt": "p", "response_a": "one", "response_b": "two"}
    begun = begin(store, item("x", **same), item("y", row=2, **same), item("z", row=3))
    assert len(begin_labelling(store, begun.run_id, "Ann").queue) == 2
