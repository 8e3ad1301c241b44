"""Files of battles: every format, the usual names, and what is wrong with a row."""

from __future__ import annotations

import csv
import gzip
import io
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.data.battles import BattleFile, read_battles
from evenhand.errors import DataError
from evenhand.stats.ranking.leaderboard import rank_battles

ROWS: list[dict[str, Any]] = [
    {"model_a": "x", "model_b": "y", "winner": "model_a", "prompt": "p1", "weight": 1.0},
    {"model_a": "y", "model_b": "z", "winner": "tie (bothbad)", "prompt": "p1", "weight": 2.0},
    {"model_a": "z", "model_b": "x", "winner": "model_b", "prompt": "p2", "weight": 0.5},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        arrow = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), path)
        return path
    text = io.StringIO()
    if name.endswith(".csv"):
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    elif name.endswith(".json"):
        json.dump(rows, text)
    else:
        text.writelines(json.dumps(row) + "\n" for row in rows)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def told(battles: BattleFile) -> list[tuple[str, str, float]]:
    return [
        (battles.models[a], battles.models[b], preference)
        for a, b, preference in zip(
            battles.model_a, battles.model_b, battles.preference, strict=True
        )
    ]


@pytest.mark.parametrize(
    "name",
    ["b.csv", "b.csv.gz", "b.jsonl", "b.jsonl.gz", "b.json", "b.parquet"],
)
def test_every_format_gives_the_same_columns(tmp_path: Path, name: str) -> None:
    battles = read_battles(write(tmp_path / name, ROWS))
    assert told(battles) == [("x", "y", 1.0), ("y", "z", 0.5), ("z", "x", 0.0)]
    assert battles.weight is not None
    assert list(battles.weight) == [1.0, 2.0, 0.5]
    assert battles.prompt is not None
    assert battles.prompt[0] == battles.prompt[1] != battles.prompt[2]
    assert (battles.prompts, battles.bad_rows, battles.bad_row_count) == (2, (), 0)
    assert battles.tags is None


@pytest.mark.parametrize(
    ("row", "preference"),
    [
        ({"generator_1": "x", "generator_2": "y", "preference": 0.25}, 0.25),
        ({"left": "x", "right": "y", "winner": "right"}, 0.0),
        ({"left": "x", "right": "y", "winner": "left"}, 1.0),
        ({"model_1": "x", "model_2": "y", "label": "y"}, 0.0),
        ({"Model A": "x", "Model B": "y", "Winner": "A"}, 1.0),
        ({"model_a": 7, "model_b": 8, "winner": "TIE"}, 0.5),
        ({"model_a": "x", "model_b": "y", "winner": None, "preference": 1}, 1.0),
        ({"model_a": "x", "model_b": "y", "preference": "0.75"}, 0.75),
        ({"model_a": "x", "model_b": "y", "winner": "model_b", "other": "thing"}, 0.0),
    ],
)
def test_columns_go_by_their_usual_names(
    tmp_path: Path, row: dict[str, Any], preference: float
) -> None:
    battles = read_battles(write(tmp_path / "b.jsonl", [row]))
    assert list(battles.preference) == [preference]
    assert len(battles.models) == 2


def test_other_names_are_mapped(tmp_path: Path) -> None:
    path = write(tmp_path / "b.csv", [{"home": "x", "away": "y", "who": "B"}])
    mapping = {"model_a": "home", "model_b": "away", "winner": "who"}
    assert told(read_battles(path, columns=mapping)) == [("x", "y", 0.0)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"winner": "nobody"}, "the winner is the text 'nobody'"),
        ({"winner": None}, "no winner and no preference"),
        ({"winner": 1.5}, "the preference is the number 1.5"),
        ({"winner": "nan"}, "the preference is the text 'nan'"),
        ({"model_a": ""}, "model_a must be a model name, not the text ''"),
        ({"model_a": None}, "model_a must be a model name, not null"),
        ({"model_b": "x"}, "'x' is compared with itself"),
        ({"weight": -1}, "weight must be a number of at least 0, not the number -1"),
        ({"weight": "NaN"}, "weight must be a number of at least 0"),
        ({"prompt": ["p"]}, "prompt must be text or a number, not a list"),
        ({"tags": [1]}, "tags must be a list of texts"),
        ({"winner": {}}, "the winner is an object"),
    ],
)
def test_a_row_that_is_no_battle_is_told_with_its_number(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    rows = [ROWS[0], {**ROWS[0], **change}, ROWS[2]]
    battles = read_battles(write(tmp_path / "b.jsonl", rows))
    assert len(battles) == 2
    [bad] = battles.bad_rows
    assert bad.row == 2
    assert bad.reason.startswith(reason)


def test_a_name_that_is_also_a_side_is_not_guessed(tmp_path: Path) -> None:
    rows = [{"model_a": "B", "model_b": "A", "winner": "A"}]
    battles = read_battles(write(tmp_path / "b.jsonl", rows))
    assert battles.bad_rows[0].reason.startswith("the winner 'A' could be a side")


def test_a_bad_row_stops_the_reading_unless_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "b.jsonl", [ROWS[0], {"model_a": "x"}])
    with pytest.raises(DataError, match=r"row 2: no column for model_b"):
        read_battles(path, skip_bad_rows=False)


def test_only_the_first_bad_rows_are_kept(tmp_path: Path) -> None:
    rows = [ROWS[0], *({**ROWS[0], "winner": "?"} for _ in range(7))]
    battles = read_battles(write(tmp_path / "b.jsonl", rows), bad_rows_kept=3)
    assert (len(battles.bad_rows), battles.bad_row_count) == (3, 7)


def test_a_table_without_a_winner_is_refused_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "b.csv", [{"model_a": "x", "model_b": "y"}])
    with pytest.raises(DataError, match="no winner and no preference"):
        read_battles(path)


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text("model_a,model_b,winner\n")
    with pytest.raises(DataError, match="has no rows"):
        read_battles(path)


def test_tags_are_sets_of_their_own(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "tags": tags} for tags in ("code; math", ["math"], None, "code; math")]
    battles = read_battles(write(tmp_path / "b.jsonl", rows))
    assert battles.tags is not None
    assert [battles.tag_sets[place] for place in battles.tags] == [
        ("code", "math"),
        ("math",),
        (),
        ("code", "math"),
    ]


def test_rows_without_a_prompt_are_prompts_of_their_own(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "prompt": prompt} for prompt in ("p", None, "p", None, "2")]
    battles = read_battles(write(tmp_path / "b.jsonl", rows))
    assert battles.prompt is not None
    assert battles.prompt[0] == battles.prompt[2]
    assert len(set(battles.prompt)) == battles.prompts == 4


def test_long_prompts_are_told_apart(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "prompt": "word " * 50 + end} for end in ("one", "two", "one")]
    battles = read_battles(write(tmp_path / "b.jsonl", rows))
    assert battles.prompt is not None
    assert list(battles.prompt) == [0, 1, 0]


def test_the_columns_go_straight_into_a_ranking(tmp_path: Path) -> None:
    rows = [
        {"model_a": a, "model_b": b, "winner": winner, "prompt": f"p{number % 4}"}
        for number, (a, b, winner) in enumerate(
            [("x", "y", "A"), ("y", "z", "A"), ("z", "x", "A"), ("x", "z", "A")] * 3
        )
    ]
    battles = read_battles(write(tmp_path / "b.csv", rows))
    assert battles.prompt is not None
    ranking = rank_battles(
        np.frombuffer(battles.model_a, np.int32),
        np.frombuffer(battles.model_b, np.int32),
        np.frombuffer(battles.preference),
        prompt=np.frombuffer(battles.prompt, np.int32),
        models=battles.models,
    )
    direct = rank_battles(
        [row["model_a"] for row in rows],
        [row["model_b"] for row in rows],
        [row["winner"] for row in rows],
        prompt=[row["prompt"] for row in rows],
    )
    assert ranking.models[0].model == direct.models[0].model == "x"
    assert [row.score for row in ranking.models] == pytest.approx(
        [row.score for row in direct.models]
    )
