from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import Command, judged_by, on_a_terminal, run_command
from evenhand.report.conclusions import Conclusions, conclude
from evenhand.store import Store
from run_data import CRITERIA, adds_up, sums, write_lines
from servers import StartServer
from stored_runs import SKIPPED, Row, follows_place, make_run, mumbles, says

HERE = ("--store", "evenhand.db")
HOSTILE = "\x1b[31mred\x9b2J\u202e\x07[bold]x[/bold]\n\nsecond line"


def rows(outcomes: str, *, model_a: str | None = "old", model_b: str | None = "new") -> list[Row]:
    answers = {
        "A": says("A"),
        "B": says("B"),
        "T": says("TIE"),
        "I": follows_place,
        "X": mumbles,
        "-": says("A"),
    }
    return [
        Row(f"q{n}", answers[letter], judged=letter != "-", model_a=model_a, model_b=model_b)
        for n, letter in enumerate(outcomes)
    ]


def said(out: str, lead: str) -> str:
    """What stands beside a lead, as one line."""
    lines = out.splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith(lead))
    told = [lines[begin].removeprefix(lead)]
    for line in lines[begin + 1 :]:
        if not line.startswith("     ") or "|" in line or "━" in line:
            break
        told.append(line)
    return " ".join(" ".join(told).split())


def test_report_says_what_was_compared_and_how_sure_it_is(command: Command, store: Store) -> None:
    tagged = [replace(row, tags=("math",)) for row in rows("B" * 40 + "A" * 20)]
    run_id = make_run(store, "first", tagged)
    store.runs.update(run_id, state="finished")
    ran = command("report", "first", *HERE)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "run first: finished"
    assert said(ran.out, "compared") == (
        "new (B) vs old (A), judged by scripted; 60 pairs of 60 prompts"
    )
    assert said(ran.out, "outcomes") == (
        "new wins 40, old wins 20, ties 0, inconsistent 0, invalid 0"
    )
    # Wilson for 40 of 60, and 2·P(at most 20 of 60 coins) = 0.0135
    assert said(ran.out, "win rate") == (
        "0.67 (0.54 to 0.77), 95% score interval; ties and flipped pairs count as half; the "
        "interval covers every way of counting flips"
    )
    assert said(ran.out, "sign test") == "p = 0.013: 40 to 20 pairs, exact"
    for part in ("accuracy", "math"):
        assert said(ran.out, part).startswith("0.67 (0.54 to 0.77) ")
        assert said(ran.out, part).split()[-5:] == ["40", "20", "0", "0", "0"]
    assert said(ran.out, "position") == (
        "both orders agree in 60 of 60: 1.00 (0.94 to 1.00); no verdict flipped with the order"
    )
    assert said(ran.out, "length").startswith("the longer response won 0 of 0 (not enough data: 0 ")
    assert "worst case" not in ran.out
    assert "note" not in ran.out


def test_other_side_is_the_mirror_image(command: Command, store: Store) -> None:
    make_run(store, "first", rows("B" * 40 + "A" * 20))
    out = command("report", "first", "--side", "A", *HERE).out
    assert said(out, "compared").startswith("old (A) vs new (B), ")
    assert said(out, "win rate").startswith("0.33 (0.23 to 0.46), ")
    assert said(out, "sign test") == "p = 0.013: 20 to 40 pairs, exact"


def test_odd_outcomes_stay_apart_and_are_explained(command: Command, store: Store) -> None:
    outcomes = "B" * 30 + "A" * 10 + "T" * 4 + "I" * 9 + "X" * 2
    make_run(store, "odd", rows(outcomes), skipped=SKIPPED)
    out = command("report", "odd", *HERE).out
    assert said(out, "outcomes") == "new wins 30, old wins 10, ties 4, inconsistent 9, invalid 2"
    # (30 + 13/2) / 53, and with four more losses or wins of 57: two invalid, two skipped
    assert said(out, "win rate").startswith("0.69 (")
    assert said(out, "worst case").startswith(
        "0.64 if all 4 pairs without a verdict were lost, 0.71 if won; "
    )
    assert (
        "; position bias: 9 of 9 flipped pairs went to the response shown first, p = 0.0039"
    ) in said(out, "position")
    assert said(out, "compared").endswith(", 2 rows skipped")
    assert out.count("note ") == 3
    excluded = command("report", "odd", "--ties", "excluded", *HERE).out
    assert said(excluded, "win rate").startswith("0.75 (")  # 30 of 40
    assert (
        "; ties and flipped pairs are excluded; the interval covers every way of counting flips"
    ) in said(excluded, "win rate")
    wins = command("report", "odd", "--ties", "wins", "--level", "0.9", *HERE).out
    assert said(wins, "win rate").startswith("0.57 (")  # 30 of 53
    assert "90% score interval; only outright wins count" in said(wins, "win rate")


def test_rate_at_equal_length_says_that_its_ties_are_half(command: Command, store: Store) -> None:
    made = [
        replace(row, pair={"response_a": "word " * (n % 5), "response_b": "word " * (n % 7)})
        for n, row in enumerate(rows("BAT" * 15))
    ]
    make_run(store, "long", made)
    assert "ties as half" not in said(command("report", "long", *HERE).out, "length")
    for ties in ("wins", "excluded"):
        told = said(command("report", "long", "--ties", ties, *HERE).out, "length")
        assert (
            "), ties as half; also removes real gains from detail, so it is low for the "
            "side that writes more"
        ) in told


@pytest.mark.parametrize(
    ("outcomes", "lead", "told"),
    [
        ("", "win rate", "not enough data: run few has no pairs"),
        ("XXXXXXX", "win rate", "not enough data: 0 valid pairs; at least 6 are needed"),
        ("BBB", "win rate", "not enough data: 3 valid pairs; at least 6 are needed"),
        ("----", "outcomes", "B wins 0, A wins 0, ties 0, inconsistent 0, invalid 0, pending 4"),
    ],
)
def test_too_little_data_is_said_so(
    command: Command, store: Store, outcomes: str, lead: str, told: str
) -> None:
    make_run(store, "few", rows(outcomes, model_a=None, model_b=None))
    ran = command("report", "few", *HERE)
    assert (ran.code, ran.err) == (0, "")
    assert said(ran.out, lead) == told
    assert "not enough data" in ran.out


def test_unfinished_run_has_an_always_valid_interval(command: Command, store: Store) -> None:
    run_id = make_run(store, "part", rows("B" * 40 + "A" * 10 + "--"))
    store.runs.update(run_id, state="stopped", stopped_by="max-calls")
    out = command("report", "part", *HERE).out
    assert out.splitlines()[0] == "run part: stopped (max-calls)"
    assert "95% always-valid interval on 50 prompts" in said(out, "win rate")
    assert said(out, "compared").endswith("52 pairs of 52 prompts, 2 pending")
    assert "sign test" not in out
    assert "run part has not finished: " in said(out, "note")


def test_several_judges_and_models_are_a_table(command: Command, store: Store) -> None:
    made = [*rows("B" * 9), *(replace(row, key=f"t{row.key}") for row in rows("A" * 9))]
    made[9:] = [replace(row, model_b="third") for row in made[9:]]
    make_run(store, "league", made, judges=("strict", "kind"))
    ran = command("report", "league", *HERE)
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    heading = next(line for line in lines if line[:1] == ["judge"])
    columns = "judge model against win rate 0 0.5 1 wins losses ties inconsistent invalid"
    assert " ".join(heading) == columns
    for judge in ("strict", "kind"):
        new, third = (
            next(line for line in lines if line[:2] == [judge, model]) for model in ("new", "third")
        )
        assert (new[3], new[-5:]) == ("1.00", ["9", "0", "0", "0", "0"])
        assert (third[3], third[-5:]) == ("0.00", ["0", "9", "0", "0", "0"])
    assert "3 models in 2 matchups, judged by strict, kind; 18 pairs of 18 prompts" in ran.out
    assert "evenhand rank league ranks them" in ran.out
    assert ran.out.count("sign test") == 4
    assert "more are in the table" not in ran.out
    more = [replace(row, key=f"x{row.key}", model_b="fourth") for row in rows("A")]
    make_run(store, "larger", [*made, *more], judges=("strict", "kind"))
    larger = command("report", "larger", *HERE).out
    assert "2 more are in the table below." in larger  # three matchups, two judges
    assert "sign test" not in larger
    assert "criteria, tags, length and position of each are in the JSON" in larger


def test_many_tags_are_cut_to_the_largest(command: Command, store: Store) -> None:
    made = [replace(row, tags=(f"tag-{n % 20}",)) for n, row in enumerate(rows("B" * 30))]
    make_run(store, "tags", made)
    out = command("report", "tags", *HERE).out
    shown = re.findall(r"^tag-\d+", out, re.MULTILINE)
    assert len(shown) == 12
    assert {f"tag-{n}" for n in range(10)} < set(shown)  # these have two rows each
    assert "and 8 more in the JSON" in out
    whole = command("report", "tags", "--json", *HERE).json
    assert len(whole["conclusions"]["conclusions"][0]["byTag"]) == 20


def test_json_is_the_conclusions(command: Command, store: Store) -> None:
    make_run(store, "first", rows("B" * 9 + "A" * 3 + "X"))
    ran = command("report", "first", "--json", "--level", "0.9", *HERE)
    assert (ran.code, ran.err) == (0, "")
    told = ran.json
    assert told["manifest"]["run"] == told["run"]["run"] == "first"
    concluded = told["conclusions"]
    assert Conclusions.model_validate(concluded) == conclude(store, "first", level=0.9)
    (conclusion,) = concluded["conclusions"]
    assert (conclusion["model"], conclusion["winRate"]["counts"]["winsB"]) == ("new", 9)
    assert concluded["level"] == 0.9


def test_hostile_names_do_nothing(command: Command, store: Store) -> None:
    pair = {"criteria": [HOSTILE.strip()]}
    made = [
        replace(row, tags=(HOSTILE,), pair=pair)
        for row in rows("B" * 8, model_a=HOSTILE, model_b=f"{HOSTILE}2")
    ]
    make_run(store, "evil", made, judges=(HOSTILE, "kind"))
    for arguments in (("report", "evil"), ("gate", "evil"), ("report", "evil", "--json")):
        ran = command(*arguments, *HERE)
        assert ran.code == 0
        assert not set(ran.out) & set("\x1b\x9b\u202e\x07")
    assert "red[bold]x[/bold] second line" in command("gate", "evil", *HERE).out


def test_narrow_terminal_gets_lines_that_fit(command: Command, store: Store) -> None:
    make_run(store, "first", [replace(row, tags=("math",)) for row in rows("B" * 40 + "A" * 20)])
    for columns in (45, 60, 80, 100):
        code, shown = on_a_terminal(
            command.directory, "report", "first", *HERE, kind="xterm", columns=columns
        )
        assert code == 0
        lines = re.sub(r"\x1b\[[\d;]*m", "", shown.decode()).splitlines()
        assert all(len(line) <= columns for line in lines)
        assert any("accuracy" in line and "0.67 (0.54 to 0.77)" in line for line in lines)
        assert any("━" in line for line in lines)


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "first"),
        ("report", "first", "--level", "1.5"),
        ("report", "first", "--level", "many"),
        ("report", "first", "--side", "C"),
        ("report", "first", "--ties", "none"),
        ("gate", "first"),
        ("gate", "first", "--min-win-rate", "1.5"),
        ("gate", "first", "--alpha", "0"),
        ("gate", "first", "--side", "C"),
        ("gate",),
    ],
)
def test_failure_is_one_line_or_one_json_object(
    command: Command, store: Store, arguments: tuple[str, ...]
) -> None:
    make_run(store, "second", rows("B"))
    ran = command(*arguments, *HERE)
    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(r"error  [^\n]+(\n {7}[^\n]+)*\n", ran.err)
    as_json = command(*arguments, "--json", *HERE)
    assert (as_json.code, as_json.err) == (2, ran.err)
    assert as_json.failure["retryable"] is False
    assert as_json.json["metadata"] == {}


def test_run_that_is_not_there_is_told_with_the_nearest(command: Command, store: Store) -> None:
    make_run(store, "first", rows("B"))
    for name in ("report", "gate"):
        ran = command(name, "fisrt", *HERE)
        assert (ran.code, ran.err) == (2, "error  no run 'fisrt'; did you mean first?\n")
        assert command(name, "first", "--store", "nowhere.db").code == 2
        assert not (command.directory / "nowhere.db").exists()


def test_chart_is_drawn_beside_the_report(command: Command, store: Store) -> None:
    make_run(store, "first", rows("B" * 9 + "A" * 3))
    ran = command("report", "first", "--plot", "first.svg", *HERE)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("\nchart saved to first.svg\n")
    assert "<svg" in (command.directory / "first.svg").read_text("utf-8")
    as_json = command("report", "first", "--plot", "second.svg", "--json", *HERE)
    assert as_json.json["run"]["run"] == "first"
    assert (command.directory / "second.svg").exists()
    wrong = command("report", "first", "--plot", "first.doc", *HERE)
    assert (wrong.code, wrong.out) == (2, "")


@pytest.mark.slow
def test_run_until_decided_tells_its_decision_and_what_it_saved(
    command: Command, start_server: StartServer
) -> None:
    """A is right in two thirds of the pairs."""
    data = write_lines(Path("sums.jsonl"), sums(300))
    judge = judged_by(start_server(adds_up))
    ran = command(
        *("run", str(data), *CRITERIA, *judge, *HERE),
        *("--name", "sums", "--until-decided", "--json", "--yes"),
    )
    assert ran.code == 0, ran.err
    decision = json.loads(ran.out)["decision"]
    out = command("report", "sums", "--side", "A", *HERE).out
    scored = decision["scored"]
    assert f"95% interval of the sequential test on {scored} prompts" in said(out, "win rate")
    assert f"Stopped after {decision['prompts']} of 300 prompts" in said(out, "decision")
    assert "A is better. That saved " in said(out, "decision")
    gate = command("gate", "sums", "--side", "A", *HERE)
    assert gate.code == 0
    line = " ".join(gate.out.split())
    assert "0 tied, 0 inconsistent, 0 invalid; the run stopped as soon as it was decided; " in line
    assert "95% always valid) is above 0.5; " in line


def test_gate_leaves_with_its_ruling(command: Command, store: Store) -> None:
    make_run(store, "good", rows("B" * 40 + "A" * 20))
    make_run(store, "bad", rows("B" * 20 + "A" * 40))
    make_run(store, "even", rows("B" * 30 + "A" * 30))
    agreed = "tied 0). Both orders agreed in all 60 pairs."
    counts = "{} won, {} lost, 0 tied, 0 inconsistent, 0 invalid; "
    # Wilson's lower end of 40 of 60 is 0.5406: all errors on one side may be 4% and no more.
    even = "holds for any judge better than a coin flip (96% accuracy if every error favoured {})"
    for name, code, claim, line in (
        (
            "good",
            0,
            f"new beats old: 67% win rate (95% CI 54–77, 60 prompts; won 40, lost 20, {agreed}",
            "pass  new vs old: win rate 0.67 (0.54 to 0.77, 95%) is above 0.5; "
            + counts.format(40, 20)
            + even.format("new"),
        ),
        (
            "bad",
            1,
            f"new loses to old: 33% win rate (95% CI 23–46, 60 prompts; won 20, lost 40, {agreed}",
            "fail  new vs old: win rate 0.33 (0.23 to 0.46, 95%) is below 0.5; "
            + counts.format(20, 40)
            + even.format("old"),
        ),
        (
            "even",
            6,
            "new and old are not significantly different: new at 50% win rate "
            f"(95% CI 38–62, 60 prompts; won 30, lost 30, {agreed}",
            "undecided  new vs old: win rate 0.50 (0.38 to 0.62, 95%) "
            "is not significantly different from 0.5; "
            + counts.format(30, 30)
            + "no judge accuracy would settle it: more prompts are needed",
        ),
    ):
        ran = run_command("gate", name, *HERE, directory=command.directory)
        assert (ran.code, ran.out, ran.err) == (code, f"{claim}\n{line}\n", "")
        as_json = command("gate", name, "--json", *HERE)
        assert (as_json.code, as_json.json["checks"][0]["line"]) == (code, line.split("  ")[1])
    assert command("gate", "bad", "--side", "A", *HERE).code == 0
    assert command("gate", "good", "--min-win-rate", "0.6", *HERE).code == 6
    assert command("gate", "good", "--alpha", "0.001", *HERE).code == 6


def test_gate_of_several_tells_each_and_the_whole(command: Command, store: Store) -> None:
    made = [*rows("B" * 9), *(replace(row, key=f"t{row.key}") for row in rows("A" * 9))]
    made[9:] = [replace(row, model_b="third") for row in made[9:]]
    make_run(store, "league", made)
    ran = command("gate", "league", *HERE)
    assert ran.code == 1
    better, worse, first, second, whole = ran.out.splitlines()
    assert better.startswith("new beats old: ")
    assert worse.startswith("third loses to old: ")
    assert first.startswith("pass  new vs old: ")
    assert second.startswith("fail  third vs old: ")
    assert whole == "fail  overall: 1 of 2 pass"


def test_gate_writes_junit_or_says_why_not(command: Command, store: Store) -> None:
    make_run(store, "bad", rows("B" * 20 + "A" * 40))
    ran = command("gate", "bad", "--junit", "gate.xml", *HERE)
    assert ran.code == 1
    written = (command.directory / "gate.xml").read_text("utf-8")
    assert '<failure type="fail" message="new vs old: win rate 0.33' in written
    for arguments in ((), ("--json",)):
        lost = command("gate", "bad", "--junit", "nowhere/gate.xml", *arguments, *HERE)
        assert lost.code == 2
        told = lost.failure["message"] if arguments else " ".join(lost.err.split())
        assert "cannot write nowhere/gate.xml: no such file or directory" in told


def test_gate_obeys_the_limits_of_the_config_file(command: Command, store: Store) -> None:
    # 45 of 60 won: 0.75, whose exact interval is about 0.62 to 0.85.
    make_run(store, "first", rows("B" * 45 + "A" * 15))
    assert command("gate", "first", *HERE).code == 0
    config = command.directory / "evenhand.toml"
    config.write_text("[gate]\nmin_win_rate = 0.9\nassume_accuracy = 0.95\n")
    assert command("gate", "first", *HERE).code == 1
    config.write_text("[gate]\nmin_win_rate = 0.7\n")
    assert command("gate", "first", *HERE).code == 6
    assert command("gate", "first", "--min-win-rate", "0.5", *HERE).code == 0
    # 60 won and 20 without a verdict: 0.75 if they were lost.
    make_run(store, "gaps", rows("B" * 60 + "X" * 20))
    config.write_text("")
    assert command("gate", "gaps", *HERE).code == 0
    config.write_text("[gate]\nmax_invalid = 0.2\n")
    assert command("gate", "gaps", *HERE).code == 6
    config.write_text("[gate]\nmax_invalid = 0.5\nmax_inconsistent = 0\n")
    make_run(store, "flips", rows("B" * 60 + "I"))
    assert command("gate", "flips", *HERE).code == 6
