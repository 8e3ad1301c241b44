"""Model outputs joined into pairs, in each layout that benchmarks use."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.conftest import Write
from evenhand.contract import Criterion
from evenhand.data.options import ReadOptions
from evenhand.data.outputs import OutputFile, read_outputs
from evenhand.data.records import BadRow, Record, Unpaired
from evenhand.errors import DataError
from parts import examples

READING = ReadOptions(criteria=(Criterion(name="accuracy"),))
Rows = list[dict[str, Any]]


@pytest.fixture
def join(write: Write) -> Callable[..., list[Record | BadRow]]:
    """Write each model's rows to a file called like it, and join the files."""

    def joined(
        outputs: dict[str, Rows],
        *,
        baseline: str | None = None,
        questions: Rows | None = None,
        columns: dict[str, str] | None = None,
    ) -> list[Record | BadRow]:
        def lines(rows: Rows) -> str:
            return "".join(json.dumps(row) + "\n" for row in rows)

        files = [OutputFile(write(f"{name}.jsonl", lines(rows))) for name, rows in outputs.items()]
        asked = None if questions is None else write("questions.jsonl", lines(questions))
        reading = ReadOptions(columns=columns or {}, criteria=READING.criteria)
        return list(read_outputs(files, reading, baseline=baseline, questions=asked))

    return joined


Join = Callable[..., list[Record | BadRow]]


def plain(model: str, ids: str) -> Rows:
    return [{"id": one, "prompt": f"p{one}", "output": f"{model}{one}"} for one in ids]


def keys(rows: list[Record | BadRow]) -> list[str]:
    return [row.key for row in rows if isinstance(row, Record)]


def reasons(rows: list[Record | BadRow]) -> list[str]:
    return [f"{Path(r.source).name} {r.row}: {r.reason}" for r in rows if isinstance(r, BadRow)]


def test_two_files_are_joined_by_id_in_the_order_of_the_first(join: Join) -> None:
    rows = join({"old": plain("x", "123"), "new": plain("y", "312")})
    assert keys(rows) == ["1", "2", "3"]
    first = rows[0]
    assert isinstance(first, Record)
    assert (first.pair.response_a, first.pair.response_b) == ("x1", "y1")
    assert (first.model_a, first.model_b, first.row) == ("old", "new", 1)
    assert Path(first.source).name == "old.jsonl"


def test_three_files_are_all_against_all(join: Join) -> None:
    rows = join({name: plain(name, "12") for name in "abc"})
    expected = [f"{one}:{x}:{y}" for one in "12" for x, y in combinations("abc", 2)]
    assert keys(rows) == expected


@pytest.mark.parametrize("baseline", ["b", "b.jsonl"])
def test_a_baseline_is_response_a_everywhere(join: Join, baseline: str, tmp_path: Path) -> None:
    named = str(tmp_path / baseline) if "." in baseline else baseline
    rows = join({name: plain(name, "1") for name in "abc"}, baseline=named)
    assert keys(rows) == ["1:b:a", "1:b:c"]
    assert [r.pair.response_a for r in rows if isinstance(r, Record)] == ["b1", "b1"]


def test_an_unknown_baseline_names_the_models(join: Join) -> None:
    with pytest.raises(DataError, match="no outputs of the baseline 'z'; the models are a, b"):
        join({"a": plain("a", "1"), "b": plain("b", "1")}, baseline="z")


def test_one_file_is_no_comparison(join: Join) -> None:
    with pytest.raises(DataError, match="1 file of model outputs cannot be compared"):
        join({"a": plain("a", "1")})


def test_rows_without_ids_are_joined_by_prompt(join: Join) -> None:
    ours = [{"instruction": one, "output": f"x{one}", "generator": "X"} for one in "12"]
    theirs = [{"instruction": one, "output": f"y{one}", "generator": "Y"} for one in "21"]
    rows = join({"a": ours, "b": theirs})
    assert keys(rows) == ["#1", "#2"]
    assert [(r.pair.prompt, r.pair.response_b) for r in rows if isinstance(r, Record)] == [
        ("1", "y1"),
        ("2", "y2"),
    ]
    assert isinstance(rows[0], Record)
    assert (rows[0].model_a, rows[0].model_b) == ("X", "Y")


def test_an_alpaca_eval_list_is_read(write: Write) -> None:
    files = [
        OutputFile(
            write(
                f"{name}.json",
                json.dumps(
                    [{"instruction": "i", "output": name, "generator": name, "dataset": "koala"}]
                ),
            )
        )
        for name in ("m", "n")
    ]
    [record] = read_outputs(files, READING)
    assert isinstance(record, Record)
    assert (record.pair.prompt, record.model_a, record.model_b) == ("i", "m", "n")


def test_models_of_the_same_name_are_called_like_their_files(join: Join) -> None:
    rows = [{"id": 1, "prompt": "p", "output": "o", "model": "same"}]
    [record] = join({"old": rows, "new": rows})
    assert isinstance(record, Record)
    assert (record.model_a, record.model_b) == ("old", "new")


def test_a_given_name_wins(write: Write) -> None:
    path = write("x.jsonl", '{"id": 1, "prompt": "p", "output": "o", "model": "m"}\n')
    [record] = read_outputs([OutputFile(path, "one"), OutputFile(path, "two")], READING)
    assert isinstance(record, Record)
    assert (record.model_a, record.model_b) == ("one", "two")


def test_two_models_in_one_file_are_a_bad_row(join: Join) -> None:
    rows = [{"id": one, "prompt": "p", "output": "o", "model": f"m{one}"} for one in (1, 2)]
    found = reasons(join({"a": rows, "b": rows[:1]}))
    assert found == [
        "a.jsonl 2: the answer is from 'm2', the rows before from 'm1'; give each model its "
        "own file"
    ]


def test_what_cannot_be_joined_is_named(join: Join) -> None:
    other = [{"id": "1", "prompt": "other", "output": "y1"}, *plain("y", "224")]
    rows = join({"a": plain("x", "123"), "b": other})
    assert keys(rows) == ["2"]
    assert [
        reason.replace(reason[reason.find("/") : reason.rfind("/") + 1], "")
        for reason in reasons(rows)
    ] == [
        "b.jsonl 1: the answer to '1' has a different prompt in a.jsonl, row 1; correct one",
        "b.jsonl 3: the answer to '2' appears twice, first in row 2; keep one",
        "a.jsonl 3: the answer to '3' has no counterpart from b",
        "b.jsonl 4: the answer to '4' has no counterpart from a",
    ]


def lost(rows: list[Record | BadRow]) -> list[tuple[str, str, str]]:
    return [match for row in rows if isinstance(row, Unpaired) for match in row.lost]


def test_every_pair_that_a_prompt_lacks_is_told_by_its_side(join: Join) -> None:
    """Of a, b and c: a and b answer 1, c alone answers 2, all answer 3."""
    rows = join({"a": plain("a", "13"), "b": plain("b", "13"), "c": plain("c", "23")})
    assert keys(rows) == ["1:a:b", "3:a:b", "3:a:c", "3:b:c"]
    assert [row.rpartition("answer ")[2] for row in reasons(rows)] == [
        "to '1' has no counterpart from c",
        "to '2' has no counterpart from a, b",
    ]
    assert lost(rows) == [("a", "c", "A"), ("b", "c", "A"), ("a", "c", "B"), ("b", "c", "B")]


def test_a_prompt_that_only_the_baseline_answers_is_missing_too(join: Join) -> None:
    files = {"a": plain("a", "13"), "b": plain("b", "123"), "c": plain("c", "234")}
    rows = join(files, baseline="b")
    assert keys(rows) == ["1:b:a", "3:b:a", "3:b:c", "2:b:c"]
    # 1 lacks c, 2 lacks a, 4 lacks the baseline; a against c is no match of this run.
    assert lost(rows) == [("b", "c", "A"), ("b", "a", "A"), ("b", "c", "B")]


def test_an_answer_without_id_and_prompt_is_a_bad_row(join: Join) -> None:
    rows = join({"a": [*plain("x", "1"), {"output": "o"}], "b": plain("y", "1")})
    assert keys(rows) == ["1"]
    assert "neither an id nor a prompt" in reasons(rows)[0]


def test_an_answer_without_prompt_cannot_be_joined_by_prompt(join: Join) -> None:
    rows = join(
        {"a": [{"prompt": "p", "output": "o"}, {"id": 1, "output": "o"}], "b": plain("y", "1")}
    )
    assert "the answer to an unknown prompt has no prompt" in reasons(rows)[1]


def test_what_is_known_of_a_prompt_is_carried_over(join: Join) -> None:
    ours = [{"id": 1, "prompt": "p", "text": "x", "category": "math", "reference": "r"}]
    theirs = [{"id": "1", "prompt": "p", "text": "y", "tags": ["hard"], "context": "c"}]
    [record] = join({"a": ours, "b": theirs})
    assert isinstance(record, Record)
    assert (record.pair.reference, record.pair.context) == ("r", "c")
    assert record.tags == ("math", "hard")


def test_references_that_are_numbers_are_read_as_their_texts(join: Join) -> None:
    ours = [{"id": 1, "prompt": "p", "text": "x", "reference": 4}]
    [record] = join({"a": ours, "b": [{"id": 1, "prompt": "p", "text": "y"}]})
    assert isinstance(record, Record)
    assert record.pair.reference == "4"
    asked = [{"question_id": 81, "turns": ["1+1?", "half of it?"], "reference": [2, 1.5]}]
    answers = {"a": mt_bench("v", ["2", "1"]), "b": mt_bench("w", ["2", "1"])}
    references = [r.pair.reference for r in join(answers, questions=asked) if isinstance(r, Record)]
    assert references == ["2", "[Reference for turn 1]\n2\n\n[Reference for turn 2]\n1.5"]


def test_columns_are_mapped(join: Join) -> None:
    rows = [{"key": 1, "prompt": "p", "said": "x"}]
    [record] = join({"a": rows, "b": rows}, columns={"id": "key", "response": "said"})
    assert keys([record]) == ["1"]


def mt_bench(model: str, turns: list[Any]) -> Rows:
    return [
        {
            "question_id": 81,
            "answer_id": "z",
            "model_id": model,
            "choices": [{"index": 0, "turns": turns}],
            "tstamp": 1.5,
        }
    ]


def test_mt_bench_answers_are_a_pair_for_each_turn(join: Join) -> None:
    questions = [
        {"question_id": 81, "category": "math", "turns": ["1+1?", "+1?"], "reference": ["2", "3"]}
    ]
    rows = join(
        {"a": mt_bench("v", ["two", "three"]), "b": mt_bench("w", ["2", "3"])}, questions=questions
    )
    assert keys(rows) == ["81:1", "81:2"]
    first, second = rows
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert (first.pair.prompt, first.pair.response_a, first.pair.reference) == ("1+1?", "two", "2")
    assert (first.model_a, first.model_b, first.tags) == ("v", "w", ("math",))
    assert second.pair.prompt == "[User turn 1]\n1+1?\n\n[User turn 2]\n+1?"
    assert second.pair.response_b == "[Answer to turn 1]\n2\n\n[Answer to turn 2]\n3"
    assert second.pair.reference == "[Reference for turn 1]\n2\n\n[Reference for turn 2]\n3"


def test_a_missing_turn_has_no_partner(join: Join) -> None:
    questions = [{"question_id": 81, "category": "x", "turns": ["q", "r"]}]
    rows = join({"a": mt_bench("v", ["1", "2"]), "b": mt_bench("w", ["1"])}, questions=questions)
    assert keys(rows) == ["81:1"]
    assert reasons(rows) == [("a.jsonl 1: the answer to '81', turn 2, has no counterpart from w")]


def test_answers_without_their_questions_say_so(join: Join) -> None:
    rows = join({"a": mt_bench("v", ["1"]), "b": mt_bench("w", ["1"])})
    assert reasons(rows) == [
        "a.jsonl 1: the answer to '81' has no prompt; give the questions file, with ids, as "
        "questions FILE"
    ]


def test_arena_hard_answers_of_the_first_version_are_read(join: Join) -> None:
    questions = [
        {"question_id": 81, "category": "arena-hard-v0.1", "turns": [{"content": "write"}]}
    ]
    [record] = join(
        {"a": mt_bench("v", [{"content": "x"}]), "b": mt_bench("w", [{"content": "y"}])},
        questions=questions,
    )
    assert isinstance(record, Record)
    assert (record.key, record.pair.prompt, record.pair.response_a) == ("81", "write", "x")
    assert record.tags == ("arena-hard-v0.1",)


def arena_hard(model: str, answer: Any) -> Rows:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": answer}]
    return [{"uid": "u1", "ans_id": "z", "model": model, "messages": messages, "metadata": {}}]


@pytest.mark.parametrize("asked", [True, False])
def test_arena_hard_answers_of_the_second_version_are_read(join: Join, asked: bool) -> None:
    questions = [{"uid": "u1", "category": "creative", "subcategory": "c", "prompt": "hi"}]
    [record] = join(
        {"a": arena_hard("v", {"answer": "yo"}), "b": arena_hard("w", "hey")},
        questions=questions if asked else None,
    )
    assert isinstance(record, Record)
    assert (record.key, record.pair.prompt) == ("u1", "hi")
    assert (record.pair.response_a, record.pair.response_b) == ("yo", "hey")
    assert record.tags == (("creative",) if asked else ())


@pytest.mark.parametrize(
    "row",
    [
        {"question_id": 1, "choices": []},
        {"question_id": 1, "choices": [{"turns": [None]}]},
        {"question_id": 1, "choices": [{"turns": []}]},
        {"uid": 1, "messages": [{"role": "assistant", "content": "x"}]},
        {"uid": 1, "messages": [{"role": "user", "content": "x"}]},
        {"uid": 1, "messages": ["x"]},
        {"id": 1, "prompt": "p", "output": None},
        {"id": 1, "prompt": 5, "output": "o"},
        {"id": 1.5, "prompt": "p", "output": "o"},
    ],
)
def test_a_broken_answer_is_a_bad_row(join: Join, row: dict[str, Any]) -> None:
    rows = join({"a": [row, *plain("x", "9")], "b": plain("y", "9")})
    assert keys(rows) == ["9"]
    assert len(reasons(rows)) == 1


def test_a_broken_question_is_a_bad_row(join: Join) -> None:
    questions: Rows = [
        {"prompt": "no id"},
        {"id": 1},
        {"id": 2, "turns": []},
        {"id": 3, "turns": [5]},
    ]
    rows = join({name: plain(name, "9") for name in "ab"}, questions=[*questions, *questions[:0]])
    assert len(reasons(rows)) == 4
    assert keys(rows) == ["9"]


def test_nothing_is_left_behind(
    join: Join, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    join({name: plain(name, "12") for name in "ab"})
    files = [OutputFile(tmp_path / f"{name}.jsonl") for name in "ab"]
    rows = read_outputs(files, READING)
    next(rows)
    assert len(list(folder.iterdir())) == 1
    rows.close()  # type: ignore[attr-defined]
    assert list(folder.iterdir()) == []


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    held=st.lists(st.frozensets(st.integers(0, 5), min_size=1), min_size=2, max_size=4),
    by_id=st.booleans(),
)
def test_every_two_answers_to_a_prompt_meet_once(
    join: Join, held: list[frozenset[int]], by_id: bool
) -> None:
    names = [f"m{place}" for place in range(len(held))]
    outputs = {
        name: [
            {"prompt": f"p{one}", "output": f"{name} {one}", **({"id": one} if by_id else {})}
            for one in sorted(ids)
        ]
        for name, ids in zip(names, held, strict=True)
    }
    rows = join(outputs)
    met = [(r.pair.response_a, r.pair.response_b) for r in rows if isinstance(r, Record)]
    expected = {
        (f"{names[i]} {one}", f"{names[j]} {one}")
        for i, j in combinations(range(len(held)), 2)
        for one in held[i] & held[j]
    }
    assert len(met) == len(set(met))
    assert set(met) == expected
    assert len(keys(rows)) == len(set(keys(rows)))
    lacking = frozenset[int]().union(*held) - frozenset.intersection(*held)
    assert len(reasons(rows)) == len(lacking)
    # Of every two, each prompt that only one of them has is lost once, on its side.
    assert Counter(lost(rows)) == Counter(
        {
            (names[i], names[j], side): len(alone)
            for i, j in combinations(range(len(held)), 2)
            for side, alone in (("A", held[i] - held[j]), ("B", held[j] - held[i]))
            if alone
        }
    )
