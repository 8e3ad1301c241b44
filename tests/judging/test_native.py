"""The short way through an answer reads what the long way reads, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import Criterion, Unread
from evenhand.judging.answers.json_answer import read_answer, read_native, whole_object
from evenhand.judging.answers.results import ParsedVerdict
from explained import read

NAMES = ("accuracy", "Clarity of style", "语气", "x" * 150)
CRITERIA = tuple(Criterion(name=name) for name in NAMES[:3])
TEXT = st.sampled_from(["", "Response A", "响应 B", " x\n"])
# What a field may hold that it should not.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, True, 0.5, "A", [], ["x", 1], {}, {"winner": "A"}]
)
WINNER = st.sampled_from([*"AABB", "TIE", "TIE", "tie", "a", "Response B"])


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 99).flatmap(lambda n: ODD if n == 99 else usual)


def fields(**usual: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with these fields, now and then with one too few, too many or spelt otherwise."""
    whole = st.fixed_dictionaries({name: mostly(value) for name, value in usual.items()})

    def changed(value: dict[str, Any], change: int) -> dict[str, Any]:
        first = next(iter(value))
        if change == 1:
            value.pop(first)
        elif change == 2:
            value["note"] = "more"
        elif change == 3:
            value[first.upper()] = value.pop(first)
        return value

    return st.builds(changed, whole, st.sampled_from([0] * 30 + [1, 2, 3]))


TEXTS = st.lists(TEXT, max_size=2)
RESPONSE = fields(strengths=TEXTS, weaknesses=TEXTS)


def entry(name: str) -> st.SearchStrategy[dict[str, Any]]:
    spelt = st.sampled_from([*[name] * 20, name.upper(), f" {name}.", "another", NAMES[3]])
    return fields(
        criterion=spelt, aAssessment=TEXT, bAssessment=TEXT, reasoning=TEXT, winner=WINNER
    )


ENTRIES = st.tuples(*(entry(name) for name in NAMES[:3])).map(list)
ANSWER = fields(
    analysis=fields(responseA=RESPONSE, responseB=RESPONSE),
    comparison=ENTRIES | st.lists(entry("accuracy"), max_size=4),
    result=fields(
        reasoning=TEXT,
        differentiators=TEXTS,
        winner=WINNER,
        confidence=st.floats(-0.5, 1.5) | st.sampled_from([0, 1, "0.5", None]),
    ),
)


def said(reading: ParsedVerdict) -> ParsedVerdict:
    """What the two ways must agree on: whether a list or a tuple holds the texts is all one."""
    a, b = reading.response_a, reading.response_b
    return reading._replace(
        differentiators=tuple(reading.differentiators),
        response_a=a._replace(strengths=tuple(a.strengths), weaknesses=tuple(a.weaknesses)),
        response_b=b._replace(strengths=tuple(b.strengths), weaknesses=tuple(b.weaknesses)),
    )


@given(
    ANSWER,
    st.sampled_from([CRITERIA, CRITERIA[:1], ()]),
    st.sampled_from(["", " ", "\n "]),
    st.sampled_from(["", '"winner":"B",', '"winner" :"B",']),
)
def test_the_short_way_reads_what_the_long_way_reads_and_no_key_is_lost(
    answer: dict[str, Any], criteria: tuple[Criterion, ...], blank: str, twice: str
) -> None:
    text = json.dumps(answer, separators=(",", f"{blank}:"))
    # A second winner before the one that would be kept.
    text = text.replace('"result"' + blank + ":{", '"result"' + blank + ":{" + twice, 1)
    short = read_native(text, criteria)
    if short is not None:
        value = whole_object(text)
        assert value is not None
        long = read_answer(value, criteria)
        assert isinstance(long, ParsedVerdict)
        assert said(short) == said(long)


@pytest.mark.parametrize("texts", ["no colon", "one: colon", '"quoted": twice', ": at first"])
def test_a_winner_that_is_there_twice_is_never_lost(texts: str) -> None:
    text = json.dumps(exact(reasoning=texts))
    # What looks like a key is read at length.
    assert (read_native(text, CRITERIA) is None) == (texts[0] in '":')
    twice = text.replace('"winner": "A"', '"winner": "B", "winner": "A"')
    assert read_native(twice, CRITERIA) is None
    reading = read(twice, criteria=CRITERIA)
    assert isinstance(reading, Unread)
    assert reading.kind == "contradiction"


def exact(**result: Any) -> dict[str, Any]:
    """An answer in exactly the shape that the prompt asks for."""
    response = {"strengths": ["s"], "weaknesses": []}
    said = {"reasoning": "r", "differentiators": ["d"], "winner": "A", "confidence": 0.8}
    return {
        "analysis": {"responseA": response, "responseB": response},
        "comparison": [
            {
                "criterion": name,
                "aAssessment": "a",
                "bAssessment": "b",
                "reasoning": "r",
                "winner": "TIE",
            }
            for name in NAMES[:3]
        ],
        "result": said | result,
    }


def test_an_answer_exactly_as_asked_takes_the_short_way() -> None:
    reading = read_native(json.dumps(exact()), CRITERIA)
    assert reading is not None
    assert (reading.winner, reading.confidence) == ("A", 0.8)
    assert [entry.winner for entry in reading.criteria] == ["TIE"] * 3
    assert read_native(json.dumps(exact(winner="both")), CRITERIA) is None
    assert read_native(json.dumps(exact(more=1)), CRITERIA) is None
    assert read_native(json.dumps(exact(confidence=True)), CRITERIA) is None
    assert read_native(json.dumps(exact()), CRITERIA[:2]) is None
