"""`evenhand correct` as people use it."""

from __future__ import annotations

import csv
import re

import pytest

from command_line import Command
from evenhand.store import open_store
from judged_runs import judged_run, vote_on

# The judge gives B two wins in three, people one in two.
JUDGE, PEOPLE = "BBABBA" * 20, "BAABBA" * 20


@pytest.fixture
def run(command: Command) -> int:
    with open_store(command.directory / "s.db") as opened:
        return judged_run(opened, "kitchen", {"judge": JUDGE}, confidences=[0.9, 0.6] * 60)


def label(command: Command, run: int, number: int = 60) -> None:
    votes = {f"q{place + 1}": PEOPLE[place] for place in range(number)}
    with open_store(command.directory / "s.db") as opened:
        vote_on(opened, run, votes, draw="random")


def test_it_shows_three_rates_and_what_they_rest_on(command: Command, run: int) -> None:
    label(command, run)
    ran = command("correct", "kitchen", "--store", "s.db")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "run kitchen, judged by judge"
    assert lines[1] == "60 of 120 pairs labelled by 1 person; drawn evenly from all pairs"
    told = {line.split("  ")[0]: line for line in lines[4:7]}
    # People see 3 of 6 for B, the judge 4 of 6.
    assert "0.50 (0.38 to 0.62)" in told["people alone"]
    assert "0.67 (0.58 to 0.74)" in told["judge alone, uncorrected"]
    assert re.search(r" 0\.\d+ \(0\.3\d to 0\.6\d\) ", told["corrected"])
    assert "weight of the judge (λ)" in lines[8]


def test_json_names_the_figures(command: Command, run: int) -> None:
    label(command, run)
    ran = command("correct", "kitchen", "--store", "s.db", "--json", "--side", "A")
    assert ran.code == 0
    told = ran.json
    assert (told["labelled"], told["pairs"], told["drawn"]) == (60, 120, "at random")
    own = told["corrections"][0]
    assert own["peopleOnly"]["rate"] == pytest.approx(0.5)
    assert own["uncorrected"]["rate"] == pytest.approx(1 / 3)
    assert 0 < own["judgeWeight"] <= 1
    # The labelled half is judged as the other half is: there is little to correct people's 0.5 by.
    assert own["corrected"]["rate"] == pytest.approx(0.5, abs=0.01)
    assert own["corrected"]["low"] < 0.5 < own["corrected"]["high"]


def test_a_jury_takes_the_judges_place(command: Command) -> None:
    with open_store(command.directory / "s.db") as opened:
        own = judged_run(opened, "kitchen", {"x": JUDGE, "y": JUDGE, "z": PEOPLE})
        vote_on(opened, own, {f"q{n + 1}": PEOPLE[n] for n in range(60)}, draw="random")
    ran = command("correct", "kitchen", "--store", "s.db", "--jury", "majority")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "run kitchen, judged by a jury of 3, by majority"
    assert "0.67 (0.58 to 0.74)" in ran.out
    without = command("correct", "kitchen", "--store", "s.db", "--jury", "nobody")
    assert (without.code, "no jury 'nobody'" in without.err) == (2, True)


def test_without_labels_it_says_what_to_do(command: Command, run: int) -> None:
    ran = command("correct", "kitchen", "--store", "s.db")
    assert ran.code == 2
    assert ran.err == (
        "error  no judged pair in run 'kitchen' has a label; evenhand correct kitchen "
        "--draw 100 says which pairs to label\n"
    )


def test_a_draw_goes_through_a_file_and_comes_back(command: Command, run: int) -> None:
    drawn = command("correct", "kitchen", "--store", "s.db", "--draw", "40", "-o", "draw.csv")
    assert drawn.code == 0
    assert drawn.out.startswith("40 pairs to label next, chosen more often if")
    with (command.directory / "draw.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["verdict"] = PEOPLE[int(row["pair"][1:]) - 1]
    with (command.directory / "draw.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    back = command("votes", "import", "kitchen", "draw.csv", "--who", "Ann", "--store", "s.db")
    assert back.code == 0
    found = command("correct", "kitchen", "--store", "s.db", "--json").json
    assert (found["labelled"], found["drawn"]) == (40, "with known chances")
    assert found["notes"] == []
    more = command("correct", "kitchen", "--store", "s.db", "--draw", "5", "--json").json
    assert more["drawn"] == 45
    assert not {own["id"] for own in more["pairs"]} & {row["pair"] for row in rows}


def test_a_draw_without_a_file_is_listed(command: Command, run: int) -> None:
    ran = command("correct", "kitchen", "--store", "s.db", "--draw", "30")
    assert ran.code == 0
    # A heading and the titles, 20 pairs, how many more there are; with air around the table.
    assert len([line for line in ran.out.splitlines() if line]) == 23
    assert ran.out.splitlines()[-1] == "and 10 more in the JSON result"
    assert ran.err == "next  write them to a file with --output FILE\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "no run 'nowhere'"),
        (("kitchen", "--judge", "other"), "has no judge 'other'"),
        (
            ("kitchen", "--output", "x.csv"),
            "--output and --force require --draw; add it, or leave them out",
        ),
        (("kitchen", "--draw", "0"), "--draw"),
        (("kitchen", "--draw", "5", "--output", "x.txt"), "end the name in .csv or .jsonl"),
        (("kitchen", "--labels-are", "chosen"), "--labels-are"),
    ],
)
def test_mistakes_are_told_on_one_line(
    command: Command, run: int, arguments: tuple[str, ...], said: str
) -> None:
    ran = command("correct", *arguments, "--store", "s.db")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert said in ran.err


def test_a_mistake_as_json_is_no_pairs_matter(command: Command, run: int) -> None:
    ran = command("correct", "kitchen", "--store", "s.db", "--json")
    assert ran.code == 2
    assert ran.json["success"] is False
    assert ran.json["metadata"] == {}
