"""No command claims what the judge has not shown: each case through the command line."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from command_line import Command, judged_by
from evenhand.contract import Winner
from evenhand.data.records import BadRow
from evenhand.store import Store
from run_data import write_lines
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply, token_logprob
from stored_runs import Row, follows_place, make_run, mumbles, says

HERE = ("--store", "evenhand.db")
ANSWERS = {
    "A": says("A"),
    "B": says("B"),
    "T": says("TIE"),
    "I": follows_place,
    "X": mumbles,
}


def rows(outcomes: str, **more: Any) -> list[Row]:
    return [
        Row(
            f"q{n}",
            ANSWERS.get(letter, says("A")),
            judged=letter != "-",
            model_a="old",
            model_b="new",
            **more,
        )
        for n, letter in enumerate(outcomes)
    ]


def gate(command: Command, run: str, *options: str) -> Any:
    return command("gate", run, *options, *HERE)


def doubts(ran: Any) -> list[str]:
    found: list[str] = ran.json["checks"][0]["doubts"]
    return found


def in_one_order(row: Row) -> Row:
    return replace(row, pair={**(row.pair or {}), "swap_positions": False})


def test_a_judge_that_takes_the_first_response_passes_no_gate(
    command: Command, store: Store
) -> None:
    make_run(store, "first", rows("I" * 300))
    ran = gate(command, "first", "--min-win-rate", "0.45")
    assert ran.code == 6
    assert ran.out.startswith(
        "No conclusion on new vs old: in 100% of 300 pairs the verdict flipped when the order "
        "was swapped, usually to the same position."
    )
    assert "win rate 0.50 (0.00 to 1.00, 95%)" in ran.out
    assert "next  use another judge" in ran.err


def test_position_in_most_pairs_hides_a_worse_model(command: Command, store: Store) -> None:
    # The 10% that position leaves prefer the old model two to one.
    make_run(store, "mostly", rows("I" * 270 + "A" * 20 + "B" * 10))
    assert gate(command, "mostly", "--min-win-rate", "0.45").code == 6
    # As half they would stand at 0.48 with hardly any variance.
    shown = command("report", "mostly", "--json", *HERE).json["conclusions"]["conclusions"][0][
        "winRate"
    ]
    assert (shown["low"], shown["high"]) == (0.0, 1.0)
    assert shown["doubts"] == ["position"]


def test_a_clear_win_among_flips_is_still_a_win(command: Command, store: Store) -> None:
    make_run(store, "clear", rows("I" * 60 + "B" * 200 + "A" * 40))
    ran = gate(command, "clear")
    assert ran.code == 0
    assert ran.out.startswith("new beats old: 77% win rate (95% CI ")
    assert "; won 200, lost 40, tied 0, flipped 60)" in ran.out
    assert "In 20% of 300 pairs the verdict flipped when the order was swapped" in ran.out


def test_the_interval_holds_both_ways_of_counting(command: Command, store: Store) -> None:
    make_run(store, "both", rows("I" * 90 + "B" * 110 + "A" * 100))
    shown = command("report", "both", "--json", *HERE).json["conclusions"]["conclusions"][0][
        "winRate"
    ]
    assert shown["rate"] == pytest.approx((110 + 45) / 300)
    assert shown["rateWithoutInconsistent"] == pytest.approx(110 / 210)
    # Wilson's of 110 of 210, left out, is 0.456 to 0.590; of the half count it is narrower
    assert shown["low"] < 0.456
    assert shown["high"] > 0.590
    # One interval everywhere: the gate has the report's.
    check = gate(command, "both", "--json").json["checks"][0]
    assert (check["low"], check["high"]) == (shown["low"], shown["high"])


def test_a_judge_that_always_ties_shows_nothing(command: Command, store: Store) -> None:
    make_run(store, "ties", rows("T" * 300))
    ran = gate(command, "ties", "--min-win-rate", "0.45")
    assert ran.code == 6
    assert "named a winner in both orders in only 0 of 300 pairs (at least 20" in ran.out
    # Nor does it show that a model is not much better.
    assert gate(command, "ties", "--min-win-rate", "0.6").code == 6


def test_ties_count_where_the_judge_tells_responses_apart(command: Command, store: Store) -> None:
    make_run(store, "tells", rows("T" * 280 + "A" * 10 + "B" * 10))
    assert gate(command, "tells", "--min-win-rate", "0.45", "--assume-accuracy", "0.8").code == 0
    # 18 decided pairs are too few to tell; labels that they hit are not.
    make_run(store, "few", rows("T" * 282 + "A" * 9 + "B" * 9))
    assert gate(command, "few", "--min-win-rate", "0.45", "--assume-accuracy", "0.8").code == 6
    known = rows("AB" * 10)
    labelled = [replace(row, label="A" if n % 2 == 0 else "B") for n, row in enumerate(known)]
    audited = make_run(store, "audited", labelled)
    store.runs.update(audited, state="finished")
    assert gate(command, "few", "--min-win-rate", "0.45").code == 0


def test_one_order_decides_nothing_unless_the_caller_says_so(
    command: Command, store: Store
) -> None:
    make_run(store, "once", [in_one_order(row) for row in rows("B" * 60)])
    ran = gate(command, "once")
    assert ran.code == 6
    assert "60 of 60 pairs were judged in one order only" in ran.out
    assert "--allow-one-order" in ran.err
    allowed = gate(command, "once", "--allow-one-order")
    assert allowed.code == 0
    assert "in one order only, as you requested: position may have decided" in allowed.out


def test_averaging_hides_no_flips(command: Command, start_server: StartServer) -> None:
    """In letter mode the mean probability decides, a little for B; each order takes the first."""

    def first_place(request: SeenRequest) -> Reply:
        # B is always the longer one; shown first it gets 0.9, and A shown first gets 0.8.
        b_first = request.prompt.index("a new answer") < request.prompt.index("an old one")
        sure = 0.9 if b_first else 0.8
        top = {"A": math.log(sure), "B": math.log(1 - sure)}
        return chat_reply("A", logprobs=[token_logprob("A", top["A"], top)])

    lines = [
        {"prompt": f"q{n}", "response_a": "an old one", "response_b": "a new answer"}
        for n in range(60)
    ]
    write_lines(Path(command.directory) / "pairs.jsonl", lines)
    judge = ("-c", "accuracy", *judged_by(start_server(first_place)), "--mode", "letter")
    ran = command("run", "pairs.jsonl", *judge, "--name", "averaged", *HERE, "--json")
    assert (ran.json["winsB"], ran.json["inconsistent"]) == (60, 0)
    ruled = gate(command, "averaged")
    assert ruled.code == 6
    assert "in 100% of 60 pairs the verdict flipped" in ruled.out
    assert "0 inconsistent and 60 flipped but averaged" in ruled.out


def test_the_same_verdicts_have_one_estimate_finished_or_not(
    command: Command, store: Store
) -> None:
    # One prompt of 40 rows that B wins, and 20 prompts of one row that A wins: by rows 40 of 60,
    # by prompts 1 of 21.
    crowd = [replace(row, pair={"prompt": "the same"}) for row in rows("B" * 40)]
    alone = [replace(row, key=f"a{row.key}") for row in rows("A" * 20)]
    make_run(store, "whole", [*crowd, *alone])
    whole = command("report", "whole", "--json", *HERE).json["conclusions"]
    shown = whole["conclusions"][0]["winRate"]
    assert shown["rate"] == pytest.approx(1 / 21)
    assert shown["rowRate"] == pytest.approx(40 / 60)
    assert any("prompts have equal weight" in note for note in whole["notes"])
    make_run(store, "part", [*crowd, *alone, *(replace(r, key=f"p{r.key}") for r in rows("-"))])
    part = command("report", "part", "--json", *HERE).json["conclusions"]["conclusions"][0][
        "winRate"
    ]
    assert part["rate"] == pytest.approx(1 / 21)


def test_a_sorted_file_stopped_halfway_decides_nothing(command: Command, store: Store) -> None:
    make_run(store, "capped", rows("B" * 100 + "-" * 150))
    ran = gate(command, "capped")
    assert ran.code == 6
    assert "150 of 250 pairs are pending, and the run judges them in file order" in ran.out
    shown = command("report", "capped", "--json", *HERE).json["conclusions"]["conclusions"][0][
        "winRate"
    ]
    # Were all the others lost, it would be 100 of 250.
    assert shown["low"] <= 100 / 250


def test_invalid_verdicts_count_against_the_claim(command: Command, store: Store) -> None:
    make_run(store, "broken", rows("B" * 12 + "X" * 188))
    ran = gate(command, "broken", "--junit", "gate.xml")
    assert ran.code == 6
    assert "188 of 200 pairs have no verdict" in ran.out
    assert "12 won, 0 lost, 0 tied, 0 inconsistent, 188 invalid" in ran.out
    assert "worst case" in ran.out
    suite = ET.parse(command.directory / "gate.xml").getroot()  # noqa: S314 - our own file
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert "188 invalid" in (suite.find(".//error").text or "")  # type: ignore[union-attr]
    # Only the caller can say that they are like the others, and it is stated.
    halved = gate(command, "broken", "--missing", "half", "--junit", "gate.xml")
    assert "188 pairs without a verdict count as half, as you requested" in halved.out
    assert "(--missing half)" in (command.directory / "gate.xml").read_text()


def test_missing_pairs_count_against_the_claim_however_few(command: Command, store: Store) -> None:
    make_run(store, "nearly", rows("B" * 130 + "A" * 69 + "X"))
    assert gate(command, "nearly").code == 0
    # 1,000 pairs, 10 of them invalid: 526 of 990 decided are won. With the 10 as half the lower
    # end is above one half (531 / 1000 - 1.96 * 0.0158 = 0.5000), as losses 526 / 1000 is not.
    make_run(store, "close", rows("B" * 527 + "A" * 463 + "X" * 10))
    ran = gate(command, "close")
    assert ran.code == 6
    assert "10 of 1,000 pairs have no verdict, which could change the result" in ran.out
    assert gate(command, "close", "--missing", "half").code == 0
    config = command.directory / "evenhand.toml"
    config.write_text('[gate]\nmissing = "half"\n')
    assert gate(command, "close").code == 0
    config.write_text('[gate]\nmissing = "never"\n')
    assert "give against or half" in gate(command, "close").err


def test_limits_on_missing_pairs_leave_a_gate_undecided(command: Command, store: Store) -> None:
    make_run(store, "limited", rows("B" * 90 + "X" * 10))
    assert gate(command, "limited").code == 0  # 90 of 100, with all missing ones lost
    ran = gate(command, "limited", "--max-invalid", "0.09")
    assert ran.code == 6
    assert "10 of 100 pairs have no verdict, more than the 9% that --max-invalid allows" in ran.out
    assert gate(command, "limited", "--max-invalid", "0.1").code == 0


def test_skipped_rows_count_against_the_claim(command: Command, store: Store) -> None:
    skipped = [BadRow("pairs.jsonl", n, "no response B") for n in range(500, 590)]
    make_run(store, "tenth", rows("B" * 10), skipped=skipped)
    ran = gate(command, "tenth")
    assert ran.code == 6
    assert "90 skipped or without a counterpart" in ran.out
    make_run(store, "one", rows("B" * 90), skipped=skipped[:1])
    assert gate(command, "one").code == 0
    assert gate(command, "one", "--max-skipped", "0.01").code == 6  # 1 of 91 is more


def test_a_model_that_answers_few_prompts_does_not_win_by_it(command: Command) -> None:
    def answers(model: str, numbers: range) -> list[dict[str, Any]]:
        return [{"id": n, "prompt": f"p{n}", "output": f"{model} {n:4}"} for n in numbers]

    files = {"old": range(300), "newer": range(0, 300, 10), "newest one": range(300)}
    for model, numbers in files.items():
        write_lines(Path(command.directory) / f"{model}.jsonl", answers(model, numbers))
    judged = ("-j", "baseline:longer", *HERE)
    two = ("run", "--a", "old.jsonl", "--b", "newer.jsonl", *judged)
    assert command(*two, "--bad-rows", "skip", "--name", "part").code == 0
    ran = gate(command, "part")
    assert (ran.code, "270 skipped or without a counterpart" in ran.out) == (6, True)
    assert command(*two, "--prompts", "common", "--name", "common").code == 0
    # What it left out is said with every conclusion: 30 of 300 prompts count.
    ran = gate(command, "common", "--json")
    assert (ran.code, ran.json["checks"][0]["leftOut"]) == (0, 270)
    shown = gate(command, "common").out
    assert "Only the 30 prompts answered by both count (--prompts common); 270 are left out" in (
        shown
    )
    assert "Only the 30 prompts" in " ".join(command("report", "common", *HERE).out.split())
    ranked = " ".join(command("rank", "common", *HERE).out.split())
    assert "270 pairs that lack an answer are left out (--prompts common)." in ranked
    # Of three models only the matchups of the one that lacks answers have prompts missing.
    every = [word for model in files for word in ("--outputs", f"{model}.jsonl")]
    assert command("run", *every, *judged, "--bad-rows", "skip", "--name", "three").code == 0
    found = command("report", "three", "--json", *HERE).json["conclusions"]["conclusions"]
    assert {(c["model"], c["against"]): c["skipped"] for c in found} == {
        ("newer", "old"): 270,
        ("newest one", "old"): 0,
        ("newest one", "newer"): 270,
    }


def test_too_many_flips_are_a_limit_of_the_callers(command: Command, store: Store) -> None:
    make_run(store, "flips", rows("B" * 80 + "A" * 20 + "I" * 20))
    assert gate(command, "flips").code == 0
    ran = gate(command, "flips", "--max-inconsistent", "0.1")
    assert ran.code == 6
    assert "in 20 of 120 pairs, more than the 10% allowed" in ran.out


@pytest.mark.parametrize(("limit", "code"), [("0.24", 6), ("0.25", 0), ("0.26", 0)])
def test_as_many_flips_as_the_limit_are_allowed(
    command: Command, store: Store, limit: str, code: int
) -> None:
    make_run(store, "flips", rows("B" * 75 + "A" * 15 + "I" * 30))  # 30 of 120 are 0.25
    ran = gate(command, "flips", "--max-inconsistent", limit)
    assert (ran.code, "more than the 24% allowed" in ran.out) == (code, code == 6)


def test_few_clusters_and_few_pairs_say_so(command: Command, store: Store) -> None:
    one = [replace(row, pair={"prompt": "same"}) for row in rows("B" * 40)]
    make_run(store, "one", one)
    ran = gate(command, "one")
    assert ran.code == 6
    assert "1 prompt; at least 5 are needed" in ran.out


def test_rows_of_a_cluster_count_once(command: Command) -> None:
    """Eight conversations of ten questions each, all of which B wins: eight, and not eighty."""
    lines = [
        {
            "prompt": f"q{n}",
            "response_a": "old",
            "response_b": "new answer",
            "conversation": n // 10,
        }
        for n in range(80)
    ]
    write_lines(Path(command.directory) / "pairs.jsonl", lines)
    asked = ("run", "pairs.jsonl", "-j", "baseline:longer", *HERE)
    assert command(*asked, "--name", "alone").code == 0
    assert command(*asked, "--map", "cluster=conversation", "--name", "together").code == 0
    alone, together = (
        command("report", run, "--json", *HERE).json["conclusions"]["conclusions"][0]["winRate"]
        for run in ("alone", "together")
    )
    assert (alone["prompts"], alone["clustered"]) == (80, False)
    assert (together["prompts"], together["clustered"]) == (8, True)
    assert together["low"] < alone["low"]


def test_the_turns_of_a_conversation_are_one_question(command: Command) -> None:
    def answers(model: str) -> list[dict[str, Any]]:
        return [
            {"question_id": n, "model_id": model, "choices": [{"turns": [model, model * 2]}]}
            for n in range(30)
        ]

    questions = [{"question_id": n, "turns": [f"q{n}", f"and then {n}?"]} for n in range(30)]
    for name, lines in (("old", answers("old")), ("newer", answers("newer")), ("q", questions)):
        write_lines(Path(command.directory) / f"{name}.jsonl", lines)
    files = ("--a", "old.jsonl", "--b", "newer.jsonl", "--questions", "q.jsonl")
    assert command("run", *files, "-j", "baseline:longer", "--name", "turns", *HERE).code == 0
    shown = command("report", "turns", "--json", *HERE).json["conclusions"]
    assert (shown["pairs"], shown["prompts"]) == (60, 30)
    assert shown["conclusions"][0]["winRate"]["prompts"] == 30


def test_a_report_opens_with_its_conclusion(command: Command, store: Store) -> None:
    make_run(store, "good", rows("B" * 180 + "A" * 110 + "I" * 10))
    out = command("report", "good", "--smallest-effect", "0.02", *HERE).out
    told = " ".join(out.split())
    assert "new beats old: 62% win rate (" in told
    assert "The difference is at least 2 points." in told
    assert "In 3% of 300 pairs the verdict flipped" in told
    make_run(store, "even", rows("B" * 3 + "A" * 3 + "T" * 600 + "AB" * 20))
    told = " ".join(command("report", "even", "--smallest-effect", "0.05", *HERE).out.split())
    assert "new and old are not significantly different: new at 50% win rate (" in told
    assert "A difference of 5 points or more is ruled out." in told


def test_without_a_name_the_latest_run_is_taken_and_named(command: Command, store: Store) -> None:
    make_run(store, "older", rows("B" * 30))
    make_run(store, "newer", rows("B" * 40 + "A" * 20))
    for words in (("report",), ("show", "q3"), ("rank",)):
        ran = command(*words, *HERE)
        assert (ran.code, "latest run: newer" in ran.err) == (0, True), words
    refused = command("gate", *HERE)
    assert refused.code == 2
    assert "--latest" in refused.err
    assert command("gate", "--latest", *HERE).code == 0


def test_a_handful_of_winners_among_ties_claims_nothing(command: Command, store: Store) -> None:
    # 4 wins and no loss: by the sign test 2/2⁴ = 0.125. 96 ties made the interval 50.1 to 100%.
    make_run(store, "handful", rows("B" * 4 + "T" * 96))
    ran = gate(command, "handful")
    assert ran.code == 6
    assert ran.out.startswith(
        "No conclusion on new vs old: only 4 of 100 prompts favour a side, which could be chance "
        "(sign-flip test, p = 0.12). "
    )
    assert "next  judge more prompts" in ran.err
    told = " ".join(command("report", "handful", *HERE).out.split())
    assert " beats " not in told
    # Six decisive prompts are the least, however lax alpha is: 5 wins are 2/2⁵ = 0.0625.
    make_run(store, "five", rows("B" * 5 + "T" * 95))
    assert gate(command, "five", "--alpha", "0.2").code == 6
    make_run(store, "six", rows("B" * 6 + "T" * 94))
    assert gate(command, "six").code == 0  # 2/2⁶ = 0.031


def test_the_mirrored_side_is_held_back_alike(command: Command, store: Store) -> None:
    make_run(store, "mirror", rows("B" * 4 + "T" * 96))
    checks = {
        side: gate(command, "mirror", "--side", side, "--json").json["checks"][0] for side in "AB"
    }
    assert [checks[side]["ruling"] for side in "AB"] == ["undecided", "undecided"]
    codes = [[hold["code"] for hold in checks[side]["holds"]] for side in "AB"]
    assert codes == [["chance"], ["chance"]]
    assert checks["A"]["low"] == pytest.approx(1 - checks["B"]["high"])


def test_a_threshold_other_than_one_half_needs_no_sign_flip_test(
    command: Command, store: Store
) -> None:
    make_run(store, "margin", rows("BBBBA" + "T" * 95 + "AB" * 20))
    options = ("--min-win-rate", "0.6", "--assume-accuracy", "0.9")
    shown = gate(command, "margin", *options, "--json").json["checks"][0]
    assert (shown["ruling"], shown["holds"]) == ("fail", [])


def test_mostly_flips_decide_nothing(command: Command, store: Store) -> None:
    make_run(store, "flipped", rows("B" * 40 + "I" * 40 + "T" * 20))
    ran = gate(command, "flipped")
    assert ran.code == 6
    assert "flipped with the order in 40 pairs" in ran.out
    assert "both orders agreed on a winner in only 40" in ran.out
    told = " ".join(command("report", "flipped", *HERE).out.split())
    assert " beats " not in told
    # One flip fewer is a note, even where the position is plain to see.
    make_run(store, "noted", rows("B" * 40 + "I" * 39 + "T" * 20))
    ran = gate(command, "noted")
    assert ran.code == 0
    assert "new beats old" in ran.out
    # No leader, either.
    told = " ".join(command("rank", "flipped", *HERE).out.split())
    assert told.startswith("No conclusion on new vs old: in 40% of 100 pairs")


def test_a_gate_on_labels_is_not_vetoed_by_the_judge_that_they_correct(
    command: Command, store: Store
) -> None:
    # The judge is right in half of 200 labelled pairs; people prefer B in 150 of them.
    judged = rows("AB" * 100)
    labels: list[Winner] = ["B" if n % 4 != 1 else "A" for n in range(200)]
    labelled = [replace(row, label=label) for row, label in zip(judged, labels, strict=True)]
    make_run(store, "vetoed", labelled)
    assert gate(command, "vetoed").code == 0
    ran = gate(command, "vetoed", "--corrected", "--labels-are", "random")
    assert ran.code == 0
    assert "coin flip" not in ran.out
    assert "people: 150 won, 50 lost, 0 tied" in ran.out


def test_a_gate_can_stand_on_peoples_labels(command: Command, store: Store) -> None:
    # The judge takes the first response always; people prefer B in 70 of 100.
    judged = rows("I" * 100)
    labelled = [replace(row, label="B" if n < 70 else "A") for n, row in enumerate(judged)]
    make_run(store, "people", labelled)
    ran = gate(command, "people", "--corrected")
    assert ran.code == 0
    assert "This is what people say about all 100 pairs (70 won, 30 lost, 0 tied)" in ran.out


def test_run_ends_with_the_conclusion_and_the_next_command(command: Command) -> None:
    lines = [
        {"prompt": f"q{n}", "response_a": "old", "response_b": "new answer", "criteria": ["x"]}
        for n in range(60)
    ]
    write_lines(Path(command.directory) / "pairs.jsonl", lines)
    ran = command("run", "pairs.jsonl", "-j", "baseline:longer", "--name", "r", *HERE)
    assert ran.code == 0
    assert "B beats A: 100% win rate (" in ran.out
    following = f"evenhand report r {' '.join(HERE)}"
    assert ran.err.rstrip().endswith(f"next  {following}")
    assert command(*following.split()[1:]).code == 0


def test_coin_pairs_pass_no_gate_below_one_half(command: Command, store: Store) -> None:
    """300 pairs, true rate 0.35. The judge flips a coin on 60% of them: half of these flips, the
    rest falls to either side, so that 0.5 - 0.15 * 0.4 = 0.44 is left."""
    make_run(store, "coins", rows("I" * 90 + "A" * 123 + "B" * 87))
    shown = gate(command, "coins", "--min-win-rate", "0.35", "--assume-accuracy", "1", "--json")
    check = shown.json["checks"][0]
    assert check["ruling"] == "undecided"
    # The half count's end is stretched by 1 - 2I, I being 90 of 300 and a little more.
    share = 0.3 + 0.6744897501960817 * math.sqrt(0.3 * 0.7 / 300)
    report = command("report", "coins", "--json", *HERE).json["conclusions"]["conclusions"][0][
        "winRate"
    ]
    assert check["low"] == pytest.approx(0.5 - (0.5 - report["halfLow"]) / (1 - 2 * share))


def test_every_gate_says_what_accuracy_it_needs(command: Command, store: Store) -> None:
    make_run(store, "clear", rows("B" * 180 + "A" * 120))
    # Wilson's lower end of 180 of 300 is 0.5436; all pairs are decided: 1 - 0.0436 is 0.9564.
    ran = gate(command, "clear")
    assert ran.code == 0
    holds = "holds for any judge better than a coin flip (96% accuracy if every error favoured new)"
    assert holds in ran.out
    # The other side fails, and its errors are the mirror image.
    other = gate(command, "clear", "--side", "A")
    assert other.code == 1
    assert "(96% accuracy if every error favoured new)" in other.out
    make_run(store, "open", rows("B" * 151 + "A" * 149))
    assert "no judge accuracy would settle it" in gate(command, "open").out


def test_a_limit_below_one_half_needs_labels_or_the_callers_word(
    command: Command, store: Store
) -> None:
    # Wilson's lower end of 150 of 300 is 0.4437: ½ (1 + (0.5 - 0.4437) / (0.5 - 0.4)) = 0.7815.
    make_run(store, "even", rows("AB" * 150))
    at = ("--min-win-rate", "0.4")
    ran = gate(command, "even", *at)
    assert ran.code == 6
    assert (
        "the judge must be right on 79%, and there are no labels to measure its accuracy" in ran.out
    )
    assert "--assume-accuracy" in ran.err
    assert gate(command, "even", *at, "--assume-accuracy", "0.75").code == 6
    ran = gate(command, "even", *at, "--assume-accuracy", "0.8", "--junit", "gate.xml")
    assert ran.code == 0
    assert "accuracy assumed as you requested: 80%" in ran.out
    assert 'name="assumeAccuracy" value="0.8"' in (command.directory / "gate.xml").read_text()
    # The mirrored gate fails where this one passes, and needs the same.
    other = ("--min-win-rate", "0.6", "--side", "A")
    assert gate(command, "even", *other).code == 6
    assert gate(command, "even", *other, "--assume-accuracy", "0.8").code == 1
    refused = gate(command, "even", *at, "--assume-accuracy", "0.4")
    assert (refused.code, "above 0.5" in refused.err) == (2, True)
    # Labels that the judge hits: 60 of 60 are at least 94% for sure.
    known = rows("AB" * 30)
    labels: list[Winner] = ["A", "B"] * 30
    labelled = [replace(row, label=label) for row, label in zip(known, labels, strict=True)]
    store.runs.update(make_run(store, "labelled", labelled), state="finished")
    assert gate(command, "even", *at).code == 0


def guarded(command: Command, store: Store) -> tuple[str, ...]:
    tagged = [replace(row, key=f"t{row.key}", tags=("refunds",)) for row in rows("AB" * 75)]
    make_run(store, "guarded", [*rows("B" * 130 + "A" * 20), *tagged])
    return ("guarded", "--assume-accuracy", "0.9")


def test_guard_rails_must_all_hold(command: Command, store: Store) -> None:
    run = guarded(command, store)
    both = ("--require", "overall>0.5", "--require", "tag:refunds>=0.35")
    ran = gate(command, *run, *both, "--junit", "gate.xml")
    assert ran.code == 0
    lines = [line for line in ran.out.splitlines() if line.startswith("pass  ")]
    assert lines[0].startswith("pass  overall>0.5: new vs old: win rate 0.68")
    assert lines[1].startswith("pass  tag:refunds>=0.35: new vs old: win rate 0.50")
    cases = ET.parse(command.directory / "gate.xml").getroot().iter("testcase")  # noqa: S314
    assert [case.get("name", "").split(":")[0] for case in cases] == ["overall>0.5", "tag"]
    # One that is open leaves it undecided, one that fails fails the whole.
    assert gate(command, *run, *both, "--require", "tag:refunds>=0.49").code == 6
    assert gate(command, *run, *both, "--require", "tag:refunds>=0.7").code == 1
    config = command.directory / "evenhand.toml"
    config.write_text('[gate]\nrequire = ["overall>0.5", "tag:refunds>=0.7"]\n')
    assert gate(command, *run).code == 1
    assert gate(command, *run, "--min-win-rate", "0.5").code == 0  # the command comes first
    shown = gate(command, *run, "--json").json
    assert shown["require"] == ["overall>0.5", "tag:refunds>=0.7"]
    assert [check["ruling"] for check in shown["checks"]] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--require", "safety"), "'safety' is not a requirement; write overall>0.5"),
        (("--require", "overall<0.5"), "is not a requirement"),
        (("--require", "overall>1.5"), "give a number from 0 to 1"),
        (("--require", "tag:>0.5"), "is not a requirement"),
        (("--require", "tag:returns>0.5"), "no pair has the tag 'returns'; tags: refunds"),
        (("--require", "safety>0.5"), "no pair has the criterion 'safety'; criteria:"),
        (("--require", "overall>0.5", "--min-win-rate", "0.4"), "cannot be combined"),
    ],
)
def test_a_requirement_that_cannot_be_read_says_what_can(
    command: Command, store: Store, words: tuple[str, ...], message: str
) -> None:
    ran = gate(command, *guarded(command, store), *words)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_a_run_until_decided_does_not_settle_on_mostly_flips(
    command: Command, start_server: StartServer
) -> None:
    """B, the longer one, in every third pair; elsewhere whatever is shown first. 16 wins of B and
    no loss would settle it."""

    def mostly_first(request: SeenRequest) -> Reply:
        number = int(request.prompt.split("question ")[1].split(".")[0])
        b_first = request.prompt.index("the newer answer") < request.prompt.index("an old one")
        winner = ("A" if b_first else "B") if number % 3 == 0 else "A"
        return chat_reply(answer_json(winner, confidence=0.9, criteria=[("x", winner)]))

    lines = [
        {"prompt": f"question {n}.", "response_a": "an old one", "response_b": "the newer answer"}
        for n in range(60)
    ]
    write_lines(Path(command.directory) / "pairs.jsonl", lines)
    judge = ("-c", "x", *judged_by(start_server(mostly_first)))
    ran = command("run", "pairs.jsonl", *judge, "--until-decided", "--name", "until", *HERE)
    assert ran.code == 0
    assert "Undecided: the verdict flipped with the order in 40 pairs" in ran.err
    assert "is better" not in ran.out
    assert "the winner is decided" not in ran.err
    assert (
        command("run", "pairs.jsonl", *judge, "--until-decided", *HERE, "--json").json["pending"]
        == 0
    )
    assert gate(command, "until").code == 6
