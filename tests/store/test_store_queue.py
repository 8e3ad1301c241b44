"""An order of one's own: prompts at random by a seed, and contests between two models."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from itertools import count, pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.contract import Outcome, Winner
from evenhand.data.records import Record
from evenhand.errors import InputError
from evenhand.store import QUEUE_START, Contest, NewPass, NewVerdict, Queued, Store, open_store
from store_values import Begun, begin, decided, failure, item, read_pass

_numbers = count(1)


def rows_of(prompts: int, rows: int = 1) -> list[Record]:
    """All first rows, then all second ones."""
    return [
        item(f"{prompt}:{row}", prompt=f"prompt {prompt}", response_a=f"answer {row}")
        for row in range(rows)
        for prompt in range(prompts)
    ]


def in_order(begun: Begun, *, contest: int = 0, limit: int = 1000) -> list[Queued]:
    found: list[Queued] = []
    after = QUEUE_START
    while page := begun.store.work.queued(
        begun.run_id, begun.judge_id, contest=contest, after=after, limit=limit
    ):
        found += page
        after = page[-1].at
    return found


def rule(begun: Begun, number: int, winner: Winner | None = "A") -> None:
    settled = decided(Outcome.WIN, winner, None, "none") if winner else failure([])
    begun.store.work.write([], [NewVerdict(begun.run_id, number, begun.judge_id, settled)])


def test_a_queue_holds_every_item_once_with_the_rows_of_a_prompt_together(store: Store) -> None:
    begun = begin(store, *rows_of(40, rows=3))
    assert in_order(begun) == []
    store.work.fill_queue(begun.run_id, seed=7)
    found = in_order(begun, limit=7)
    assert sorted(each.work.number for each in found) == list(range(1, 121))
    prompts = [each.work.pair.prompt for each in found]
    # Forty prompts, three rows each: the prompt changes 39 times.
    assert sum(one != other for one, other in pairwise(prompts)) == 39
    assert [each.at for each in found] == sorted(each.at for each in found)
    assert len({each.at.place for each in found}) == 40
    assert {each.work.number for each in found} == {work.number for work in begun.work()}


def test_the_order_depends_on_the_seed_and_the_prompts_alone(store: Store) -> None:
    items = rows_of(30)
    one = begin(store, *items, name="one")
    other = begin(store, *reversed(items), name="other")
    seeded = begin(store, *items, name="seeded")
    for begun, seed in ((one, 1), (other, 1), (seeded, 2)):
        store.work.fill_queue(begun.run_id, seed=seed)
    orders = [[q.work.pair.prompt for q in in_order(each)] for each in (one, other, seeded)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0] != sorted(orders[0])


def test_a_place_is_the_digest_of_seed_and_prompt_in_every_version(store: Store) -> None:
    """Positive numbers of 63 bits. A run that is resumed by a later version keeps its order."""
    begun = begin(store, *rows_of(5))
    store.work.fill_queue(begun.run_id, seed=11)
    places = [each.at.place for each in in_order(begun)]
    begun.judge_all()
    keys = store.work.settled_prefix(begun.run_id, begun.judge_id).prompt_key
    digests = [blake2b(b"place 1;11;%d" % key, digest_size=8).digest() for key in keys]
    assert places == [int.from_bytes(digest, "little") // 2 for digest in digests]


def test_a_queue_stays_as_it_is_when_the_run_is_resumed(address: str) -> None:
    with open_store(address) as store:
        begun = begin(store, *rows_of(20))
        store.work.fill_queue(begun.run_id, seed=1)
        before = in_order(begun)
        rule(begun, before[3].work.number)
    with open_store(address) as store:
        begun = Begun(store, begun.run_id, begun.judge_id, begun.name)
        store.work.fill_queue(begun.run_id, seed=1)
        store.work.fill_queue(begun.run_id, seed=2)
        assert in_order(begun) == before[:3] + before[4:]


def test_a_queue_that_was_filled_too_early_is_filled_anew(store: Store) -> None:
    begun = begin(store, *rows_of(5))
    store.work.fill_queue(begun.run_id, seed=1)
    early = [each.at.place for each in in_order(begun)]
    store.items.add(begun.run_id, [item("more")])
    store.work.fill_queue(begun.run_id, seed=1)
    late = [each.at.place for each in in_order(begun)]
    assert len(late) == 6
    assert set(early) < set(late)


def test_a_queued_item_comes_with_the_passes_it_has(store: Store) -> None:
    begun = begin(store, *rows_of(3))
    store.work.fill_queue(begun.run_id, seed=0)
    second = in_order(begun)[1]
    made = NewPass(second.work.pair_id, begun.judge_id, begun.run_id, read_pass("original"))
    store.work.write([made], [])
    found = in_order(begun)
    assert [set(each.work.passes) for each in found] == [set(), {("original", 1)}, set()]
    assert {each.work.number: each.work for each in found} == {w.number: w for w in begun.work()}


# The settled beginning


def test_the_prefix_ends_before_the_first_prompt_that_lacks_a_verdict(store: Store) -> None:
    begun = begin(store, *rows_of(4, rows=2))
    store.work.fill_queue(begun.run_id, seed=3)
    order = in_order(begun)
    places = [each.at.place for each in order]
    empty = store.work.settled_prefix(begun.run_id, begun.judge_id)
    assert (empty.is_whole, empty.place.tolist()) == (False, [])
    # Both rows of the first prompt, one of the second, all of the third.
    came: list[tuple[int, Winner | None]] = [(0, "B"), (1, None), (2, "A"), (4, "A"), (5, "A")]
    for each, winner in came:
        rule(begun, order[each].work.number, winner)
    prefix = store.work.settled_prefix(begun.run_id, begun.judge_id)
    assert not prefix.is_whole
    assert prefix.place.tolist() == places[:2]
    assert prefix.number.tolist() == [each.work.number for each in order[:2]]
    assert prefix.outcome.tolist() == [1, 4]
    assert prefix.prompt_key[0] == prefix.prompt_key[1]
    rule(begun, order[3].work.number)
    more = store.work.settled_prefix(begun.run_id, begun.judge_id, after=prefix.place[-1])
    assert more.place.tolist() == places[2:6]
    for each in (6, 7):
        rule(begun, order[each].work.number)
    rest = store.work.settled_prefix(begun.run_id, begun.judge_id, after=more.place[-1])
    assert (rest.is_whole, rest.place.tolist()) == (True, places[6:])
    whole = store.work.settled_prefix(begun.run_id, begun.judge_id)
    assert (whole.is_whole, whole.place.tolist()) == (True, places)


def test_the_prefix_behind_a_place_does_not_ask_for_a_verdict_on_it(store: Store) -> None:
    begun = begin(store, *rows_of(3))
    store.work.fill_queue(begun.run_id, seed=0)
    first, *others = in_order(begun)
    for each in others:
        rule(begun, each.work.number)
    found = store.work.settled_prefix(begun.run_id, begun.judge_id, after=first.at.place)
    assert (found.is_whole, found.place.tolist()) == (True, [each.at.place for each in others])
    waiting = store.work.queued(begun.run_id, begun.judge_id, limit=9)
    assert [each.work.number for each in waiting] == [first.work.number]
    rule(begun, first.work.number)
    assert store.work.queued(begun.run_id, begun.judge_id, limit=9) == []


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20
)
@given(data=st.data())
def test_looking_piece_by_piece_shows_what_one_look_shows(
    store: Store, data: st.DataObject
) -> None:
    number = next(_numbers)
    begun = begin(store, *rows_of(4, rows=2), name=f"run {number}", judge=f"judge {number}")
    store.work.fill_queue(begun.run_id, seed=number)
    left = data.draw(st.permutations(range(1, 9)))
    seen: list[int] = []
    after = 0
    for judged in left:
        rule(begun, judged)
        prefix = store.work.settled_prefix(begun.run_id, begun.judge_id, after=after)
        seen += prefix.number
        after = prefix.place[-1] if prefix.place else after
        at_once = store.work.settled_prefix(begun.run_id, begun.judge_id)
        assert at_once.number.tolist() == seen
        assert at_once.is_whole == (len(seen) == 8)
    assert len(seen) == 8


# Contests


def against(prompt: int, model_a: str, model_b: str) -> Record:
    return item(
        f"{prompt}:{model_a}:{model_b}",
        prompt=f"prompt {prompt}",
        response_a=f"by {model_a}",
        response_b=f"by {model_b}",
        model_a=model_a,
        model_b=model_b,
    )


def test_contests_tell_how_two_models_stand_whichever_is_a(store: Store) -> None:
    begun = begin(
        store,
        *(against(n, "x", "y") for n in range(3)),
        *(against(n, "y", "x") for n in range(3, 6)),
        *(against(n, "z", "x") for n in range(2)),
    )
    store.work.fill_queue(begun.run_id, seed=0, by_models=True)
    assert store.work.contests(begun.run_id, begun.judge_id) == [
        Contest(1, ("x", "y"), 6, (0, 0), 0, 0, 0),
        Contest(2, ("z", "x"), 2, (0, 0), 0, 0, 0),
    ]
    rule(begun, 1, "A")  # x wins
    rule(begun, 4, "A")  # y wins
    rule(begun, 5, "B")  # x wins
    rule(begun, 6, None)
    rule(begun, 7, "B")  # x wins
    tie, flipped = (
        decided(Outcome.TIE, "TIE", None, "none"),
        decided(Outcome.INCONSISTENT, "TIE", 0.5, "rule", "A", "B"),
    )
    settled = [NewVerdict(begun.run_id, n, begun.judge_id, f) for n, f in ((2, tie), (8, flipped))]
    store.work.write([], settled)
    assert store.work.contests(begun.run_id, begun.judge_id) == [
        Contest(1, ("x", "y"), 1, (2, 1), 1, 0, 1),
        Contest(2, ("z", "x"), 0, (0, 1), 0, 1, 0),
    ]
    assert [each.work.number for each in in_order(begun, contest=1)] == [3]
    assert in_order(begun, contest=2) == in_order(begun, contest=0) == []


def test_every_contest_asks_its_prompts_in_the_same_order(store: Store) -> None:
    pairs = [("x", "y"), ("x", "z"), ("y", "z")]
    begun = begin(store, *(against(n, a, b) for n in range(12) for a, b in pairs))
    store.work.fill_queue(begun.run_id, seed=5, by_models=True)
    orders = [
        [each.work.pair.prompt for each in in_order(begun, contest=contest, limit=5)]
        for contest in (1, 2, 3)
    ]
    assert orders[0] == orders[1] == orders[2]
    assert len(set(orders[0])) == 12


def test_a_queue_by_models_needs_their_names(store: Store) -> None:
    begun = begin(store, against(1, "x", "y"), item("nameless", model_a="x"))
    with pytest.raises(InputError, match="item 2 does not name both its models"):
        store.work.fill_queue(begun.run_id, seed=0, by_models=True)
    assert store.work.contests(begun.run_id, begun.judge_id) == []


def test_the_uniform_share_has_every_contest_equally_often(store: Store) -> None:
    pairs = [("x", "y"), ("x", "z"), ("y", "z")]
    begun = begin(store, *(against(n, a, b) for n in range(12) for a, b in pairs))
    store.work.fill_queue(begun.run_id, seed=5, by_models=True)

    def draw(number: int) -> list[int]:
        store.work.draw_uniform_share(begun.run_id, begun.judge_id, number=number, seed=5)
        assert len(store.work.uniform_share(begun.run_id)) == number
        queued = in_order(begun, contest=0)
        models = Counter(frozenset(each.models) for each in queued)
        assert max(models.values()) - min(models.values()) <= 1
        return [each.work.number for each in queued]

    first = draw(14)
    assert [each.at.place for each in in_order(begun, contest=0)] == list(range(1, 15))
    # Each round has every contest once, on prompts of its own.
    assert len({number % 3 for number in first[:3]}) == 3
    assert len({(number - 1) // 3 for number in first}) > 5
    assert draw(14) == first
    store.work.fill_queue(begun.run_id, seed=5, by_models=True)
    assert draw(14) == first
    # More goes on in the same order, and nothing waits twice.
    assert draw(20)[:14] == first
    others = [each.work.number for c in (1, 2, 3) for each in in_order(begun, contest=c)]
    assert sorted(others + draw(20)) == list(range(1, 37))


def test_the_uniform_share_is_drawn_from_what_has_no_verdict(store: Store) -> None:
    begun = begin(store, *(against(n, "x", "y") for n in range(8)))
    store.work.fill_queue(begun.run_id, seed=0, by_models=True)
    for number in range(1, 5):
        rule(begun, number, "A")
    store.work.draw_uniform_share(begun.run_id, begun.judge_id, number=8, seed=0)
    assert store.work.uniform_share(begun.run_id) == {5, 6, 7, 8}
