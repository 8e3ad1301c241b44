"""What is pending, what is written, and what is tried again."""

from __future__ import annotations

import random
import threading
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.contract import Outcome
from evenhand.data.records import Record
from evenhand.errors import DataError, StoreError
from evenhand.store import FailedPass, NewJudge, NewPass, NewVerdict, Store
from evenhand.store import work as work_module
from store_values import (
    begin,
    decided,
    drawn_item,
    failed_pass,
    failure,
    item,
    read_pass,
    unread_pass,
    win,
)

_numbers = count(1)


def some_items(number: int) -> list[Record]:
    return [item(f"k{n}", row=n) for n in range(1, number + 1)]


def test_pending_goes_on_from_where_it_is_told(store: Store) -> None:
    begun = begin(store, *some_items(10))
    pages, after = [], 0
    while page := store.work.pending(begun.run_id, begun.judge_id, after=after, limit=4):
        pages.append([work.number for work in page])
        after = page[-1].number
    assert pages == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]


def test_what_has_a_verdict_is_not_pending_for_that_judge_alone(store: Store) -> None:
    begun = begin(store, *some_items(3))
    second = store.runs.add_judge(NewJudge("second", "second"))
    begun.settle(begun.work()[1])
    assert [work.number for work in begun.work()] == [1, 3]
    left = store.work.pending(begun.run_id, second, after=0, limit=9)
    assert [work.number for work in left] == [1, 2, 3]
    assert [work.passes for work in left] == [{}, {}, {}]


def test_a_pass_made_by_one_run_is_there_for_another(store: Store) -> None:
    first = begin(store, item("x", prompt="same"), name="one")
    first.judge_all("B")
    second = begin(store, item("y", prompt="same"), name="two")
    (work,) = second.work()
    assert set(work.passes) == {("original", 1), ("swapped", 1)}
    stored = work.passes["original", 1]
    assert (stored.made, stored.status, stored.run_id) == (
        read_pass("original", "B"),
        "ballot",
        first.run_id,
    )


def test_a_second_write_changes_nothing(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    begun.settle(work, "A")
    begun.settle(work, "B")
    (whole,) = store.verdicts.whole_page(begun.run_id)
    assert whole.settled == win("A", [read_pass("original"), read_pass("swapped")])
    assert store.verdicts.tally(begun.run_id).used.passes == 2


def test_a_batch_with_something_impossible_in_it_is_not_written_at_all(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    made = NewPass(work.pair_id, begun.judge_id, begun.run_id, read_pass("original"))
    nobodys = NewVerdict(begun.run_id, 99, begun.judge_id, win("A", []))
    with pytest.raises(StoreError, match=r"^store [^\n]+$"):
        store.work.write([made], [nobodys])
    assert begun.work()[0].passes == {}
    assert store.verdicts.tally(begun.run_id).used.passes == 0


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25
)
@given(data=st.data())
def test_batches_in_any_order_and_any_number_of_times_come_to_the_same(
    store: Store, data: st.DataObject
) -> None:
    number = next(_numbers)
    begun = begin(store, *some_items(4), name=f"run {number}", judge=f"judge {number}")
    passes, verdicts = [], []
    for work in begun.work():
        made = [read_pass("original"), read_pass("swapped")]
        passes += [NewPass(work.pair_id, begun.judge_id, begun.run_id, each) for each in made]
        verdicts.append(NewVerdict(begun.run_id, work.number, begun.judge_id, win("A", made)))
    for _ in range(data.draw(st.integers(1, 4))):
        some_passes = data.draw(st.lists(st.sampled_from(passes)))
        some_verdicts = data.draw(st.lists(st.sampled_from(verdicts)))
        store.work.write(some_passes, some_verdicts)
    store.work.write(data.draw(st.permutations(passes)), data.draw(st.permutations(verdicts)))
    whole = store.verdicts.whole_page(begun.run_id)
    assert [w.settled for w in whole] == [new.settled for new in verdicts]
    assert [s.made for w in whole for s in w.passes] == [new.made for new in passes]
    tally = store.verdicts.tally(begun.run_id)
    assert (tally.wins_a, tally.pending, tally.used.passes) == (4, 0, 8)


def test_reading_goes_on_while_another_thread_writes(store: Store) -> None:
    begun = begin(store, *some_items(300))
    work = begun.work()
    random.Random(1).shuffle(work)
    problems: list[BaseException] = []
    done = threading.Event()

    def write() -> None:
        try:
            for one in work:
                begun.settle(one)
        except BaseException as error:
            problems.append(error)
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    left = [300]
    while not done.is_set():
        page = begun.work()
        assert [each.number for each in page] == sorted(each.number for each in page)
        left.append(len(page))
    writer.join()
    assert problems == []
    assert left == sorted(left, reverse=True)
    assert begun.work() == []


# Trying again


def test_pending_texts_are_counted_once_each_where_models_have_names(store: Store) -> None:
    named: dict[str, Any] = {"model_a": "old", "model_b": "new"}
    begun = begin(
        store,
        item("one", prompt="p", response_a="x", response_b="y", **named),
        item("two", prompt="p", response_a="x", response_b="zz", model_a="old", model_b="newer"),
        item("three", prompt="q", reference="r", response_a="x", response_b="y", **named),
    )
    # Two prompts, one without a reference; of p the answers of old, new and newer, of q two.
    assert store.work.count_pending_texts(begun.run_id, begun.judge_id) == (2, 1, 3 + 2)
    begun.settle(begun.work()[2])
    assert store.work.count_pending_texts(begun.run_id, begun.judge_id) == (1, 1, 3)


def test_without_names_of_models_each_pending_pair_has_two_responses(store: Store) -> None:
    begun = begin(store, *(item(f"{n}", prompt="p", response_a="x") for n in range(3)))
    assert store.work.count_pending_texts(begun.run_id, begun.judge_id) == (1, 1, 2 * 3)
    half = begin(store, item("h", model_a="old"), name="half")
    assert store.work.count_pending_texts(half.run_id, half.judge_id) == (1, 1, 2)


def test_retiring_failed_passes_keeps_them_aside_and_opens_their_items(store: Store) -> None:
    begun = begin(store, *some_items(3))
    good, failed, unread = begun.work()
    begun.settle(good)
    begun.write(failed, [failed_pass("original")], failure([], "judge_timeout"))
    half = [read_pass("original"), unread_pass("swapped")]
    begun.write(unread, half, failure(half))
    assert begun.work() == []

    assert store.work.retire(begun.run_id, {"failed"}) == 1
    assert [work.number for work in begun.work()] == [2]
    assert begun.work()[0].passes == {}
    whole = store.verdicts.item(begun.run_id, "k2")
    assert whole is not None
    (judged,) = whole.judged
    assert judged.settled is None
    assert judged.passes == ()
    assert [stored.made for stored in judged.replaced] == [failed_pass("original")]

    assert store.work.retire(begun.run_id, {"failed", "unread"}) == 1
    assert [work.number for work in begun.work()] == [2, 3]
    kept = begun.work()[1].passes
    assert {key: stored.made for key, stored in kept.items()} == {
        ("original", 1): read_pass("original")
    }
    assert store.work.retire(begun.run_id, {"failed", "unread"}) == 0


def test_retiring_twice_keeps_both_tries(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    for _ in range(2):
        begun.write(work, [failed_pass("original")], failure([], "judge_timeout"))
        assert store.work.retire(begun.run_id, {"failed"}) == 1
    begun.settle(work)
    whole = store.verdicts.item(begun.run_id, "x")
    assert whole is not None
    assert len(whole.judged[0].replaced) == 2
    assert store.verdicts.tally(begun.run_id).wins_a == 1


def test_retiring_leaves_other_judges_and_other_pairs_alone(store: Store) -> None:
    mine = begin(store, item("x"), name="mine", judge="mine")
    other_judge = begin(store, item("x"), name="other judge", judge="other")
    other_pair = begin(store, item("y"), name="other pair", judge="mine")
    for begun in (mine, other_judge, other_pair):
        begun.write(begun.work()[0], [failed_pass("original")], failure([]))
    assert store.work.retire(mine.run_id, {"failed"}) == 1
    assert len(mine.work()) == 1
    assert other_judge.work() == other_pair.work() == []


def test_a_verdict_of_another_run_that_rests_on_a_retired_pass_goes_too(store: Store) -> None:
    one = begin(store, item("x"), name="one")
    made = [read_pass("original"), unread_pass("swapped")]
    one.write(one.work()[0], made, failure(made))
    shares = begin(store, item("x"), name="shares")
    store.work.write([], [NewVerdict(shares.run_id, 1, shares.judge_id, failure(made))])
    first_order_only = begin(store, item("x", swap_positions=False), name="first order only")
    alone = win("A", made[:1])
    store.work.write([], [NewVerdict(first_order_only.run_id, 1, one.judge_id, alone)])
    for each in (shares, first_order_only):
        store.runs.update(each.run_id, state="finished")
    before = {run.id: run for run in store.runs.all()}
    assert store.work.retire(one.run_id, {"unread"}) == 1
    assert len(shares.work()) == 1
    assert first_order_only.work() == []
    # Figures kept of a run are as old as its record: what lost a verdict is changed.
    after = {run.id: run for run in store.runs.all()}
    assert after[shares.run_id].state == "stopped"
    assert after[shares.run_id].updated_at > before[shares.run_id].updated_at
    assert after[first_order_only.run_id] == before[first_order_only.run_id]


def test_samples_that_another_run_asked_for_are_not_retired(store: Store) -> None:
    one = begin(store, item("x"), name="one")
    one.judge_all()
    three = begin(store, item("x"), name="three")
    (work,) = three.work()
    made = NewPass(work.pair_id, three.judge_id, three.run_id, unread_pass("original", sample=3))
    tie = decided(Outcome.TIE, "TIE", samples=3)
    store.work.write([made], [NewVerdict(three.run_id, work.number, three.judge_id, tie)])
    assert store.work.retire(one.run_id, {"unread"}) == 0
    assert store.work.retire(three.run_id, {"unread"}) == 1
    assert (one.work(), len(three.work())) == ([], 1)


def test_an_item_in_a_drawn_order_rests_on_that_order_alone(store: Store) -> None:
    both = begin(store, item("x"), name="both")
    made = [unread_pass("original"), read_pass("swapped")]
    both.write(both.work()[0], made, failure(made))
    drawn = begin(store, drawn_item("x", "swapped"), name="drawn")
    (work,) = drawn.work()
    assert work.pair.orders == ("swapped",)
    assert work.pair_id == store.items.all(both.run_id)[0].pair_id
    alone = win("A", made[1:])
    store.work.write([], [NewVerdict(drawn.run_id, 1, drawn.judge_id, alone)])
    (whole,) = store.verdicts.whole_page(drawn.run_id)
    assert whole.settled == alone
    assert whole.row.item.drawn_order == "swapped"
    assert store.verdicts.tally(drawn.run_id).used.passes == 1
    columns = store.columns.outcomes(drawn.run_id, drawn.judge_id)
    assert list(columns.both_orders) == [0]
    assert list(columns.drawn_order) == [1]
    # The unread pass in the other order is none of its own.
    assert store.work.retire(drawn.run_id, {"unread"}) == 0
    assert store.work.retire(both.run_id, {"unread"}) == 1
    assert drawn.work() == []
    assert len(both.work()) == 1


def test_another_drawn_order_is_another_item(store: Store) -> None:
    begun = begin(store, drawn_item("x", "swapped"))
    with pytest.raises(DataError, match="changed"):
        store.items.add(begun.run_id, [drawn_item("x", "original")])
    assert store.items.add(begun.run_id, [drawn_item("x", "swapped")]) == 0


def test_a_failed_pass_says_what_failed_and_what_it_took(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    store.work.write(
        [NewPass(work.pair_id, begun.judge_id, begun.run_id, failed_pass("swapped"))], []
    )
    stored = begun.work()[0].passes["swapped", 1]
    assert isinstance(stored.made, FailedPass)
    assert stored.status == "failed"
    assert (stored.made.error.kind, stored.made.usage.requests) == ("judge_timeout", 4)


def test_a_verdict_without_an_outcome_of_its_own_is_invalid(store: Store) -> None:
    begun = begin(store, item("x"))
    begun.write(begun.work()[0], [], failure([]))
    (row,) = store.verdicts.page(begun.run_id)
    assert (row.outcome, row.winner, row.confidence) == (Outcome.INVALID, None, None)
    assert (row.error_kind, row.error_message) == ("invalid", "no valid verdict: unread")


def test_a_prompts_place_is_above_0_whatever_its_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """0 precedes the first, so the two smallest digests share place 1."""
    for digest, place in ((b"\0" * 8, 1), (b"\2" + b"\0" * 7, 1), (b"\4" + b"\0" * 7, 2)):
        fixed = SimpleNamespace(digest=lambda digest=digest: digest)
        monkeypatch.setattr(work_module, "blake2b", lambda *_, fixed=fixed, **__: fixed)
        assert work_module._place.__wrapped__(1, 1) == place
