from __future__ import annotations

import pytest

from command_line import Command, Ran


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
    assert "or 1 with --samples above 1" in text


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
