from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from command_line import Command
from evenhand.store import Store
from evenhand.tools import output_schema
from scripted import answer_json
from stored_runs import ROWS, USAGE, Row, completed, judge_run, make_run, says

HERE = ("--store", "evenhand.db")


@pytest.fixture
def judged(store: Store) -> Store:
    make_run(store, "first", ROWS)
    return store


def shown(command: Command, identifier: str, run: str = "first") -> str:
    ran = command("show", run, identifier, *HERE)
    assert (ran.code, ran.err) == (0, "")
    return " ".join(ran.out.split())


def test_pair_is_shown_with_its_texts_its_verdict_and_its_passes(
    command: Command, judged: Store
) -> None:
    said = shown(command, "q1")
    for part in (
        "q1 pair 1 of run first, row 2 of pairs.jsonl",
        "label A, A by old, B by new, tags math, easy",
        "criteria accuracy",
        "prompt Question q1?",
        "A one B two",
        "en-reasoned-1, en, reasoned",
        "Response A is better confidence 0.80 (stated by the judge)",
        "first pass A, second pass A: both orders agree",
        "It says more.",
        "first pass: A, confidence 0.80",
        "model-1 · 100 tokens in, 20 out · $0.2500 · 1 request · 0.0 s",
        "request request-1",
        "the judge's own words:",
        "the judge's own words, which saw A and B swapped:",
    ):
        assert part in said


def test_verdict_reads_as_compare_would_have_shown_it(command: Command, judged: Store) -> None:
    assert "Inconsistent: the winner changed with the order" in shown(command, "q5")
    assert "first pass A, second pass B: the orders differ" in shown(command, "q5")
    assert "A tie confidence 0.80" in shown(command, "q4")


def test_unread_and_failed_passes_say_why(command: Command, judged: Store) -> None:
    unread = shown(command, "q6")
    assert "Invalid no valid verdict: " in unread
    assert "first pass: unread (refusal): the judge declined: 'I cannot say.'" in unread
    assert unread.endswith("which saw A and B swapped: I cannot say.")
    failed = shown(command, "7")
    assert "Invalid (judge) the server fell over; start it again" in failed
    assert "second pass: failed (judge): the server fell over; start it again" in failed


def test_pending_pair_and_replaced_passes_are_told(command: Command, judged: Store) -> None:
    assert "Pending: no verdict yet" in shown(command, "#8")
    run = judged.runs.find("first")
    assert run is not None
    judged.work.retire(run.id, {"unread"})
    waiting = shown(command, "q6")
    assert "Pending: no verdict yet" in waiting
    assert "first pass, an earlier attempt, replaced: unread (refusal)" in waiting
    (judge,) = judged.runs.judges(run.id)
    judge_run(judged, run.id, judge.id, {row.key: Row(row.key, says("B")) for row in ROWS})
    again = shown(command, "q6")
    assert again.index("Response B is better") < again.index("second pass: B")
    assert again.index("second pass: B") < again.index("an earlier attempt, replaced")


def test_repaired_answer_is_shown_after_what_could_not_be_read(
    command: Command, store: Store
) -> None:
    from evenhand.contract import Unread
    from evenhand.judging.decision import PassResult
    from evenhand.store import NewPass

    run_id = make_run(store, "mended", [Row("m", says("A"), judged=False)])
    (judge,) = store.runs.judges(run_id)
    (work,) = store.work.pending(run_id, judge.id, after=0, limit=1)
    before = Unread(order="original", kind="malformed", reason="it was no JSON", raw="Hm, well")
    after = Unread(order="original", kind="empty", reason="it was empty")
    made = PassResult(after, usage=USAGE, repaired=(before,))
    store.work.write([NewPass(work.pair_id, judge.id, run_id, made)], [])
    said = shown(command, "m", "mended")
    assert "first pass: unread (empty): it was empty" in said
    assert "asked again because it was no JSON; the first answer was Hm, well" in said


def test_options_of_a_pair_are_told(command: Command, store: Store) -> None:
    pair = {
        "criteria": [{"name": "tone", "description": "kind", "weight": 2}, "accuracy"],
        "context": "They are friends.",
        "reference": "42",
        "response_b": "",
        "allow_tie": False,
        "swap_positions": False,
    }
    make_run(store, "odd", [Row("o", says("A"), pair=pair)])
    said = shown(command, "o", "odd")
    for part in (
        "ties not allowed, one order only",
        "criteria tone: kind (weight 2) accuracy",
        "context They are friends.",
        "reference 42",
        "B empty",
    ):
        assert part in said
    assert "second pass" not in said


def test_json_is_one_object_with_the_contracts_verdict_under_each_judge(
    command: Command, store: Store
) -> None:
    make_run(store, "first", ROWS, judges=("strict", "kind"))
    for identifier, success in (("q1", True), ("q5", True), ("q7", False)):
        report = command("show", "first", identifier, *HERE, "--json").json
        assert [judged["judge"] for judged in report["judges"]] == ["strict", "kind"]
        for judged in report["judges"]:
            Draft202012Validator(output_schema()).validate(judged["verdict"])
            assert (judged["verdict"]["success"], judged["pending"]) == (success, False)
            assert len(judged["passes"]) == 2
    report = command("show", "first", "q1", *HERE, "--json").json
    assert (report["run"], report["id"], report["number"], report["row"]) == ("first", "q1", 1, 2)
    assert report["pair"]["responseA"] == "one"
    assert report["judges"][0]["passes"][0]["ballot"]["raw"].startswith("{")
    pending = command("show", "first", "q8", *HERE, "--json").json["judges"][0]
    assert (pending["pending"], pending["verdict"], pending["passes"]) == (True, None, [])


def test_texts_of_a_pair_cannot_act_on_a_terminal(command: Command, store: Store) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2Jred\x9b1m\u202e[bold]x[/bold]"
    answer = answer_json("A", criteria=[("accuracy", "A")], reasoning=hostile)
    pair = {"prompt": hostile, "response_a": hostile, "context": hostile, "reference": hostile}
    rows = [Row("h", lambda call: completed(answer, USAGE), pair=pair, model_a=hostile)]
    make_run(store, "evil", rows)
    for more in ((), ("--json",)):
        out = command("show", "evil", "h", *HERE, *more).out
        assert "red" in out
        assert not set(out) & set("\x1b\x9b\u202e\x07")
    assert "[bold]x[/bold]" in command("show", "evil", "h", *HERE).out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("first", "q9"), "run 'first' has no pair 'q9' among its 8 pairs; give an id"),
        (("fist", "q1"), "no run 'fist'; did you mean first?"),
    ],
)
def test_what_is_not_there_is_one_line(
    command: Command, judged: Store, arguments: tuple[str, str], complaint: str
) -> None:
    ran = command("show", *arguments, *HERE)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err
    assert ran.err.count("\n") == 1
    as_json = command("show", *arguments, *HERE, "--json")
    assert (as_json.code, as_json.failure["kind"]) == (2, "input")


def test_a_flag_is_set_shown_and_taken_away(command: Command, judged: Store) -> None:
    ran = command("flag", "first", "q1", "--comment", "look \x1b[31magain[/]", *HERE)
    assert (ran.code, ran.err) == (0, "")
    assert "flagged look again" in ran.out
    assert "\x1b" not in ran.out
    assert "flagged look" in shown(command, "q1")
    told = command("flag", "first", "1", "--remove", "--json", *HERE).json
    assert (told["id"], told["flagged"], told["comment"]) == ("q1", False, None)
    assert "flagged" not in shown(command, "q1")
    ran = command("flag", "first", "q1", "--remove", "--comment", "x", *HERE)
    assert (ran.code, "give --comment or --remove" in ran.err) == (2, True)
