"""At 80 columns a table breaks its cells; no column vanishes."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

from command_line import Command, on_a_terminal
from evenhand.present.terminal import print_table, table_of
from run_data import CRITERIA, sums, write_lines


@pytest.mark.parametrize("width", [80, 60])
def test_no_column_vanishes_where_lines_do_not_fit(width: int) -> None:
    out = io.StringIO()
    table = table_of("tag", "pairs", "accuracy", "both orders agree", left=("tag",))
    share = "97.9% (88.9 to 99.9; 47 of 48 labelled pairs)"
    table.add_row(Text("arithmetic"), "48", share, share)
    print_table(Console(file=out, width=width, force_terminal=True, color_system=None), table)
    shown = out.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    words = shown.split()
    for word in ("tag", "pairs", "accuracy", "48", "97.9%"):
        assert word in words
    assert "arithmetic" in shown.replace("\n", "")


def test_an_audit_at_80_columns_names_its_tags(command: Command) -> None:
    rows = [{**row, "label": "A", "tags": ["arithmetic"]} for row in sums(12)]
    write_lines(command.directory / "pairs.jsonl", rows)
    store = ("--store", "store.db", "--judge", "baseline:longer", "--name", "r")
    assert command("run", "pairs.jsonl", *CRITERIA, *store).code == 0
    audit = ("audit", "r", "--store", "store.db")
    code, shown = on_a_terminal(command.directory, *audit, columns=80)
    assert code in (0, 1), shown
    lines = [line.split() for line in shown.decode().splitlines()]
    heading = lines.index(["tag", "pairs", "accuracy", "agree"])
    assert lines[heading - 1] == ["both", "orders"]  # a long heading is on two lines
    assert lines[heading + 1][:2] == ["arithmetic", "12"]


# A word of the last column, or of the rows, that must not vanish.
COMMANDS = {
    ("report", "r"): "invalid",
    ("rank", "one"): "longer",
    ("diff", "one", "two"): "inconsistent",
    ("audit", "one"): "arithmetic",
    ("jury", "r"): "invalid",
    ("correct", "one"): "judge",
    ("votes", "show", "r"): "votes",
    ("runs", "list"): "finished",
    ("runs", "show", "r"): "baseline:random",
}


@pytest.mark.slow
def test_no_table_is_cut_at_80_columns(command: Command) -> None:
    models = {"model_a": "shorter", "model_b": "longer", "tags": ["arithmetic"]}
    rows = [{**row, **models, "label": "AB"[place % 2]} for place, row in enumerate(sums(24))]
    write_lines(command.directory / "pairs.jsonl", rows)
    for name, kinds in {"r": ("longer", "random"), "one": ("longer",), "two": ("random",)}.items():
        named = [word for kind in kinds for word in ("--judge", f"baseline:{kind}")]
        ran = command("run", "pairs.jsonl", *CRITERIA, *named, "--name", name, "--store", "s.db")
        assert ran.code == 0, ran.err
    for words, kept in COMMANDS.items():
        code, raw = on_a_terminal(command.directory, *words, "--store", "s.db", columns=80)
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", raw.decode())
        assert code == 0, (words, shown)
        assert kept in " ".join(shown.split()), (words, shown)
        # A digest is shortened on purpose.
        assert not re.search(r"(?<![0-9a-f])…", shown), (words, shown)
        # Bars are drawn in tables alone: a line that has one is a row.
        assert all(len(line) <= 80 for line in shown.splitlines() if "━" in line), (words, shown)


def test_a_ruling_wraps_between_words_on_a_terminal_and_is_a_line_in_a_log(
    command: Command,
) -> None:
    models = {"model_a": "shorter", "model_b": "longer"}
    write_lines(command.directory / "pairs.jsonl", [{**row, **models} for row in sums(12)])
    run = ("run", "pairs.jsonl", *CRITERIA, "--judge", "baseline:longer", "--name", "r")
    assert command(*run, "--store", "s.db").code == 0
    gate = ("gate", "r", "--store", "s.db")
    logged = command(*gate)
    code, raw = on_a_terminal(command.directory, *gate, columns=80)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", raw.decode()).splitlines()
    assert code == logged.code
    assert max(map(len, logged.out.splitlines())) > 80
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == " ".join((logged.out + logged.err).split())
