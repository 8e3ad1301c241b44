"""Votes from files into a store and out again."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysed import analysis_of
from evenhand.analyses.registry import VOTES
from evenhand.contract import Criterion
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.records import Record
from evenhand.data.votes import VoteReading
from evenhand.errors import DataError, InputError
from evenhand.report.votes import item_votes, majority_labels
from evenhand.store import DRAWS, ORIGINS, NewVote, Store, StoredVote, open_store
from evenhand.store.schema import unprintable
from evenhand.trust.vote_files import export_votes, import_votes
from store_values import begin, item, texts

SHARED = Path(__file__).parents[3] / "shared" / "data"


def stored(store: Store, name: str = "run") -> list[tuple[str, str, str | None]]:
    run = store.runs.find(name)
    assert run is not None
    return [(key, vote.who, vote.verdict) for _, key, vote in store.votes.each(run.id)]


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def ann(pair: str, verdict: str = "A", **more: Any) -> dict[str, Any]:
    return {"pair": pair, "who": "Ann", "verdict": verdict, **more}


def test_votes_are_imported_and_unknown_pairs_reported(store: Store, tmp_path: Path) -> None:
    begin(store, item("x"), item("y", row=2))
    rows = [ann("x"), ann("y", "skip"), ann("nowhere"), ann("nowhere", "B"), ann("else")]
    found = import_votes(store, "run", write(tmp_path / "v.jsonl", *rows))
    assert (found.votes, found.new, found.replaced, found.unchanged) == (2, 2, 0, 0)
    assert (found.pairs, found.people, found.skipped) == (2, 1, 1)
    assert (found.unknown_votes, found.unknown_pairs) == (3, ("nowhere", "else"))
    assert stored(store) == [("x", "Ann", "A"), ("y", "Ann", None)]


def test_a_bad_row_stops_before_anything_is_stored_or_is_counted(
    store: Store, tmp_path: Path
) -> None:
    begin(store, item("x"))
    path = write(tmp_path / "v.jsonl", ann("x"), ann("x", "C"), ann("x", who="w" * 201))
    with pytest.raises(DataError, match=r"v\.jsonl, row 2: the verdict is .*nothing was imported"):
        import_votes(store, "run", path)
    assert stored(store) == []
    found = import_votes(store, "run", path, bad_rows="skip")
    assert (found.new, found.bad_rows) == (1, 2)
    assert [row.row for row in found.first_bad_rows] == [2, 3]
    assert found.first_bad_rows[1].reason.startswith("who has 201 characters")


def test_a_file_that_gives_nothing_is_an_error_that_says_why(store: Store, tmp_path: Path) -> None:
    begin(store, item("x"))
    path = write(tmp_path / "v.jsonl", ann("q-1"))
    with pytest.raises(
        DataError,
        match=(
            r"the file has ids like 'q-1', the run has ids like "
            r"'x'"
        ),
    ):
        import_votes(store, "run", path)
    with pytest.raises(DataError, match=r"has no readable vote: row 1"):
        import_votes(store, "run", write(path, ann("x", "C")), bad_rows="skip")
    begin(store, name="empty")
    with pytest.raises(DataError, match=r"run 'empty' has no pairs yet"):
        import_votes(store, "empty", write(path, ann("x")))
    with pytest.raises(InputError, match="did you mean run"):
        import_votes(store, "runn", path)


def test_models_of_the_run_stand_for_their_sides(store: Store, tmp_path: Path) -> None:
    begin(store, item("x", model_a="old", model_b="new"), item("y", row=2))
    path = write(tmp_path / "v.jsonl", ann("x", "new"), ann("y", "new"))
    found = import_votes(store, "run", path, bad_rows="skip")
    assert (found.new, found.bad_rows) == (1, 1)
    assert stored(store) == [("x", "Ann", "B")]


# A name that nobody could see is refused where it is given.
_people = st.sampled_from(["Ann", "Bob", "=1+1", "'-x"]) | texts.filter(
    lambda name: bool(name.strip()) and name == name.strip() and unprintable(name) is None
)
_votes = st.lists(
    st.builds(
        NewVote,
        pair_id=st.integers(0, 2),
        who=_people,
        verdict=st.sampled_from(["A", "B", "TIE", None]),
        origin=st.sampled_from([None, *ORIGINS]),
        draw=st.sampled_from([None, *DRAWS]),
        chance=st.none() | st.floats(0, 1, exclude_min=True),
        shown_order=st.sampled_from([None, "original", "swapped"]),
        at=st.none() | st.datetimes(datetime(1971, 1, 1), timezones=st.just(UTC)),
        comment=st.none() | texts.filter(bool),
    ),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(votes=_votes, ending=st.sampled_from(["csv", "jsonl", "csv.gz", "jsonl.gz"]))
def test_what_is_exported_comes_back_as_it_was_and_twice_changes_nothing(
    store: Store, tmp_path: Path, votes: list[NewVote], ending: str
) -> None:
    number = len(store.runs.all())
    keys = ("=x", "-1", f"'@ {number}")
    first, second = (f"{which} {number}" for which in ("first", "second"))
    begun = begin(store, *(item(f"{key}{first}", row=1) for key in keys), name=first)
    ids = [each.pair_id for each in store.items.all(begun.run_id)]
    store.votes.add([_placed(vote, ids) for vote in votes])
    # Other pairs under the same ids.
    again = begin(
        store,
        *(item(f"{key}{first}", row=1, prompt=f"{key} of {second}") for key in keys),
        name=second,
    )
    before = [(key, _about(vote)) for _, key, vote in store.votes.each(begun.run_id)]
    path = tmp_path / f"votes {number}.{ending}"
    assert export_votes(store, first, path) == len(before)
    for name, new in ((first, 0), (second, len(before)), (second, 0)):
        found = import_votes(store, name, path)
        assert (found.votes, found.new, found.replaced) == (len(before), new, 0)
    for run_id in (begun.run_id, again.run_id):
        assert [(key, _about(vote)) for _, key, vote in store.votes.each(run_id)] == before


def _placed(vote: NewVote, ids: list[int]) -> NewVote:
    return replace(vote, pair_id=ids[vote.pair_id])


def _about(vote: StoredVote) -> dict[str, Any]:
    return asdict(replace(vote, pair_id=0))


def test_an_export_opens_in_a_spreadsheet_without_running_anything(
    store: Store, tmp_path: Path
) -> None:
    begun = begin(store, item("x"))
    own = store.items.all(begun.run_id)[0].pair_id
    store.votes.add([NewVote(own, "=cmd", None, comment='@SUM(A1),"quoted"\nline')])
    export_votes(store, "run", tmp_path / "v.csv")
    with (tmp_path / "v.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["pair"], row["who"], row["verdict"]) == ("x", "'=cmd", "skipped")
    assert row["comment"] == '\'@SUM(A1),"quoted"\nline'


def test_an_export_overwrites_nothing_unasked_and_leaves_no_half_file(
    store: Store, tmp_path: Path
) -> None:
    begin(store, item("x"))
    path = tmp_path / "out" / "v.csv"
    with pytest.raises(
        InputError, match=r"^cannot write .*/v\.csv: no such file or directory; nothing was left"
    ):
        export_votes(store, "run", path)
    path.parent.mkdir()
    assert export_votes(store, "run", path) == 0
    with pytest.raises(InputError, match=r"already exists; name another file, or give force"):
        export_votes(store, "run", path)
    assert export_votes(store, "run", path, overwrite=True) == 0
    with pytest.raises(InputError, match=r"end the name in \.csv or \.jsonl \(\.gz may follow\)"):
        export_votes(store, "run", path.with_name("v.xlsx"))
    assert [each.name for each in path.parent.iterdir()] == ["v.csv"]


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not there")
def test_the_three_annotators_of_pandalm_agree_as_often_as_counting_says(tmp_path: Path) -> None:
    path = SHARED / "pairs" / "pandalm.jsonl"
    reading = ReadOptions(criteria=(Criterion(name="quality"),))
    records = [each for each in read_pairs([path], reading) if isinstance(each, Record)]
    with open_store(tmp_path / "store.db") as store:
        begun = begin(store, *records)
        values = {"0": "TIE", "1": "A", "2": "B"}
        found = import_votes(store, "run", path, VoteReading(values=values))
        assert (found.votes, found.people, found.unknown_votes) == (2997, 3, 0)
        summary = analysis_of(VOTES, store, "run")
        numbers = range(1, len(records) + 1)
        labels = majority_labels(item_votes(store, begun.run_id, numbers), numbers)
    # 99 rows repeat a pair of an earlier row: the same three voted again, and the later vote holds.
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    texts = ("prompt", "response_a", "response_b")
    by_pair = {tuple(row[name] for name in texts): sorted(row["annotators"]) for row in rows}
    firsts = {tuple(row[name] for name in texts): row["label"] for row in reversed(rows)}
    assert (len(rows), len(by_pair), summary.pairs) == (999, 900, 900)
    same = [len(set(three)) == 1 for three in by_pair.values()]
    # Where not all three agree two of them do: one pair of people of three.
    agreed = summary.agreement.agreement
    assert (agreed.part, agreed.of) == (3 * sum(same) + same.count(False), 3 * 900)
    unanimous = summary.agreement.unanimous
    assert (unanimous.part, unanimous.of) == (sum(same), 900)
    # The one in the middle of three is their majority, where they have one.
    majority = {pair: ["TIE", "A", "B"][three[1]] for pair, three in by_pair.items()}
    assert not labels.undecided.any()
    counts = Counter(majority.values())
    found_counts = summary.majority
    assert (found_counts.a, found_counts.b, found_counts.tie) == (
        counts["A"],
        counts["B"],
        counts["TIE"],
    )
    right = sum(majority[pair] == label for pair, label in firsts.items())
    assert (summary.with_label.part, summary.with_label.of) == (right, 900)
