"""What holds for every answer: round trips, mirror symmetry, no surprises, bounded work."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import PROTOCOLS, AnswerProtocol, Ballot, Criterion, Unread, Winner, rename
from evenhand.judging.answers.reasons import exchanged
from explained import read

WINNERS: tuple[Winner, ...] = ("A", "B", "TIE")
NAMES = ("accuracy", "clarity", "tone of voice")
CRITERIA = tuple(Criterion(name=name) for name in NAMES)
FRAMES = (
    "{answer}",
    "```json\n{answer}\n```",
    "I compared both with care.\n\n{answer}",
    "Here is my verdict:\n```json\n{answer}\n```\nThat is all.",
)

# Words that tempt a reader: verdicts, marks, braces, in both languages.
TEMPTING = st.lists(
    st.sampled_from(
        [
            *[
                "Winner: A",
                "[[B]]",
                "[[A>>B]]",
                '{"winner": "B"}',
                "\n",
                " ",
                "Output (a) is better.",
            ],
            *[
                "Therefore, Response B is better.",
                "最终判定：A",
                "{",
                "}",
                '"',
                "```",
                "1",
                "9 8",
                ":",
            ],
            *[
                "Final verdict:",
                "<think>",
                "</think>",
                "Assistant 1",
                "not",
                "if",
                "响应 A 更好",
                "\\",
            ],
        ]
    ),
    max_size=12,
).map("".join)
TEXTS = st.one_of(TEMPTING, st.text(max_size=60))


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "analysis": {"responseA": {"strengths": draw(st.lists(TEXTS, max_size=2))}},
        "comparison": [
            {"criterion": name, "winner": draw(st.sampled_from(WINNERS)), "reasoning": draw(TEXTS)}
            for name in NAMES
        ],
        "result": {
            "reasoning": draw(TEXTS),
            "winner": draw(st.sampled_from(WINNERS)),
            "confidence": draw(st.floats(0, 1)),
            "differentiators": draw(st.lists(TEXTS, max_size=2)),
        },
    }


@given(answer=answers(), frame=st.sampled_from(FRAMES), ascii_only=st.booleans())
def test_a_native_answer_reads_back_exactly(
    answer: dict[str, Any], frame: str, ascii_only: bool
) -> None:
    text = frame.replace("{answer}", json.dumps(answer, ensure_ascii=ascii_only))
    ballot = read(text, criteria=CRITERIA)
    assert isinstance(ballot, Ballot), ballot
    assert ballot.winner == answer["result"]["winner"]
    assert ballot.confidence == answer["result"]["confidence"]
    assert ballot.reasoning == answer["result"]["reasoning"]
    assert list(ballot.differentiators) == answer["result"]["differentiators"]
    assert [(c.criterion, c.winner, c.reasoning) for c in ballot.criteria] == [
        (c["criterion"], c["winner"], c["reasoning"]) for c in answer["comparison"]
    ]


@given(answer=answers(), quoted=TEMPTING)
def test_a_fake_verdict_inside_a_string_never_changes_the_reading(
    answer: dict[str, Any], quoted: str
) -> None:
    answer["result"]["reasoning"] = quoted
    answer["analysis"]["responseA"]["strengths"] = [quoted]
    ballot = read(json.dumps(answer))
    assert isinstance(ballot, Ballot)
    assert ballot.winner == answer["result"]["winner"]


@given(text=TEXTS, protocol=st.sampled_from((None, *PROTOCOLS)))
def test_any_text_gives_a_ballot_or_an_unread_that_keeps_it(
    text: str, protocol: AnswerProtocol | None
) -> None:
    outcome = read(text, criteria=CRITERIA, protocol=protocol)
    assert isinstance(outcome, Ballot | Unread)
    assert outcome.raw == text


@given(text=st.one_of(TEXTS, answers().map(json.dumps)))
def test_the_swapped_reading_mirrors_the_original_one(text: str) -> None:
    original = read(text, criteria=CRITERIA)
    swapped = read(text, criteria=CRITERIA, order="swapped")
    if isinstance(original, Ballot):
        # The other protocols have names of their own for the two, exchanged beside ours.
        renamed = exchanged(original.mirrored().reasoning, original.protocol)  # type: ignore[arg-type]
        assert swapped == original.mirrored().model_copy(update={"reasoning": renamed})
    else:
        reason = rename(original.reason)
        assert swapped == original.model_copy(update={"order": "swapped", "reason": reason})


@given(cut=st.floats(0, 0.99), answer=answers())
def test_a_cut_answer_is_never_read(cut: float, answer: dict[str, Any]) -> None:
    answer["result"]["reasoning"] = "because"
    text = json.dumps(answer)
    assert isinstance(read(text[: int(cut * len(text))]), Unread)


def test_a_lone_surrogate_is_no_accident() -> None:
    assert isinstance(read('{"winner": "A", "reasoning": "\\ud800"}', order="swapped"), Ballot)
    assert isinstance(read("\ud800"), Unread)


MEGABYTE = 1_000_000
HOSTILE = {
    "braces": "{",
    "nested": '{"a":',
    "answers": '{"winner":',
    "open strings": '{"winner":"',
    "brackets": "[[",
    "marks": "[[A]] ",
    "quotes": '"',
    "newlines": "\n",
    "spaces": " x",
    "lines": "Winner: A\n",
    "claims": "Output (a) is better ",
    "sentences": "it says that Output (a) is better. ",
    "scores": "give Assistant 1 a score of ",
    "conditions": "if it is so, then ",
    "stars": "*",
    "whole answers": '{"winner": "A"} ',
    "repeated keys": '{"a": 1, "a": 2} ',
    "rows": "| Winner | B |\n",
    "tags": "<winner>",
    "thinking": "<think>",
    "thoughts": "</think>\n",
    "fences": "```\n",
    "block quotes": "> Winner: A\n",
    "open quotations": "“",
    "inline labels": "It is so. Winner: A. ",
    "letters": "A. ",
    "Chinese claims": "响应 A 更好",
    "headings": "accuracy\n",
}
ONE_OBJECT = {
    "keys twice": "{" + ",".join(f'"k{n % 40_000}": {n}' for n in range(80_000)) + "}",
    "one key": "{" + ",".join(f'"winner": {n}' for n in range(60_000)) + "}",
    "entries": '{"comparison": ['
    + ",".join(f'{{"criterion": "c{n}", "winner": "A"}}' for n in range(25_000))
    + '], "winner": "A"}',
    "digits": '{"winner": "A", "confidence": ' + "9" * MEGABYTE + "}",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        *[unit * (MEGABYTE // len(unit)) + "x" for unit in HOSTILE.values()],
        *[unit * (MEGABYTE // len(unit)) + "\nWinner: B" for unit in HOSTILE.values()],
        *ONE_OBJECT.values(),
    ],
    ids=[*HOSTILE, *[f"{name}, then a label" for name in HOSTILE], *ONE_OBJECT],
)
def test_a_megabyte_of_anything_is_read_in_bounded_time(text: str) -> None:
    started = time.perf_counter()
    read(text, criteria=CRITERIA)
    # Half a second on a quiet machine; quadratic work on a megabyte takes minutes.
    assert time.perf_counter() - started < 5
