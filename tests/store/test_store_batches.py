"""Batches in the store: nothing that was asked, sent or answered is forgotten before its time."""

from __future__ import annotations

import time

from evenhand.store import NewPass, NewVerdict, Store
from evenhand.store.batches import NewBatch, OpenRequest, PassAsked, RequestAsked
from store_values import Begun, begin, item, read_pass, win


def asked(*pair_ids: int) -> list[RequestAsked]:
    """The first request of both passes of each."""
    both = ("original", "swapped")
    return [RequestAsked(pair, order, 1, 1) for pair in pair_ids for order in both]


def intend(store: Store, begun: Begun, nonce: str, requests: list[RequestAsked]) -> int:
    new = NewBatch(begun.run_id, begun.judge_id, nonce, first_number=1, last_number=9)
    return store.batches.intend(new, requests).id


def test_a_batch_is_known_before_it_is_sent(store: Store) -> None:
    begun = begin(store, item("x"))
    before = time.time()
    intend(store, begun, "first", asked(1))
    (batch,) = store.batches.unfinished(begun.run_id)
    assert (batch.nonce, batch.state, batch.requests) == ("first", "intended", 2)
    assert batch.sent_at is None
    assert batch.provider_id is None
    store.batches.sending(batch.id)
    (batch,) = store.batches.unfinished(begun.run_id, begun.judge_id)
    assert batch.state == "intended"
    assert batch.sent_at is not None
    assert batch.sent_at >= before
    store.batches.opened(batch.id, "batch_1")
    (batch,) = store.batches.unfinished(begun.run_id)
    assert (batch.state, batch.provider_id) == ("open", "batch_1")
    assert store.batches.provider_ids() == {"batch_1"}
    assert store.batches.unfinished(begun.run_id, begun.judge_id + 1) == []


def test_one_that_was_never_sent_leaves_nothing(store: Store) -> None:
    begun = begin(store, item("x"))
    batch = intend(store, begun, "n", asked(1))
    store.batches.drop(batch)
    assert store.batches.of_run(begun.run_id) == []
    assert store.batches.open_requests(begun.run_id, begun.judge_id, [1]) == {}


def test_answers_are_kept_and_what_lacks_one_is_asked_anew(store: Store) -> None:
    begun = begin(store, item("x"), item("y"))
    batch = intend(store, begun, "n", asked(1, 2))
    store.batches.opened(batch, "b")
    store.batches.receive(batch, [(1, '{"one":1}'), (4, '{"four":4}')])
    assert store.batches.lacking(batch) == {2: 1, 3: 2}  # and their pairs
    assert store.batches.count_answered(begun.run_id, begun.judge_id) == 2
    assert store.batches.finish(batch) == 2
    assert store.batches.unfinished(begun.run_id) == []
    assert store.batches.open_requests(begun.run_id, begun.judge_id, [1, 2]) == {
        1: [OpenRequest("original", 1, 1, None, '{"one":1}')],
        2: [OpenRequest("swapped", 1, 1, None, '{"four":4}')],
    }


def test_a_request_that_was_asked_twice_is_kept_in_the_order_of_asking(store: Store) -> None:
    begun = begin(store, item("x"))
    for nonce, form in (("a", None), ("b", "1,0")):
        batch = intend(store, begun, nonce, [RequestAsked(1, "original", 1, 1, form)])
        store.batches.receive(batch, [(1, f'"{nonce}"')])
    (kept,) = store.batches.open_requests(begun.run_id, begun.judge_id, [1]).values()
    assert [(each.form, each.answer) for each in kept] == [(None, '"a"'), ("1,0", '"b"')]


def test_what_was_asked_for_a_pass_goes_when_the_pass_is_stored_and_not_before(
    store: Store,
) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    batch = intend(store, begun, "n", asked(work.pair_id))
    store.batches.receive(batch, [(1, "1"), (2, "2")])
    original = NewPass(work.pair_id, begun.judge_id, begun.run_id, read_pass("original"))
    told = PassAsked(begun.run_id, begun.judge_id, work.pair_id, "original", 1)
    store.work.write([original], [], settled=[told])
    (kept,) = store.batches.open_requests(begun.run_id, begun.judge_id, [work.pair_id]).values()
    assert [each.order for each in kept] == ["swapped"]
    swapped = NewPass(work.pair_id, begun.judge_id, begun.run_id, read_pass("swapped"))
    verdict = NewVerdict(begun.run_id, 1, begun.judge_id, win("A", []))
    store.work.write([swapped], [verdict], settled=[told._replace(order="swapped")])
    assert store.batches.open_requests(begun.run_id, begun.judge_id, [work.pair_id]) == {}


def test_another_runs_requests_are_its_own(store: Store) -> None:
    first = begin(store, item("x"), name="first")
    second = begin(store, item("x"), name="second")
    intend(store, first, "n", asked(1))
    assert store.batches.unfinished(second.run_id) == []
    assert store.batches.open_requests(second.run_id, second.judge_id, [1]) == {}
