"""`evenhand jury` as people use it."""

from __future__ import annotations

import json

import pytest

from command_line import Command
from evenhand.store import Store, open_store
from judged_runs import judged_run

LABELS = "AB" * 50


@pytest.fixture
def store(command: Command) -> Store:
    with open_store(command.directory / "s.db") as opened:
        judged_run(
            opened,
            "kitchen",
            {"x": LABELS, "y": "A" * 100, "z": "AB" * 25 + "BA" * 25},
            labels=LABELS,
        )
        return opened


def test_it_shows_verdicts_accuracy_and_judges(command: Command, store: Store) -> None:
    ran = command("jury", "kitchen", "--store", "s.db", "--weights", "majority")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "jury of 3 judges, run kitchen"
    assert lines[1] == "the side with the most votes wins; a verdict needs 2 votes"
    # Labels A: x and y say A. Labels B in the first half: x and z say B, in the second y and z A.
    assert lines[2] == (
        "100 pairs: A wins 75, B wins 25, ties 0, hung 0, too few votes 0; unanimous 25"
    )
    rules = {line.split("  ")[0]: line.split()[-9:] for line in lines}
    # Right on 75 of 100 where x, the best, is right on all: 25 points less.
    majority = " ".join(rules["majority, quorum 2"])
    assert "75.0% -25.0 (" in majority
    assert "gain over the best judge: -25.0 (" in ran.out
    assert "x and y" in ran.out


def test_labels_choose_the_rule(command: Command, store: Store) -> None:
    lines = command("jury", "kitchen", "--store", "s.db").out.splitlines()
    assert lines[1] == "x decides alone"
    assert lines[2] == (
        "chosen by the labels from a single judge, plurality, majority and learned weights"
    )
    assert any(line.startswith("chosen (best member) ") for line in lines)
    assert any(line.startswith("best member (x) ") for line in lines)
    gain = "gain over the best judge: zero by construction: the jury's verdicts are those of its"
    assert f"{gain} best judge" in lines
    assert "+0.0 (+0.0 to +0.0)" not in "\n".join(lines)


def test_a_judge_that_decides_alone_is_inconsistent_and_not_hung(command: Command) -> None:
    """V is A in one order and B in the other; X is not read."""
    labels = "AB" * 40
    said = {"x": f"VVX{labels[3:]}", "y": "A" * 80, "z": "B" * 80}
    with open_store(command.directory / "s.db") as opened:
        judged_run(opened, "run", said, labels=labels)
    lines = command("jury", "run", "--store", "s.db").out.splitlines()
    assert lines[1] == "x decides alone"
    assert lines[3].startswith("80 pairs: A wins 38, B wins 39, ties 0, inconsistent 2, no vote 1;")
    assert "hung" not in "\n".join(lines)


def test_without_labels_the_gain_is_unknown(command: Command) -> None:
    with open_store(command.directory / "s.db") as opened:
        judged_run(opened, "bare", {"x": LABELS, "y": "A" * 100, "z": "AB" * 25 + "BA" * 25})
    ran = command("jury", "bare", "--store", "s.db")
    lines = ran.out.splitlines()
    assert lines[1] == (
        "the side with the most votes wins; a judge whose two orders disagree gives half a "
        "vote to each"
    )
    assert "gain over the best judge: unknown without labels: " in ran.out
    assert "effective votes: no pair has a label" in ran.out


def test_abstained_verdicts_have_a_column_where_there_are_any(command: Command) -> None:
    with open_store(command.directory / "s.db") as opened:
        judged_run(
            opened, "sure", {"x": "AB", "y": "AB"}, confidences=[0.9, 0.6], thresholds={"x": 0.8}
        )
    lines = command("jury", "sure", "--store", "s.db").out.splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("judge "))
    assert "abstained" in lines[head]
    assert lines[head + 1].split() == ["x", "1", "0", "0", "1", "0", "0.0%"]


def test_json_has_the_whole_report(command: Command, store: Store) -> None:
    options = ("--json", "--side", "A", "--weights", "majority")
    ran = command("jury", "kitchen", "--store", "s.db", *options)
    assert ran.code == 0
    told = ran.json
    assert (told["counts"]["winsA"], told["counts"]["winsB"]) == (75, 25)
    assert (told["counts"]["hung"], told["counts"]["noQuorum"]) == (0, 0)
    assert told["rates"][0]["jury"]["rate"] == 0.75
    assert [each["title"] for each in told["judges"]] == ["x", "y", "z"]
    assert len(told["between"]) == 3


def test_a_jury_is_kept_and_used_again(command: Command, store: Store) -> None:
    kept = command("jury", "kitchen", "--store", "s.db", "--weights", "learned", "--save", "mine")
    assert kept.code == 0
    assert "jury saved to " in kept.out
    assert "juries" in kept.out
    again = command("jury", "kitchen", "--store", "s.db", "--weights", "learned", "--save", "mine")
    assert again.code == 2
    assert "already exists" in again.err
    used = command("jury", "kitchen", "--store", "s.db", "--use", "mine", "--json")
    assert used.code == 0
    assert used.json["weights"] == "learned"
    # x is always right, and its weight is the largest by far.
    assert used.json["counts"]["winsA"] == 50


def test_every_pairs_votes_go_to_a_file(command: Command, store: Store) -> None:
    ran = command("jury", "kitchen", "--store", "s.db", "--output", "rows.jsonl")
    assert ran.code == 0
    assert ran.out.endswith("100 pairs in rows.jsonl\n")
    lines = (command.directory / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [vote["vote"] for vote in rows[1]["votes"]] == ["B", "A", "B"]
    assert rows[1]["dissent"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "no run 'nowhere'"),
        (("kitchen", "--quorum", "9"), "the quorum is 9 of 3 judges"),
        (("kitchen", "--level", "2"), "less than or equal to 1"),
        (("kitchen", "--use", "nobody"), "no jury 'nobody'"),
        (("kitchen", "--use", "a", "--weights", "learned"), "--use has its own weights"),
        (("kitchen", "--weights", "best"), "--weights"),
        ((), "RUN"),
    ],
)
def test_mistakes_are_told_on_one_line(
    command: Command, store: Store, arguments: tuple[str, ...], said: str
) -> None:
    ran = command("jury", *arguments, "--store", "s.db")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert said in ran.err


def test_names_of_judges_are_text_and_no_markup(command: Command) -> None:
    with open_store(command.directory / "s.db") as opened:
        judged_run(opened, "run", {"[red]x[/red]\x1b[2J": "AB", "\u202ey\n": "AB"})
    ran = command("jury", "run", "--store", "s.db")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert "[red]x[/red]" in ran.out


def test_one_judge_is_no_jury(command: Command) -> None:
    with open_store(command.directory / "s.db") as opened:
        judged_run(opened, "alone", {"x": "AB" * 10})
    ran = command("jury", "alone", "--store", "s.db")
    assert ran.code == 2
    assert ran.err == (
        "error  run 'alone' has one judge, and a jury needs several; also name another run "
        "over the same pairs\n"
    )
