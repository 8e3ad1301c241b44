"""Which column is which field, and what its values may be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from data.conftest import Read, Write
from evenhand.contract import Criterion
from evenhand.data.columns import PAIR_FIELDS
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import PairRows, read_pairs
from evenhand.data.records import BadRow, Record
from evenhand.errors import DataError

READING = ReadOptions(criteria=(Criterion(name="accuracy"),))
PLAIN: dict[str, Any] = {"prompt": "p", "response_a": "a", "response_b": "b"}


def one(row: dict[str, Any], reading: ReadOptions = READING) -> Record | BadRow:
    return PairRows("pairs", reading).read(1, row)


def record_of(row: dict[str, Any], reading: ReadOptions = READING) -> Record:
    record = one(row, reading)
    assert isinstance(record, Record), record
    return record


def reason_of(row: dict[str, Any], reading: ReadOptions = READING) -> str:
    bad = one(row, reading)
    assert isinstance(bad, BadRow), bad
    assert "\n" not in bad.reason
    return bad.reason


def spelled(name: str) -> list[str]:
    head, *rest = name.split("_")
    camel = head + "".join(part.title() for part in rest)
    return [name, name.upper(), name.replace("_", "-"), name.replace("_", " "), camel]


@pytest.mark.parametrize("field", ["prompt", "response_a", "response_b"])
def test_every_usual_name_is_found_in_every_spelling(field: str) -> None:
    for name in PAIR_FIELDS[field]:
        for spelling in spelled(name):
            row = {column: value for column, value in PLAIN.items() if column != field}
            record = record_of({**row, spelling: "found"})
            assert getattr(record.pair, field) == "found", spelling


def test_no_name_stands_for_two_fields() -> None:
    from evenhand.data.columns import OUTPUT_FIELDS, plain

    for table in (PAIR_FIELDS, OUTPUT_FIELDS):
        names = [plain(name) for field in table.values() for name in field]
        assert len(names) == len(set(names))


def test_other_columns_are_ignored() -> None:
    assert record_of({**PLAIN, "source": "x", "lang": None, "votes": [1, 2]}).tags == ()


def test_a_column_is_mapped_and_the_usual_name_is_then_left_alone() -> None:
    reading = ReadOptions(columns={"prompt": "Task"}, criteria=READING.criteria)
    row = {**PLAIN, "prompt": "no", "Task": "yes"}
    assert record_of(row, reading).pair.prompt == "yes"


def test_a_map_takes_the_camel_case_field_too() -> None:
    reading = ReadOptions(columns={"responseA": "left"}, criteria=READING.criteria)
    assert record_of({**PLAIN, "left": "mine"}, reading).pair.response_a == "mine"


def test_a_map_to_an_absent_column_names_those_there() -> None:
    reading = ReadOptions(columns={"prompt": "Task"}, criteria=READING.criteria)
    reason = reason_of(PLAIN, reading)
    assert reason == (
        "prompt is mapped to the column 'Task', which does not exist; the columns are "
        "prompt, response_a, response_b"
    )


def test_a_map_of_an_unknown_field_names_the_fields() -> None:
    with pytest.raises(DataError, match=r"promt is not a field; the fields are prompt, response_a"):
        one(PLAIN, ReadOptions(columns={"promt": "x"}))


def test_a_missing_column_says_what_was_looked_for_and_what_is_there() -> None:
    reason = reason_of({"prompt": "p", "response_a": "a", "second": "b"})
    assert reason.startswith("no column for response_b (looked for response_b, output_b, answer_b")
    assert reason.endswith(
        "the columns are prompt, response_a, second; name it with map response_b=COLUMN"
    )


def test_a_table_without_a_column_is_refused_as_a_whole(read: Read) -> None:
    with pytest.raises(DataError, match=r"x\.csv: no column for response_a"):
        read("x.csv", "prompt,response_b\np,b\n")


def test_two_columns_that_differ_are_an_error_with_both_names() -> None:
    reason = reason_of({**PLAIN, "question": "q"})
    assert reason == (
        "prompt and question both match prompt and differ; choose with map prompt=prompt or "
        "map prompt=question"
    )
    reading = ReadOptions(columns={"prompt": "question"}, criteria=READING.criteria)
    assert record_of({**PLAIN, "question": "q"}, reading).pair.prompt == "q"


@pytest.mark.parametrize("other", ["p", "", None])
def test_two_columns_that_agree_or_of_which_one_is_empty_are_fine(other: str | None) -> None:
    assert record_of({**PLAIN, "input": other}).pair.prompt == "p"


def test_responses_counted_from_zero_are_not_guessed() -> None:
    reason = reason_of({"prompt": "p", "response_0": "a", "response_1": "b"})
    assert reason.startswith("no column for response_a")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "TIE"), ("0", "TIE"), (0.0, "TIE"), ("1.0", "A"), (1, "A"), (2.0, "B"), ("A", "A")],
)
def test_a_number_is_the_label_that_it_was_said_to_mean(value: object, expected: str) -> None:
    meant = {"0": "TIE", "1": "A", "2.0": "B", "n/a": "skipped"}
    reading = replace(READING, values=meant)
    assert record_of({**PLAIN, "label": value}, reading).label == expected
    assert record_of({**PLAIN, "label": "N/A"}, reading).label is None
    assert "value 7=A" in reason_of({**PLAIN, "label": 7}, reading)
    # Of 15 and 1.5 only one was named.
    assert "value 15=A" in reason_of({**PLAIN, "label": 15}, replace(READING, values={"1.5": "A"}))


def test_what_a_spelling_means_is_a_verdict() -> None:
    with pytest.raises(DataError, match="'0' cannot mean 'first'; give A, B, TIE or skipped"):
        one(PLAIN, ReadOptions(values={"0": "first"}))


@pytest.mark.parametrize(
    ("given", "text"),
    [(4, "4"), (-3.5, "-3.5"), (1.0, "1.0"), ("1.0", "1.0"), (10**30, "1" + "0" * 30)],
)
def test_a_reference_that_is_a_number_is_read_as_its_text(given: object, text: str) -> None:
    assert record_of({**PLAIN, "reference": given}).pair.reference == text


def test_numbers_of_a_data_frame_are_references_without_their_type() -> None:
    # repr(np.float64(3.5)) is "np.float64(3.5)".
    assert record_of({**PLAIN, "reference": np.float64(3.5)}).pair.reference == "3.5"
    assert record_of({**PLAIN, "reference": np.int64(4)}).pair.reference == "4"


def test_a_gap_in_a_column_of_numbers_is_no_reference() -> None:
    assert record_of({**PLAIN, "reference": float("nan")}).pair.reference is None
    assert "reference must be a string" in reason_of({**PLAIN, "reference": True})


def test_a_chosen_response_is_a_and_labelled() -> None:
    row = {"prompt": "p", "chosen": "good", "rejected": "bad", "chosen_model": "m"}
    record = record_of(row)
    assert (record.pair.response_a, record.label, record.model_a) == ("good", "A", "m")
    assert "chosen response is A" in reason_of({**row, "label": "B"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("A", "A"),
        ("b", "B"),
        ("TIE", "TIE"),
        ("model_a", "A"),
        ("model_b", "B"),
        ("tie (bothbad)", "TIE"),
        ("both_bad", "TIE"),
        ("Response B", "B"),
        ("output_1", "A"),
        ("A>B", "A"),
        ("B>>A", "B"),
        ("A=B", "TIE"),
        ("gpt-4", "B"),
        ("", None),
        (None, None),
    ],
)
def test_labels_are_read_in_their_usual_spellings(value: str | None, expected: str | None) -> None:
    models = {"model_a": "llama", "model_b": "gpt-4"}
    for column in ("label", "winner", "preference"):
        assert record_of({**PLAIN, **models, column: value}).label == expected


@pytest.mark.parametrize(
    "value", ["C", "unknown", 1, 2, "1", 0.5, True, [], {"a": 1}, float("nan")]
)
def test_an_unknown_label_is_a_bad_row(value: object) -> None:
    reason = reason_of({**PLAIN, "label": value})
    assert "use A, B or TIE" in reason
    off = ReadOptions(columns={"label": ""}, criteria=READING.criteria)
    assert record_of({**PLAIN, "label": value}, off).label is None


@pytest.mark.parametrize(
    ("value", "expected"), [(1, "A"), (2, "B"), ("2", "B"), (1.0, "A"), (1.5, "TIE")]
)
def test_numbers_are_labels_where_responses_are_numbered(value: object, expected: str) -> None:
    row = {"instruction": "p", "output_1": "a", "output_2": "b", "preference": value}
    assert record_of(row).label == expected
    assert "the label is the number 0" in reason_of({**row, "preference": 0})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (5, "the number 5"),
        (["x"], "a list"),
        ({"a": 1}, "an object"),
        (True, "true"),
    ],
)
@pytest.mark.parametrize("field", ["prompt", "response_a", "response_b"])
def test_what_is_no_text_is_never_made_one(field: str, value: object, kind: str) -> None:
    assert reason_of({**PLAIN, field: value}) == f"{field} must be a string, not {kind}"


def test_a_wrong_value_is_named_by_its_column_too() -> None:
    row = {"question": "p", "answer_a": "a", "answer_b": None}
    assert reason_of(row) == "response_b (column answer_b) must be a string, not null"


def test_an_empty_response_is_a_response() -> None:
    assert record_of({**PLAIN, "response_b": ""}).pair.response_b == ""


@pytest.mark.parametrize(("value", "key"), [(81, "81"), ("x", "x"), ("", "#1"), (None, "#1")])
def test_ids_may_be_numbers(value: object, key: str) -> None:
    record = record_of({**PLAIN, "id": value})
    assert (record.key, record.pair.id) == (key, key)


@pytest.mark.parametrize("value", [1.5, True, ["x"], 10**50])
def test_other_ids_are_refused(value: object) -> None:
    assert reason_of({**PLAIN, "id": value}).startswith("id must be text or a whole number, not ")


def test_optional_fields_are_carried_over() -> None:
    row = {
        **PLAIN,
        "context": "c",
        "reference_answer": "r",
        "criteria": ["depth", {"name": "tone", "weight": 2}],
        "model_a": "m",
        "tags": ["x", "y", "x"],
        "category": "z",
        "allowTie": False,
        "swap_positions": False,
    }
    record = record_of(row)
    pair = record.pair
    assert (pair.context, pair.reference, pair.allow_tie, pair.swap_positions) == (
        "c",
        "r",
        False,
        False,
    )
    assert [(criterion.name, criterion.weight) for criterion in pair.criteria] == [
        ("depth", None),
        ("tone", 2),
    ]
    assert (record.model_a, record.model_b, record.tags) == ("m", None, ("x", "y", "z"))


def test_what_the_command_sets_holds_for_every_row() -> None:
    reading = ReadOptions(criteria=READING.criteria, allow_tie=True, swap_positions=False)
    pair = record_of({**PLAIN, "allow_tie": False, "swap_positions": True}, reading).pair
    assert (pair.allow_tie, pair.swap_positions) == (True, False)


def test_a_row_without_criteria_takes_those_of_the_command_or_is_bad() -> None:
    assert record_of({**PLAIN, "criteria": []}).pair.criteria == READING.criteria
    assert "the row has no criteria" in reason_of(PLAIN, ReadOptions())
    assert record_of(PLAIN, ReadOptions(criteria_needed=False)).pair.criteria == ()


def test_wrong_criteria_are_named() -> None:
    assert "criteria must be a list" in reason_of({**PLAIN, "criteria": "accuracy"})
    assert "criteria repeats 'Tone'" in reason_of({**PLAIN, "criteria": ["tone", "Tone"]})


def test_a_table_spells_lists_and_switches_as_text(read: Read) -> None:
    header = "prompt,response_a,response_b,criteria,tags,allow_tie\n"
    [first, second, third] = read(
        "x.csv",
        header
        + 'p,a,b,depth; tone,"x, y",no\n'
        + 'p,a,b,"[""depth"", {""name"": ""tone""}]",x;y,TRUE\n'
        + "p,a,b,,,\n",
    )
    for record in (first, second):
        assert isinstance(record, Record)
        assert [criterion.name for criterion in record.pair.criteria] == ["depth", "tone"]
        assert record.tags == ("x", "y")
    assert isinstance(third, Record)
    assert isinstance(first, Record)
    assert (first.pair.allow_tie, third.pair.allow_tie) == (False, True)
    assert third.pair.criteria == READING.criteria


def test_a_wrong_cell_is_a_bad_row(read: Read) -> None:
    header = "prompt,response_a,response_b,criteria,allow_tie\n"
    rows = read("x.csv", header + 'p,a,b,"[""x",\np,a,b,,perhaps\np,a,b,,yes\n')
    assert [type(row) for row in rows] == [BadRow, BadRow, Record]
    assert isinstance(rows[1], BadRow)
    assert rows[1].reason == "allow_tie must be true or false, not the string 'perhaps'"


def test_half_a_surrogate_pair_is_a_bad_row_wherever_it_stands(write: Write) -> None:
    for field in ("prompt", "response_a", "id", "model_a", "tags", "context"):
        path = write("x.jsonl", json.dumps({**PLAIN, field: "\ud800"}) + "\n")
        [bad] = read_pairs([path], READING)
        assert isinstance(bad, BadRow), field


def test_rows_of_many_shapes_are_all_read() -> None:
    rows = [{**PLAIN, f"extra {number}": 1} for number in range(600)]
    reader = PairRows("pairs", READING)
    read = [reader.read(number, row) for number, row in enumerate(rows, 1)]
    assert sum(isinstance(row, Record) for row in read) == 600
