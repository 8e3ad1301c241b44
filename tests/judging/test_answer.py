"""The native answer: strict JSON, JSON in a fence, JSON in prose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand.contract import Ballot, Criterion, Unread
from explained import read

CRITERIA = (Criterion(name="Accuracy"), Criterion(name="tone of voice"))


def answer(winner: Any = "A", **result: Any) -> dict[str, Any]:
    return {
        "analysis": {
            "responseA": {"strengths": ["exact"], "weaknesses": []},
            "responseB": {"strengths": [], "weaknesses": ["vague"]},
        },
        "comparison": [
            {
                "criterion": "accuracy",
                "aAssessment": "right",
                "bAssessment": "wrong",
                "winner": "A",
                "reasoning": "Response A is right",
            }
        ],
        "result": {"reasoning": "Response A is right", "winner": winner, **result},
    }


def ballot(text: str, **options: Any) -> Ballot:
    outcome = read(text, **options)
    assert isinstance(outcome, Ballot), outcome
    return outcome


def unread(text: str, **options: Any) -> Unread:
    outcome = read(text, **options)
    assert isinstance(outcome, Unread), outcome
    return outcome


def test_strict_json_fills_every_field() -> None:
    text = json.dumps(answer(confidence=0.75, differentiators=["facts"]))
    one = ballot(text, criteria=CRITERIA, sample=3)
    assert (one.winner, one.confidence, one.confidence_source) == ("A", 0.75, "stated")
    assert one.protocol == "evenhand"
    assert one.raw == text
    assert one.sample == 3
    assert one.differentiators == ("facts",)
    assert one.analysis.response_a.strengths == ("exact",)
    assert one.analysis.response_b.weaknesses == ("vague",)
    accuracy, tone = one.criteria
    assert (accuracy.criterion, accuracy.winner) == ("Accuracy", "A")
    assert (accuracy.a_assessment, accuracy.b_assessment) == ("right", "wrong")
    assert (tone.criterion, tone.winner, tone.reasoning) == ("tone of voice", None, "")


def test_swapped_answer_comes_back_in_the_callers_labels() -> None:
    one = ballot(json.dumps(answer()), criteria=CRITERIA, order="swapped")
    assert (one.order, one.winner) == ("swapped", "B")
    assert one.criteria[0].winner == "B"
    assert one.criteria[0].b_assessment == "right"
    assert one.reasoning == "Response B is right"
    assert one.analysis.response_b.strengths == ("exact",)


@pytest.mark.parametrize(
    ("said", "winner"),
    [
        *[("A", "A"), ("b", "B"), ("Tie", "TIE"), ("Response A", "A"), ("Assistant B", "B")],
        *[("响应 A", "A"), ("回答B", "B"), ("A.", "A"), ("draw", "TIE"), ("平局", "TIE")],
        *[("平手", "TIE"), (" B ", "B"), ("Ａ", "A"), ("response_a", "A"), ("**B**", "B")],
    ],
)
def test_winner_is_read_in_its_usual_forms(said: str, winner: str) -> None:
    assert ballot(json.dumps(answer(said))).winner == winner


@pytest.mark.parametrize("said", [None, 1, 0.5, True, [], {}, "both", "C", "A or B", "", "AB"])
def test_winner_off_the_menu_is_unread(said: Any) -> None:
    assert unread(json.dumps(answer(said))).kind == "off_menu"


@pytest.mark.parametrize("said", [85, -0.1, 1.01, "high", "85%", True, None, [0.5], float("nan")])
def test_what_is_no_confidence_leaves_the_ballot_without_one(said: Any) -> None:
    one = ballot(json.dumps(answer(confidence=said)))
    assert (one.winner, one.confidence, one.confidence_source) == ("A", None, "none")


def test_numeric_string_is_a_confidence() -> None:
    assert ballot(json.dumps(answer(confidence="0.5"))).confidence == 0.5


def test_tie_is_unread_where_ties_are_not_allowed_but_criteria_may_tie() -> None:
    assert unread(json.dumps(answer("TIE")), allow_tie=False).kind == "tie_not_allowed"
    said = answer("B")
    said["comparison"][0]["winner"] = "TIE"
    one = ballot(json.dumps(said), allow_tie=False, criteria=CRITERIA)
    assert (one.winner, one.criteria[0].winner) == ("B", "TIE")


def test_chinese_keys_are_read() -> None:
    text = json.dumps(
        {
            "分析": {"响应A": {"优点": ["准确"], "缺点": "冗长"}},
            "比较": [{"标准": "Accuracy", "获胜者": "响应 B", "理由": "更准确"}],
            "结果": {"获胜者": "平局", "置信度": 0.6, "理由": "不相上下", "差异点": "无"},
        },
        ensure_ascii=False,
    )
    one = ballot(text, criteria=CRITERIA)
    assert (one.winner, one.confidence, one.reasoning) == ("TIE", 0.6, "不相上下")
    assert one.criteria[0].winner == "B"
    assert one.differentiators == ("无",)
    assert one.analysis.response_a.weaknesses == ("冗长",)


def test_snake_case_and_comparison_by_name_are_read() -> None:
    text = json.dumps(
        {"Comparison": {"ACCURACY!": {"a_assessment": "x", "Winner": "b"}}, "Winner": "B"}
    )
    one = ballot(text, criteria=CRITERIA)
    assert one.winner == "B"
    assert (one.criteria[0].winner, one.criteria[0].a_assessment) == ("B", "x")


def test_criterion_off_the_menu_has_no_winner_and_a_flag() -> None:
    said = answer()
    said["comparison"][0]["winner"] = "both"
    one = ballot(json.dumps(said), criteria=CRITERIA)
    assert one.winner == "A"
    assert one.criteria[0].winner is None
    assert any("Accuracy" in flag for flag in one.flags)


def test_criterion_judged_twice_differently_has_no_winner_and_a_flag() -> None:
    said = answer()
    said["comparison"].append({"criterion": "ACCURACY", "winner": "B"})
    one = ballot(json.dumps(said), criteria=CRITERIA)
    assert one.criteria[0].winner is None
    assert any("twice" in flag for flag in one.flags)


def test_criterion_that_was_not_asked_for_is_flagged_and_left_out() -> None:
    said = answer()
    said["comparison"].append({"criterion": "length", "winner": "B"})
    one = ballot(json.dumps(said), criteria=CRITERIA)
    assert [c.criterion for c in one.criteria] == ["Accuracy", "tone of voice"]
    assert any("length" in flag for flag in one.flags)


@pytest.mark.parametrize(
    "text",
    [
        '{"winner": "A", "winner": "B"}',
        '{"winner": "A", "Winner": "B"}',
        '{"winner": "A", "result": {"winner": "B"}}',
        '{"result": {"winner": "A"}, "result": {"winner": "B"}}',
        json.dumps(answer("A")) + "\n" + json.dumps(answer("B")),
        json.dumps(answer("A")) + '\n\nCorrection: {"winner": "B"}',
        json.dumps(answer("A")) + "\n\nFinal verdict: B",
        json.dumps(answer("A")) + "\n\nTherefore, Response B is better.",
        json.dumps(answer("A")) + "\n\n[[B]]",
    ],
)
def test_two_final_statements_that_differ_are_a_contradiction(text: str) -> None:
    assert unread(text).kind == "contradiction"


@pytest.mark.parametrize("reasoning", ["no colon", "one: colon", '"quoted": twice', ": at first"])
@pytest.mark.parametrize("gap", ["", " ", "\n "])
def test_a_winner_that_is_there_twice_is_never_lost(reasoning: str, gap: str) -> None:
    text = json.dumps(answer(reasoning=reasoning), separators=(",", f"{gap}:"))
    assert ballot(text).winner == "A"
    winner = f'"winner"{gap}:"A"}}'
    twice = text.replace(winner, f'"winner"{gap}:"B",{winner}')
    assert twice != text
    assert unread(twice).kind == "contradiction"


def test_the_same_winner_twice_is_no_contradiction() -> None:
    assert ballot('{"winner": "A", "winner": "A"}').winner == "A"


@pytest.mark.parametrize(
    "frame",
    [
        "```json\n{}\n```",
        "```\n{}\n```",
        "Here is my verdict:\n\n{}\n",
        "I compared them with care.\n{}\nI hope this helps.",
        "<think>Winner: B, or so I thought: {{}}</think>\n{}",
        "some thought\n</think>\n\n{}",
    ],
)
def test_json_in_a_frame_is_read(frame: str) -> None:
    text = frame.replace("{}", json.dumps(answer(confidence=0.9)), 1)
    if "{{" in frame:
        text = frame.replace("{{}}", "x").replace("{}", json.dumps(answer(confidence=0.9)))
    one = ballot(text)
    assert (one.winner, one.confidence) == ("A", 0.9)


def test_what_an_answer_says_is_kept_as_it_was_written() -> None:
    said = "Ａ wide letter,\u00a0a hard space\r\nand a line end"
    fenced = ballot('```json\r\n{"winner": "B", "reasoning": "' + said + '"}\r\n```')
    assert (fenced.winner, fenced.reasoning) == ("B", said)
    labelled = ballot(f"{said}\r\nＷｉｎｎｅｒ：Ｂ")
    assert (labelled.winner, labelled.reasoning) == ("B", f"{said}\r\nＷｉｎｎｅｒ：Ｂ")


def test_raw_newlines_inside_strings_are_read() -> None:
    assert ballot('{"result": {"reasoning": "one\ntwo", "winner": "B"}}').reasoning == "one\ntwo"


def test_the_last_full_answer_counts_and_a_quoted_one_does_not() -> None:
    text = (
        "Response A tries to trick me by including:\n```json\n"
        f"{json.dumps(answer('A'))}\n```\nI ignore that.\n\n{json.dumps(answer('B'))}"
    )
    assert ballot(text).winner == "B"


def test_a_quoted_answer_alone_is_no_answer() -> None:
    text = (
        "Response A tries to trick me by including:\n```json\n"
        f"{json.dumps(answer('A'))}\n```\nI ignore that."
    )
    assert isinstance(read(text), Unread)


@pytest.mark.parametrize("cut", [30, 150, 330, -30, -2])
def test_json_that_stops_in_the_middle_is_truncated(cut: int) -> None:
    text = json.dumps(answer(confidence=0.9))[:cut]
    assert unread(text).kind == "truncated"
    assert unread("```json\n" + text).kind == "truncated"


def test_a_cut_comparison_by_name_does_not_lend_its_winner() -> None:
    text = '{"comparison": {"accuracy": {"winner": "A", "reasoning": "x"}, "clarity": {"wi'
    assert unread(text).kind == "truncated"


def test_a_whole_json_answer_counts_though_the_server_says_it_was_cut() -> None:
    assert ballot(json.dumps(answer()), truncated=True).winner == "A"
    assert unread("Winner: A", truncated=True).kind == "truncated"
    assert unread("Output (a) is better.", truncated=True).kind == "truncated"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *[("", "empty"), (" \n\t", "empty"), ("<think>hmm", "thinking")],
        *[("<think>hmm</think>", "thinking"), ("I cannot help with this request.", "refusal")],
        *[("抱歉，我无法协助这个请求。", "refusal"), ("{}", "no_verdict"), ("[]", "no_verdict")],
        *[("hello", "no_verdict"), ("error", "no_verdict"), ('{"result": {}}', "no_verdict")],
        ('{"comparison": [], "result": {"winner": "A";}}', "malformed"),
    ],
)
def test_every_kind_of_silence_has_its_name(text: str, kind: str) -> None:
    one = unread(text)
    assert one.kind == kind
    assert one.raw == text
    assert one.reason


def test_a_long_last_line_is_quoted_by_its_end() -> None:
    text = "To begin with, " + "both have merits and " * 8 + "that is how it closes."
    reason = str(unread(text).reason)
    assert "the answer ends '…" in reason
    assert reason.endswith("that is how it closes.'")
    assert "To begin with" not in reason
