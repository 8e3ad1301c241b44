"""Deleting a run takes what is its own and leaves what others use."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from evenhand.contract import Winner
from evenhand.data.records import BadRow
from evenhand.errors import InputError, StoreBusy
from evenhand.judging.preparation import GeneratedAnswer
from evenhand.store import NewJudge, NewPass, NewVerdict, NewVote, Store
from evenhand.store.batches import NewBatch, RequestAsked
from evenhand.store.figures import FigureKey
from evenhand.store.jobs import JobPrompts, NewJob
from evenhand.store.schema import metadata
from store_values import begin, failed_pass, failure, item, read_pass, win


def sizes(store: Store) -> dict[str, int]:
    """How many rows each table has, where it has any."""
    with store.reading() as connection:
        counts = {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
        }
    return {name: count for name, count in counts.items() if count}


def test_a_run_that_shares_nothing_leaves_nothing(store: Store) -> None:
    begun = begin(store, item("x", tags=("maths",)), item("y"))
    store.jobs.add(begun.run_id, NewJob(("judge",), {}))
    store.work.fill_queue(begun.run_id, seed=0)
    store.items.add_skipped(begun.run_id, [BadRow("f", 1, "cut")])
    first, _ = begun.work()
    begun.write(first, [failed_pass("original")], failure([]))
    store.work.retire(begun.run_id, {"failed"})
    begun.judge_all()
    verdicts: tuple[Winner, ...] = ("A", "B")
    for verdict in verdicts:
        store.votes.add([NewVote(first.pair_id, "Ann", verdict)])
    store.words.add(begun.run_id)
    store.figures.begin(FigureKey.of(begun.run_id, "totals", {}))
    batch = NewBatch(begun.run_id, begun.judge_id, "n", first_number=1, last_number=1)
    store.batches.intend(batch, [RequestAsked(first.pair_id, "original", 1, 1)])
    store.answers.add(begun.run_id, [GeneratedAnswer("k", "answered", "Canberra")])
    store.flags.set(begun.run_id, first.number)
    store.jobs.keep_prompts(begun.run_id, JobPrompts("p.jsonl", b"{}", {}))
    # All but the answers to requests and the ends of logins, which are of no run.
    assert set(sizes(store)) == set(metadata.tables) - {"idempotency", "ended_sessions"}
    store.deletion.delete("run", with_votes=True)
    assert sizes(store) == {}


def test_an_unknown_run_cannot_be_deleted(store: Store) -> None:
    with pytest.raises(InputError, match="the store has no run named 'nothing'"):
        store.deletion.delete("nothing")


def test_what_another_run_uses_stays_and_forgets_who_made_it(store: Store) -> None:
    first = begin(store, item("shared"), item("own"), name="first")
    first.judge_all()
    second = begin(store, item("shared"), item("more"), name="second")
    store.work.write([], [NewVerdict(second.run_id, 1, second.judge_id, win("A", []))])
    before = sizes(store)["passes"]
    assert store.deletion.passes_to_go(first.run_id) == 2  # both orders of the pair that is its own
    assert store.deletion.passes_to_go(second.run_id) == 0
    store.deletion.delete("first")
    assert sizes(store)["passes"] == before - 2
    assert [run.name for run in store.runs.all()] == ["second"]
    whole = store.verdicts.item(second.run_id, "shared")
    assert whole is not None
    (judged,) = whole.judged
    assert [stored.made for stored in judged.passes] == [
        read_pass("original"),
        read_pass("swapped"),
    ]
    assert {stored.run_id for stored in judged.passes} == {None}
    assert sizes(store) == {
        "runs": 1,
        "judges": 1,
        "run_judges": 1,
        "items": 2,
        "pairs": 2,
        "passes": 2,
        "verdicts": 1,
    }
    assert store.verdicts.tally(second.run_id).reused_passes == 2
    store.deletion.delete("second")
    assert sizes(store) == {}


def test_passes_of_a_judge_that_no_run_has_any_more_go_with_it(store: Store) -> None:
    """The pair stays, since the other run has it; the first run's judge is nobody's now."""
    first = begin(store, item("x"), name="first", judge="first")
    second = begin(store, item("x"), name="second", judge="second")
    first.judge_all("A")
    second.judge_all("B")
    assert store.deletion.passes_to_go(first.run_id) == 2
    store.deletion.delete("first")
    assert sizes(store)["passes"] == 2
    assert sizes(store)["judges"] == 1
    assert store.verdicts.tally(second.run_id).wins_b == 1


def test_a_judge_that_still_has_passes_elsewhere_is_kept(store: Store) -> None:
    keeper = begin(store, item("x"), name="keeper", judge="both")
    keeper.judge_all()
    other = store.runs.add_judge(NewJudge("another", "another"))
    store.runs.set_judges(keeper.run_id, [other])
    begin(store, item("y"), name="goes", judge="both").judge_all()
    store.deletion.delete("goes")
    assert sizes(store)["judges"] == 2
    assert sizes(store)["passes"] == 2
    store.runs.set_judges(keeper.run_id, [keeper.judge_id])
    assert store.verdicts.tally(keeper.run_id).wins_a == 1


def test_a_run_in_use_cannot_be_deleted(store: Store) -> None:
    begun = begin(store, item("x"))
    with store.hold(begun.run_id), pytest.raises(StoreBusy, match="in use by another process"):
        store.deletion.delete("run")
    assert store.items.count(begun.run_id) == 1


def test_a_pair_that_comes_again_after_its_run_was_deleted_is_new(store: Store) -> None:
    begin(store, item("x")).judge_all()
    store.deletion.delete("run")
    again = begin(store, item("x"))
    (work,) = again.work()
    assert work.passes == {}
    store.work.write(
        [NewPass(work.pair_id, again.judge_id, again.run_id, read_pass("original"))], []
    )
    assert sizes(store)["passes"] == 1


@pytest.mark.parametrize("way", ["forget", "delete"])
def test_figures_of_other_runs_that_may_quote_a_run_go_with_its_texts(
    store: Store, way: str
) -> None:
    own, other = (begin(store, item(name), name=name) for name in ("own", "other"))
    kept = store.figures
    keys = {
        what: FigureKey.of(other.run_id, what, {"runs": [other.run_id, own.run_id]})
        for what in ("diff", "audit", "ranking", "conclusions")
    }
    for key in keys.values():
        number = kept.begin(key)
        assert number is not None
        kept.keep(number, b'{"prompt":"a secret"}', stamp="now", took_s=1.0)
    if way == "forget":
        store.deletion.forget_texts("own")
    else:
        store.deletion.delete("own")
    left = {what for what, key in keys.items() if kept.find(key) is not None}
    assert left == {"conclusions"}
