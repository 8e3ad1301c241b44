"""What was stored comes back equal, whatever it was, from both engines."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.contract import Pair, Winner
from evenhand.data.records import Record
from evenhand.judging.decision import Judged, PassBallot, PassResult
from evenhand.store import FailedPass, NewPass, NewVerdict, Store
from evenhand.store.schema import escape, shorten, unescape
from parts import examples
from store_values import (
    begin,
    failed_passes_of,
    item,
    pairs,
    passes_of,
    read_pass,
    settled_on,
    texts,
    win,
)

# The store is the fixture's for all examples; each takes keys of its own.
both_engines = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
_numbers = count(1)


@both_engines
@given(pair=pairs, key=texts, label=st.sampled_from([None, "A", "B", "TIE"]), tags=st.lists(texts))
def test_any_pair_comes_back_equal(
    store: Store, pair: Pair, key: str, label: Winner | None, tags: list[str]
) -> None:
    begun = begin(store, name=f"run {next(_numbers)}")
    new = Record(key, pair, key, 7, label, model_a=key, model_b=None, tags=tuple(tags))
    assert store.items.add(begun.run_id, [new]) == 1
    (work,) = begun.work()
    assert work.pair == pair.model_copy(update={"id": key})
    whole = store.verdicts.item(begun.run_id, key)
    assert whole is not None
    assert whole.pair == work.pair
    assert (whole.item.key, whole.item.source, whole.item.row) == (key, key, 7)
    assert whole.item.label == label
    assert (whole.item.model_a, whole.item.model_b, whole.item.tags) == (key, None, tuple(tags))


@pytest.mark.slow
@settings(both_engines, max_examples=examples(40))
@given(data=st.data(), samples=st.integers(1, 2))
def test_any_pass_and_verdict_come_back_equal(
    store: Store, data: st.DataObject, samples: int
) -> None:
    number = next(_numbers)
    begun = begin(store, item(f"key {number}"), name=f"run {number}", judge=f"judge {number}")
    (work,) = begun.work()
    made: list[PassResult | FailedPass] = []
    for order in ("original", "swapped"):
        for sample in range(1, samples + 1):
            either = passes_of(order, sample) | failed_passes_of(order, sample)
            made.append(data.draw(either))
    rests_on = tuple(each for each in made if isinstance(each, PassResult))
    settled = data.draw(settled_on(rests_on, samples=samples))
    store.work.write(
        [NewPass(work.pair_id, begun.judge_id, begun.run_id, each) for each in made], []
    )
    (again,) = begun.work()
    assert {key: stored.made for key, stored in again.passes.items()} == {
        (each.order, each.sample): each for each in made
    }
    store.work.write([], [NewVerdict(begun.run_id, work.number, begun.judge_id, settled)])
    assert begun.work() == []
    (whole,) = store.verdicts.whole_page(begun.run_id)
    assert whole.settled == settled
    assert type(whole.settled) is type(settled)
    assert [stored.made for stored in whole.passes] == made
    shown = store.verdicts.item(begun.run_id, f"key {number}")
    assert shown is not None
    assert shown.judged[0].settled == settled


@given(texts)
def test_escaping_a_text_loses_nothing_and_leaves_no_nul(text: str) -> None:
    assert unescape(escape(text)) == text
    assert "\x00" not in escape(text)


@given(st.text(min_size=150, max_size=250), st.text(min_size=150, max_size=250))
def test_shortened_keys_are_short_and_differ_where_the_keys_do(one: str, other: str) -> None:
    assert len(shorten(one)) <= 200
    assert (shorten(one) == shorten(other)) == (one == other)


def test_a_key_of_a_hundred_thousand_characters_is_found_again(store: Store) -> None:
    key = "k" * 100_000
    begun = begin(store, item(key), item(key[:-1]))
    assert [work.key for work in begun.work()] == [key, key[:-1]]
    whole = store.verdicts.item(begun.run_id, key)
    assert whole is not None
    assert whole.item.key == key
    assert store.items.add(begun.run_id, [item(key)]) == 0


@pytest.mark.slow
def test_a_response_of_fifty_megabytes_comes_back_whole(store: Store) -> None:
    large = "0123456789" * 5_000_000
    begun = begin(store, item("large", response_a=large))
    (work,) = begun.work()
    assert work.pair.response_a == large
    made = [read_pass("original"), read_pass("swapped")]
    assert isinstance(made[0].reading, PassBallot)
    made[0] = replace(made[0], reading=replace(made[0].reading, raw=large))
    begun.write(work, made, win("A", made))
    (whole,) = store.verdicts.whole_page(begun.run_id)
    assert isinstance(whole.settled, Judged)
    assert whole.settled.passes == tuple(made)


@pytest.mark.parametrize("swapped", [True, False])
def test_a_verdict_has_only_the_passes_it_rests_on(store: Store, swapped: bool) -> None:
    """Another run of the same judge may have asked more of the same pair."""
    more = begin(store, item("x"), name="more")
    (work,) = more.work()
    four = [read_pass(o, sample=s) for o in ("original", "swapped") for s in (1, 2)]
    passes = [NewPass(work.pair_id, more.judge_id, more.run_id, each) for each in four]
    store.work.write(passes, [])
    less = begin(store, item("x", swap_positions=swapped), name="less")
    settled = win("A", [four[0], four[2]] if swapped else [four[0]])
    store.work.write([], [NewVerdict(less.run_id, 1, less.judge_id, settled)])
    (whole,) = store.verdicts.whole_page(less.run_id)
    assert whole.settled == settled


def test_a_verdict_that_nobody_was_asked_for_gets_no_passes(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    store.work.write(
        [NewPass(work.pair_id, begun.judge_id, begun.run_id, read_pass("original"))], []
    )
    store.work.write([], [NewVerdict(begun.run_id, 1, begun.judge_id, win("TIE", []))])
    (whole,) = store.verdicts.whole_page(begun.run_id)
    assert isinstance(whole.settled, Judged)
    assert whole.settled.passes == ()
