"""A claim from a few topics is about these topics, unless it holds over topics too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command_line import Command
from run_data import write_lines

HERE = ("--store", "evenhand.db", "--allow-length")  # baseline:longer goes by nothing else


def judged(command: Command, won: dict[str, str], name: str, **more: str) -> None:
    """A letter a row of each topic; baseline:longer takes the longer response."""
    rows: list[dict[str, Any]] = [
        {
            "id": f"{name} {topic} {place}",
            "prompt": f"{name}: {topic} {place}",
            "response_a": "short" if letter == "B" else "rather long",
            "response_b": "short" if letter == "A" else "rather long",
            "category": topic,
            **more,
        }
        for topic, letters in won.items()
        for place, letter in enumerate(letters)
    ]
    write_lines(Path(command.directory) / f"{name}.jsonl", rows)
    tags = ("--map", "tags=category") if not more else ()
    ran = command("run", f"{name}.jsonl", "-j", "baseline:longer", *tags, "--name", name, *HERE[:2])
    assert ran.code == 0, ran.err


def uneven() -> dict[str, str]:
    """B wins all of eight topics and A all of four: 80 of 120 rows."""
    return {f"t{n}": ("B" if n % 3 else "A") * 10 for n in range(12)}


def alike() -> dict[str, str]:
    return {f"t{n}": "BBBBBBBAAA" for n in range(12)}


def test_topics_that_differ_bound_the_claim(command: Command) -> None:
    # As independent rows 80 of 120 is 0.578 to 0.745. Each topic is of one mind, so that the
    # sample is 8 of 12 topics: 0.667 ± t(11) sqrt(0.667 · 0.333 / 11) = 0.667 ± 2.201 · 0.142.
    judged(command, uneven(), "uneven")
    ran = command("gate", "uneven", *HERE)
    assert ran.code == 6
    assert "not significantly different beyond these topics" in ran.out
    assert "on these topics" in ran.out
    assert "over 12 topics" in ran.out
    (shown,) = command("report", "uneven", "--json", *HERE).json["conclusions"]["conclusions"]
    assert (shown["winRate"]["low"], shown["winRate"]["high"]) == pytest.approx(
        (0.578, 0.745), abs=0.001
    )
    assert shown["claimed"]["low"] == pytest.approx(0.667 - 2.201 * 0.142, abs=0.02)
    assert shown["topics"]["pValue"] < 1e-6
    # For these topics alone, at the caller's word.
    here = command("gate", "uneven", "--these-topics", *HERE)
    assert here.code == 0
    assert here.out.startswith("B beats A on these topics: 67% win rate (95% CI 58–74 on these")


def test_topics_that_do_not_differ_change_nothing(command: Command) -> None:
    judged(command, alike(), "alike")
    ran = command("gate", "alike", *HERE)
    assert (ran.code, "topics" in ran.out) == (0, False)
    # Named, the interval is over topics whether they differ or not.
    named = command("gate", "alike", "--topic", "category", *HERE)
    assert named.code == 0
    assert "over 12 topics" in named.out


def test_a_topic_column_is_chosen_by_its_name(command: Command) -> None:
    judged(command, uneven(), "two", tag="same")
    (shown,) = command("report", "two", "--json", *HERE).json["conclusions"]["conclusions"]
    assert shown["topics"] is None  # two columns gave tags, and neither is named
    assert command("gate", "two", *HERE).code == 0
    assert command("gate", "two", "--topic", "category", *HERE).code == 6
    wrong = command("gate", "two", "--topic", "subject", *HERE)
    assert (wrong.code, wrong.err) == (
        2,
        "error  there is no tag column 'subject'; the run has category and tag\n",
    )


def test_a_few_groups_are_no_sample_of_topics(command: Command) -> None:
    judged(command, {"en": "B" * 60, "zh": "A" * 20 + "B" * 40}, "languages")
    assert command("gate", "languages", *HERE).code == 0
    # Two topics say nothing of others.
    assert command("gate", "languages", "--topic", "category", *HERE).code == 6
