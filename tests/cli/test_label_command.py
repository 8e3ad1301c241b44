"""Voting in a terminal: blind, random sides mapped back, undone, and gone on with after a kill."""

from __future__ import annotations

import csv
import re
import signal

import pytest

from command_line import Command, TerminalSession
from evenhand.store import Store
from judged_runs import judged_run
from stored_runs import Row, make_run, opened, says

HERE = ("--store", "evenhand.db")
ASKS = "q quit: "
HOSTILE = "\x1b[31mred\x9b2J\u202e\x07"


def row(key: str, **pair: str) -> Row:
    texts = {"prompt": f"Question {key}?", "response_a": f"A{key}", "response_b": f"B{key}"}
    return Row(key, says("A"), model_a="model-old", model_b="model-new", pair=texts | pair)


def run_of(store: Store, *rows: Row) -> int:
    return make_run(store, "first", rows or tuple(row(str(n)) for n in range(1, 7)))


def stored(store: Store, run_id: int, who: str = "Ann") -> dict[str, str | None]:
    return {key: vote.verdict for _, key, vote in store.votes.each(run_id) if vote.who == who}


def shown_pair(asked: str) -> tuple[str, str, str]:
    """The id, and the texts that stand first and second."""
    key = re.findall(r"Question (\d+)\?", asked)[-1]
    first = re.findall(r"response 1\n(\S+)", asked)[-1]
    second = re.findall(r"response 2\n(\S+)", asked)[-1]
    return key, first, second


def sitting(command: Command, *more: str, kind: str = "dumb", lines: int = 40) -> TerminalSession:
    given = ("label", "first", "--who", "Ann", *HERE, *more)
    return TerminalSession(command.directory, *given, kind=kind, lines=lines)


def test_votes_are_stored_at_once_for_the_response_that_was_shown(
    command: Command, store: Store
) -> None:
    run_id = run_of(store)
    expected: dict[str, str | None] = {}
    seen = set()
    with sitting(command) as terminal:
        beginning = terminal.until("every vote is saved")
        assert "labelling run first as Ann: 6 pairs (all pairs), 0 voted" in beginning
        for place, pressed in enumerate("1b2ats", 1):
            asked = terminal.until(ASKS)
            assert f"pair {place} of 6" in asked
            key, first, second = shown_pair(asked)
            assert {first, second} == {f"A{key}", f"B{key}"}
            seen.add(first[0])
            liked = {"1": first, "a": first, "2": second, "b": second}.get(pressed)
            expected[key] = liked[0] if liked else {"t": "TIE", "s": None}[pressed]
            terminal.press(pressed)
        terminal.until("that was the last one; u undo, any other key to finish: ")
        assert stored(store, run_id) == expected
        terminal.press("x")
        assert "6 of 6 pairs voted" in terminal.rest()
        assert terminal.ended() == 0
        text = terminal.shown.decode()
    assert seen == {"A", "B"}  # some were shown the other way round
    # Nothing says who judged what, or whose the responses are.
    assert not re.search(r"model-(old|new)|scripted|wins|It says more|confidence", text)


def test_a_killed_sitting_is_gone_on_with(command: Command, store: Store) -> None:
    run_id = run_of(store)
    with sitting(command) as terminal:
        first, *_ = shown_pair(terminal.until(ASKS))
        terminal.press("t")
        second, *_ = shown_pair(terminal.until(ASKS))
        terminal.kill()
    assert stored(store, run_id) == {first: "TIE"}
    with sitting(command) as terminal:
        asked = terminal.until(ASKS)
        assert "6 pairs (all pairs), 1 voted" in asked
        assert shown_pair(asked)[0] == second
        terminal.press("q")
        assert "1 of 6 pairs voted; run the same command to vote on the other 5" in terminal.rest()
        assert terminal.ended() == 0
    assert stored(store, run_id) == {first: "TIE"}


def test_undo_asks_the_pair_before_again(command: Command, store: Store) -> None:
    run_id = run_of(store)
    with sitting(command, "--number", "2") as terminal:
        first = shown_pair(terminal.until(ASKS))
        terminal.press("u")
        assert "nothing to undo" in terminal.until(ASKS)
        terminal.press("1")
        asked = terminal.until(ASKS)
        assert "response 1 is better" in asked
        assert shown_pair(asked) != first
        terminal.press("u")
        asked = terminal.until(ASKS)
        assert "undone" in asked
        assert shown_pair(asked) == first  # the same pair, on the same sides
        assert stored(store, run_id) == {}
        terminal.press("2")
        terminal.until(ASKS)
        terminal.press("t")
        terminal.until("that was the last one")
        terminal.press("u")
        terminal.until(ASKS)
        terminal.press("s")
        terminal.until("that was the last one")
        terminal.press("q")
        assert terminal.ended() == 0
    assert stored(store, run_id)[first[0]] == first[2][0]
    assert sorted(stored(store, run_id).values(), key=str) == sorted([first[2][0], None], key=str)


def test_keys_that_mean_nothing_vote_nothing(command: Command, store: Store) -> None:
    run_id = run_of(store, row("1"))
    with sitting(command) as terminal:
        terminal.until(ASKS)
        terminal.press("x")
        terminal.until("unknown key")
        terminal.until(ASKS)
        terminal.press("\x1b[A")  # an arrow, which ends in an A
        terminal.press("\x1b[B")
        assert stored(store, run_id) == {}
        terminal.press("q")
        assert "0 of 1 pair voted" in terminal.rest()
    assert stored(store, run_id) == {}


def test_keys_pressed_before_a_pair_is_shown_are_dropped(command: Command, store: Store) -> None:
    run_id = run_of(store)
    with sitting(command) as terminal:
        terminal.until(ASKS)
        terminal.press("1" * 5)
        terminal.until(ASKS)
        terminal.press("q")
        assert "1 of 6 pairs voted" in terminal.rest()
    assert len(stored(store, run_id)) == 1


def test_a_tie_is_not_taken_where_it_is_not_allowed(command: Command, store: Store) -> None:
    texts = {"prompt": "Question 1?", "allow_tie": False}
    run_id = make_run(store, "first", [Row("1", says("A"), pair=texts)])
    with sitting(command) as terminal:
        assert "t tie" not in terminal.until(ASKS)
        terminal.press("t")
        terminal.until("ties are not allowed for this pair")
        terminal.until(ASKS)
        terminal.press("q")
        terminal.rest()
    assert stored(store, run_id) == {}


def test_long_texts_are_shortened_until_they_are_asked_for(command: Command, store: Store) -> None:
    long = "\n".join(f"line {n} of many" for n in range(200))
    run_of(store, row("1", response_a=long, context="Around it.", reference="Known good."))
    with sitting(command) as terminal:
        asked = terminal.until(ASKS)
        assert "line 0 of many" in asked
        assert "line 199 of many" not in asked
        assert re.search(r"… about [\d,]+ more characters; press w to show them", asked)
        for text in ("judge by\naccuracy", "context\nAround it.", "reference\nKnown good."):
            assert text in asked
        terminal.press("w")
        assert "line 199 of many" in terminal.until(ASKS)
        terminal.press("q")
        terminal.rest()


def test_hostile_texts_do_nothing_to_the_terminal(command: Command, store: Store) -> None:
    texts = {"response_a": f"{HOSTILE} [bold]x[/bold]", "response_b": "", "context": HOSTILE}
    run_of(store, row(HOSTILE, **texts, prompt=f"Question 1? {HOSTILE}"))
    for whole in (False, True):
        with sitting(command, "--seed", "3", kind="xterm") as terminal:
            asked = terminal.until(ASKS)
            if whole:
                terminal.press("w")
                asked = terminal.until(ASKS)
            # Our own colours are there; nothing of theirs is.
            assert "red" in asked
            assert "[bold]x[/bold]" in asked
            assert "(empty)" in asked
            for sign in ("\x1b[31m", "\x9b", "2J", "\u202e", "\x07"):
                assert sign not in asked
            terminal.press("q")
            terminal.rest()


def test_without_a_terminal_nobody_can_be_asked(command: Command, store: Store) -> None:
    run_of(store)
    ran = command("label", "first", *HERE)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error  voting needs a terminal; run this in one, or import votes from a file with "
        "evenhand votes import\n"
    )


def test_interrupting_keeps_what_was_voted(command: Command, store: Store) -> None:
    run_id = run_of(store)
    with sitting(command) as terminal:
        terminal.until(ASKS)
        terminal.press("t")
        terminal.until(ASKS)
        terminal.process.send_signal(signal.SIGINT)
        assert "interrupted" in terminal.rest()
        assert terminal.ended() == 130
    assert len(stored(store, run_id)) == 1


def test_a_run_without_such_pairs_and_a_wrong_name_say_so(command: Command, store: Store) -> None:
    run_of(store)
    with sitting(command, "--only", "inconsistent") as terminal:
        assert "nothing to vote on" in terminal.rest()
        assert terminal.ended() == 0
    with TerminalSession(command.directory, "label", "frist", *HERE) as terminal:
        assert "did you mean first?" in terminal.rest()
        assert terminal.ended() == 2
    with TerminalSession(command.directory, "label", "first", "--who", " ", *HERE) as terminal:
        assert "--who has 0 characters; give 1 to 200" in terminal.rest()
        assert terminal.ended() == 2


def test_a_weighted_draw_is_labelled_in_the_terminal(command: Command) -> None:
    with opened(command.directory) as store:
        run_id = judged_run(store, "doubtful", {"judge": "AB" * 20}, confidences=[0.9, 0.6] * 20)
    drawn = ("correct", "doubtful", "--draw", "12", "-o", "draw.csv", *HERE)
    assert command(*drawn).code == 0
    with (command.directory / "draw.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    given = ("label", "doubtful", "--who", "Ann", "--drawn", "draw.csv", *HERE)
    with TerminalSession(command.directory, *given) as terminal:
        beginning = terminal.until("every vote is saved")
        assert "12 pairs (drawn in the file), 0 voted" in beginning
        assert "the order follows the draw, and the sides are random" in beginning
        for _ in range(5):
            terminal.until(ASKS)
            terminal.press("t")
        terminal.until(ASKS)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ended() == 130
    with TerminalSession(command.directory, *given) as terminal:
        assert "12 pairs (drawn in the file), 5 voted" in terminal.until("every vote is saved")
        for _ in range(7):
            terminal.until(ASKS)
            terminal.press("1")
        terminal.until("that was the last one")
        terminal.press("x")
        assert terminal.ended() == 0
    with opened(command.directory) as store:
        votes = {key: vote for _, key, vote in store.votes.each(run_id)}
    assert [row["pair"] for row in rows if votes[row["pair"]].verdict == "TIE"] == [
        row["pair"] for row in rows[:5]
    ]
    for row in rows:
        vote = votes[row["pair"]]
        assert (vote.draw, vote.chance) == ("weighted", float(row["chance"]))
    told = command("correct", "doubtful", *HERE, "--json")
    assert (told.code, told.json["labelled"]) == (0, 12)
    assert told.json["drawn"] == "with known chances"


@pytest.mark.parametrize(
    ("given", "content", "told"),
    [
        (
            ("--only", "inconsistent"),
            "pair,draw\n1,random\n",
            "--drawn and --only both choose the pairs",
        ),
        ((), "pair,draw\n", "draw.csv has no rows"),
        ((), "pair,draw\n1,often\n", "draw.csv, row 2: draw is the text 'often'; give one of"),
        ((), "draw\nrandom\n", "no pair is named; give a pair column"),
        ((), "pair,chance\n1,7\n", "chance is the text '7'; give a number above 0"),
        ((), "pair,draw\nmoon,random\n", "'moon', which is not in the run; name the run"),
    ],
)
def test_a_file_that_is_no_draw_is_told(
    command: Command, store: Store, given: tuple[str, ...], content: str, told: str
) -> None:
    run_of(store)
    (command.directory / "draw.csv").write_text(content, "utf-8")
    with sitting(command, "--drawn", "draw.csv", *given) as terminal:
        assert told in re.sub(r"\s+", " ", terminal.rest())
        assert terminal.ended() == 2
