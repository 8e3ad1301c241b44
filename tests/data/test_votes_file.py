"""Files of votes: every format, the usual names, lists of annotators, and rows that are none."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from evenhand.data.records import BadRow
from evenhand.data.votes import VoteDraw, VoteOrigin, VoteReading, VoteRow, read_votes
from evenhand.errors import DataError
from evenhand.store import DRAWS, ORIGINS


def told(found: list[VoteRow | BadRow]) -> list[tuple[str, str, str | None]]:
    assert not [row for row in found if isinstance(row, BadRow)]
    return [(row.pair, row.who, row.verdict) for row in found if isinstance(row, VoteRow)]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(path: Path, **reading: Any) -> list[VoteRow | BadRow]:
    return list(read_votes(path, VoteReading(**reading)))


def reasons(found: list[VoteRow | BadRow]) -> list[str]:
    return [row.reason for row in found if isinstance(row, BadRow)]


CSV = "pair id,Annotator,Winner\nx,Ann,A\nx,Bob,model_b\ny,Ann,tie\ny,Bob,skip\n"
VOTES = [("x", "Ann", "A"), ("x", "Bob", "B"), ("y", "Ann", "TIE"), ("y", "Bob", None)]


def test_votes_are_read_from_csv_and_json_lines_gzipped_or_not(tmp_path: Path) -> None:
    rows = [{"pair_id": pair, "who": who, "verdict": v or "skipped"} for pair, who, v in VOTES]
    for name, content in (
        ("v.csv", CSV),
        ("v.csv.gz", CSV),
        ("v.tsv", CSV.replace(",", "\t")),
        ("v.jsonl", lines(*rows)),
        ("v.jsonl.gz", lines(*rows)),
        ("v.json", json.dumps(rows)),
    ):
        data = content.encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        assert told(read(path)) == VOTES, name


def test_a_rows_own_id_is_the_pairs_only_where_nothing_else_names_it(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(
        lines(
            {"id": "row 1", "pair_id": "x", "who": "Ann", "verdict": "A"},
            {"id": 7, "who": "Ann", "verdict": "B"},
        )
    )
    assert told(read(path)) == [("x", "Ann", "A"), ("7", "Ann", "B")]


def test_columns_of_other_names_are_mapped_and_one_person_may_have_voted_all(
    tmp_path: Path,
) -> None:
    path = tmp_path / "v.csv"
    path.write_text("task,better\nx,A\ny,B\n")
    with pytest.raises(DataError, match=r"no column for pair .*name it with map pair=COLUMN"):
        read(path)
    mapped = {"pair": "task", "verdict": "better"}
    with pytest.raises(
        DataError, match=r"no column for who .*or name one voter for all votes with who"
    ):
        read(path, columns=mapped)
    assert told(read(path, columns=mapped, who="Ann")) == [("x", "Ann", "A"), ("y", "Ann", "B")]
    path.write_text("pair,who\nx,Ann\n")
    with pytest.raises(DataError, match=r"no column for verdict .*map verdict=COLUMN"):
        read(path)


def test_everything_that_is_told_of_a_vote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    row = {"pair": "x", "who": 12, "verdict": "b", "at": "2026-11-16T12:00:00+00:00"}
    more = {"comment": "it adds up", "chance": 0.25, "draw": "weighted", "origin": "escalation"}
    path.write_text(lines(row | more, row | {"at": 1794830400}, row | {"at": "2026-11-16 12:00"}))
    first, *others = read(path)
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert first == VoteRow(
        "x", "12", "B", str(path), 1, noon, "it adds up", 0.25, "weighted", "escalation"
    )
    # 20,773 days and a half after 1970 began: 20773.5 * 86400 = 1,794,830,400.
    assert [row.at for row in others if isinstance(row, VoteRow)] == [noon, noon]


def test_people_in_a_list_are_told_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "pandalm.jsonl"
    path.write_text(
        lines(
            {"id": "p", "label": "B", "source": "PandaLM", "annotators": [2, 0, 1]},
            {"id": "q", "label": "A", "source": "PandaLM", "annotators": [1, None, 1]},
        )
    )
    values = {"0": "TIE", "1": "A", "2": "B"}
    assert told(read(path, values=values)) == [
        ("p", "annotator 1", "B"),
        ("p", "annotator 2", "TIE"),
        ("p", "annotator 3", "A"),
        ("q", "annotator 1", "A"),
        ("q", "annotator 3", "A"),
    ]
    assert [row[1] for row in told(read(path, values=values, who="pandalm"))][:2] == [
        "pandalm 1",
        "pandalm 2",
    ]
    # 0 is a tie to some and the first response to others: nothing is guessed.
    first, second = reasons(read(path))
    assert first == (
        "the verdict is the number 2; give A, B, TIE or skipped, or map it, e.g. value 2=A"
    )
    assert "the number 1" in second


@pytest.mark.parametrize(
    "votes",
    [
        {"Ann": "A", "Bob": "TIE"},
        [{"who": "Ann", "verdict": "A"}, {"annotator": "Bob", "label": "tie"}],
    ],
)
def test_people_in_a_list_may_have_names(tmp_path: Path, votes: Any) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(lines({"pair": "x", "votes": votes}))
    assert told(read(path)) == [("x", "Ann", "A"), ("x", "Bob", "TIE")]


def test_a_cell_of_a_table_may_hold_a_list(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text('id,votes\nx,A;B\ny,"A, TIE"\nz,"[""B"", null]"\nu,"{""Ann"": ""A""}"\n')
    assert told(read(path)) == [
        ("x", "annotator 1", "A"),
        ("x", "annotator 2", "B"),
        ("y", "annotator 1", "A"),
        ("y", "annotator 2", "TIE"),
        ("z", "annotator 1", "B"),
        ("u", "Ann", "A"),
    ]


def test_a_models_name_stands_for_its_side(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(lines({"pair": "x", "who": "Ann", "winner": "new model"}))
    found = list(read_votes(path, models=lambda pair: ("old model", "new model")))
    assert told(found) == [("x", "Ann", "B")]
    assert reasons(read(path)) == [
        "the verdict is the text 'new model'; give A, B, TIE or skipped, or map it, e.g. "
        "value new model=A"
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"who": "Ann", "verdict": "A"}, "no column for pair"),
        ({"pair": "x", "verdict": "A"}, "no column for who"),
        ({"pair": "x", "who": "  ", "verdict": "A"}, "no column for who"),
        ({"pair": "x", "who": "Ann"}, "the row has no verdict; give A, B, TIE or skipped"),
        ({"pair": "x", "who": "Ann", "verdict": ""}, "the row has no verdict"),
        ({"pair": "x", "who": "Ann", "verdict": "C"}, "the verdict is the text 'C'"),
        ({"pair": "x", "who": "Ann", "verdict": True}, "the verdict is true"),
        (
            {"pair": "x", "who": ["Ann"], "verdict": "A"},
            "who must be a name or a number, not a list",
        ),
        ({"pair": [], "who": "Ann", "verdict": "A"}, "id must be text or a whole number"),
        ({"pair": "x", "who": "Ann", "verdict": "A", "chance": 0}, "chance is the number 0"),
        ({"pair": "x", "who": "Ann", "verdict": "A", "chance": 1.1}, "chance is the number 1.1"),
        ({"pair": "x", "who": "Ann", "verdict": "A", "draw": "lots"}, "draw is the text 'lots'"),
        ({"pair": "x", "who": "Ann", "verdict": "A", "origin": 1}, "origin is the number 1"),
        ({"pair": "x", "who": "Ann", "verdict": "A", "at": "noon"}, "at is the text 'noon'"),
        ({"pair": "x", "who": "Ann", "verdict": "A", "at": 1e300}, "at is the number 1e+300"),
        ({"pair": "x", "who": "Ann", "votes": ["A"]}, "has both a person and a list of votes"),
        ({"pair": "x", "votes": "A"}, "votes must be a list or an object of verdicts"),
        ({"pair": "x", "votes": [{"verdict": "A"}]}, "a vote in the list has no name"),
        ({"pair": "x", "votes": ["A", "C"]}, "the verdict is the text 'C'"),
        ({"pair": "x", "who": "\ud800", "verdict": "A"}, ""),
    ],
)
def test_a_row_that_is_no_vote_says_why_and_the_next_is_read(
    tmp_path: Path, row: dict[str, Any], reason: str
) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(lines(row, {"pair": "y", "who": "Bob", "verdict": "B"}))
    bad, good = read(path)
    assert isinstance(bad, BadRow)
    assert bad.row == 1
    assert reason in bad.reason
    assert isinstance(good, VoteRow)
    assert (good.pair, good.row) == ("y", 2)


def test_a_cut_line_is_a_bad_row_and_an_empty_file_an_error(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text('{"pair": "x", "who"\n' + lines({"pair": "y", "who": "Bob", "verdict": "B"}))
    bad, good = read(path)
    assert isinstance(bad, BadRow)
    assert isinstance(good, VoteRow)
    path.write_text("")
    with pytest.raises(DataError, match="has no rows"):
        read(path)


def test_a_spelling_can_only_mean_a_verdict(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("pair,who,verdict\nx,Ann,links\ny,Ann,rechts\nz,Ann,weiß nicht\n")
    values = {"links": "A", "rechts": "B", "Weiß nicht": "skip"}
    assert [row[2] for row in told(read(path, values=values))] == ["A", "B", None]
    with pytest.raises(DataError, match="'links' cannot mean 'left'; give A, B, TIE or skipped"):
        read(path, values={"links": "left"})


def test_the_store_knows_the_same_origins_and_draws() -> None:
    assert (get_args(VoteOrigin), get_args(VoteDraw)) == (ORIGINS, DRAWS)


def test_a_number_means_the_same_however_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    given = [1, "1", 1.0, "1.0", 0, "0.0", 10]
    path.write_text(
        lines(*({"pair": str(n), "who": "Ann", "verdict": each} for n, each in enumerate(given)))
    )
    found = list(read_votes(path, VoteReading(values={"1": "A", "0.0": "TIE"})))
    assert [row.verdict for row in found if isinstance(row, VoteRow)] == [*"AAAA", "TIE", "TIE"]
    # Ten is no way to write one, as it was while its point was set aside.
    assert len(reasons(found)) == 1
