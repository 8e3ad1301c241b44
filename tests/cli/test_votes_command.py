"""The command votes: summed up, imported and exported; and deleting a run that has some."""

from __future__ import annotations

import json

import pytest

from command_line import Command, on_a_terminal
from evenhand.store import NewVote, Store
from stored_runs import Row, make_run, says

HERE = ("--store", "evenhand.db")
HOSTILE = "\x1b[31mred\x9b2J\u202e\x07"


@pytest.fixture
def run_id(store: Store) -> int:
    rows = [Row(f"q{n}", says("A"), label="A" if n < 4 else None) for n in range(1, 9)]
    return make_run(store, "first", rows)


def stored(store: Store, run_id: int) -> list[tuple[str, str, str | None]]:
    return [(key, vote.who, vote.verdict) for _, key, vote in store.votes.each(run_id)]


def write(command: Command, name: str, text: str) -> str:
    (command.directory / name).write_text(text, encoding="utf-8")
    return name


def test_votes_are_imported_and_summed_up(command: Command, store: Store, run_id: int) -> None:
    lines = ["pair,who,verdict"]
    for n in range(1, 9):
        lines += [f"q{n},Ann,A", f"q{n},Bob,{'A' if n < 8 else 'B'}"]
    lines += ["moon,Ann,A"]
    file = write(command, "votes.csv", "\n".join(lines))
    ran = command("votes", "import", "first", file, *HERE)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "16 votes by 2 people on 8 pairs of run first: 16 new, 0 replaced, 0 unchanged",
        "note  1 vote on pairs not in the run was skipped: 'moon'",
    ]
    again = command("votes", "import", "first", file, *HERE, "--json").json
    assert (again["new"], again["replaced"], again["unchanged"]) == (0, 0, 16)
    assert (again["unknownVotes"], again["unknownPairs"]) == (1, ["moon"])
    ran = command("votes", "first", *HERE)
    assert (ran.code, ran.err) == (0, "")
    for said in (
        "2 people voted on 8 of 8 pairs; any two agree on 88% (53 to 98).",
        "16 by 2 people on 8 pairs, skipped 0",
        "people per pair: 8 by 2",
        "A 7, B 0, ties 0, split 1",
        "majority agrees with the data's label: 3 of 3",
        "two people agree: 7 of 8: 0.88 (",
        "all people agree: 7 of 8: 0.88 (",
        "Krippendorff's alpha 0.00 (",
        "import 16",
        "unknown 16",
    ):
        assert said in " ".join(ran.out.split()), said
    assert ran.out == command("votes", "show", "first", *HERE).out
    whole = command("votes", "first", *HERE, "--json").json
    assert whole["agreement"]["agreement"]["part"] == 7
    # 15 A and a B: observed 1/8, expected 1 - 15 * 14 / (16 * 15) = 1/8.
    assert whole["agreement"]["alpha"]["alpha"] == pytest.approx(0, abs=1e-12)
    assert whole["majority"] == {"a": 7, "b": 0, "tie": 0, "none": 1}
    assert [person["who"] for person in whole["people"]] == ["Ann", "Bob"]


def test_no_votes_yet_says_how_to_get_some(command: Command, run_id: int) -> None:
    ran = command("votes", "first", *HERE)
    assert ran.code == 0
    assert ran.out == "Nobody has voted on this run yet.\n"
    assert "8 pairs without a vote: vote with evenhand label, or use evenhand votes imp" in ran.err


def test_a_list_of_annotators_is_imported_with_what_its_numbers_mean(
    command: Command, store: Store, run_id: int
) -> None:
    rows = [{"id": "q1", "annotators": [2, 0]}, {"id": "q2", "annotators": [1, 1]}]
    file = write(command, "v.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    values = [part for each in ("0=TIE", "1=A", "2=B") for part in ("--value", each)]
    ran = command("votes", "import", "first", file, *HERE, "--who", "lab", *values)
    assert (ran.code, ran.err) == (0, "")
    assert stored(store, run_id) == [
        ("q1", "lab 1", "B"),
        ("q1", "lab 2", "TIE"),
        ("q2", "lab 1", "A"),
        ("q2", "lab 2", "A"),
    ]


def test_bad_rows_stop_or_are_counted(command: Command, store: Store, run_id: int) -> None:
    file = write(command, "v.csv", "task,who,verdict\nq1,Ann,A\nq2,Ann,maybe\n")
    given = ("votes", "import", "first", file, *HERE, "--map", "pair=task")
    ran = command(*given)
    assert (ran.code, ran.out) == (2, "")
    assert "v.csv, row 3: the verdict is the text 'maybe'" in ran.err
    assert stored(store, run_id) == []
    assert command(*given, "--json").json["error"]["kind"] == "data"
    ran = command(*given, "--bad-rows", "skip")
    assert ran.code == 0
    assert "note  1 row skipped as invalid" in ran.out
    assert "row 3: the verdict is" in ran.out
    assert stored(store, run_id) == [("q1", "Ann", "A")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("votes",), "no run given; name one, as in evenhand votes RUN"),
        (("votes", "frist", *HERE), "no run 'frist'; did you mean first?"),
        (("votes", "import", "first", "none.csv", *HERE), "cannot read none.csv"),
        (("votes", "import", "first", "x", "--value", "A", *HERE), "--value 'A' is not SPELLING="),
        (("votes", "import", "first", "x", "--who", " ", *HERE), "--who is empty; give a name"),
        (("votes", "export", "first", "v.txt", *HERE), "cannot tell the format of"),
    ],
)
def test_mistakes_are_one_line(
    command: Command, run_id: int, arguments: tuple[str, ...], said: str
) -> None:
    ran = command(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_votes_are_exported_to_a_file_or_standard_output(
    command: Command, store: Store, run_id: int
) -> None:
    own = store.items.all(run_id)[0].pair_id
    store.votes.add([NewVote(own, "Ann", "B", "terminal", "random")])
    ran = command("votes", "export", "first", "out.csv", *HERE)
    assert (ran.code, ran.out) == (0, "1 vote saved to out.csv\n")
    assert command("votes", "export", "first", "out.csv", *HERE).code == 2
    assert command("votes", "export", "first", "out.csv", "--force", *HERE).code == 0
    row = json.loads(command("votes", "export", "first", "-", *HERE).out)
    assert {name: row[name] for name in ("pair", "who", "verdict", "origin", "draw")} == {
        "pair": "q1",
        "who": "Ann",
        "verdict": "B",
        "origin": "terminal",
        "draw": "random",
    }
    store.votes.withdraw(own, "Ann")
    assert command("votes", "import", "first", "out.csv", *HERE).code == 0
    assert stored(store, run_id) == [("q1", "Ann", "B")]


def test_hostile_names_do_nothing_to_the_terminal(
    command: Command, store: Store, run_id: int
) -> None:
    own = store.items.all(run_id)[0].pair_id
    store.votes.add([NewVote(own, f"{HOSTILE} [bold]", "B")])
    for arguments in (("votes", "first"), ("votes", "export", "first", "-")):
        code, shown = on_a_terminal(command.directory, *arguments, *HERE)
        assert code == 0
        for sign in ("\x1b", "\x9b", "\u202e", "\x07"):
            assert sign not in shown.decode()
        assert b"[bold]" in shown


def test_a_run_is_deleted_with_its_votes_only_where_that_is_asked_for(
    command: Command, store: Store, run_id: int
) -> None:
    own = store.items.all(run_id)[0].pair_id
    store.votes.add([NewVote(own, "Ann", "B")])
    ran = command("runs", "delete", "first", "--yes", *HERE)
    assert ran.code == 0
    assert "its votes (1) are kept, with the texts of their pairs" in ran.out
    again = make_run(store, "again", [Row("q1", says("A"))])
    assert stored(store, again) == [("q1", "Ann", "B")]
    ran = command("runs", "delete", "again", "--yes", "--with-votes", *HERE)
    assert "its votes (1) are deleted too" in ran.out
    last = make_run(store, "last", [Row("q1", says("A"))])
    assert stored(store, last) == []


def test_the_config_file_s_store_is_the_one_that_is_meant(
    command: Command, store: Store, run_id: int
) -> None:
    folder = command.directory / "config" / "evenhand"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('store = "evenhand.db"\n', "utf-8")
    file = write(command, "votes.csv", "pair,who,verdict\nq1,Ann,A\n")
    assert command("votes", "import", "first", file).code == 0
    assert command("votes", "first", "--json").json["votes"] == 1


def test_a_windows_file_with_chinese_names_and_verdicts_is_read(
    command: Command, store: Store, run_id: int
) -> None:
    text = (
        "\ufeffpair,who,verdict\r\nq1,王伟,A\r\nq2,王伟,平局\r\nq3,李娜,回答B\r\nq4,李娜,跳过\r\n"
    )
    (command.directory / "votes.csv").write_bytes(text.encode())
    ran = command("votes", "import", "first", "votes.csv", *HERE)
    assert (ran.code, ran.err) == (0, "")
    assert sorted(stored(store, run_id)) == [
        ("q1", "王伟", "A"),
        ("q2", "王伟", "TIE"),
        ("q3", "李娜", "B"),
        ("q4", "李娜", None),
    ]
