"""A ranking claims no lead that a report of the same store would hold back: each case through the
command line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from command_line import Command
from evenhand.contract import Winner
from evenhand.store import Store
from stored_runs import Row, follows_place, make_run, mumbles, says

HERE = ("--store", "evenhand.db")
ANSWERS = {"A": says("A"), "B": says("B"), "T": says("TIE"), "I": follows_place, "X": mumbles}


def pairs(outcomes: str, *, models: tuple[str, str] = ("old", "new"), **more: Any) -> list[Row]:
    more |= {"model_a": models[0], "model_b": models[1]}
    return [Row(f"{models} {n}", ANSWERS[letter], **more) for n, letter in enumerate(outcomes)]


def longer(rows: list[Row], side: str) -> list[Row]:
    """With a response of twice the other's length."""
    lengths = (200, 100) if side == "A" else (100, 200)
    texts = {"response_a": "x" * lengths[0], "response_b": "x" * lengths[1]}
    return [replace(row, pair={"prompt": row.key, **texts}) for row in rows]


def lead(command: Command, run: str, *options: str) -> str:
    ran = command("rank", run, *options, *HERE)
    assert ran.code == 0
    return " ".join(ran.out.split())


def same(command: Command, run: str) -> str:
    """What report and rank open with, which is the same where they hold a claim back."""
    told = command("report", run, "--json", *HERE).json["conclusions"]["conclusions"][0][
        "messages"
    ][0]
    ranked = command("rank", run, "--json", *HERE).json["objection"]
    assert ranked == told
    code: str = told["code"]
    return code


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ("B" * 4 + "T" * 96, "no_conclusion.chance"),
        ("B" * 40 + "I" * 40 + "T" * 20, "no_conclusion.position"),
        ("B" * 60 + "A" * 40 + "X" * 3, "no_conclusion.missing"),
    ],
)
def test_two_models_are_ranked_as_they_are_reported(
    command: Command, store: Store, outcomes: str, code: str
) -> None:
    store.runs.update(make_run(store, "two", pairs(outcomes)), state="finished")
    assert same(command, "two") == code
    told = lead(command, "two")
    assert "significantly better" not in told
    # Its table has an order all the same, and says whose.
    assert told.index("The ranks and scores below use the judge's verdicts alone.") > 0


def test_a_lead_that_length_explains_is_not_claimed(command: Command, store: Store) -> None:
    # 0.71 in all, and at equal length 0.38: as in tests/cli/test_length_doubt.py.
    by_length = [
        *longer(pairs("B" * 210 + "A" * 60), "B"),
        *longer(pairs("B" * 3 + "A" * 27, models=("old", "new")), "A"),
    ]
    rows = [replace(row, key=f"q{n}") for n, row in enumerate(by_length)]
    rows = [replace(row, pair={**(row.pair or {}), "prompt": row.key}) for row in rows]
    store.runs.update(make_run(store, "padded", rows), state="finished")
    assert same(command, "padded") == "no_conclusion.length"
    assert "the longer response won 237 of 300 decided pairs" in lead(command, "padded")
    # The same where a third model is far behind both: it says nothing of the two.
    third = [
        row
        for models in (("bad", "new"), ("bad", "old"))
        for row in pairs("B" * 95 + "A" * 5, models=models)
    ]
    make_run(store, "three", [*rows, *third])
    told = lead(command, "three")
    assert told.startswith("No conclusion on new vs old: the longer response won 237 of 300")


def test_a_lead_that_people_deny_is_not_claimed(command: Command, store: Store) -> None:
    # On 90 pairs of an unknown draw the judge has new at 60, and people have it at 35.
    counts: list[tuple[int, Winner | None]] = [
        *((25, "A"), (35, "B"), (210, None)),  # of those that the judge gives to new
        *((30, "A"), (100, None)),
    ]
    labels = [label for count, label in counts for _ in range(count)]
    rows = [
        replace(row, label=label)
        for row, label in zip(pairs("B" * 270 + "A" * 130), labels, strict=True)
    ]
    store.runs.update(make_run(store, "some", rows), state="finished")
    assert same(command, "some") == "no_conclusion.contradicted"
    # Labels on every pair: people's rate is the claim, and rank says what it says.
    every = [replace(row, label="A" if n % 5 < 2 else "B") for n, row in enumerate(rows[:270])]
    make_run(store, "people", every)
    assert command("gate", "people", *HERE).out.startswith("new beats old: 60% win rate")
    assert lead(command, "people").startswith("new is significantly better than old")
    # The judge has new at 68%, and people at 32%.
    against = [replace(row, label="B" if n % 25 < 8 else "A") for n, row in enumerate(rows)]
    make_run(store, "against", against)
    assert lead(command, "against").startswith("new loses to old: 32% win rate (95% CI 28–37,")
    split = [replace(row, label="AB"[n % 2]) for n, row in enumerate(rows[:270])]  # type: ignore[arg-type]
    make_run(store, "split", split)
    assert lead(command, "split").startswith("new and old are not significantly different: new at")


def test_a_second_look_at_growing_data_leads_by_the_interval_for_looks(
    command: Command, store: Store
) -> None:
    # 60 of 100 are significant in one look and not in one of many.
    rows = [replace(row, key=f"q{n}") for n, row in enumerate(pairs("BBBAA" * 20 + "B"))]
    rows = [replace(row, pair={"prompt": row.key}) for row in rows]
    for name, size in (("monday", 60), ("tuesday", 101)):
        store.runs.update(make_run(store, name, rows[:size]), state="finished")
    make_run(store, "alone", rows, judges=("another",))
    assert lead(command, "alone").startswith("new is significantly better than old")
    assert lead(command, "tuesday").startswith("new and old are not significantly different")


def test_who_loses_to_a_model_does_not_lead_it(command: Command, store: Store) -> None:
    # new beats seven others in 19 of 20 pairs each, and loses to old in 16 of 20.
    rows = pairs("A" * 16 + "B" * 4)
    for other in "abcdefg":
        rows += pairs("B" * 19 + "A", models=(other, "new"))
        rows += pairs("B" * 12 + "A" * 8, models=(other, "old"))
    make_run(store, "circle", rows)
    told = lead(command, "circle")
    assert told.startswith("new has the highest score, but loses to old: 20% win rate (")
    assert "significantly better than every other" not in told


def test_judges_and_runs_that_are_ranked_together_are_held_back_together(
    command: Command, store: Store
) -> None:
    make_run(store, "one", pairs("B" * 70 + "A" * 30), judges=("x", "y"))
    make_run(store, "two", pairs("B" * 70 + "A" * 30, models=("old", "new")), judges=("z",))
    ran = command("rank", "one", "two", *HERE)
    assert " ".join(ran.out.split()).startswith("new is significantly better than old")
    make_run(store, "flips", pairs("I" * 300), judges=("w",))
    ran = command("rank", "one", "two", "flips", *HERE)
    # 300 of 600 flip, and as many are decided.
    told = " ".join(ran.out.split())
    assert told.startswith("No conclusion on new vs old: in 50% of 600 pairs")


def test_a_lead_that_one_of_the_judges_denies_is_not_claimed(
    command: Command, store: Store
) -> None:
    """Of 200 pairs x gives 140 to new and y 80, which is 0.335 to 0.469 by Wilson; on 20 both do,
    and on no pair both give it to old."""
    make_run(store, "one", pairs("B" * 120 + "A" * 60 + "B" * 20), judges=("x",))
    make_run(store, "two", pairs("A" * 120 + "B" * 60 + "B" * 20), judges=("y",))
    assert lead(command, "one").startswith("new is significantly better than old")
    ran = command("rank", "one", "two", *HERE)
    told = " ".join(ran.out.split())
    assert told.startswith(
        "new has the highest score, but by y alone it loses to old: 40% win rate (95% CI 33–47, "
    )
