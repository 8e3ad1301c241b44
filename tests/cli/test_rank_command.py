from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import Command, run_command
from evenhand.stats.ranking.leaderboard import rank_battles
from evenhand.store import Store
from run_data import write_lines
from stored_runs import Row, follows_place, make_run, mumbles, opened, says

HERE = ("--store", "evenhand.db")
# new beats old 3 to 1, old beats bad 2 to 1, bad beats new once in three.
WON = (
    *(("new", "old", "A"), ("new", "old", "A"), ("old", "new", "B"), ("new", "old", "B")),
    *(("old", "bad", "A"), ("old", "bad", "A"), ("bad", "old", "A")),
    *(("new", "bad", "A"), ("new", "bad", "A"), ("bad", "new", "A")),
)
ROWS = (
    *(
        Row(f"q{n}", says(won), model_a=a, model_b=b, tags=("odd",) if n % 2 else ("even",))
        for n, (a, b, won) in enumerate(WON)
    ),
    Row("q10", follows_place, model_a="new", model_b="old"),
    Row("q11", mumbles, model_a="new", model_b="old"),
    Row("q12", says("A"), model_a="new", model_b="old", judged=False),
)
A, B, WINNER = (list(column) for column in zip(*WON, strict=True))


@pytest.fixture
def store(command: Command) -> Iterator[Store]:
    with opened(command.directory) as opened_store:
        make_run(opened_store, "league", ROWS)
        yield opened_store


def battles(path: Path, name: str = "battles.csv") -> Path:
    lines = ["model_a,model_b,winner", *(",".join(each) for each in WON)]
    (path / name).write_text("\n".join(lines) + "\n", "utf-8")
    return path / name


def test_leaderboard_shows_ranks_scores_and_what_was_counted(
    command: Command, store: Store
) -> None:
    ran = command("rank", "league", "--details", *HERE)
    assert (ran.code, ran.err) == (0, "")
    wanted = rank_battles([*A, "new"], [*B, "old"], [*WINNER, "TIE"], prompt=list(range(11)))
    lines = ran.out.splitlines()
    at = lines.index("3 models from run league")
    waits = "No conclusion yet on new vs the others: 1 of 10 pairs are pending, and the run"
    alone = "The ranks and scores below use the judge's verdicts alone."
    flips = "1 of 11 verdicts flipped with the order."
    assert " ".join(lines[:at]) == f"{waits} judges them in file order. {alone} {flips}"
    assert lines[at + 1].split() == ["judge", "scripted"]
    assert "won 10, ties 0, inconsistent 1 (as half), invalid 1 (left out), pending 1" in ran.out
    flat = " ".join(ran.out.split())
    assert (
        "intervals 95%, standard errors clustered by prompt (11 prompts); each score interval is "
        "valid on its own, rank ranges for all models together"
    ) in flat
    assert "note 1 of 11 verdicts (9.1%) flipped with the order" in flat
    at = next(n for n, line in enumerate(lines) if line.startswith("rank "))
    assert lines[at - 1].split() == ["rank", "range", "neighbours", "not"]
    assert lines[at].split()[1:3] == ["(95%)", "model"]
    for row, line in zip(wanted.models, lines[at + 1 : at + 4], strict=True):
        assert row.low is not None
        assert row.high is not None
        ranks = str(row.rank_low) if row.rank_low == row.rank_high else None
        told = re.split(r"\s{2,}", line.strip())
        assert told[0] == str(row.rank)
        assert told[1] == (ranks or f"{row.rank_low}–{row.rank_high}")
        assert told[2:6] == [
            row.model,
            f"{row.score:,.0f}",
            f"{row.low:,.0f} to {row.high:,.0f}",
            str(row.games),
        ]
    assert lines[at + 1].split()[-1] == "2"  # the first two are not significantly different


def test_inconsistent_verdicts_are_left_out_on_demand(command: Command, store: Store) -> None:
    ran = command("rank", "league", *HERE, "--inconsistent", "excluded")
    assert (ran.code, ran.err) == (0, "")
    assert "inconsistent 1 (left out)" in ran.out
    told = command("rank", "league", *HERE, "--inconsistent", "excluded", "--json").json
    wanted = rank_battles(A, B, WINNER, prompt=list(range(10)))
    assert [row["score"] for row in told["ranking"]["models"]] == pytest.approx(
        [row.score for row in wanted.models]
    )
    assert (told["inconsistent"], told["flipped"]) == ("excluded", 1)
    refused = command("rank", "--battles", "x.csv", "--inconsistent", "half")
    assert (refused.code, "--inconsistent applies to runs" in refused.err) == (2, True)


def test_without_intervals_there_are_none_to_see(command: Command, store: Store) -> None:
    ran = command("rank", "league", *HERE, "--intervals", "none")
    assert ran.code == 0
    assert "interval" not in ran.out.partition("3 models from run league")[2]
    assert "without intervals its lead is" in " ".join(ran.out.split())
    assert re.search(r"^rank +model +score +games$", ran.out, re.MULTILINE)


def test_json_carries_the_settings_that_made_it(command: Command, store: Store) -> None:
    ran = command(
        "rank",
        "league",
        *HERE,
        *("--intervals", "bootstrap", "--replicates", "150", "--seed", "3"),
        *("--level", "0.9", "--scale", "log-odds", "--json"),
    )
    assert (ran.code, ran.err) == (0, "")
    told = ran.json
    assert (told["runs"][0]["run"], told["judges"]) == ("league", ["scripted"])
    assert told["counts"] == {
        "winsA": 8,
        "winsB": 2,
        "ties": 0,
        "inconsistent": 1,
        "invalid": 1,
    }
    assert told["pending"] == 1
    ranking = told["ranking"]
    assert (ranking["intervals"], ranking["replicates"], ranking["seed"]) == ("bootstrap", 150, 3)
    assert (ranking["level"], ranking["scale"], ranking["ties"]) == (0.9, "log-odds", "half")
    assert [row["score"] for row in ranking["models"]] == [
        row["logOdds"] for row in ranking["models"]
    ]
    assert len(ranking["winMatrix"]) == 3
    assert told["elo"] is None


def test_matrix_is_the_logistic_of_the_differences(command: Command, store: Store) -> None:
    told = command("rank", "league", *HERE, "--json").json["ranking"]
    first, second = told["models"][:2]
    chance = 1 / (1 + math.exp(second["logOdds"] - first["logOdds"]))
    shown = command("rank", "league", *HERE, "--matrix").out
    assert "expected score of the row against the column, in percent" in shown
    row = shown[shown.index("expected score") :].splitlines()[2]
    assert row.split()[:4] == ["1", first["model"], "·", f"{100 * chance:.0f}"]


def test_elo_is_that_of_the_order(command: Command, store: Store) -> None:
    file = battles(command.directory)
    told = command("rank", "--battles", str(file), "--elo", "--k", "20", "--json").json
    assert told["ranking"] is None
    assert told["elo"]["k"] == 20
    ratings = {"new": 1000.0, "old": 1000.0, "bad": 1000.0}
    for a, b, won in WON:
        gain = 1.0 if won == "A" else 0.0
        moved = 20 * (gain - 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400)))
        ratings[a] += moved
        ratings[b] -= moved
    assert {row["model"]: row["rating"] for row in told["elo"]["models"]} == pytest.approx(ratings)
    shown = command("rank", "league", *HERE, "--elo")
    assert "they depend on the order of the battles" in shown.out.replace("\n          ", " ")


def test_battles_come_from_a_file_or_from_standard_input(command: Command) -> None:
    file = battles(command.directory)
    named = command("rank", "--battles", str(file), "--json")
    piped = command("rank", "--battles", "-", "--json", stdin=file.read_bytes())
    assert named.json["ranking"] == piped.json["ranking"]
    assert piped.json["file"] == "standard input"
    wanted = rank_battles(A, B, WINNER)
    for row, mine in zip(wanted.models, named.json["ranking"]["models"], strict=True):
        assert (mine["model"], mine["games"]) == (row.model, row.games)
        assert mine["score"] == pytest.approx(row.score)
        assert mine["low"] == pytest.approx(row.low)


@pytest.mark.parametrize("word", ["model_a", "a", "A", "Model A", "left", "1", "1.0", "true-name"])
def test_winner_may_be_said_in_many_words(command: Command, word: str) -> None:
    said = "one" if word == "true-name" else word
    rows = [{"model_a": "one", "model_b": "two", "winner": said}] * 2
    rows.append({"model_a": "one", "model_b": "two", "winner": "tie (bothbad)"})
    file = write_lines(command.directory / "battles.jsonl", rows)
    told = command("rank", "--battles", str(file), "--json").json
    assert (told["counts"]["winsA"], told["counts"]["ties"]) == (2, 1)
    best = told["ranking"]["models"][0]
    assert (best["model"], best["games"]) == ("one", 3)


def test_columns_can_be_mapped_and_bad_rows_skipped(command: Command) -> None:
    rows = [
        {"x": "one", "y": "two", "chosen_side": "A"},
        {"x": "one", "y": "two", "chosen_side": "B"},
        {"x": "one", "y": "two", "chosen_side": "neither of you"},
    ]
    file = write_lines(command.directory / "battles.jsonl", rows)
    mapped = ("--map", "model_a=x", "--map", "model_b=y", "--map", "winner=chosen_side")
    ran = command("rank", "--battles", str(file), *mapped)
    assert ran.code == 2
    assert "row 3: the winner is" in ran.err
    assert "--bad-rows skip" in ran.err
    skipped = command("rank", "--battles", str(file), *mapped, "--bad-rows", "skip")
    assert skipped.code == 0
    assert "won 2, ties 0, bad rows 1 (left out)" in skipped.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("leage",), "no run 'leage'; did you mean league?"),
        (("league", "--battles", "b.csv"), "--store applies to runs, not to --battles"),
        (("league", "--judge", "nobody"), "no judge 'nobody' in run 'league'"),
        (("league", "--tag", "evn"), "no row has the tag 'evn'; did you mean even?"),
        (("league", "--k", "4"), "--k requires --elo; leave it out"),
        (("league", "--elo", "--k", "0"), "--k is 0.0; give a number above 0"),
        (("league", "--elo", "--ties", "half"), "--ties applies to a fitted ranking, not to --elo"),
        (("league", "--seed", "4"), "--seed requires --intervals bootstrap; leave it out"),
        (("league", "--bad-rows", "skip"), "--bad-rows requires --battles; leave it out"),
        (("league", "--level", "1"), "--level is 1.0; give a share between 0 and 1"),
        (("league", "--ties", "some"), "'some' is not one of 'half', 'davidson'"),
        (("league", "--prior", "-1"), "'--prior': Input should be greater than or equal to 0"),
    ],
)
def test_what_cannot_be_ranked_is_an_error_on_one_line(
    command: Command, store: Store, arguments: tuple[str, ...], said: str
) -> None:
    ran = command("rank", *arguments, *HERE)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error  ")
    assert ran.err.count("\n") == 1
    assert said in ran.err
    as_json = command("rank", *arguments, *HERE, "--json")
    assert (as_json.code, as_json.err) == (2, ran.err)
    assert as_json.json["success"] is False
    assert as_json.json["metadata"] == {}


def test_elo_ratings_have_no_matrix_and_no_chart(command: Command, store: Store) -> None:
    for option in (("--matrix",), ("--plot", "a.svg")):
        ran = command("rank", "league", *HERE, "--elo", *option)
        assert (ran.code, ran.out) == (2, "")
        assert f"{option[0]} applies to a fitted ranking, not to --elo" in ran.err
    assert not (command.directory / "a.svg").exists()


def test_run_that_names_no_models_says_how_to_name_them(command: Command, store: Store) -> None:
    make_run(store, "nameless", [Row("q1", says("A")), Row("q2", says("B"))])
    ran = command("rank", "nameless", *HERE)
    assert ran.code == 2
    assert "its pairs do not name their models" in ran.err
    assert "--a and --b" in ran.err


def test_no_store_is_made_by_looking(command: Command) -> None:
    ran = command("rank", "league", "--store", "nowhere.db")
    assert ran.code == 2
    assert not (command.directory / "nowhere.db").exists()


def test_hostile_names_do_nothing_to_a_terminal(command: Command) -> None:
    rows = [
        {"model_a": "[red]\x1b[31mone\u202e", "model_b": "two\x07", "winner": won}
        for won in ("A", "B", "A")
    ]
    file = write_lines(command.directory / "battles.jsonl", rows)
    ran = command("rank", "--battles", str(file), "--matrix")
    assert ran.code == 0
    assert not set("\x1b\x07\u202e") & set(ran.out)
    assert "[red]one" in ran.out
    as_json = command("rank", "--battles", str(file), "--json")
    assert not set("\x1b\x07\u202e") & set(as_json.out)
    assert as_json.json["ranking"]["models"][0]["model"] == "[red]\x1b[31mone\u202e"


def test_undefeated_model_is_told_with_its_prior(command: Command) -> None:
    rows = [{"model_a": "top", "model_b": "low", "winner": "A"}] * 3
    file = write_lines(command.directory / "battles.jsonl", rows)
    ran = command("rank", "--battles", str(file))
    assert ran.code == 0
    assert "undefeated: no upper limit" in ran.out
    assert re.search(r"note +a prior was used: each model has 1 virtual tie", ran.out)


@pytest.mark.parametrize(("name", "begins"), [("a.svg", b"<svg"), ("a.csv", b"chart,")])
def test_plot_writes_the_leaderboard(
    command: Command, store: Store, name: str, begins: bytes
) -> None:
    ran = command("rank", "league", *HERE, "--plot", name)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith(f"chart saved to {name}\n")
    assert (command.directory / name).read_bytes().lstrip().startswith(begins)
    ran = command("rank", "league", *HERE, "--plot", "a.gif")
    assert ran.code == 2
    assert "cannot tell the format of a.gif" in ran.err


def test_outputs_of_two_models_are_judged_and_ranked_from_outside(tmp_path: Path) -> None:
    for name, length in (("short", 3), ("long", 9)):
        answers = [
            {"id": f"q{n}", "prompt": f"Say {n}.", "response": "x" * (length + n % 7)}
            for n in range(6)
        ]
        write_lines(tmp_path / f"{name}.jsonl", answers)
    judged = run_command(
        *("run", "--a", "short.jsonl", "--b", "long.jsonl", "-c", "size", "-j", "baseline:longer"),
        *("--store", "s.db", "--name", "duel"),
        directory=tmp_path,
    )
    assert judged.code == 0
    ran = run_command("rank", "duel", "--store", "s.db", "--json", directory=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    told = json.loads(ran.out)
    assert [row["model"] for row in told["ranking"]["models"]] == ["long", "short"]
    assert told["ranking"]["undefeated"] == ["long"]
    assert told["notes"] == [
        "baseline:longer: a baseline that ignores the content, not a real judge"
    ]


def test_a_long_leaderboard_begins_with_who_leads(command: Command) -> None:
    # Model 0 wins 54 of 60 against each of twenty others; they beat each other in a circle.
    rows = ["model_a,model_b,winner"]
    names = [f"m{n}" for n in range(21)]
    rows += [
        f"m0,{other},{'model_b' if n % 10 == 9 else 'model_a'}"
        for other in names[1:]
        for n in range(60)
    ]
    rows += [f"{a},{b},model_a" for a, b in zip(names[1:], [*names[2:], names[1]], strict=True)]
    (command.directory / "battles.csv").write_text("\n".join(rows) + "\n")
    short = command("rank", "--battles", "battles.csv")
    told = " ".join(short.out.split())
    assert told.startswith(  # 20 × 60 against the others, and 20 among them
        "m0 leads 21 models: significantly better than every other (95% level, 1,220 verdicts). "
    )
    assert "and 6 more models; see --details" in told
    assert "standard errors" not in told
    assert len(short.out.splitlines()) <= 24
    whole = command("rank", "--battles", "battles.csv", "--details").out
    assert "more: --details" not in whole
    assert all(re.search(rf"\b{name}\b", whole) for name in names)


def test_two_models_are_told_as_two(command: Command) -> None:
    rows = ["old,new,model_b"] * 30 + ["old,new,model_a"] * 6
    (command.directory / "battles.csv").write_text("\n".join(["model_a,model_b,winner", *rows]))
    out = command("rank", "--battles", "battles.csv").out
    assert out.startswith("new is significantly better than old (95% level, 36 verdicts).\n")


def test_an_adaptive_league_of_equal_models_claims_no_order(command: Command) -> None:
    """Six models and a coin. By all verdicts of this league, chosen by earlier ones, `a` was said
    to be among the best three; its range and that of two others were wrong."""
    files = []
    for model in "abcdef":
        rows = [
            {"prompt": f"Question {n}?", "response": f"Answer {n} of {model}."} for n in range(60)
        ]
        files += ["--outputs", str(write_lines(command.directory / f"{model}.jsonl", rows))]
    asked = ("--rank-adaptive", "--budget", "300", "--name", "coin", *HERE)
    ran = command("run", *files, "-c", "quality", "-j", "baseline:random:2", *asked)
    assert ran.code == 0
    ranked = command("rank", "coin", *HERE, "--json").json
    models = ranked["ranking"]["models"]
    assert {(each["rankLow"], each["rankHigh"]) for each in models} == {(1, 6)}
    # 200 of the 300 are even: each of 15 contests 13 or 14 times, each model in 5 of them.
    assert all(65 <= each["games"] <= 70 for each in models)
    assert (ranked["adaptive"]["planned"], ranked["adaptive"]["verdicts"]) == (200, 300)
    assert "coin chose pairs by earlier verdicts" in " ".join(
        command("rank", "coin", *HERE).out.split()
    )
