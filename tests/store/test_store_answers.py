"""Generated answers: kept once, found by their keys, gone with their run's texts."""

from __future__ import annotations

from dataclasses import replace

from evenhand.judging.preparation import GeneratedAnswer
from evenhand.messages import Message
from evenhand.store import NewRun, Store
from evenhand.store.answers import AnswerSpending

ANSWER = GeneratedAnswer("k1", "answered", "text\x00 \x1a 文", None, "m-1", 2, 11, 7, 0.5, 3.25)


def run_of(store: Store, name: str = "r") -> int:
    return store.runs.create(NewRun(name, name, {})).id


def test_answers_come_back_as_they_were(store: Store) -> None:
    failed = GeneratedAnswer("k2", "failed", error=Message("judges.command_empty"))
    store.answers.add(run_of(store), [ANSWER, failed])
    found = store.answers.find(["k1", "k2", "k3"])
    assert found == {"k1": ANSWER, "k2": failed}
    assert isinstance(found["k2"].error, Message)


def test_only_a_failed_one_gives_way_to_another(store: Store) -> None:
    run = run_of(store)
    store.answers.add(run, [ANSWER, GeneratedAnswer("k2", "failed", requests=4)])
    store.answers.add(run, [replace(ANSWER, text="other"), replace(ANSWER, key="k2")])
    found = store.answers.find(["k1", "k2"])
    assert (found["k1"].text, found["k2"].outcome) == (ANSWER.text, "answered")


def test_spending_is_of_the_run_that_generated(store: Store) -> None:
    first, second = run_of(store), run_of(store, "s")
    store.answers.add(first, [ANSWER, replace(ANSWER, key="k2")])
    store.answers.add(second, [GeneratedAnswer("k3", "failed", requests=3)])
    assert store.answers.spent(first, artefacts=False) == AnswerSpending(4, 22, 14, 1.0, 1.0)
    # Of a call that failed nobody knows what it cost.
    assert store.answers.spent(second, artefacts=False) == AnswerSpending(3, None, None, None)


def test_artefacts_are_counted_apart_from_answers(store: Store) -> None:
    run = run_of(store)
    store.answers.add(run, [ANSWER, replace(ANSWER, key="metrics-ab", requests=3, cost_usd=0.25)])
    assert store.answers.spent(run, artefacts=False) == AnswerSpending(2, 11, 7, 0.5, 0.5)
    assert store.answers.spent(run, artefacts=True) == AnswerSpending(3, 11, 7, 0.25, 0.25)
    assert store.answers.spent(run) == AnswerSpending(5, 22, 14, 0.75, 0.75)


def test_one_failed_call_leaves_what_the_others_cost_known(store: Store) -> None:
    run = run_of(store)
    store.answers.add(run, [ANSWER, GeneratedAnswer("k3", "failed", requests=3)])
    assert store.answers.spent(run, artefacts=False) == AnswerSpending(5, None, None, None, 0.5)


def test_answers_go_with_their_run_and_with_its_texts(store: Store) -> None:
    for name in ("r", "s"):
        store.answers.add(run_of(store, name), [replace(ANSWER, key=name)])
    store.deletion.delete("r")
    assert list(store.answers.find(["r", "s"])) == ["s"]
    store.deletion.forget_texts("s")
    assert store.answers.find(["r", "s"]) == {}
