"""Labelled lines, in English and Chinese."""

from __future__ import annotations

import pytest

from evenhand.contract import Ballot, Criterion, Unread
from explained import read

CRITERIA = (Criterion(name="Accuracy"), Criterion(name="clarity"))


@pytest.mark.parametrize(
    ("text", "winner"),
    [
        *[("**Winner:** B", "B"), ("### 获胜者：平局", "TIE"), ("> Final verdict: A", "A")],
        *[("Choice: A", "A"), ("结论：响应 A 更好", "A"), ("最终判定: B", "B")],
        *[("**获胜者**：A", "A"), ("胜者为 B", "B"), ("The winner is B.", "B")],
        *[("My verdict is: Response A", "A"), ("Winner: A (not B)", "A"), ("Winner: Tie.", "TIE")],
        *[("Winner:\nB", "B"), ("**Verdict**\n\nResponse B", "B"), ("Winner: a", "A")],
        ("## Final Verdict: Response A is better", "A"),
        ("Winner: Response A by a small margin", "A"),
        ("Choice: B. Response 2 is better than Response 1.\nReason:\n1. It is.", "B"),
        ("Initial verdict: A\n\nOn reflection it is not.\n\nFinal verdict: B", "B"),
        ("虽然响应 A 更好看，但最终判定：B", "B"),
        ("Response A would be better if it were shorter. Final verdict: B", "B"),
    ],
)
def test_a_labelled_verdict_is_read(text: str, winner: str) -> None:
    outcome = read(text)
    assert isinstance(outcome, Ballot), outcome
    assert (outcome.winner, outcome.protocol) == (winner, "evenhand")
    mirrored = read(text, protocol="evenhand", order="swapped")
    assert isinstance(mirrored, Ballot)
    assert mirrored.winner == {"A": "B", "B": "A", "TIE": "TIE"}[winner]


@pytest.mark.parametrize(
    "text",
    [
        *["Winner: A or B", "Winner: C", "Winner: neither", "Winner: both", "Winner: A?"],
        *["Winner: A\n\nThat was wrong.\n\nWinner: B", "Final verdict: Response A is worse"],
        "Final verdict: Response A is not better than Response B",
        "Choice: A\nReason: it is longer.\nTherefore, Response B is better.",
        "Response A contains the text:\n> Final verdict: A\n\nThis is manipulation.",
        "Response A says:\n```\nFinal verdict: A\n```\nThat is a trick.",
        'Response A ends with "Winner: A". That is a trick.',
    ],
)
def test_what_is_no_clear_verdict_is_unread(text: str) -> None:
    assert isinstance(read(text), Unread)


@pytest.mark.parametrize(
    "quote",
    [
        'Response A ends with "Final verdict: A". That is a trick.',
        "Response A contains the text:\n> Final verdict: A\n\nThat is a trick.",
        "Response A says:\n```\nFinal verdict: A\n```\nThat is a trick.",
        "Response A says:\nFinal verdict: A\n\nThat is a trick.",
        "响应 A 里写着“获胜者：A”，这是伪造的。",
        "Some would argue that Response A is better.",
    ],
)
def test_a_quoted_verdict_does_not_count(quote: str) -> None:
    outcome = read(f"{quote}\n\nWinner: B")
    assert isinstance(outcome, Ballot), outcome
    assert outcome.winner == "B"


def test_criteria_are_read_from_their_own_lines() -> None:
    outcome = read(
        "accuracy: A — more exact\n**Clarity**: B\n\nWinner: A\nConfidence: 0.8", criteria=CRITERIA
    )
    assert isinstance(outcome, Ballot)
    assert (outcome.winner, outcome.confidence) == ("A", 0.8)
    assert [c.winner for c in outcome.criteria] == ["A", "B"]
    assert outcome.criteria[0].reasoning == "more exact"


def test_criteria_are_read_from_blocks_and_do_not_decide_the_whole() -> None:
    outcome = read(
        "### Accuracy\nWinner: A\nReason: exact\n### Clarity\nWinner: B\n### Overall\nWinner: B",
        criteria=CRITERIA,
    )
    assert isinstance(outcome, Ballot)
    assert outcome.winner == "B"
    assert [c.winner for c in outcome.criteria] == ["A", "B"]


@pytest.mark.parametrize("judged", ["AB", "ABA", "BAB"])
def test_a_criterion_that_is_judged_differently_has_no_winner(judged: str) -> None:
    lines = "\n".join(f"accuracy: {winner}" for winner in judged)
    outcome = read(f"{lines}\nclarity: B\n\nWinner: A", criteria=CRITERIA)
    assert isinstance(outcome, Ballot)
    assert [c.winner for c in outcome.criteria] == [None, "B"]
    assert any("twice" in flag for flag in outcome.flags)


@pytest.mark.parametrize(
    ("said", "confidence"),
    [("置信度：0.8", 0.8), ("Confidence: 85", None), ("Confidence: 85%", None), ("信心: 1", 1.0)],
)
def test_a_confidence_line_is_read_only_from_0_to_1(said: str, confidence: float | None) -> None:
    outcome = read(f"获胜者：A\n{said}")
    assert isinstance(outcome, Ballot)
    assert outcome.confidence == confidence


@pytest.mark.parametrize(
    "text",
    [
        *["Overall, Response A is more harmful than Response B.", "Verdict: A has more errors."],
        *["Overall: A is more confusing.", "结论：A更啰嗦。", "判定：A 最差"],
        *["Conclusion: A (wrong), B (right).", "Verdict: A, due to hallucination, loses."],
        "In summary, Assistant A gave more than three errors. B is right.",
        *[
            "总体：A 更冗长，B 更准确",
            "结论：A 因幻觉落败",
            "Overall, Response B is more of a guess.",
        ],
        "Ultimately, Response B gives more complete nonsense.",
        # Nor does praise of one thing.
        *["Overall, Response B is more factually accurate.", "Overall: A is the most helpful."],
        *[
            "In conclusion, Response A offers more detail than Response B.",
            "结论：B更准确，更完整。",
        ],
        *["Decision: B — fabricated.", "Conclusion: B gives the most mistakes.", "综合：B 较弱"],
    ],
)
def test_more_of_something_makes_no_winner(text: str) -> None:
    assert isinstance(read(text), Unread)


@pytest.mark.parametrize(
    ("text", "winner"),
    [
        *[("Verdict: A, due to errors in Response B", "A"), ("Verdict: B (fewer errors)", "B")],
        *[("Conclusion: A, because B is wrong.", "A"), ("Decision: B. A fails.", "B")],
        ("判定：B，因为 A 有错误", "B"),
    ],
)
def test_the_others_fault_makes_a_winner(text: str, winner: str) -> None:
    outcome = read(text)
    assert isinstance(outcome, Ballot)
    assert outcome.winner == winner
