"""`evenhand diff` in a terminal and as JSON."""

from __future__ import annotations

import pytest

import evenhand
from command_line import Command
from evenhand.contract import Winner
from evenhand.store import Store
from stored_runs import Row, make_run, says

HERE = ("--store", "evenhand.db")


@pytest.fixture
def judged(store: Store) -> Store:
    """Twenty pairs: the second judge takes B where the first took A, in the last eight."""
    for name, last in (("before", "A"), ("after", "B")):
        rows = [
            Row(
                f"q{n}",
                says("A" if n < 12 else last, reasoning=f"\x1b[31m[bold]I take {last}."),
                label="A" if n < 12 else "B",
            )
            for n in range(20)
        ]
        make_run(store, name, rows, judges=(f"judge-{name}",))
    return store


def test_a_diff_begins_with_its_sentence_and_shows_flow_and_pairs(
    command: Command, judged: Store
) -> None:
    ran = command("diff", "before", "after", "--limit", "2", *HERE)
    assert (ran.code, ran.err) == (0, "")
    said = " ".join(ran.out.split())
    # Two judges: which of them is right comes first.
    assert said.startswith(
        "judge-after is right more often than judge-before: on 100 % instead of 60 % of 20 "
        "labelled pairs, a change of +40.0 points (+"
    )
    assert (
        "B is preferred more often by judge-after than by judge-before: 8 of 20 pairs changed, 8 "
        "towards B; the difference is +40.0 points (+"
    ) in said
    for part in (
        "first run before, judge judge-before",
        "pairs 20 pairs in both, 20 judged",
        # Of eight moves all go one way: 2 / 2^8.
        "flips 8 towards B, 0 towards A, p = 0.0078 (exact sign test)",
        "labels first 12 of 20",
        "second 20 of 20",
        "first → second A tie inconsistent B invalid",
        "A 12 · · 8 ·",
        "q12 pair 13",
        "prompt Question q12?",
        "second B, 0.80: [bold]I take B.",
        "6 pairs not shown here; go on with --after 14",
    ):
        assert part in said, part
    assert "\x1b" not in ran.out


def test_the_next_pairs_and_those_of_one_cell_can_be_asked_for(
    command: Command, judged: Store
) -> None:
    told = command("diff", "before", "after", "--after", "14", "--limit", "100", "--json", *HERE)
    assert [pair["first"]["number"] for pair in told.json["flipped"]] == [15, 16, 17, 18, 19, 20]
    cell = ("--from-outcome", "A", "--to-outcome", "A", "--towards", "B")
    assert command("diff", "before", "after", *cell, "--json", *HERE).json["flipped"] == []


def test_what_cannot_be_compared_is_said(command: Command, judged: Store) -> None:
    ran = command("diff", "before", "before", *HERE)
    assert (ran.code, ran.out) == (2, "")
    assert "both are the same judge of run 'before'" in ran.err
    ran = command("diff", "before", "after", *(("--judge", "x") * 3), *HERE)
    assert "3 judges are given with --judge" in ran.err


def test_python_gives_the_same(judged: Store) -> None:
    found = evenhand.diff(
        "before", "after", store=judged, options=evenhand.DiffOptions(towards="A")
    )
    assert (found.change.towards_b, found.flipped_in_all) == (8, 0)


def test_a_judge_that_is_right_far_less_often_is_the_headline(
    command: Command, store: Store
) -> None:
    """By win rates nothing moves: B wins as often as A by either judge. 70 of 100 are right by the
    first, and 5 by the second, as GPT-4 and ChatGPT are on LLMBar's Neighbor."""
    for name, right in (("strong", 70), ("weak", 5)):
        rows = []
        for n in range(100):
            label: Winner = "A" if n % 2 else "B"
            other = "B" if label == "A" else "A"
            answer = says(label if n < right else other if n % 10 < 6 else "TIE")
            rows.append(Row(f"q{n}", answer, label=label))
        make_run(store, name, rows, judges=(name,))
    ran = command("diff", "strong", "weak", "--limit", "0", *HERE)
    said = " ".join(ran.out.split())
    assert said.startswith(
        "weak is right less often than strong: on 5 % instead of 70 % of 100 labelled pairs, a "
        "change of -65.0 points"
    )
