"""Verdicts read back, page by page, and counted."""

from __future__ import annotations

import pytest

from evenhand.contract import Outcome
from evenhand.data.records import Record
from evenhand.judging.decision import Judged
from evenhand.store import NewJudge, NewPass, NewVerdict, Spending, Store, Tally
from store_values import begin, failed_pass, failure, item, read_pass, unread_pass, win


def some_items(number: int) -> list[Record]:
    return [item(f"k{n}", row=n) for n in range(1, number + 1)]


def test_verdicts_come_in_pages_of_whole_items(store: Store) -> None:
    begun = begin(store, *some_items(5))
    other = store.runs.add_judge(NewJudge("other", "other"))
    store.runs.set_judges(begun.run_id, [begun.judge_id, other])
    numbers = [(n, judge) for n in (1, 2, 4, 5) for judge in (begun.judge_id, other)]
    verdicts = [NewVerdict(begun.run_id, n, judge, win("A", [])) for n, judge in numbers]
    store.work.write([], verdicts)
    pages, after = [], 0
    while page := store.verdicts.page(begun.run_id, after=after, limit=3):
        pages.append([(row.item.number, row.judge_id) for row in page])
        after = page[-1].item.number
    assert pages == [numbers[:4], numbers[4:]]
    assert [row.item.number for row in store.verdicts.each(begun.run_id, judge_id=other)] == [
        *(1, 2, 4, 5)
    ]
    whole = store.verdicts.each_whole(begun.run_id)
    assert [(w.row.item.number, w.row.judge_id) for w in whole] == numbers


def test_a_row_tells_its_verdict_and_its_item(store: Store) -> None:
    new = item("x", row=12, label="TIE", model_a="old", model_b="new", tags=("math", "easy"))
    begun = begin(store, new)
    begun.judge_all("B")
    (row,) = store.verdicts.page(begun.run_id)
    assert (row.outcome, row.winner, row.confidence) == (Outcome.WIN, "B", 0.75)
    assert (row.first_pass_winner, row.second_pass_winner) == ("B", "B")
    assert (row.confidence_source, row.error_kind, row.error_message) == ("stated", None, None)
    found = row.item
    assert (found.number, found.key, found.source, found.row) == (1, "x", "pairs.jsonl", 12)
    assert (found.label, found.model_a, found.model_b, found.tags) == (
        "TIE",
        "old",
        "new",
        ("math", "easy"),
    )


def test_an_item_shows_every_judge_also_those_that_have_not_judged(store: Store) -> None:
    begun = begin(store, item("x"), item("y"))
    other = store.runs.add_judge(NewJudge("other", "other"))
    store.runs.set_judges(begun.run_id, [other, begun.judge_id])
    begun.settle(begun.work()[0])
    whole = store.verdicts.item(begun.run_id, "x")
    assert whole is not None
    waiting, done = whole.judged
    assert (waiting.judge.name, waiting.settled, waiting.passes) == ("other", None, ())
    assert done.settled == win("A", [read_pass("original"), read_pass("swapped")])
    assert store.verdicts.item(begun.run_id, "z") is None


def test_an_empty_run_has_an_empty_tally(store: Store) -> None:
    begun = begin(store)
    assert store.verdicts.tally(begun.run_id) == Tally.of_codes((0, 0, 0, 0, 0))
    assert store.verdicts.page(begun.run_id) == []


def test_outcomes_are_counted_apart_and_sums_are_of_what_is_known(store: Store) -> None:
    begun = begin(store, *some_items(9))
    work = begun.work()
    usage = {"input_tokens": 10, "output_tokens": 3, "cost_usd": 0.25}
    begun.settle(work[0], "A", **usage)
    begun.settle(work[1], "A", **usage)
    begun.settle(work[2], "B", **usage)
    begun.settle(work[3], "TIE")  # its judge tells neither tokens nor cost
    inconsistent = Outcome.INCONSISTENT
    store.work.write(
        [],
        [
            NewVerdict(begun.run_id, 5, begun.judge_id, win("TIE", [])),
            NewVerdict(begun.run_id, 6, begun.judge_id, win("TIE", [], inconsistent)),
            # with ties forbidden, an inconsistent pair has a winner and is still no win
            NewVerdict(begun.run_id, 7, begun.judge_id, win("A", [], inconsistent)),
        ],
    )
    half = [read_pass("original", input_tokens=10), unread_pass("swapped", cost_usd=0.5)]
    begun.write(work[7], half, failure(half))
    store.work.write(
        [NewPass(work[8].pair_id, begun.judge_id, begun.run_id, failed_pass("original"))], []
    )
    tally = store.verdicts.tally(begun.run_id, begun.judge_id)
    # 4 × 2 ballots, and one more beside the unread one; 4 requests were in vain.
    expected = Spending(
        passes=11,
        requests=4 * 2 + 2 + 4,
        input_tokens=6 * 10 + 10,
        output_tokens=6 * 3,
        cached_input_tokens=None,
        cost_usd=6 * 0.25 + 0.5,
        uncounted_passes=11 - 6,
        unpriced_passes=11 - 7,
        time_ms=10 * 2 + 60_000,
    )
    assert tally == Tally.of_codes(
        (2, 1, 2, 2, 1),
        pairs=9,
        pending=1,
        unread_passes=1,
        failed_passes=1,
        used=expected,
        made=expected,
    )
    assert tally.judged == 8
    assert (tally.used.passes, tally.used.requests, tally.used.cost_usd) == (11, 14, 2.0)


def test_reused_passes_are_counted_as_used_and_not_as_made(store: Store) -> None:
    first = begin(store, item("x"), item("y"), name="one")
    first.judge_all("A", cost_usd=1.0)
    second = begin(store, item("x"), item("z"), name="two")
    (shared, own) = second.work()
    store.work.write([], [NewVerdict(second.run_id, shared.number, second.judge_id, win("A", []))])
    second.settle(own, "B", cost_usd=0.5)
    tally = store.verdicts.tally(second.run_id)
    assert (tally.used.passes, tally.reused_passes) == (4, 2)
    assert (tally.used.cost_usd, tally.made.cost_usd) == (3.0, 1.0)
    assert (tally.used.requests, tally.made.requests) == (4, 2)


def test_replaced_passes_were_paid_for_by_the_run_that_made_them(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    made = [read_pass("original", cost_usd=1.0), unread_pass("swapped", cost_usd=2.0)]
    begun.write(work, made, failure(made))
    store.work.retire(begun.run_id, {"unread"})
    begun.settle(work, "A", cost_usd=4.0)  # the original order is there already
    tally = store.verdicts.tally(begun.run_id)
    assert (tally.used.cost_usd, tally.made.cost_usd) == (5.0, 7.0)
    assert (tally.used.passes, tally.made.passes) == (2, 3)


def test_a_tally_of_all_judges_is_the_sum_of_theirs(store: Store) -> None:
    begun = begin(store, *some_items(3))
    other = store.runs.add_judge(NewJudge("other", "other"))
    stranger = store.runs.add_judge(NewJudge("stranger", "of another run"))
    store.runs.set_judges(begun.run_id, [begun.judge_id, other])
    begun.judge_all("A", cost_usd=1.0)
    pair_id = store.work.pending(begun.run_id, other, after=0, limit=1)[0].pair_id
    store.work.write(
        [
            NewPass(pair_id, judge, begun.run_id, read_pass("original"))
            for judge in (other, stranger)
        ],
        [NewVerdict(begun.run_id, 1, other, win("B", []))],
    )
    whole = store.verdicts.tally(begun.run_id)
    mine, theirs = (store.verdicts.tally(begun.run_id, judge) for judge in (begun.judge_id, other))
    assert (whole.pairs, mine.pairs, theirs.pairs) == (3, 3, 3)
    assert (whole.wins_a, whole.wins_b, whole.pending) == (3, 1, 2)
    assert (theirs.wins_a, theirs.wins_b, theirs.pending) == (0, 1, 2)
    assert [each.used.passes for each in (mine, theirs, whole)] == [6, 1, 7]
    assert [each.used.cost_usd for each in (mine, theirs, whole)] == [6.0, None, 6.0]
    assert (whole.used.unpriced_passes, theirs.used.unpriced_passes) == (1, 1)


@pytest.mark.parametrize("tokens", [2**62, 2**80, -1])
def test_a_number_of_tokens_that_cannot_be_is_not_known(store: Store, tokens: int) -> None:
    """A server may claim anything; it must spoil neither the batch nor the sums."""
    begun = begin(store, item("x"))
    begun.judge_all("A", input_tokens=tokens, output_tokens=1, cost_usd=float("inf"))
    (whole,) = store.verdicts.whole_page(begun.run_id)
    assert isinstance(whole.settled, Judged)
    assert whole.settled.passes[0].usage.input_tokens is None
    tally = store.verdicts.tally(begun.run_id)
    assert (tally.used.input_tokens, tally.used.output_tokens, tally.used.cost_usd) == (
        None,
        2,
        None,
    )
    assert (tally.used.uncounted_passes, tally.used.unpriced_passes) == (2, 2)
