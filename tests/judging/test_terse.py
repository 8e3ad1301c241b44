"""Answers of a few words, and JSON as models spell it."""

from __future__ import annotations

import pytest

from evenhand.contract import Ballot
from explained import read


def winner_in(text: str) -> str | None:
    outcome = read(text)
    return outcome.winner if isinstance(outcome, Ballot) else None


@pytest.mark.parametrize(
    "text",
    [
        *("B because it answers the question.", "Definitely B.", "It's B.", "B, without a doubt."),
        *("I vote B.", "I like Response B more.", "Point to B.", "So B.", "TL;DR: B"),
        *("The second response", "The second is better.", "The latter is better.", "B > A"),
        *("I prefer the latter.", "The second one.", "A < B"),
        *("第二个更好", "后者更好。", "显然是B。", "B，因为它回答了问题。", "选B", "A不如B。"),
        *("[[b]]", "[[Assistant B]]", r"\\[\\[B\\]\\]".replace(r"\\", "\\"), "【B】"),
        *("<p>Winner: <b>B</b></p>", "<verdict>B</verdict>", "<strong>Response B</strong>"),
        "<scratchpad>Winner: A?</scratchpad>\nWinner: B",
        "<|channel|>analysis<|message|>A is better?<|end|><|start|>assistant"
        "<|channel|>final<|message|>Winner: B<|return|>",
    ],
)
def test_a_short_answer_is_read(text: str) -> None:
    assert winner_in(text) == "B"


@pytest.mark.parametrize(
    "text",
    [
        *('{"winner": "B",}', "{'winner': 'B'}", '{winner: "B"}', '{"preference": "B"}'),
        *('{"winner": "B" // more accurate\n}', '{"winner": "B", /* or "A" */ "confidence": 0.6,}'),
        *('{"winner": "Response 2"}', '{"verdict": "Response B is better"}', '[{"winner": "B"}]'),
        *('{"preferred": "the second response"}', "{'获胜者': '回答B'}", '{"选择": "B"}'),
        "{'winner': 'B', 'quote': 'Response A says \"winner\": \"A\"'}",
        'Here it is:\n```json\n{\n  "winner": "B",\n  "reasoning": "It is complete.",\n}\n```',
    ],
)
def test_json_is_read_as_models_spell_it(text: str) -> None:
    assert winner_in(text) == "B"


@pytest.mark.parametrize(
    "text",
    [
        *("Winner: Equal", "A = B", "They're tied.", "Neither is better.", '{"winner": "equal"}'),
        "不分上下",
    ],
)
def test_a_tie_in_a_few_words_is_read(text: str) -> None:
    assert winner_in(text) == "TIE"


@pytest.mark.parametrize(
    "text",
    [
        *("Anything but A.", "Not A.", "A is not better.", "Definitely not A.", "It isn't A."),
        *("A or B?", "A and B.", "A/B", "A good answer.", "A is for apple.", "I like both."),
        *("A: 1998, B: 2003", "A: 3, B: 5 errors", "Errors: A: 3, B: 5", "A: 8/10, B: 6/5"),
        *("Response A: 3 examples\nResponse B: 5 examples", "A = B + C", "It's even worse."),
        *("They are equal in length.", "They are not tied.", "Neither is better than the source."),
        *("The second example is better.", "The latter point is better made.", "第二个例子更好。"),
        *("Response A is worse at style.", "Response B is not worse.", "回答B不差。", "别选A。"),
        # Only the loser, a comparison, or scores whose format nobody named.
        *("Response A is worse.", "The loser is A.", "Response A loses.", "回答A更差。"),
        *("B over A.", "B比A好。", "The two responses are equivalent.", "A: 6, B: 8", "A=6, B=8"),
        *("Response A: 5/10\nResponse B: 8/10", "响应A：6分\n响应B：8分"),
        # One that counts from 0 would mean the other one.
        *('{"winner": 1}', '{"winner": "1"}', "[[1]]", '{"winner": "both"}'),
    ],
)
def test_a_few_words_that_name_no_winner_are_unread(text: str) -> None:
    assert winner_in(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "It is B.\n\nBoth say so, and both are long. " + "So they are. " * 5,
        "The options are listed, one by one, and weighed with care.\nIt is B.",
        "Response A gives steps and no result. In the end I would say Response B is better.",
        "响应 A 只有步骤，没有结果；响应 B 步骤和结果都有。因此，我认为响应 B 更好。",
    ],
)
def test_more_than_a_few_words_are_no_verdict_unless_a_protocol_is_named(text: str) -> None:
    assert winner_in(text) is None
