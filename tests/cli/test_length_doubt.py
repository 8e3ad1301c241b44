"""What length may have decided is not claimed: each case through the command line."""

from __future__ import annotations

from typing import Any

import pytest

from command_line import Command
from evenhand.store import Store
from stored_runs import Row, make_run, says

HERE = ("--store", "evenhand.db")
SHORT, LONG = "x" * 100, "x" * 200


def pairs(*groups: tuple[int, str, str], tag: str | None = None) -> list[Row]:
    """So many pairs of which this response is the longer one and this one wins."""
    rows = [(longer, wins) for count, longer, wins in groups for _ in range(count)]
    return [
        Row(
            f"q{n}",
            says(wins),
            model_a="old",
            model_b="new",
            pair={
                "prompt": f"question {n}",
                "response_a": LONG if longer == "A" else SHORT,
                "response_b": LONG if longer == "B" else SHORT,
            },
            tags=(tag,) if tag else (),
        )
        for n, (longer, wins) in enumerate(rows)
    ]


# 210 of the 270 pairs in which new is longer, and 3 of the other 30: log-odds of 1.25 and -2.20,
# so that halfway between them, at equal length, new is at expit(-0.47) = 0.38; in all 213 of 300.
BY_LENGTH = ((210, "B", "B"), (60, "B", "A"), (3, "A", "B"), (27, "A", "A"))


def told(ran: Any) -> str:
    return " ".join(ran.out.split())


def test_the_longer_answer_that_always_wins_decides_nothing(command: Command, store: Store) -> None:
    make_run(store, "always", pairs((216, "B", "B"), (84, "A", "A")))
    ran = command("gate", "always", *HERE)
    assert ran.code == 6
    lead = "No conclusion on new vs old: the longer response won 300 of 300 decided pairs"
    assert ran.out.startswith(lead)
    assert "--allow-length" in ran.err
    assert lead in told(command("report", "always", *HERE))


def test_a_claim_that_goes_at_equal_length_is_held_back(command: Command, store: Store) -> None:
    make_run(store, "padded", pairs(*BY_LENGTH))
    ran = command("gate", "padded", "--json", *HERE)
    assert ran.code == 6
    (check,) = ran.json["checks"]
    assert check["rate"] == pytest.approx(0.71)
    assert check["low"] > 0.5
    assert [hold["code"] for hold in check["holds"]] == ["length"]
    # 210 that the longer one won for new, and 27 for old
    assert "the longer response won 237 of 300 decided pairs" in check["sentence"]
    assert command("gate", "padded", "--min-win-rate", "0.45", *HERE).code == 6
    # That new is not far better is no claim that its length helped.
    sure = ("--assume-accuracy", "0.95")
    assert command("gate", "padded", "--min-win-rate", "0.8", *sure, *HERE).code == 1
    allowed = command("gate", "padded", "--allow-length", "--junit", "gate.xml", *HERE)
    assert allowed.code == 0
    accepted = "Accepted as you requested: the longer response won 237 of 300"
    assert accepted in allowed.out
    # Who reads the build server's page is told too.
    junit = (command.directory / "gate.xml").read_text()
    assert accepted in junit
    assert 'name="allowLength" value="True"' in junit


def test_the_other_side_is_held_back_as_much(command: Command, store: Store) -> None:
    make_run(store, "padded", pairs(*BY_LENGTH))
    ran = command("gate", "padded", "--side", "A", *HERE)
    assert ran.code == 6
    assert ran.out.startswith("No conclusion on old vs new: the longer response won 237 of 300")


def test_a_judge_that_ignores_padding_may_prefer_longer_answers(
    command: Command, store: Store
) -> None:
    make_run(store, "padded", pairs(*BY_LENGTH))
    probes: dict[str, Any] = {"data": {"probes": "digest"}}
    # Eleven of twelve are not passed.
    make_run(store, "fell", pairs((11, "A", "B"), (1, "A", "A"), tag="padded"), plan=probes)
    assert command("gate", "padded", *HERE).code == 6
    make_run(store, "held", pairs((8, "A", "B"), (4, "A", "TIE"), tag="padded"), plan=probes)
    ran = command("gate", "padded", *HERE)
    assert ran.code == 0
    assert "the judge never preferred padding in 12 probes (run held)" in ran.out


def test_a_win_that_length_does_not_explain_passes(command: Command, store: Store) -> None:
    # new wins 7 of 10 whichever is longer, and is longer in 200 of 300.
    even = ((140, "B", "B"), (60, "B", "A"), (70, "A", "B"), (30, "A", "A"))
    make_run(store, "even", pairs(*even))
    assert command("gate", "even", *HERE).code == 0
    # The longer wins more often, and at equal length new still wins: 90% and 70%.
    clear = ((180, "B", "B"), (20, "B", "A"), (70, "A", "B"), (30, "A", "A"))
    make_run(store, "clear", pairs(*clear))
    assert command("gate", "clear", *HERE).code == 0


def test_a_side_that_is_nearly_always_longer_has_a_note(command: Command, store: Store) -> None:
    make_run(store, "long", pairs((200, "B", "B"), (85, "B", "A"), (10, "A", "B"), (5, "A", "A")))
    assert command("gate", "long", *HERE).code == 0
    told_of = told(command("report", "long", *HERE))
    assert "new is longer in 95% of 300 pairs, so its length and its merit cannot" in told_of
