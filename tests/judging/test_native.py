"""The short way through an answer reads what the long way reads, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import ORDERS, Ballot, Criterion, Order, Unread, Vote
from evenhand.judging.answers.json_answer import (
    ConflictingValues,
    read_answer,
    read_native,
    read_native_text,
    whole_object,
)
from evenhand.judging.answers.reader import read, read_briefly
from evenhand.judging.answers.results import ParsedVerdict

NAMES = ("accuracy", "Clarity of style", "语气", "x" * 150)
CRITERIA = tuple(Criterion(name=name) for name in NAMES[:3])
TEXT = st.sampled_from(["", "Response A", "响应 B", " x\n"])
# What a field may hold that it should not.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, True, 0.5, "A", [], ["x", 1], {}, {"winner": "A"}, ConflictingValues(("A", "B"))]
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


def ballot(reading: ParsedVerdict) -> Ballot:
    """What the two ways must agree on: the ballot that comes of it."""
    return Ballot.model_validate(
        {
            "order": "original",
            "winner": reading.winner,
            "confidence": reading.confidence,
            "criteria": reading.criteria,
            "reasoning": reading.reasoning,
            "differentiators": reading.differentiators,
            "analysis": reading.analysis or {},
            "protocol": reading.protocol,
            "flags": reading.flags,
        }
    )


@given(ANSWER, st.sampled_from([CRITERIA, CRITERIA[:1], ()]))
def test_the_short_way_reads_what_the_long_way_reads(
    answer: dict[str, Any], criteria: tuple[Criterion, ...]
) -> None:
    short = read_native(answer, criteria)
    if short is not None:
        long = read_answer(answer, criteria)
        assert isinstance(long, ParsedVerdict)
        assert ballot(short) == ballot(long)
        assert short.from_object == long.from_object


@given(ANSWER, st.sampled_from(["", " ", "\n "]), st.sampled_from(["", '"winner":"B",']))
def test_the_text_is_read_as_its_object_is_and_no_key_is_lost(
    answer: dict[str, Any], blank: str, twice: str
) -> None:
    text = json.dumps(answer, default=list, separators=(",", f"{blank}:"))
    # A second winner before the one that orjson would keep.
    text = text.replace('"result"' + blank + ":{", '"result"' + blank + ":{" + twice, 1)
    short = read_native_text(text, CRITERIA)
    if short is not None:
        value = whole_object(text)
        assert value is not None
        long = read_answer(value, CRITERIA)
        assert isinstance(long, ParsedVerdict)
        assert ballot(short) == ballot(long)


@given(ANSWER, st.sampled_from(ORDERS), st.booleans())
def test_a_vote_is_the_ballot_without_its_prose_and_all_else_is_the_ballot(
    answer: dict[str, Any], order: Order, allow_tie: bool
) -> None:
    text = json.dumps(answer, default=list)
    shared: Any = {"criteria": CRITERIA, "allow_tie": allow_tie, "order": order, "sample": 3}
    whole = read(text, **shared)
    brief = read_briefly(text, **shared, truncated=False, protocol=None)
    if not isinstance(brief, Vote):
        assert brief == whole
        return
    assert isinstance(whole, Ballot)
    assert (whole.protocol, whole.flags, whole.probabilities) == ("evenhand", (), None)
    bare = brief.bare_ballot()
    for field in ("order", "sample", "winner", "confidence", "confidence_source", "raw"):
        assert getattr(bare, field) == getattr(whole, field)
    assert [(c.criterion, c.winner) for c in bare.criteria] == [
        (c.criterion, c.winner) for c in whole.criteria
    ]


@pytest.mark.parametrize("texts", ["no colon", "one: colon"])
def test_a_winner_that_is_there_twice_is_never_lost(texts: str) -> None:
    text = json.dumps(exact(reasoning=texts))
    assert (read_native_text(text, CRITERIA) is None) == (":" in texts)
    twice = text.replace('"winner": "A"', '"winner": "B", "winner": "A"')
    assert read_native_text(twice, CRITERIA) is None
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
    reading = read_native(exact(), CRITERIA)
    assert reading is not None
    assert (reading.winner, reading.confidence) == ("A", 0.8)
    assert [entry.winner for entry in ballot(reading).criteria] == ["TIE"] * 3
    assert read_native(exact(winner="both"), CRITERIA) is None
    assert read_native(exact(more=1), CRITERIA) is None
