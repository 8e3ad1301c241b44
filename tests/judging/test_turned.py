"""Turning plain values round before they are a ballot gives what mirroring the ballot gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus import CORPUS, CRITERIA
from evenhand.contract import AnswerProtocol, Ballot, Criterion
from explained import read

ASKED = tuple(Criterion(name=name) for name in CRITERIA)
PROSE = st.lists(
    st.sampled_from(
        ["Response A", "response B ", "响应 A", "响应B", "RESPONSE A", "A", "\x00", "\ud83d", ". "]
    ),
    max_size=4,
).map("".join)
WINNER = st.sampled_from(["A", "B", "TIE", "neither", None])
TEXTS = st.lists(PROSE, max_size=2)
RESPONSE = st.fixed_dictionaries({}, optional={"strengths": TEXTS, "weaknesses": TEXTS})
ANSWER = st.fixed_dictionaries(
    {
        "result": st.fixed_dictionaries(
            {"winner": st.sampled_from(["A", "B", "TIE"])},
            optional={"reasoning": PROSE, "differentiators": TEXTS, "confidence": st.floats(0, 1)},
        )
    },
    optional={
        "analysis": st.fixed_dictionaries(
            {}, optional={"responseA": RESPONSE, "responseB": RESPONSE}
        ),
        "comparison": st.lists(
            st.fixed_dictionaries(
                {"criterion": st.sampled_from([*CRITERIA, "another"])},
                optional={
                    "winner": WINNER,
                    "reasoning": PROSE,
                    "aAssessment": PROSE,
                    "bAssessment": PROSE,
                },
            ),
            max_size=4,
        ),
    },
)


@given(ANSWER)
def test_a_native_answer_turned_round_is_its_ballot_mirrored(answer: dict[str, Any]) -> None:
    text = json.dumps(answer)
    shown = read(text, criteria=ASKED)
    assert isinstance(shown, Ballot)
    assert read(text, criteria=ASKED, order="swapped") == shown.mirrored()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [None, "evenhand"])
def test_any_native_text_turned_round_is_its_ballot_mirrored(
    protocol: AnswerProtocol | None,
) -> None:
    compared = 0
    for case in CORPUS:
        shown = read(case.text, criteria=ASKED, protocol=protocol)
        turned = read(case.text, criteria=ASKED, protocol=protocol, order="swapped")
        assert isinstance(turned, Ballot) == isinstance(shown, Ballot)
        # Other protocols have other names for the responses, and those are exchanged too.
        if isinstance(shown, Ballot) and shown.protocol == "evenhand":
            assert turned == shown.mirrored(), case.name
            compared += 1
    assert compared > 100
