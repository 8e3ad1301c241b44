"""A limit on a criterion or a tag is held to what the whole is held to: each case through the
command line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from command_line import Command
from evenhand.data.records import BadRow
from evenhand.store import Store
from judged_runs import vote_on
from stored_runs import Row, make_run, says

HERE = ("--store", "evenhand.db")


def rows(outcomes: str, **more: Any) -> list[Row]:
    named = {"model_a": "old", "model_b": "new", **more}
    tags = named.get("tags", ())
    return [
        Row(f"q{n} {tags}", says(letter.replace("T", "TIE")), **named)
        for n, letter in enumerate(outcomes)
    ]


def gate(command: Command, run: str, *required: str, options: tuple[str, ...] = ()) -> Any:
    asked = [word for each in required for word in ("--require", each)]
    return command("gate", run, *asked, *options, *HERE)


def test_a_part_has_its_share_of_what_is_missing(command: Command, store: Store) -> None:
    """25 of 245 rows never became pairs, which is 10%; half of the pairs have the tag."""
    tagged = rows("B" * 95 + "A" * 15, tags=("x",))
    skipped = [BadRow("pairs.jsonl", 1000 + n, "the line is truncated") for n in range(25)]
    make_run(store, "skipped", [*tagged, *rows("B" * 95 + "A" * 15)], skipped=skipped)
    for part in ("overall>0.5", "tag:x>0.5", "accuracy>0.5"):
        ran = gate(command, "skipped", part, options=("--max-skipped", "0.05"))
        assert ran.code == 6, part
        assert "more than the 5% that --max-skipped allows" in ran.out
        assert gate(command, "skipped", part, options=("--max-skipped", "0.2")).code == 0
    ran = gate(command, "skipped", "tag:x>0.5", options=("--missing", "half"))
    # Of the tag's pairs 13 of 123, rounded up from 12.5.
    assert "13 skipped or without a counterpart" in ran.out
    assert "pairs without a verdict count as half (--missing half)" in ran.out


def test_a_criterion_speaks_for_other_topics_as_the_whole_does(
    command: Command, store: Store
) -> None:
    """New wins all of eight topics and none of four. The only criterion is what decides."""
    topics = [rows(("B" if n % 3 else "A") * 10, tags=(f"t{n}",)) for n in range(12)]
    make_run(store, "topics", [row for topic in topics for row in topic])
    ran = gate(command, "topics", "overall>0.5", "accuracy>0.5")
    assert ran.code == 6
    _, whole, part, _ = ran.out.splitlines()
    assert whole.partition("overall>0.5: ")[2] == part.partition("accuracy>0.5: ")[2]
    # It needs more than a better judge.
    assert "no judge accuracy would settle it" in whole
    assert gate(command, "topics", "accuracy>0.5", options=("--these-topics",)).code == 0
    # A topic speaks for itself.
    assert gate(command, "topics", "tag:t1>0.5").code == 0
    assert gate(command, "topics", "tag:t3>0.5").code == 1


def test_people_who_contradict_the_judge_on_a_tag_hold_its_limit_back(
    command: Command, store: Store
) -> None:
    """The judge gives 70 of 100 refunds to new; of 60 of them that nobody drew it gives 42 to new,
    and people 18, which is 30%."""
    refunds = rows("B" * 70 + "A" * 30, tags=("refunds",))
    run = make_run(store, "tags", [*refunds, *rows("B" * 140 + "A" * 60)])
    keys = [row.key for row in (*refunds[:42], *refunds[70:88])]
    vote_on(store, run, {key: "B" if n < 18 else "A" for n, key in enumerate(keys)}, draw=None)
    sure = ("--assume-accuracy", "0.95")
    for limit in (0.4, 0.5, 0.55):
        ran = gate(command, "tags", f"tag:refunds>{limit}", options=sure)
        assert ran.code == 6, limit
        assert "but on 60 labelled pairs the judge is at 70% and people at 30%" in ran.out
    assert gate(command, "tags", "tag:refunds>0.25", options=sure).code == 0


def test_the_sentence_of_a_part_is_its_own(command: Command, store: Store) -> None:
    """New and old are even on the whole, and new wins 45 of 50 on x: 0.786 to 0.957 by Wilson."""
    make_run(store, "parts", [*rows("B" * 45 + "A" * 5, tags=("x",)), *rows("B" * 5 + "A" * 45)])
    ran = gate(command, "parts", "tag:x>0.5")
    assert ran.code == 0
    assert ran.out.startswith("tag:x: new beats old: 90% win rate (95% CI 79–96, 50 prompts; ")
    assert "not significantly different" not in ran.out
    ran = gate(command, "parts", "tag:x>0.5", "overall>=0.3", options=("--assume-accuracy", "0.9"))
    first, *lines = ran.out.splitlines()
    assert first.startswith("new and old are not significantly different: new at 50% win rate")
    assert [line.split()[:2] for line in lines] == [
        ["pass", "tag:x>0.5:"],
        ["pass", "overall>=0.3:"],
        ["pass", "overall:"],
    ]


def test_a_part_that_no_pair_of_two_models_has_counts_nothing(
    command: Command, store: Store
) -> None:
    other = [replace(row, model_b="next", key=f"next {row.key}") for row in rows("B" * 30)]
    make_run(store, "three", [*rows("B" * 30, tags=("x",)), *other])
    ran = gate(command, "three", "tag:x>0.5")
    assert ran.code == 6
    (line,) = (line for line in ran.out.splitlines() if line.startswith("undecided  tag:x>0.5"))
    assert "next vs old: not enough data: 0 valid pairs; at least 6 are needed" in line
    assert "0 won, 0 lost, 0 tied" in line


def test_the_break_even_counts_the_pairs_that_the_rate_counts(
    command: Command, store: Store
) -> None:
    """Without ties 70 of 100 are 0.604 and more by Wilson. If every error favoured new, the judge
    would have to be right on 1 - (0.604 - 0.5) / 1 = 89.6% of them; the ties are in neither."""
    make_run(store, "tied", rows("B" * 70 + "A" * 30 + "T" * 100))
    ran = gate(command, "tied", options=("--ties", "excluded"))
    assert ran.code == 0
    assert "(90% accuracy if every error favoured new)" in ran.out


@pytest.mark.parametrize(("side", "share", "won"), [("B", 25, 40), ("A", 12, 20)])
def test_few_outright_wins_are_no_loss(
    command: Command, store: Store, side: str, share: int, won: int
) -> None:
    """New wins 40, old 20, and 100 are ties: by outright wins both are below one half. For B the
    upper end is 0.322, and 60 of 160 are decided: 1 - (0.5 - 0.322) / 0.375 = 52.6%."""
    make_run(store, "tied", rows("B" * 40 + "A" * 20 + "T" * 100))
    told = " ".join(command("report", "tied", "--ties", "wins", "--side", side, *HERE).out.split())
    assert "wins more than half outright against" in told
    assert f": {share}% win rate" in told
    assert f"; won {won}, lost {60 - won}, tied 100)" in told
    assert " loses to " not in told
    effect = ("--ties", "wins", "--side", side, "--smallest-effect", "0.1", *HERE)
    assert "The difference is" not in " ".join(command("report", "tied", *effect).out.split())
    wins = ("--ties", "wins", "--side", side)
    ran = gate(command, "tied", options=wins)
    if side == "A":  # 0.125 and less than 0.19, where 0.375 are decided: 1 - 0.31 / 0.375 = 17%
        assert (ran.code, "(17% accuracy if every error favoured new)" in ran.out) == (1, True)
        return
    # A judge that cannot tell says so too: it needs to be known how good this one is.
    assert (ran.code, "right on 53% of the pairs it decides" in ran.out) == (6, True)
    assert gate(command, "tied", options=(*wins, "--assume-accuracy", "0.6")).code == 1


def test_what_holds_a_gate_back_is_not_said_to_hold(command: Command, store: Store) -> None:
    make_run(store, "few", rows("B" * 4 + "T" * 96))
    ran = gate(command, "few")
    assert ran.code == 6
    assert "; without that it would hold for any judge better than a coin flip; " in ran.out


def test_identical_responses_elsewhere_are_no_pairs_of_a_part(
    command: Command, store: Store
) -> None:
    """40 pairs of x are judged in both orders, of which none flips; 100 others need no judge."""
    same = {"response_a": "the same", "response_b": "the same"}
    others = [replace(row, pair=same) for row in rows("T" * 100, tags=("y",))]
    make_run(store, "same", [*rows("B" * 35 + "A" * 5, tags=("x",)), *others])
    limit = ("--max-inconsistent", "0.1")
    ran = gate(command, "same", "tag:x>0.5", options=limit)
    assert "flipped with the order in 0 of" not in ran.out
    assert ran.code == 0
