"""Exchanging A and B in prose: only the full forms, and twice is the identity."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import Analysis, Ballot, CriterionBallot, ResponseAnalysis, Winner, rename

PROSE = st.lists(
    st.sampled_from(
        ["Response A", "Response B", "响应 A", "响应B", " ", "is", "A", "的", "'s", "\n"]
    )
    | st.text(max_size=5)
).map("".join)


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("Response A beats Response B.", "Response B beats Response A."),
        ("RESPONSE A's and response B-like", "RESPONSE B's and response A-like"),
        ("响应 A更好，响应B较差", "响应 B更好，响应A较差"),
        ("**Response\u00a0A**", "**Response\u00a0B**"),
        ("Plan A, grade B, a vitamin", "Plan A, grade B, a vitamin"),
        ("Response Above, Response AB, MyResponse A", "Response Above, Response AB, MyResponse A"),
        ("Response a", "Response a"),
        ("", ""),
    ],
)
def test_only_the_full_forms_are_renamed(text: str, renamed: str) -> None:
    assert rename(text) == renamed


@given(PROSE)
def test_renaming_twice_changes_nothing(text: str) -> None:
    assert rename(rename(text)) == text


@given(PROSE, st.sampled_from(["A", "B", "TIE"]))
def test_mirroring_a_ballot_twice_changes_nothing(text: str, winner: Winner) -> None:
    ballot = Ballot(
        order="original",
        winner=winner,
        reasoning=text,
        differentiators=(text,),
        criteria=(CriterionBallot(criterion=text, winner="A", a_assessment=text, reasoning=text),),
        analysis=Analysis(response_a=ResponseAnalysis(strengths=(text,))),
        raw=text,
    )
    mirrored = ballot.mirrored()
    assert mirrored.mirrored() == ballot
    assert mirrored.raw == text, "what the judge wrote stays as it wrote it"
    assert mirrored.criteria[0].criterion == text, "a criterion's name is the caller's"
    assert mirrored.criteria[0].b_assessment == rename(text)


# The forms in one pattern, as a reader would write them down.
FULL_FORM = re.compile(
    r"(?<![A-Za-z0-9_])([Rr]esponse[ \t\u00a0]+|RESPONSE[ \t\u00a0]+)([AB])(?![A-Za-z0-9_])"
    r"|(响应[ \t\u00a0\u3000]*)([AB])(?![A-Za-z0-9_])"
)
PIECES = st.lists(
    st.sampled_from(
        [
            *("Response", "response", "RESPONSE", "esponse", "响应", "R", "r", "_", "7", "x"),
            *(" ", "\t", "\u00a0", "\u3000", "\n", "\x00", "A", "B", "C", ".", "的", "\ud83d"),
        ]
    ),
    max_size=12,
).map("".join)


@given(PIECES)
def test_renaming_is_what_one_pattern_of_all_forms_would_do(text: str) -> None:
    other = {"A": "B", "B": "A"}
    expected = FULL_FORM.sub(
        lambda m: (m[1] or m[3]) + other[m[2] or m[4]],
        text,
    )
    assert rename(text) == expected
