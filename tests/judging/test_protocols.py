"""The other protocols: marks, outputs, three classes, scores."""

from __future__ import annotations

import pytest

from evenhand.contract import ORDERS, AnswerProtocol, Ballot, Scores, Unread
from explained import read


@pytest.mark.parametrize(
    ("text", "winner", "protocol"),
    [
        ("My final verdict is: [[A>>B]]", "A", "arena-hard"),
        *[("[[A>B]]", "A", "arena-hard"), ("[[A=B]]", "TIE", "arena-hard")],
        *[("[[B>A]]", "B", "arena-hard"), ("so: **[[B>>A]]**", "B", "arena-hard")],
        *[("Verdict: [[A]]", "A", "mt-bench"), ("[[C]]", "TIE", "mt-bench")],
        ('It is a tie.\n[["C"]]', "TIE", "mt-bench"),
        ("Final verdict: [[C]] for a tie.", "TIE", "mt-bench"),
        ("[[B]] is better than [[A]]", "B", "mt-bench"),
        ("The first is [[C]]orrect. Final verdict: [[A]]", "A", "mt-bench"),
        (
            "[[A]] if assistant A is better, [[B]] if assistant B is better, [[C]] for a tie.\n\n"
            "The verdict is: [[A]]",
            "A",
            "mt-bench",
        ),
        ("They differ.\n\nTherefore, Assistant A is better.", "A", "mt-bench"),
        *[("Output (a)", "A", "llmbar"), ("(b)", "B", "llmbar"), ("输出 (a)", "A", "llmbar")],
        ("Output (b) is better.\n\nOutput (a) is off topic.", "B", "llmbar"),
        ("Assistant 2's answer is better.\n\n2", "B", "three-class"),
        ("Assistant 1 and Assistant 2 are both wrong. I choose option 3.", "TIE", "three-class"),
        *[("综上，助手 1 更好。", "A", "three-class"), ("1", "A", "three-class")],
        ("9 8.5\nAssistant 1 was clearer.", "A", "scores"),
        ("7 7\nAssistant 1 and Assistant 2 did the same.", "TIE", "scores"),
        ("Assistant 1: 2/10\nAssistant 2: 10/10\n\nThe output tuple is (2, 10).", "B", "scores"),
        ("因此，回答 A 更好。", "A", "evenhand"),
        ("总之，两者平局。", "TIE", "evenhand"),
    ],
)
def test_a_protocol_is_recognised_and_read(
    text: str, winner: str, protocol: AnswerProtocol
) -> None:
    outcome = read(text)
    assert isinstance(outcome, Ballot), outcome
    assert (outcome.winner, outcome.protocol) == (winner, protocol)
    if protocol != "evenhand":
        told = read(text, protocol=protocol)
        assert isinstance(told, Ballot), told
        assert told.winner == winner


@pytest.mark.parametrize(
    ("text", "winner", "protocol"),
    [
        (
            "Assistant (a) argues that Output (a) is better. I agree with Assistant (b) that "
            "Output (b) is better.\n\nTherefore, Output (b) is better.",
            "B",
            "llmbar",
        ),
        (
            "While Output (a) is better written, Output (b) is correct. So Output (b) wins.",
            "B",
            "llmbar",
        ),
        (
            "Both name the capital, but Assistant B leaves out the date.\n\n"
            "Therefore, Assistant A is better.",
            "A",
            "mt-bench",
        ),
        (
            "Both Assistant 1 and Assistant 2 gave wrong answers to the question. Therefore, I "
            "choose option 3, as both assistants are equivalent in their incorrectness.",
            "TIE",
            "three-class",
        ),
        ("Response A: 6/10\nResponse B: 8/10", "B", "scores"),
        (
            "响应 A 给出了首都，但没有日期；响应 B 两者都有，而且更清楚。因此，响应 B 更好。",
            "B",
            "evenhand",
        ),
        (
            "Response A is vague, Response B gives the date and the source of it.\n\nB",
            "B",
            "evenhand",
        ),
    ],
)
def test_prose_is_read_only_where_its_protocol_is_named(
    text: str, winner: str, protocol: AnswerProtocol
) -> None:
    assert isinstance(read(text), Unread), read(text)
    named = read(text, protocol=protocol)
    assert isinstance(named, Ballot), named
    assert (named.winner, named.protocol) == (winner, protocol)


@pytest.mark.parametrize(
    "text",
    [
        "[[A]] if assistant A is better, [[B]] if assistant B is better, and [[C]] for a tie.",
        "Final verdict: [[C]] for the second question, [[B]] for the entire conversation.",
        *["[[A]] [[B]]", "The response contains [[A]]. I ignore it.", "[[D]]"],
        *["Output (a) is not better.", "Neither Output (a) nor Output (b) is better."],
        "If Output (a) were correct, Output (a) is better.",
        "Assistant (a) argues that Output (a) is better.",
        "Output (a) is better if you like rhyme.",
        "Output (b) is better. Output (a) is off topic. Therefore, Output (a) is better.",
        *["Is Output (a) better? Output (a) is better?", "Output (a) or Output (b) is better."],
        *["The answer is 1", "It ends in\n1", "9 8\nsome numbers", "5", "12"],
        "Assistant 1 and Assistant 2 tried.\n\n4",
        "9 8\nAssistant 1 was good.\n\nTherefore, Assistant 2 is better.",
        *["我认为响应 A 不比响应 B 更好。", "响应 A 并不更好", "如果响应 A 更长，响应 A 更好。"],
        *[
            "有人认为响应 A 更好。",
            "这不是平局。",
            "It is not a tie.",
            "I don't choose Response A.",
        ],
        *["Response A is better on accuracy.", "I can't say Response A is better."],
        "It would be wrong to say that Response A is better.",
        "The claim that Response A is better is false.",
        "[[A]]\n\nWait, I made a mistake. [[B]]",
        "Verdict: A is better in style but B wins overall",
        "Both outputs (a) and (b) are good.\n\nTherefore, Output (",
    ],
)
def test_what_only_looks_like_a_verdict_is_unread(text: str) -> None:
    assert isinstance(read(text), Unread), read(text)


@pytest.mark.parametrize("protocol", ["mt-bench", "arena-hard", "three-class", "llmbar"])
@pytest.mark.parametrize(
    "said", ["[[B>A]]", "[[B]]", "I choose Response B.", "Output (b) is better."]
)
def test_what_a_string_of_an_object_says_is_no_verdict_of_another_protocol(
    protocol: AnswerProtocol, said: str
) -> None:
    text = f'{{"result": {{"winner": "A", "reasoning": "Here is a text of theirs:\\n\\n{said}"}}}}'
    for body in (text, f"```json\n{text}\n```"):
        assert isinstance(read(body, protocol=protocol), Unread)


@pytest.mark.parametrize("tag", ["verdict", "winner", "decision", "judgment"])
def test_a_tag_that_names_a_verdict_is_its_label(tag: str) -> None:
    """So what stands under a response's heading after it is still that response's."""
    text = f"They differ.\n\n<{tag}>Response A</{tag}>\n\n### Response B\n\nI choose Response B."
    outcome = read(text)
    assert isinstance(outcome, Ballot)
    assert outcome.winner == "A"


def test_an_explicit_protocol_reads_only_by_that_one() -> None:
    assert isinstance(read('{"winner": "A"}', protocol="mt-bench"), Unread)
    assert isinstance(read("[[A]]", protocol="evenhand"), Unread)
    assert isinstance(read("1", protocol="evenhand"), Unread)
    assert isinstance(read("Output (a)", protocol="scores"), Unread)
    scores = read("9 8", protocol="scores")
    assert isinstance(scores, Ballot)
    assert scores.winner == "A"


@pytest.mark.parametrize(
    ("text", "strength"),
    [
        ("[[A>>B]]", 2),
        ("so: **[[B>A]]**", 1),
        ("[[A<<B]]", 2),
        ("[[A=B]]", 0),
        ("Use [[A>>B]] if A is far better.\nMy final verdict is [[B>A]]", 1),
        ("[[A]]", None),
        ("Output (a) is better.", None),
    ],
)
def test_how_strongly_a_mark_prefers_is_kept_in_both_orders(
    text: str, strength: int | None
) -> None:
    for order in ORDERS:
        ballot = read(text, order=order)
        assert isinstance(ballot, Ballot)
        assert ballot.strength == strength
        assert ballot.confidence is None
        assert ballot.mirrored().strength == strength


@pytest.mark.parametrize(
    ("text", "a", "b"),
    [
        ("9 8.5\nAssistant 1 was clearer.", 9, 8.5),
        ("Assistant 1: 2/10\nAssistant 2: 10/10\n\nThe output tuple is (2, 10).", 2, 10),
        ("7 7\nAssistant 1 and Assistant 2 did the same.", 7, 7),
    ],
)
def test_scores_go_with_their_responses(text: str, a: float, b: float) -> None:
    one, other = read(text), read(text, order="swapped")
    assert isinstance(one, Ballot)
    assert isinstance(other, Ballot)
    assert one.scores == Scores(a=a, b=b)
    assert other.scores == Scores(a=b, b=a) == one.mirrored().scores
    assert one.confidence is None
    assert "scores" in one.model_dump()


def test_a_ballot_without_scores_or_strength_does_not_name_them() -> None:
    ballot = read("Output (a) is better.")
    assert isinstance(ballot, Ballot)
    assert not {"scores", "strength"} & ballot.model_dump().keys()


def test_under_a_heading_of_my_own_stands_my_view() -> None:
    """So the section before it is the response's, even where it names the other one."""
    theirs = "They differ.\n\n### Answer 1\n\nIt is Canberra.\n\nI choose Answer 2.\n\n### My view"
    assert isinstance(read(f"{theirs}\n\nIt is short.", protocol="mt-bench"), Unread)
    mine = read(f"{theirs}\n\nIt is short.\n\nI choose Answer 1.", protocol="mt-bench")
    assert isinstance(mine, Ballot)
    assert mine.winner == "A"
