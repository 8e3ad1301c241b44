"""Runs from Python: two models' outputs, DataFrames, and the stored verdicts of a summary."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import pytest

import evenhand
from evenhand import Failure, RunOptions, Verdict
from evenhand.errors import DataError, InputError, MissingExtra
from run_data import adds_up, sums, write_lines
from servers import JudgeServer, StartServer

pyarrow = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("unconfigured")


@pytest.fixture
def server(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    started = start_server(adds_up)
    monkeypatch.setenv("OPENAI_BASE_URL", started.url)
    monkeypatch.setenv("EVENHAND_JUDGE", "openai:m")
    monkeypatch.setenv("EVENHAND_STORE", "runs.db")
    return started


def outputs(side: str, count: int = 6) -> list[dict[str, Any]]:
    rows = sums(count)
    return [
        {"id": row["id"], "prompt": row["prompt"], "response": row[f"response_{side}"]}
        for row in rows
    ]


def test_outputs_of_two_models_from_files(server: JudgeServer, tmp_path: Path) -> None:
    old = write_lines(tmp_path / "old.jsonl", outputs("a"))
    new = write_lines(tmp_path / "new.jsonl", outputs("b"))
    summary = evenhand.run_sync(a=old, b=str(new), criteria=["accuracy"])
    assert (summary.wins_a, summary.wins_b, summary.pairs) == (4, 2, 6)
    (conclusion,) = evenhand.conclude(summary.run).conclusions
    assert conclusion.names == ("new", "old")
    again = evenhand.run_sync(a=old, b=new, criteria=["accuracy"])
    assert (again.run, again.calls, len(server.requests)) == (summary.run, 0, 12)


async def test_outputs_of_two_models_from_frames_and_rows(server: JudgeServer) -> None:
    frame = pandas.DataFrame(outputs("a")).assign(model="gpt-old")
    summary = await evenhand.run(a=frame, b=outputs("b"), criteria=["accuracy"])
    assert (summary.wins_a, summary.wins_b) == (4, 2)
    table = summary.to_pandas()
    assert set(table["model_a"]) == {"gpt-old"}
    assert set(table["model_b"]) == {"b"}


def test_one_order_at_random_from_python(server: JudgeServer) -> None:
    draw = evenhand.OrderDraw(seed=5, both_orders=0)
    summary = evenhand.run_sync(sums(9), criteria=["accuracy"], orders=draw)
    assert (summary.wins_a, summary.wins_b, len(server.requests)) == (6, 3, 9)
    verdicts = [each for each in summary.verdicts() if isinstance(each, Verdict)]
    assert all(not each.metadata.positions_swapped for each in verdicts)
    assert {each.metadata.passes[0].order for each in verdicts} == {"original", "swapped"}
    note = "Judged in one random order: position may have decided this pair."
    assert all(note in each.notes for each in verdicts)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "^nothing to judge; give pairs, or the outputs of two models as a and b"),
        ({"a": "x.jsonl"}, "b is missing"),
        (
            {"pairs": [], "b": "x.jsonl"},
            "both pairs and outputs are given; give either pairs, or a and b",
        ),
        ({"pairs": {"prompt": "p"}}, "pairs is a dict; give a file, a DataFrame"),
        ({"pairs": 7}, "pairs is a int; give a file"),
    ],
)
def test_data_that_cannot_be_used_is_told(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        evenhand.run_sync(judge="baseline:longer", **given)


def frames() -> list[Any]:
    rows = [{**row, "price": Decimal("1.5"), "criteria": "accuracy; tone"} for row in sums(3)]
    pandas_frame = pandas.DataFrame(rows)
    return [
        pytest.param(pandas_frame, id="pandas"),
        pytest.param(pyarrow.Table.from_pandas(pandas_frame), id="pyarrow"),
        pytest.param(StreamOnly(pyarrow.Table.from_pandas(pandas_frame)), id="capsule"),
    ]


class StreamOnly:
    """Nothing but the PyCapsule interface."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("frame", frames())
def test_frames_are_pairs_as_a_table_in_a_file_is(frame: Any, tmp_path: Path) -> None:
    verdicts = list(evenhand.compare_many_sync(frame, "baseline:longer"))
    assert [each.metadata.id for each in verdicts] == ["sum-1", "sum-2", "sum-3"]
    assert isinstance(verdicts[0], Verdict)
    assert [each.criterion for each in verdicts[0].comparison] == ["accuracy", "tone"]
    summary = evenhand.run_sync(
        frame, "baseline:longer", options=RunOptions(store=tmp_path / "runs.db")
    )
    assert (summary.pairs, summary.ties) == (3, 3)


def test_frame_of_polars_is_read_by_its_own_rows() -> None:
    polars = pytest.importorskip("polars")
    verdicts = list(evenhand.compare_many_sync(polars.DataFrame(sums(3)), "baseline:longer"))
    assert [each.metadata.id for each in verdicts] == ["sum-1", "sum-2", "sum-3"]


def test_gaps_of_pandas_are_nothing_and_mixed_ids_are_texts() -> None:
    frame = pandas.DataFrame(
        {
            "id": ["one", 2],
            "question": ["p", "p"],
            "response_a": ["short", "short"],
            "response_b": ["longer", None],
            "context": [float("nan"), pandas.NA],
            "tags": [["x"], None],
        }
    )
    first, second = evenhand.compare_many_sync(
        frame, "baseline:longer", columns={"prompt": "question"}
    )
    assert isinstance(first, Verdict)
    assert (first.winner, first.metadata.id) == ("B", "one")
    assert isinstance(second, Failure)
    assert "row 2" in second.error.message
    assert "response_b" in second.error.message.replace("responseB", "response_b")


def test_frame_without_a_field_or_with_a_column_twice_is_refused() -> None:
    frame = pandas.DataFrame(sums(2))
    with pytest.raises(DataError, match="response_b"):
        evenhand.run_sync(frame.drop(columns=["response_b"]), "baseline:longer")
    twice = pandas.concat([frame, frame[["prompt"]]], axis=1)
    with pytest.raises(DataError, match="pairs has two columns named 'prompt'"):
        list(evenhand.compare_many_sync(twice, "baseline:longer"))
    with pytest.raises(DataError, match="pairs is not a table"):
        evenhand.run_sync(StreamOnly(pyarrow.chunked_array([[1, 2]])), "baseline:longer")


def test_verdicts_of_a_run_are_those_that_comparing_gives(server: JudgeServer) -> None:
    pairs = sums(4, criteria=["accuracy"])
    summary = evenhand.run_sync(pairs)
    stored = list(summary.verdicts())
    given = list(evenhand.compare_many_sync(pairs))
    assert [each.metadata.id for each in stored] == [f"sum-{n}" for n in range(1, 5)]
    for one, other in zip(stored, given, strict=True):
        assert isinstance(one, Verdict)
        assert isinstance(other, Verdict)
        assert one.comparison == other.comparison
        assert one.overall_reasoning == other.overall_reasoning


def test_table_of_a_run_has_a_row_a_pair(server: JudgeServer) -> None:
    summary = evenhand.run_sync(sums(3), criteria=["accuracy"])
    table = summary.to_pandas()
    assert list(table["winner"]) == ["A", "A", "B"]
    assert list(table["id"]) == ["sum-1", "sum-2", "sum-3"]
    assert {"response_a", "outcome", "confidence", "cost_usd"} <= set(table.columns)
    assert "verdict" not in table.columns


def test_without_pandas_the_remedy_is_named(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = evenhand.run_sync(sums(1), criteria=["accuracy"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pandas is not installed.*; run: .*\[pandas\]"):
        summary.to_pandas()


def test_config_file_holds_in_python_where_the_call_says_nothing(
    server: JudgeServer, tmp_path: Path
) -> None:
    (tmp_path / "evenhand.toml").write_text(
        'criteria = ["accuracy"]\nmax_calls = 6\n[gate]\nmin_win_rate = 0.25\nalpha = 0.2\n'
        "max_skipped = 0.5\n",
        "utf-8",
    )
    capped = evenhand.run_sync(sums(6))
    assert (capped.stopped_by, capped.calls) == ("max-calls", 6)
    whole = evenhand.run_sync(sums(6), options=RunOptions(max_calls=99))
    assert (whole.run, whole.pending) == (capped.run, 0)
    gate = evenhand.gate(whole.run)
    assert (gate.min_win_rate, gate.alpha, gate.limits.max_skipped) == (0.25, 0.2, 0.5)
    assert evenhand.gate(whole.run, evenhand.GateOptions(min_win_rate=0.5)).min_win_rate == 0.5
    both = evenhand.GateOptions(min_win_rate=0.9, require=("overall>0.5",))
    with pytest.raises(evenhand.InputError, match="cannot be combined"):
        evenhand.gate(whole.run, both)
    (verdict,) = evenhand.compare_many_sync(sums(1))
    row = sums(1)[0]
    one = evenhand.compare_sync(prompt=row["prompt"], a=row["response_a"], b=row["response_b"])
    assert isinstance(verdict, Verdict)
    assert [each.criterion for each in verdict.comparison] == ["accuracy"]
    assert one.comparison == verdict.comparison


async def test_responses_may_be_a_column_of_a_frame() -> None:
    column = pandas.Series(["short", "the longest", "longer"])
    ranked = await evenhand.rank_responses("p", column, criteria=["c"], judge="baseline:longer")
    assert [place.index for place in ranked.ranking] == [1, 2, 0]
