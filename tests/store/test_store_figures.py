"""Kept figures: computed by one process at a time, never waited for where it died, and never kept
once what they may quote is gone."""

from __future__ import annotations

import pytest

from evenhand.store import NewVote, Store
from evenhand.store import figures as kept_figures
from evenhand.store.figures import MOST_OF_A_RUN, FigureKey
from store_values import begin, item

KEY = FigureKey.of(1, "conclusions", {"side": "B", "level": 0.95})


def test_the_same_parameters_name_the_same_figure_in_any_order() -> None:
    assert FigureKey.of(1, "conclusions", {"level": 0.95, "side": "B"}) == KEY
    assert FigureKey.of(1, "conclusions", {"level": 0.9, "side": "B"}) != KEY


def test_one_begins_a_figure_and_the_others_wait_for_it(store: Store) -> None:
    kept = store.figures
    assert kept.find(KEY) is None
    number = kept.begin(KEY)
    assert number is not None
    assert kept.begin(KEY) is None
    begun = kept.find(KEY)
    assert begun is not None
    assert (begun.computing, begun.body, begun.stamp) == (True, None, None)
    assert kept.keep(number, '{"text":"响应 \\u0000"}'.encode(), stamp="now", took_s=1.5)
    found = kept.find(KEY)
    assert found is not None
    assert (found.computing, found.failed, found.stamp, found.took_s) == (False, False, "now", 1.5)
    assert found.body == '{"text":"响应 \\u0000"}'.encode()


def test_an_older_figure_stays_while_a_newer_one_is_computed(store: Store) -> None:
    kept = store.figures
    first = kept.begin(KEY)
    assert first is not None
    kept.keep(first, b"1", stamp="then", took_s=1)
    again = kept.begin(KEY)
    assert again == first
    found = kept.find(KEY)
    assert found is not None
    assert (found.computing, found.body, found.stamp) == (True, b"1", "then")
    kept.let_go(again)
    assert kept.begin(KEY) == first


def test_who_died_is_not_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store.figures
    number = kept.begin(KEY)
    monkeypatch.setattr(kept_figures, "COMPUTED_WITHIN_S", -1)
    found = kept.find(KEY)
    assert found is not None
    assert not found.computing
    assert kept.begin(KEY) == number


def test_a_figure_that_was_deleted_while_it_was_computed_is_not_kept(store: Store) -> None:
    """It may quote a text that is gone; nor under what the next one is begun as."""
    begun = begin(store, item("x"), name="quoted")
    key = FigureKey.of(begun.run_id, "diff", {})
    number = store.figures.begin(key)
    assert number is not None
    store.deletion.forget_texts("quoted")
    assert store.figures.begin(key) not in (None, number)
    assert not store.figures.keep(number, b'"a secret"', stamp="now", took_s=1)
    found = store.figures.find(key)
    assert found is not None
    assert found.body is None


def test_clients_who_think_of_ever_new_parameters_fill_no_disk(store: Store) -> None:
    for level in range(MOST_OF_A_RUN + 50):
        store.figures.begin(FigureKey.of(1, "conclusions", {"level": level}))
    store.figures.begin(FigureKey.of(2, "conclusions", {}))
    there = [
        store.figures.find(FigureKey.of(1, "conclusions", {"level": level})) is not None
        for level in range(MOST_OF_A_RUN + 50)
    ]
    assert sum(there) <= MOST_OF_A_RUN
    assert there[-1]
    assert store.figures.find(FigureKey.of(2, "conclusions", {})) is not None


def test_every_vote_changes_the_stamp_of_votes(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    stamps = [store.figures.votes_stamp()]
    for verdict in ("A", "B", None):
        store.votes.add([NewVote(work.pair_id, "Ann", verdict)])
        stamps.append(store.figures.votes_stamp())
    store.votes.withdraw(work.pair_id, "Ann")
    stamps.append(store.figures.votes_stamp())
    assert len(set(stamps)) == len(stamps)
