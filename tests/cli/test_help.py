from __future__ import annotations

import json

import pytest
import typer

from command_line import Command, Ran
from evenhand.cli.main import app


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--help",),
        ("-h",),
        ("compare", "--help"),
        ("prompt", "--help"),
        ("demo", "--help"),
        ("doctor", "--help"),
        ("schema", "--help"),
        ("run", "--help"),
        ("show", "--help"),
        ("runs", "--help"),
        ("runs", "list", "--help"),
        ("runs", "show", "--help"),
        ("runs", "rename", "--help"),
        ("runs", "delete", "--help"),
        ("runs", "export", "--help"),
        ("models",),
        ("models", "--help"),
        ("models", "pull", "--help"),
        ("models", "path", "--help"),
        ("models", "serve", "--help"),
    ],
)
def test_help_is_on_standard_output(command: Command, arguments: tuple[str, ...]) -> None:
    ran = command(*arguments)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Usage: ")


def test_exit_codes_and_the_samples_temperature_are_in_the_help(command: Command) -> None:
    ran = command("compare", "--help")
    text = " ".join(ran.out.split())
    for code in ("0 a verdict", "2 bad input", "3 the judge failed", "4 no valid", "130 interr"):
        assert code in text
    whole = " ".join(command("compare", "--help-all").out.split())
    assert "or 1 with several samples" in whole
    assert "--temperature" not in text


def one_line_error(ran: Ran) -> bool:
    return ran.out == "" and ran.err.startswith("error  ") and ran.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("judge",), ("models", "push"), ("--loud",)])
def test_unknown_command_or_option_is_one_line(
    command: Command, arguments: tuple[str, ...]
) -> None:
    ran = command(*arguments)
    assert ran.code == 2
    assert one_line_error(ran)


def test_version_is_shown(command: Command) -> None:
    ran = command("--version")
    assert (ran.code, ran.out.split()[0]) == (0, "evenhand")


def test_models_path_without_a_model_names_the_command_that_fetches_it(command: Command) -> None:
    ran = command("models", "path")
    assert ran.code == 2
    assert one_line_error(ran)
    assert "evenhand models pull" in ran.err


GROUPS = ("Judge:", "Conclude:", "Trust the judge:", "Serve:", "Set up:")


def test_commands_stand_in_groups_with_whole_sentences(command: Command) -> None:
    lines = command("--help").out.splitlines()
    assert [line for line in lines if line in GROUPS] == list(GROUPS)
    root = typer.main.get_command(app)
    for name, built in root.commands.items():  # type: ignore[attr-defined]  # a group
        [line] = [line for line in lines if line.startswith(f"  {name} ")]
        assert line.endswith("."), line
        assert line.split(maxsplit=1)[1] == built.get_short_help_str(1000)
    assert "Commands:" not in lines


@pytest.mark.parametrize("group", ["runs", "votes", "models"])
def test_no_help_is_cut(command: Command, group: str) -> None:
    listed = command(group, "--help").out.partition("Commands:")[2]
    assert "..." not in listed
    assert listed.rstrip().endswith(".")


@pytest.mark.parametrize(
    ("arguments", "helped_by"),
    [
        (("--loud",), "see evenhand --help"),
        (("run", "--loud"), "see evenhand run --help"),
        (("runs", "show"), "see evenhand runs show --help"),
        (("judge",), "see evenhand --help"),
    ],
)
def test_a_usage_error_points_to_the_commands_own_help(
    command: Command, arguments: tuple[str, ...], helped_by: str
) -> None:
    ran = command(*arguments)
    assert ran.code == 2
    assert ran.err.endswith(f"; {helped_by}\n")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("export",), "evenhand runs export or evenhand votes export"),
        (("delete", "my-run"), "evenhand runs delete"),
        (("runs", "exprot"), "evenhand runs export"),
        (("reprot",), "evenhand report"),
        (("models", "compare"), "evenhand compare"),
    ],
)
def test_an_unknown_command_names_the_one_that_was_meant(
    command: Command, arguments: tuple[str, ...], meant: str
) -> None:
    ran = command(*arguments)
    assert ran.code == 2
    assert one_line_error(ran)
    assert ran.err.endswith(f"; did you mean {meant}?\n")


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("--a", "one.jsonl", "--b", "two.jsonl"), "e.g. -c accuracy"),
        (("one.jsonl", "two.jsonl", "-c", "accuracy"), "as --a OLD --b NEW"),
        (("--a", "bare.jsonl", "--b", "barer.jsonl", "-c", "accuracy"), "as --questions FILE"),
    ],
)
def test_a_run_that_cannot_begin_says_what_to_give(
    command: Command, arguments: tuple[str, ...], remedy: str
) -> None:
    for name in ("one", "two"):
        row = {"id": "1", "prompt": "p", "response": name}
        (command.directory / f"{name}.jsonl").write_text(json.dumps(row))
    for name in ("bare", "barer"):
        answer = {"question_id": "1", "model_id": name, "choices": [{"turns": [name]}]}
        (command.directory / f"{name}.jsonl").write_text(json.dumps(answer))
    ran = command("run", *arguments, "--judge", "openai:m", "--base-url", "http://127.0.0.1:9")
    assert ran.code == 2
    assert remedy in ran.err
