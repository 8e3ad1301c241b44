"""Rows become items once, whatever is read again; the same id twice is refused."""

from __future__ import annotations

import dataclasses
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given

from evenhand.contract import Criterion, Pair
from evenhand.data.records import BadRow
from evenhand.errors import DataError
from evenhand.store import Store
from evenhand.store.intake import pair_digest, prompt_key
from scripted import make_pair
from store_values import begin, item, pairs


def test_items_are_numbered_from_one_as_they_arrive(store: Store) -> None:
    begun = begin(store, item("b"), item("a"))
    assert store.items.add(begun.run_id, [item("c"), item("a")]) == 1
    assert [(work.number, work.key) for work in begun.work()] == [(1, "b"), (2, "a"), (3, "c")]
    assert store.items.count(begun.run_id) == 3


def test_the_same_items_again_change_nothing(store: Store) -> None:
    items = [item(f"k{n}", row=n, label="A", tags=("x",)) for n in range(1200)]
    begun = begin(store)
    assert store.items.add(begun.run_id, items) == 1200
    before = store.work.pending(begun.run_id, begun.judge_id, after=0, limit=2000)
    assert store.items.add(begun.run_id, items) == 0
    assert store.work.pending(begun.run_id, begun.judge_id, after=0, limit=2000) == before


def test_a_row_that_stands_twice_in_a_file_is_one_item(store: Store) -> None:
    begun = begin(store)
    assert store.items.add(begun.run_id, [item("x", row=3), item("x", row=9)]) == 1


def test_equal_texts_under_two_ids_are_two_items_and_one_pair(store: Store) -> None:
    begun = begin(store, item("x", prompt="same"), item("y", prompt="same"))
    one, other = begun.work()
    assert one.pair_id == other.pair_id
    assert (one.pair.id, other.pair.id) == ("x", "y")


def test_equal_texts_are_two_pairs_where_answers_are_found_by_id(store: Store) -> None:
    begun = begin(store)
    store.items.add(begun.run_id, [item("x", prompt="p"), item("y", prompt="p")], by_id=True)
    one, other = begun.work()
    assert one.pair_id != other.pair_id


def test_pairs_are_shared_between_runs(store: Store) -> None:
    first = begin(store, item("x", prompt="same"), name="one")
    second = begin(store, item("other id", prompt="same", swap_positions=False), name="two")
    assert first.work()[0].pair_id == second.work()[0].pair_id
    assert [w.pair.swap_positions for w in (*first.work(), *second.work())] == [True, False]


DIFFERENT: list[dict[str, Any]] = [
    {"response_a": "another"},
    {"swap_positions": False},
    {"label": "B"},
    {"model_a": "m"},
    {"tags": ("t",)},
]


@pytest.mark.parametrize("change", DIFFERENT, ids=lambda change: next(iter(change)))
@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "in two"])
def test_an_id_with_different_content_is_refused_with_both_rows(
    store: Store, change: dict[str, Any], together: bool
) -> None:
    begun = begin(store)
    first, second = item("x", row=3), item("x", row=9, **change)
    batch = [item("w"), first, second]
    if not together:
        store.items.add(begun.run_id, batch[:2])
    with pytest.raises(DataError) as caught:
        store.items.add(begun.run_id, batch)
    assert caught.value.message == (
        "id 'x' is in row 3 and row 9 with different content; make ids unique"
    )
    assert store.items.count(begun.run_id) == (0 if together else 2)  # a batch is all or nothing


def test_an_id_in_two_files_is_told_with_both_files(store: Store) -> None:
    begun = begin(store, item("x", row=3, source="a.jsonl"))
    with pytest.raises(DataError, match=r"in a\.jsonl, row 3 and b\.jsonl, row 3 with different"):
        store.items.add(begun.run_id, [item("x", row=3, source="b.jsonl", context="c")])


@pytest.mark.parametrize("key", ["#4", "an id"])
def test_a_row_that_changed_since_the_run_began_is_told_so(store: Store, key: str) -> None:
    begun = begin(store, item(key, row=4))
    with pytest.raises(DataError) as caught:
        store.items.add(begun.run_id, [item(key, row=4, reference="new")])
    assert caught.value.message == (
        "pairs.jsonl, row 4 has changed since the run started; restore the file, or start "
        "another run"
    )


def test_skipped_rows_are_counted_once(store: Store) -> None:
    begun = begin(store)
    rows = [BadRow("b.csv", 10, "no prompt\x00"), BadRow("a.csv", 2, "cut")]
    store.items.add_skipped(begun.run_id, rows)
    store.items.add_skipped(begun.run_id, [*rows, BadRow("b.csv", 9, "cut")])
    assert store.items.skipped(begun.run_id) == [rows[1], BadRow("b.csv", 9, "cut"), rows[0]]
    assert store.items.skipped(begun.run_id, limit=1) == [rows[1]]
    assert store.verdicts.tally(begun.run_id).skipped_rows == 3


# What a prompt depends on


@given(pairs)
def test_a_pairs_digest_leaves_out_only_its_id_and_whether_it_is_swapped(pair: Pair) -> None:
    same = pair.model_copy(update={"id": "other", "swap_positions": not pair.swap_positions})
    assert pair_digest(same) == pair_digest(pair)
    assert len(pair_digest(pair)) == 16


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "pa", "response_a": ""},  # the same letters, cut elsewhere
        {"response_a": "b", "response_b": "a"},
        {"context": ""},
        {"reference": ""},
        {"context": "1:x"},
        {"allow_tie": False},
        {"criteria": (Criterion(name="accuracy", description=""),)},
        {"criteria": (Criterion(name="accuracy", weight=1.0),)},
        {"criteria": (Criterion(name="accuracy"), Criterion(name="tone"))},
        {"criteria": ()},
    ],
    ids=str,
)
def test_whatever_the_judge_would_see_changes_a_pairs_digest(change: dict[str, Any]) -> None:
    pair = make_pair()
    assert pair_digest(pair.model_copy(update=change)) != pair_digest(pair)
    assert pair_digest(pair, "salt") != pair_digest(pair)


def test_a_prompts_key_is_the_digest_of_its_text_and_its_context() -> None:
    # Stores hold these: they may never come out otherwise.
    for prompt, context, digested in (
        ("why?", None, b"why?"),
        ("why?", "", b"why?\xff"),
        ("响应", "c", b"\xe5\x93\x8d\xe5\xba\x94\xffc"),
    ):
        unsigned = int.from_bytes(blake2b(digested, digest_size=8).digest(), "little")
        signed = unsigned - 2**64 if unsigned >= 2**63 else unsigned
        assert prompt_key(prompt, context) == signed
    assert len({prompt_key(f"prompt {n}", None) for n in range(10_000)}) == 10_000


def test_criteria_in_another_order_are_other_criteria() -> None:
    one, other = make_pair(criteria=["a", "b"]), make_pair(criteria=["b", "a"])
    assert pair_digest(one) != pair_digest(other)


def test_an_item_without_criteria_comes_back_without(store: Store) -> None:
    bare = item("x")
    bare = dataclasses.replace(bare, pair=bare.pair.model_copy(update={"criteria": ()}))
    begun = begin(store, bare)
    assert begun.work()[0].pair.criteria == ()
