"""Kept figures: worked out by one process at a time, and never by one that died."""

from __future__ import annotations

from evenhand.store import NewVote, Store
from evenhand.store.report_cache import MOST_OF_A_RUN, ReportKey
from store_values import begin, item

KEY = ReportKey.of(1, "conclusions", {"side": "B", "level": 0.95})


def test_the_same_parameters_name_the_same_figure_in_any_order() -> None:
    assert ReportKey.of(1, "conclusions", {"level": 0.95, "side": "B"}) == KEY
    assert ReportKey.of(1, "conclusions", {"level": 0.9, "side": "B"}) != KEY


def test_one_takes_a_figure_and_the_others_wait_for_it(store: Store) -> None:
    kept = store.report_cache
    assert kept.find(KEY) is None
    assert kept.take(KEY, "one")
    assert not kept.take(KEY, "other")
    begun = kept.find(KEY)
    assert begun is not None
    assert (begun.leased, begun.body, begun.stamp) == (True, None, None)
    assert not kept.put(KEY, "other", b"{}", stamp="now", took_s=1)
    assert kept.put(KEY, "one", '{"text":"响应 \\u0000"}'.encode(), stamp="now", took_s=1.5)
    found = kept.find(KEY)
    assert found is not None
    assert (found.leased, found.failed, found.stamp, found.took_s) == (False, False, "now", 1.5)
    assert found.body == '{"text":"响应 \\u0000"}'.encode()


def test_an_older_figure_stays_while_a_newer_one_is_worked_out(store: Store) -> None:
    kept = store.report_cache
    kept.take(KEY, "one")
    kept.put(KEY, "one", b"1", stamp="then", took_s=1)
    assert kept.take(KEY, "other")
    found = kept.find(KEY)
    assert found is not None
    assert (found.leased, found.body, found.stamp) == (True, b"1", "then")
    kept.let_go(KEY, "other")
    assert kept.take(KEY, "third")


def test_who_died_is_not_waited_for(store: Store) -> None:
    kept = store.report_cache
    assert kept.take(KEY, "dead", leased_s=-1)
    found = kept.find(KEY)
    assert found is not None
    assert not found.leased
    assert kept.take(KEY, "living")
    assert not kept.put(KEY, "dead", b"{}", stamp="late", took_s=1)
    assert not kept.renew(KEY, "dead")
    assert kept.renew(KEY, "living")


def test_clients_who_think_of_ever_new_parameters_fill_no_disk(store: Store) -> None:
    for level in range(MOST_OF_A_RUN + 50):
        store.report_cache.take(ReportKey.of(1, "conclusions", {"level": level}), "me")
    store.report_cache.take(ReportKey.of(2, "conclusions", {}), "me")
    there = [
        store.report_cache.find(ReportKey.of(1, "conclusions", {"level": level})) is not None
        for level in range(MOST_OF_A_RUN + 50)
    ]
    assert sum(there) <= MOST_OF_A_RUN
    assert there[-1]
    assert store.report_cache.find(ReportKey.of(2, "conclusions", {})) is not None


def test_every_vote_changes_the_stamp_of_votes(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    stamps = [store.report_cache.votes_stamp()]
    for verdict in ("A", "B", None):
        store.add_votes([NewVote(work.pair_id, "Ann", verdict)])
        stamps.append(store.report_cache.votes_stamp())
    store.withdraw_vote(work.pair_id, "Ann")
    stamps.append(store.report_cache.votes_stamp())
    assert len(set(stamps)) == len(stamps)
