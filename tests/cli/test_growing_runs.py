"""Looking again, at many things or before the end: each case through the command line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from command_line import Command
from evenhand.store import Store
from judged_runs import judged_run
from stored_runs import Row, make_run, says

HERE = ("--store", "evenhand.db")


def rows(outcomes: str, *, model_b: str | None = "new") -> list[Row]:
    model_a = None if model_b is None else "old"
    return [
        Row(
            f"{model_b}-{n}",
            says("A" if letter == "-" else letter),
            judged=letter != "-",
            model_a=model_a,
            model_b=model_b,
        )
        for n, letter in enumerate(outcomes)
    ]


def finished(store: Store, name: str, given: list[Row]) -> None:
    store.runs.update(make_run(store, name, given), state="finished")


def shown(command: Command, run: str, *options: str) -> Any:
    return command("report", run, "--json", *options, *HERE).json["conclusions"]


def gate(command: Command, run: str, *options: str) -> int:
    code: int = command("gate", run, *options, *HERE).code
    return code


def test_a_second_look_at_growing_data_allows_for_the_first(command: Command, store: Store) -> None:
    # 62 of 100: Wilson's interval is 0.522 to 0.709, which one look may claim from. So would the
    # second, from 68 of 110 (0.525 to 0.704); the bettors' interval holds one half both times.
    finished(store, "first", rows("BBBAA" * 12 + "B" * 26 + "A" * 14, model_b=None))
    grown = rows("BBBAA" * 12 + "B" * 26 + "A" * 14 + "B" * 6 + "A" * 4, model_b=None)
    finished(store, "second", grown)
    assert gate(command, "first") == 0
    assert gate(command, "second") == 6
    report = shown(command, "second")
    (concluded,) = report["conclusions"]
    assert concluded["winRate"]["alwaysValid"] is True
    assert concluded["grownFrom"] == ["first"]
    # 5% for the first look, 5% for all others
    assert notes_on_growth(report) == [grown_note(look=2, earlier="first", percent=10)]


def grown_note(*, look: int, earlier: str, percent: int) -> str:
    return (
        f"look {look} at growing data (earlier: {earlier}): intervals from the second look on are "
        "valid for any number of looks; the chance of a false claim in any look is at most "
        f"{percent}%, and half that with --growing from the first look on"
    )


def notes_on_growth(report: Any) -> list[str]:
    return [note for note in report["notes"] if "growing" in note]


def test_every_earlier_look_is_counted_and_the_last_three_are_named(
    command: Command, store: Store
) -> None:
    for look, name in enumerate(("one", "two", "three", "four", "five"), 1):
        finished(store, name, rows("BA" * 5 * look))
    for name, note in (
        ("three", grown_note(look=3, earlier="one, two", percent=10)),
        ("five", grown_note(look=5, earlier="two, three, four", percent=10)),
    ):
        assert notes_on_growth(shown(command, name)) == [note]
    # At 90% each kind of look may err in 10%.
    wider = shown(command, "two", "--level", "0.9")
    assert notes_on_growth(wider) == [grown_note(look=2, earlier="one", percent=20)]
    assert notes_on_growth(shown(command, "one")) == []


def test_growing_data_is_always_valid_from_the_first_look_if_you_say_so(
    command: Command, store: Store
) -> None:
    finished(store, "first", rows("B" * 62 + "A" * 38))
    assert gate(command, "first") == 0
    assert gate(command, "first", "--growing") == 6
    report = shown(command, "first", "--growing")
    assert report["conclusions"][0]["winRate"]["alwaysValid"] is True
    assert notes_on_growth(report) == [
        "growing data: intervals are valid for any number of looks; the chance of a false claim in "
        "any of them is at most 5%"
    ]
    # A clear difference is shown all the same.
    finished(store, "clear", rows("B" * 80 + "A" * 20, model_b="clear"))
    assert gate(command, "clear", "--growing") == 0


def test_verdicts_made_anew_on_the_same_pairs_are_a_look_too(
    command: Command, store: Store
) -> None:
    """No pass of the second run is the first one's, and still its pairs are."""
    finished(store, "first", rows("B" * 62 + "A" * 38))
    finished(store, "anew", rows("B" * 62 + "A" * 38 + "B" * 5))
    with_passes = store.runs.all()
    assert {each.reused_passes for each in with_passes} == {0}
    assert shown(command, "anew")["conclusions"][0]["grownFrom"] == ["first"]


def test_twelve_matchups_share_the_error_of_one(command: Command, store: Store) -> None:
    # Each alone would be claimed: 63 of 100 is 0.532 to 0.718 at 95%. The score interval at
    # 1 - 0.05/12 (z = 2.8653, z²/100 = 0.0821) begins at
    # (0.63 + 0.04105 - 2.8653 sqrt(0.63·0.37/100 + 0.0821/400)) / 1.0821 = 0.4868.
    letters = "B" * 75 + "A" * 25 + ("B" * 63 + "A" * 37) * 11
    met = [("old", f"m{other}") for other in range(12) for _ in range(100)]
    judged_run(store, "league", {"judge": letters}, models=met)
    report = shown(command, "league")
    lows = [each["winRate"]["low"] for each in report["conclusions"]]
    assert lows[0] > 0.5
    assert lows[1:] == pytest.approx([0.4868] * 11, abs=0.0002)
    assert {each["winRate"]["level"] for each in report["conclusions"]} == {0.95}
    assert any(note.startswith("12 matchups") for note in report["notes"])
    # The gate follows the intervals.
    ruled = command("gate", "league", "--json", *HERE).json
    assert [each["ruling"] for each in ruled["checks"]] == ["pass"] + ["undecided"] * 11
    # One of them alone is one claim.
    finished(store, "two", rows("B" * 63 + "A" * 37, model_b="alone"))
    assert gate(command, "two") == 0


def test_parts_allow_for_pending_pairs_as_the_headline_does(command: Command, store: Store) -> None:
    given = [replace(row, tags=("all",)) for row in rows("B" * 65 + "A" * 10 + "-" * 25)]
    make_run(store, "part", given)
    (concluded,) = shown(command, "part")["conclusions"]
    whole = concluded["winRate"]
    # Were the pending quarter lost, it would be 65 of 100.
    assert whole["low"] < 0.65
    for parts in (concluded["byCriterion"], concluded["byTag"]):
        (part,) = parts
        assert (part["rate"]["low"], part["rate"]["high"]) == (whole["low"], whole["high"])
