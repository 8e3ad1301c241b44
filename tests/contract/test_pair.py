"""What callers may send: either spelling, nothing guessed, errors that name the field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import Criterion, Pair, criterion_key, read_pair
from evenhand.errors import InputError

GOOD: dict[str, Any] = {
    "prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["accuracy"],
}  # fmt: skip


def test_camel_case_and_snake_case_are_both_taken() -> None:
    camel = read_pair({**GOOD, "allowTie": False, "swapPositions": False})
    snake = read_pair(
        {"prompt": "p", "response_a": "a", "response_b": "b", "criteria": ["accuracy"],
         "allow_tie": False, "swap_positions": False}
    )  # fmt: skip
    assert camel == snake


@pytest.mark.parametrize("alias", ["prompt", "original_prompt", "originalPrompt"])
def test_the_prompt_has_an_older_name(alias: str) -> None:
    values = {key: value for key, value in GOOD.items() if key != "prompt"}
    assert read_pair({**values, alias: "q"}).prompt == "q"


def test_json_is_camel_case_and_reads_back() -> None:
    pair = read_pair({**GOOD, "criteria": ["x", {"name": "y", "description": "d", "weight": 2}]})
    dumped = pair.model_dump(mode="json")
    assert set(dumped) == {
        "prompt", "responseA", "responseB", "criteria", "id", "context", "reference", "allowTie",
        "swapPositions",
    }  # fmt: skip
    assert read_pair(dumped) == pair


@pytest.mark.parametrize(("given", "text"), [(42, "42"), (2.5, "2.5"), ("42", "42"), (0, "0")])
def test_a_reference_that_is_a_number_is_read_as_its_text(given: object, text: str) -> None:
    assert read_pair({**GOOD, "reference": given}).reference == text
    assert Pair.model_validate({**GOOD, "reference": given}).reference == text


def test_defaults_are_those_of_the_contract() -> None:
    pair = read_pair(GOOD)
    assert (pair.id, pair.context, pair.reference) == (None, None, None)
    assert pair.allow_tie
    assert pair.swap_positions


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"responseC": "x"}, r"^responseC is not a known field; the fields are prompt, responseA"),
        ({"responseA": 3}, r"^responseA must be a string, not the number 3$"),
        ({"responseA": None}, r"^responseA must be a string, not null$"),
        ({"prompt": ["p"]}, r"^prompt must be a string, not a list$"),
        ({"criteria": []}, r'^criteria is empty; name at least one, e.g. \["accuracy"\]$'),
        ({"criteria": "accuracy"}, r"^criteria must be a list"),
        ({"criteria": ["Depth", "depth."]}, r"^criteria repeats 'depth\.'"),
        ({"criteria": [""]}, r"^criteria\[0\]\.name is blank"),
        ({"criteria": ["a", 5]}, r"^criteria\[1\] must be a name, or an object with a name"),
        ({"criteria": [{"label": "a"}]}, r"^criteria\[0\]\.name is missing"),
        (
            {"criteria": [{"name": "a", "weight": 0}]},
            r"^criteria\[0\]\.weight must be a number above 0",
        ),
        ({"criteria": [{"name": "a", "weight": float("nan")}]}, r"^criteria\[0\]\.weight"),
        ({"criteria": [{"name": "a", "weight": "2"}]}, r"^criteria\[0\]\.weight must be a number"),
        ({"criteria": [{"name": "a", "colour": "x"}]}, r"^criteria\[0\]\.colour is not a known"),
        ({"allowTie": "yes"}, r"^allowTie must be true or false, not the string 'yes'$"),
        ({"allowTie": 1}, r"^allowTie must be true or false, not the number 1$"),
        ({"id": 7}, r"^id must be a string, not the number 7$"),
        ({"reference": True}, r"^reference must be a string, not true$"),
        ({"reference": float("inf")}, r"^reference must be a string, not the number inf$"),
        ({"reference": [4]}, r"^reference must be a string, not a list$"),
        ({"response_a": "again"}, r"^response_a is also given as responseA; keep one$"),
    ],
)
def test_what_does_not_fit_is_an_error_naming_the_field(
    change: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        read_pair({**GOOD, **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("field", list(GOOD))
def test_what_is_missing_is_named(field: str) -> None:
    values = {key: value for key, value in GOOD.items() if key != field}
    with pytest.raises(InputError, match=rf"^{field} is missing"):
        read_pair(values)


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_what_is_no_object_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="a pair is a JSON object"):
        read_pair(value)


@given(st.text())
def test_any_text_that_can_be_sent_is_kept_verbatim(text: str) -> None:
    pair = read_pair({**GOOD, "responseA": text, "prompt": text})
    assert pair.response_a == text
    assert pair.prompt == text


@given(st.text(min_size=1).filter(str.strip))
def test_a_criterion_is_matched_whatever_its_case_spaces_and_punctuation(name: str) -> None:
    assert criterion_key(f"  {name} ") == criterion_key(name)
    assert criterion_key(name)


def test_criterion_keys_by_example() -> None:
    assert criterion_key("Factual accuracy:") == criterion_key("factual-Accuracy")
    assert criterion_key("准确性。") == criterion_key("准确性")
    assert criterion_key("C++") != criterion_key("C")
    assert criterion_key("???") == "???"


def test_types_are_frozen() -> None:
    pair = read_pair(GOOD)
    with pytest.raises(ValueError, match="frozen"):
        pair.prompt = "other"  # type: ignore[misc]
    assert Criterion.model_validate("x") == Criterion(name="x")
    assert isinstance(Pair.model_validate(GOOD).criteria, tuple)


@pytest.mark.parametrize("number", [10**40, -(10**400), 10**5000], ids=["41", "401", "5001"])
@pytest.mark.parametrize(
    "change",
    [
        lambda number: {"prompt": number},
        lambda number: {"criteria": [number]},
        lambda number: {"allowTie": number},
    ],
)
def test_number_without_end_is_not_written_out(number: int, change: Any) -> None:
    with pytest.raises(InputError, match=r"not a number of more than 40 digits$"):
        read_pair({**GOOD, **change(number)})


@pytest.mark.parametrize("number", [10**400, 10**5000], ids=["401", "5001"])
def test_weight_without_end_is_refused_in_one_short_line(number: int) -> None:
    with pytest.raises(InputError) as caught:
        read_pair({**GOOD, "criteria": [{"name": "a", "weight": number}]})
    assert len(caught.value.message) < 200
