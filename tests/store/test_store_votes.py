"""Votes of people: one a person and pair, kept with the pair, and nothing lost on the way."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.contract import Winner
from evenhand.errors import InputError
from evenhand.report.votes import item_votes
from evenhand.store import (
    DRAWS,
    ORIGINS,
    AddedVotes,
    ItemVote,
    NewVote,
    RunState,
    Store,
    VoteColumns,
)
from evenhand.store.records import is_picked
from evenhand.store.verdict_filter import VerdictFilter
from parts import examples
from store_values import Begun, begin, item, texts

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def pair_id(begun: Begun, number: int = 1) -> int:
    return begun.store.items.all(begun.run_id)[number - 1].pair_id


def votes_of(begun: Begun) -> list[tuple[str, str, str | None]]:
    return [(key, vote.who, vote.verdict) for _, key, vote in begun.store.votes.each(begun.run_id)]


def test_a_vote_comes_back_as_it_was_given(store: Store) -> None:
    begun = begin(store, item("x"))
    own = pair_id(begun)
    given_vote = NewVote(
        own, "\x00Ann 𝄞", "B", "page", "weighted", 0.25, "swapped", NOON, "it adds\x1a up"
    )
    assert store.votes.add([given_vote]) == (1, 0, 0)
    ((number, key, vote),) = store.votes.each(begun.run_id)
    assert (number, key) == (1, "x")
    assert (vote.pair_id, vote.who, vote.verdict) == (own, "\x00Ann 𝄞", "B")
    assert (vote.origin, vote.draw, vote.chance) == ("page", "weighted", 0.25)
    assert (vote.shown_order, vote.at, vote.comment) == ("swapped", NOON, "it adds\x1a up")


def test_a_bare_vote_is_imported_now_and_nobody_knows_how_it_was_drawn(store: Store) -> None:
    begun = begin(store, item("x"))
    before = datetime.now(UTC)
    store.votes.add([NewVote(pair_id(begun), "Ann", None)])
    ((_, _, vote),) = store.votes.each(begun.run_id)
    assert (vote.verdict, vote.origin, vote.draw, vote.chance) == (None, "import", None, None)
    assert before - timedelta(seconds=1) <= vote.at <= datetime.now(UTC)


def test_a_later_vote_replaces_and_the_earlier_is_kept_aside(store: Store) -> None:
    begun = begin(store, item("x"))
    own = pair_id(begun)
    first = NewVote(own, "Ann", "A", "terminal", "random", None, "original", NOON, "clear")
    store.votes.add([first])
    later = NOON + timedelta(hours=1)
    assert store.votes.add([NewVote(own, "Ann", "TIE", at=later)]) == (0, 1, 0)
    ((_, _, vote),) = store.votes.each(begun.run_id)
    assert (vote.verdict, vote.at) == ("TIE", later)
    # How the pair came to be voted on stays true; why A was better does not.
    assert (vote.origin, vote.draw, vote.comment, vote.shown_order) == (
        "terminal",
        "random",
        None,
        None,
    )
    (earlier,) = store.votes.replaced(own, "Ann")
    assert (earlier.verdict, earlier.comment, earlier.at) == ("A", "clear", NOON)
    assert store.votes.replaced(own, "Bob") == []


def test_of_two_votes_at_once_the_later_in_line_holds(store: Store) -> None:
    begun = begin(store, item("x"))
    own = pair_id(begun)
    verdicts: list[Winner | None] = ["A", "B", "B", None]
    added = store.votes.add([NewVote(own, "Ann", verdict) for verdict in verdicts])
    assert added == AddedVotes(new=1, replaced=2, unchanged=1)
    assert votes_of(begun) == [("x", "Ann", None)]
    assert [vote.verdict for vote in store.votes.replaced(own, "Ann")] == ["A", "B"]


def test_what_is_said_anew_of_the_same_verdict_is_added_to_it(store: Store) -> None:
    begun = begin(store, item("x"))
    own = pair_id(begun)
    store.votes.add([NewVote(own, "Ann", "A", "escalation", at=NOON, comment="clear")])
    assert store.votes.add([NewVote(own, "Ann", "A")]) == (0, 0, 1)
    assert store.votes.add([NewVote(own, "Ann", "A", chance=0.5, at=NOON)]) == (0, 1, 0)
    ((_, _, vote),) = store.votes.each(begun.run_id)
    assert (vote.origin, vote.chance, vote.comment, vote.at) == ("escalation", 0.5, "clear", NOON)


def test_a_withdrawn_vote_is_gone_but_not_forgotten(store: Store) -> None:
    begun = begin(store, item("x"))
    own = pair_id(begun)
    store.votes.add([NewVote(own, "Ann", "A"), NewVote(own, "Bob", "B")])
    assert store.votes.withdraw(own, "Ann") is True
    assert store.votes.withdraw(own, "Ann") is False
    assert votes_of(begun) == [("x", "Bob", "B")]
    assert [vote.verdict for vote in store.votes.replaced(own, "Ann")] == ["A"]


def test_votes_serve_every_run_that_has_the_pair_and_every_row_that_is_it(store: Store) -> None:
    first = begin(store, item("x"), name="first")
    # The same content under two other ids, and a mirrored pair, which is another pair.
    same: dict[str, Any] = {"prompt": "prompt of x"}
    pair = store.items.pair(first.run_id, 1)
    assert pair is not None
    mirror = {"response_a": pair.response_b, "response_b": pair.response_a}
    second = begin(
        store,
        item("y", **same),
        item("z", row=2, **same),
        item("m", row=3, **same, **mirror),
        name="second",
    )
    store.votes.add([NewVote(pair_id(first), "Ann", "A")])
    columns = store.votes.columns(second.run_id)
    assert list(columns.number) == [1, 2]
    assert set(columns.pair_id) == {pair_id(first)}
    assert votes_of(second) == [("y", "Ann", "A")]  # one vote, however many rows


def test_columns_have_codes_for_all_that_votes_say(store: Store) -> None:
    begun = begin(store, item("x", label="TIE"), item("y", row=2))
    first, second = (each.pair_id for each in store.items.all(begun.run_id))
    store.votes.add(
        [
            NewVote(first, "Ann", "A", "terminal", "random"),
            NewVote(first, "Bob\x00", "B", "escalation", "chosen"),
            NewVote(second, "Ann", "TIE", None, "weighted", 0.125),
            NewVote(second, "Bob\x00", None),
        ]
    )
    columns = store.votes.columns(begun.run_id)
    assert columns.people == ("Ann", "Bob\x00")
    assert list(columns.number) == [1, 1, 2, 2]
    assert list(columns.who) == [0, 1, 0, 1]
    assert list(columns.verdict) == [0, 1, 2, -1]
    assert list(columns.label) == [2, 2, -1, -1]
    assert [ORIGINS[code] for code in columns.origin] == [
        "terminal",
        "escalation",
        "import",
        "import",
    ]
    assert [None if code < 0 else DRAWS[code] for code in columns.draw] == [
        "random",
        "chosen",
        "weighted",
        None,
    ]
    assert columns.chance[2] == 0.125
    assert all(math.isnan(columns.chance[row]) for row in (0, 1, 3))


def test_a_run_without_votes_has_empty_columns(store: Store) -> None:
    begun = begin(store, item("x"))
    assert store.votes.columns(begun.run_id) == VoteColumns(())
    assert store.items.pair(begun.run_id, 2) is None


def test_pages_of_votes_leave_none_out(store: Store) -> None:
    begun = begin(store, *(item(str(n), row=n) for n in range(1, 5)))
    people = ("Ann", "Bob", "ann", "Éva")
    store.votes.add(
        [
            NewVote(each.pair_id, who, "A")
            for each in store.items.all(begun.run_id)
            for who in people
        ]
    )
    seen: list[ItemVote] = []
    after = (0, "")
    while page := store.votes.page(begun.run_id, after=after, limit=3):
        seen += page
        after = page[-1].number, page[-1].vote.who
    assert len(seen) == 16
    assert {(each.key, each.vote.who) for each in seen} == {
        (str(n), who) for n in range(1, 5) for who in people
    }
    assert seen == list(store.votes.each(begun.run_id))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"who": " "}, "who has 1 characters; give 1 to 200"),
        ({"who": "x" * 201}, "who has 201 characters"),
        (
            {"chance": 0.0},
            ("chance is 0.0; give the probability of being drawn, above 0 and at most 1"),
        ),
        ({"chance": math.nan}, "chance is nan"),
        ({"who": "ann\udcff"}, "which is not valid text"),
        ({"comment": "\ud800"}, "comment is"),
    ],
)
def test_a_vote_that_cannot_be_leaves_the_others_unstored_too(
    store: Store, wrong: dict[str, Any], said: str
) -> None:
    begun = begin(store, item("x"))
    own = pair_id(begun)
    bad = replace(NewVote(own, "Bob", "A"), **wrong)
    with pytest.raises(InputError, match=said):
        store.votes.add([NewVote(own, "Ann", "A"), bad])
    assert votes_of(begun) == []


def test_deleting_a_run_keeps_votes_and_what_they_are_about(store: Store) -> None:
    begun = begin(store, item("x"), item("y", row=2))
    own = pair_id(begun)
    store.votes.add([NewVote(own, "Ann", "A"), NewVote(own, "Ann", "B")])
    assert store.deletion.votes_to_go(begun.run_id) == 1
    store.deletion.delete("run")
    again = begin(store, item("y"), item("x", row=2), name="again")
    assert votes_of(again) == [("x", "Ann", "B")]
    assert [vote.verdict for vote in store.votes.replaced(pair_id(again, 2), "Ann")] == ["A"]


def test_votes_go_with_a_run_where_that_is_asked_for_unless_another_run_has_the_pair(
    store: Store,
) -> None:
    first = begin(store, item("shared"), item("own", row=2), name="first")
    second = begin(store, item("shared"), name="second")
    store.votes.add([NewVote(each.pair_id, "Ann", "A") for each in store.items.all(first.run_id)])
    assert (
        store.deletion.votes_to_go(first.run_id),
        store.deletion.votes_to_go(second.run_id),
    ) == (1, 0)
    store.deletion.delete("first", with_votes=True)
    assert votes_of(second) == [("shared", "Ann", "A")]
    again = begin(store, item("own"), name="again")
    assert votes_of(again) == []


_votes = st.builds(
    NewVote,
    pair_id=st.integers(0, 2),  # places, replaced by ids below
    who=st.sampled_from(["Ann", "Bob"]) | texts.filter(lambda name: bool(name.strip())),
    verdict=st.sampled_from(["A", "B", "TIE", None]),
    origin=st.sampled_from([None, *ORIGINS]),
    draw=st.sampled_from([None, *DRAWS]),
    chance=st.none() | st.floats(0, 1, exclude_min=True),
    shown_order=st.sampled_from([None, "original", "swapped"]),
    at=st.none() | st.datetimes(datetime(1971, 1, 1), timezones=st.just(UTC)),
    comment=st.none() | texts,
)


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(new=st.lists(_votes, max_size=8))
def test_storing_the_last_words_again_changes_nothing(store: Store, new: list[NewVote]) -> None:
    """Whatever was there: each person's last word on each pair is what is stored."""
    name = f"run {len(store.runs.all())}"
    begun = begin(store, *(item(f"{name} {n}", row=n) for n in range(3)), name=name)
    ids = [each.pair_id for each in store.items.all(begun.run_id)]
    placed = [replace(vote, pair_id=ids[vote.pair_id]) for vote in new]
    last = {(vote.pair_id, vote.who): vote for vote in placed}
    added = store.votes.add(placed)
    assert added.new == len(last)
    assert sum(added) == len(placed)
    stored = list(store.votes.each(begun.run_id))
    assert {(row.vote.pair_id, row.vote.who): row.vote.verdict for row in stored} == {
        key: vote.verdict for key, vote in last.items()
    }
    assert store.votes.add(list(last.values())) == (0, 0, len(last))
    assert list(store.votes.each(begun.run_id)) == stored


def test_the_votes_on_one_item_are_read_alone(store: Store) -> None:
    begun = begin(store, item("x"), item("y"))
    first, second = begun.work()
    store.votes.add([NewVote(each.pair_id, who, "A") for each in (first, second) for who in "ba"])
    found = store.votes.on_item(begun.run_id, second.number)
    assert [(each.number, each.key, each.vote.who) for each in found] == [
        (2, "y", "a"),
        (2, "y", "b"),
    ]
    assert len(store.votes.on_item(begun.run_id, 1, limit=1)) == 1
    assert store.votes.on_item(begun.run_id, 9) == []


def test_a_pair_is_one_label_however_often_it_is_judged_and_voted_on(store: Store) -> None:
    def judged(
        name: str, said: Winner, label: Winner | None = None, state: RunState = "finished"
    ) -> int:
        begun = begin(store, item("x", label=label), item("y", label=label), name=name)
        begun.judge_all(said)
        store.runs.update(begun.run_id, state=state)
        return begun.judge_id

    judge = judged("first", "A", "A")
    judged("second", "A", "A")
    assert store.votes.right_and_wrong([judge]) == (2, 0)  # and not 4
    judged("third", "B", "A")
    assert store.votes.right_and_wrong([judge]) == (2, 0)  # by most of its verdicts
    judged("fourth", "B", "A")
    assert store.votes.right_and_wrong([judge]) == (0, 0)  # equally divided
    goes_on = judged("fifth", "B", "A", "judging")
    assert store.votes.right_and_wrong([goes_on]) == (0, 0)
    assert store.votes.right_and_wrong([goes_on], [5]) == (0, 2)


def test_most_votes_are_one_label_and_give_way_to_that_of_the_data(store: Store) -> None:
    begun = begin(store, item("x"), item("y"))
    begun.judge_all("A")
    x, y = (each.pair_id for each in store.items.all(begun.run_id))
    said: list[tuple[int, Winner]] = [(x, "A"), (x, "A"), (x, "B"), (y, "A"), (y, "B")]
    store.votes.add([NewVote(pair, f"p{n}", winner) for n, (pair, winner) in enumerate(said)])
    # Of y nobody has the majority.
    assert store.votes.right_and_wrong([begun.judge_id], [begun.run_id]) == (1, 0)
    other = begin(store, item("x", label="B"), name="labelled")
    other.judge_all("A")
    assert store.votes.right_and_wrong([begun.judge_id], [begun.run_id, other.run_id]) == (0, 1)


def test_every_reader_counts_the_same_votes_as_labels(store: Store) -> None:
    """Not those of people who skipped, nor on pairs that were picked; a standing counts only
    those whose draw is known."""
    kinds = [(v, o, d) for v in (None, "A") for o in ORIGINS for d in (None, *DRAWS)]
    begun = begin(store, *(item(str(place)) for place in range(len(kinds))))
    begun.judge_all("A")
    pairs = [each.pair_id for each in store.items.all(begun.run_id)]
    given = zip(pairs, kinds, strict=True)
    store.votes.add([NewVote(pair, "Ann", v, origin=o, draw=d) for pair, (v, o, d) in given])  # type: ignore[arg-type]
    labels = [v is not None and not is_picked(o, d) for v, o, d in kinds]
    # Of A alone: three origins that are not escalated, each drawn at random, by chances or unknown.
    assert sum(labels) == 3 * 3
    assert store.votes.right_and_wrong([begun.judge_id], [begun.run_id]) == (9, 0)
    counted = VerdictFilter(label="any", count_votes=True)
    page = store.table.browse(begun.run_id, counted, limit=100)
    expected = [number for number, label in enumerate(labels, start=1) if label]
    assert [row.number for row in page.rows] == expected
    standings = {each.pair_id: each.labels for each in store.votes.standings(pairs, "Bob")}
    drawn = [label and d is not None for label, (_, _, d) in zip(labels, kinds, strict=True)]
    assert [standings[pair] for pair in pairs] == [int(each) for each in drawn]
    votes = item_votes(store, begun.run_id, np.arange(1, len(kinds) + 1))
    assert np.flatnonzero(votes.decided & ~votes.picked).tolist() == [n - 1 for n in expected]
