"""Votes as arrays and summaries: the majority by arithmetic, agreement by counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysed import analysis_of
from evenhand.analyses.registry import VOTES
from evenhand.analyses.votes import sum_up_votes
from evenhand.contract import Winner
from evenhand.errors import InputError
from evenhand.report.votes import item_votes, majority_labels, votes_on
from evenhand.store import DRAWS, ORIGINS, NewVote, Store, VoteColumns
from store_values import Begun, begin, item

CODES: dict[Winner, int] = {"A": 0, "B": 1, "TIE": 2}
Said = dict[str, Winner | None]


def vote(begun: Begun, *said: Said) -> None:
    """What each person said of each item, in the items' order."""
    items = begun.store.items.all(begun.run_id)
    begun.store.votes.add(
        [
            NewVote(own.pair_id, who, verdict)
            for own, votes in zip(items, said, strict=False)
            for who, verdict in votes.items()
        ]
    )


def test_the_majority_is_what_more_people_say_than_anything_else(store: Store) -> None:
    begun = begin(store, *(item(str(n), row=n) for n in range(1, 8)))
    vote(
        begun,
        {"Ann": "A", "Bob": "A", "Eve": "B"},
        {"Ann": "A", "Bob": "A", "Eve": "B", "Dan": "TIE"},  # two of four: more than any other
        {"Ann": "A", "Bob": "B"},
        {"Ann": "A", "Bob": "B", "Eve": "TIE"},
        {"Ann": "TIE", "Bob": None},
        {"Ann": None},
    )
    labels = majority_labels(item_votes(store, begun.run_id, range(1, 8)), range(1, 8))
    assert labels.majority.tolist() == [0, 0, -1, -1, 2, -1, -1]
    assert labels.undecided.tolist() == [False, False, True, True, False, False, False]
    assert labels.people.tolist() == [3, 4, 2, 3, 1, 0, 0]


def test_labels_are_aligned_to_the_numbers_of_verdicts(store: Store) -> None:
    begun = begin(store, *(item(str(n), row=n) for n in range(1, 5)))
    vote(begun, {"Ann": "A"}, {"Ann": "B"}, {"Ann": "TIE"}, {"Ann": "A"})
    for work in begun.work()[1::2]:  # items 2 and 4
        begun.settle(work)
    columns = store.columns.outcomes(begun.run_id, begun.judge_id)
    labels = majority_labels(item_votes(store, begun.run_id, columns.number), columns.number)
    assert labels.majority.tolist() == [1, 0]


def test_votes_with_and_without_escalated_ones(store: Store) -> None:
    begun = begin(store, item("x"), item("y", row=2))
    first, second = (each.pair_id for each in store.items.all(begun.run_id))
    store.votes.add(
        [
            NewVote(first, "Ann", "A", "terminal", "random"),
            NewVote(first, "Bob", "B", "escalation", "chosen"),
            NewVote(second, "Bob", "B", "import", "weighted", 0.5),
        ]
    )
    numbers = [1, 2]
    labels = majority_labels(item_votes(store, begun.run_id, numbers), numbers)
    assert labels.majority.tolist() == [-1, 1]
    votes = item_votes(store, begun.run_id, numbers)
    drawn = majority_labels(votes.only(~votes.escalated), numbers)
    assert drawn.majority.tolist() == [0, 1]
    assert votes.row.tolist() == [0, 0, 1]
    assert [votes.people[who] for who in votes.who] == ["Ann", "Bob", "Bob"]
    assert votes.escalated.tolist() == [False, True, False]
    assert votes.drawn_evenly.tolist() == [True, False, False]
    assert votes.drawn_by_chance.tolist() == [False, False, True]
    assert votes.chance[2] == 0.5


def test_numbers_that_do_not_ascend_are_refused(store: Store) -> None:
    with pytest.raises(InputError, match="the item numbers are not in ascending order"):
        majority_labels(item_votes(store, 1, [2, 1]), [2, 1])


_said = st.dictionaries(
    st.sampled_from(["Ann", "Bob", "Eve", "Dan"]), st.sampled_from(["A", "B", "TIE", None])
)


@given(said=st.lists(_said, max_size=6), wanted=st.sets(st.integers(1, 8)))
def test_the_majority_is_the_one_that_counting_gives(said: list[Said], wanted: set[int]) -> None:
    columns = columns_of(said)
    numbers = sorted(wanted)
    labels = majority_labels(votes_on(columns, numbers), numbers)
    for row, number in enumerate(numbers):
        own = said[number - 1] if number <= len(said) else {}
        counts = Counter(verdict for verdict in own.values() if verdict is not None)
        top = counts.most_common()
        tied = len(top) > 1 and top[0][1] == top[1][1]
        expected = CODES[top[0][0]] if top and not tied else -1
        assert labels.majority[row] == expected
        assert labels.undecided[row] == tied
        assert labels.people[row] == counts.total()


def columns_of(said: Sequence[Said]) -> VoteColumns:
    people = ("Ann", "Bob", "Eve", "Dan")
    columns = VoteColumns(people)
    for number, votes in enumerate(said, 1):
        for who, verdict in votes.items():
            columns.number.append(number)
            columns.pair_id.append(number)
            columns.prompt_key.append(number)
            columns.who.append(people.index(who))
            columns.verdict.append(CODES[verdict] if verdict else -1)
            columns.origin.append(0)
            columns.draw.append(-1)
            columns.chance.append(float("nan"))
            columns.label.append(-1)
    return columns


def test_a_summary_counts_pairs_once_and_says_how_far_people_agree(store: Store) -> None:
    texts = {"prompt": "the same", "response_a": "one", "response_b": "two"}
    items = [item(str(n), row=n, label="A") for n in range(1, 11)]
    twins = [item(f"twin {n}", row=10 + n, **texts) for n in (1, 2)]
    begun = begin(store, *items, *twins)
    agreeing: Said = {"Ann": "A", "Bob": "A"}
    vote(begun, *([agreeing] * 8), {"Ann": "B", "Bob": "TIE"}, {"Eve": "B", "Bob": None}, agreeing)
    found = analysis_of(VOTES, store, "run")
    # Ten pairs and the twins, which are one.
    assert (found.pairs, found.voted_pairs, found.votes, found.skipped) == (11, 11, 21, 1)
    assert found.people_a_pair == (1, 10)
    counts = found.majority
    assert (counts.a, counts.b, counts.tie, counts.none) == (9, 1, 0, 1)
    agreed = found.agreement.agreement
    assert (agreed.part, agreed.of, agreed.value) == (9, 10, 0.9)
    assert agreed.low is not None
    assert agreed.high is not None
    assert 0.5 < agreed.low < 0.9 < agreed.high < 1
    # In a sentence, in whole per cent: 9 of 10 agree.
    ends = f"{100 * agreed.low:.0f} to {100 * agreed.high:.0f}"
    whole = f"3 people voted on 11 of 11 pairs; any two agree on 90% ({ends})."
    assert sum_up_votes(found) == whole
    # Alpha by hand: 18 A, 1 B, 1 TIE; observed 0.1, expected 1 - 18 * 17 / (20 * 19).
    assert found.agreement.alpha.alpha == pytest.approx(1 - 0.1 / (1 - 18 * 17 / (20 * 19)))
    assert {person.who: (person.votes, person.skipped) for person in found.people} == {
        "Ann": (10, 0),
        "Bob": (10, 1),
        "Eve": (1, 0),
    }
    by_name = {person.who: person.agreement for person in found.people}
    assert (by_name["Ann"].part, by_name["Ann"].of) == (9, 10)
    assert by_name["Eve"].of == 0
    # Ten are labelled A; nine have a majority, eight of them A.
    assert (found.with_label.part, found.with_label.of) == (8, 9)
    assert (found.by_origin, found.by_draw) == ({"import": 22}, {"unknown": 22})


def test_a_summary_of_no_votes_says_what_is_missing(store: Store) -> None:
    begin(store, item("x"))
    found = analysis_of(VOTES, store, "run")
    assert (found.pairs, found.voted_pairs, found.people) == (1, 0, ())
    assert found.agreement.alpha.alpha is None
    assert found.agreement.agreement.reason is not None
    assert found.by_draw == {}
    assert sum_up_votes(found) == "Nobody has voted on this run yet."
    begin(store, name="empty")
    assert analysis_of(VOTES, store, "empty").pairs == 0


def test_draws_and_origins_are_counted_by_name(store: Store) -> None:
    begun = begin(store, *(item(str(n), row=n) for n in range(4)))
    ids = [each.pair_id for each in store.items.all(begun.run_id)]
    store.votes.add(
        [
            NewVote(own, "Ann", "A", origin, draw)
            for own, origin, draw in zip(ids, ORIGINS, (*DRAWS, None), strict=True)
        ]
    )
    found = analysis_of(VOTES, store, "run")
    assert found.by_origin == dict.fromkeys(ORIGINS, 1)
    assert found.by_draw == dict.fromkeys((*DRAWS, "unknown"), 1)
