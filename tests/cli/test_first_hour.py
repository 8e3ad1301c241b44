"""What a new user meets in the first hour: names, files and commands that are nearly right."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import evenhand
from command_line import Command
from evenhand.errors import InputError
from evenhand.messages import Message, render
from evenhand.stats.rates.win_rate import FEWEST_DECIDED
from run_data import CRITERIA, sums, write_lines

STORE = ("--store", "store.db")
FREE = ("--judge", "baseline:longer", *STORE)


@pytest.mark.parametrize(
    ("bare", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("gpt-4.1", "openai:gpt-4.1"),
        ("claude-opus-4", "anthropic:claude-opus-4"),
        ("gemini-2.5-pro", "google:gemini-2.5-pro"),
    ],
)
def test_a_model_without_its_provider_is_told_by_its_name(
    command: Command, bare: str, meant: str
) -> None:
    write_lines(command.directory / "prompts.jsonl", [{"prompt": "Hi?"}])
    side = command("ab", "prompts.jsonl", "--a", bare, "--b", "openai:m", *CRITERIA, *FREE)
    judge = command("compare", "-p", "x", "--a", "1", "--b", "2", *CRITERIA, "--judge", bare)
    assert (side.code, judge.code) == (2, 2)
    assert f"did you mean {meant}?" in side.err
    assert f"did you mean {meant}?" in judge.err
    with pytest.raises(InputError, match=f"did you mean {meant}"):
        evenhand.compare_sync(prompt="x", a="1", b="2", criteria=["c"], judge=bare)


def test_what_is_no_model_is_not_taken_for_one(command: Command) -> None:
    write_lines(command.directory / "prompts.jsonl", [{"prompt": "Hi?"}])
    ran = command("ab", "prompts.jsonl", "--a", "answers.jsonl", "--b", "openai:m", *CRITERIA)
    assert "cannot read answers.jsonl" in ran.err
    ran = command("compare", "-p", "x", "--a", "1", "--b", "2", *CRITERIA, "--judge", "replay")
    assert "did you mean" not in ran.err


def test_a_plain_function_as_judge_is_told_of_the_decorator() -> None:
    def own(prompt: str) -> str:
        return "A"

    judge: Any = own
    with pytest.raises(InputError, match=r"@evenhand\.judge"):
        evenhand.compare_sync(prompt="x", a="1", b="2", criteria=["c"], judge=judge)
    with pytest.raises(InputError, match=r"@evenhand\.judge"):
        evenhand.run_sync(sums(2), criteria=["c"], judge=judge)


@pytest.mark.parametrize("field", ["prompt", "response_a"])
def test_chat_data_is_not_told_to_be_skipped(command: Command, field: str) -> None:
    chat = [{"role": "user", "content": "Hi?"}]
    write_lines(command.directory / "pairs.jsonl", [{**row, field: chat} for row in sums(2)])
    ran = command("run", "pairs.jsonl", *CRITERIA, *FREE)
    assert ran.code == 2
    assert f"{field} must be a string, not a list" in ran.err
    assert "--bad-rows" not in ran.err
    assert "write a chat out as text" in ran.err


def test_a_latin_1_file_is_called_that(command: Command) -> None:
    rows = "prompt,response_a,response_b\nCafé?,thé,café\n"
    (command.directory / "latin.csv").write_bytes(rows.encode("latin-1"))
    ran = command("run", "latin.csv", *CRITERIA, *FREE)
    assert ran.code == 2
    assert "prompt is not UTF-8: character 4 is the byte 0xE9" in ran.err
    assert "iconv -f ISO-8859-1 -t UTF-8" in ran.err
    assert "surrogate" not in ran.err


def test_a_template_without_its_place_names_its_file(command: Command) -> None:
    write_lines(command.directory / "prompts.jsonl", [{"prompt": "Hi?"}])
    Path(command.directory, "mine.txt").write_text("Answer briefly.", "utf-8")
    sides = ("--a", "openai:m", "--b", "openai:n", "--b-template", "mine.txt")
    ran = command("ab", "prompts.jsonl", *sides, *CRITERIA, *FREE)
    assert ran.code == 2
    assert "template mine.txt has no {{ prompt }}" in ran.err


def test_the_command_that_repeats_a_run_can_be_pasted(command: Command) -> None:
    name = "pairs that were collected in November.jsonl"
    write_lines(command.directory / name, sums(8))
    criterion = "accuracy: whether the sum is right, and nothing else about the answer counts"
    assert command("run", name, "-c", criterion, *FREE, "--name", "autumn").code == 0
    shown = command("runs", "show", "autumn", *STORE).out
    (line,) = [each for each in shown.splitlines() if each.startswith("evenhand run ")]
    again = command(*shlex.split(line)[1:], *STORE, "--json")
    assert (again.code, again.json["run"], again.json["calls"]) == (0, "autumn", 0)


def test_sides_that_share_a_name_have_their_letter_once(command: Command) -> None:
    write_lines(command.directory / "prompts.jsonl", [{"prompt": f"Say {n}"} for n in range(7)])
    sides = ("--a-command", "wc -c", "--b-command", "wc -c", "--b-system", "Be brief.")
    ran = command("ab", "prompts.jsonl", *sides, *CRITERIA, *FREE, "--name", "r", "--yes")
    assert ran.code == 0, ran.err
    report = " ".join(command("report", "r", *STORE).out.split())
    assert "command:wc (B) vs command:wc (A), judged by" in report
    assert "(B) (B)" not in report + ran.out


def test_the_fewest_decided_pairs_are_named_in_every_language() -> None:
    values = {"model": "m", "against": "n", "part": 19, "n": 24, "decided": 19}
    for code in ("no_conclusion.ties", "diff.doubt_ties", "gate.doubt_ties"):
        message = Message(code, **values)
        for language in ("en", "zh"):
            assert str(FEWEST_DECIDED) in render([message], language)
        assert "few pairs" not in message
