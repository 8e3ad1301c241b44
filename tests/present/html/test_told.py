"""Sentences of the rooms below, told in the page's language."""

from __future__ import annotations

import re
from datetime import date

import pytest

from evenhand.messages import Message, chained
from evenhand.messages.phrases import name_pass
from evenhand.present.html.rendering import FigureFormat, PageTranslator, Wording
from evenhand.report.abstentions import LearnedFrom, contradiction
from evenhand.stats.calibration.guarantee import PromiseCheck
from evenhand.stats.clusters import not_enough
from evenhand.stats.estimates import EstimatedShare


@pytest.mark.parametrize(
    "unit", ["valid pair", "prompt", "inconsistent pair", "labelled verdict", "judged pair"]
)
def test_what_statistics_say_of_too_few_data_is_told_in_chinese(unit: str) -> None:
    for have in (0, 1, 5):
        told = PageTranslator("zh")(not_enough(have, unit, 6))
        assert told.startswith(f"数据不足：只有 {have} 个")
        assert told.endswith("至少需要 6 个")


def test_what_a_command_says_stays_as_it_is_elsewhere() -> None:
    said = Message("report.many_models", n=2, name="r")
    assert PageTranslator("en")(said) == said == "2 models took part; evenhand rank r ranks them"
    assert "evenhand rank r" in PageTranslator("zh")(said)
    assert "“Ranking”" in PageTranslator("en", on_pages=True)(said)


def test_what_limits_a_guarantee_and_a_rate_at_equal_length_is_told_in_chinese() -> None:
    check = PromiseCheck(promised=0.9, n=100, agreeing=68, p_value=1e-9, contradicted=True)
    when = date(2026, 1, 2)
    learned = LearnedFrom(run="r", data=("d.jsonl",), judged_at=when, labels=9, prompts=8)
    for sentence in (Message("stats.length_caution"), learned.sentence, *contradiction(check, "j")):
        told = PageTranslator("zh")(sentence)
        assert told != sentence
        assert not re.search("guarantee|length", told)


def test_what_is_not_known_is_shown_as_it_was_written() -> None:
    assert PageTranslator("zh")("something {else} entirely") == "something {else} entirely"


def test_names_in_a_sentence_stay_as_they_are() -> None:
    said = Message("report.position_bias", judge="{0} <b>")
    assert PageTranslator("zh")(said).startswith("{0} <b> ")


def test_sentences_inside_a_sentence_are_told_too() -> None:
    empty = Message("unread.not_read", reasons=[Message("unread.answer_empty")])
    passes = (("original", empty), ("swapped", Message("unread.not_made")))
    reason = chained(
        Message("unread.one_pass", which=name_pass("en", order), reason=why)
        for order, why in passes
    )
    said = Message("unread.no_valid_verdict", reason=reason)
    assert said == (
        "no valid verdict: First pass: unreadable (the answer is empty); Second pass: "
        "not judged, and half a comparison decides nothing"
    )
    told = PageTranslator("zh")(said)
    assert not re.search("[a-z]{3}", told)


def test_what_stays_in_english_says_so() -> None:
    assert PageTranslator("zh").shown("<b>") == '<bdi lang="en">&lt;b&gt;</bdi>'
    assert PageTranslator("en").shown("<b>") == "<bdi>&lt;b&gt;</bdi>"
    assert PageTranslator("zh").shown(Message("unread.answer_empty")) == "<bdi>回答为空</bdi>"


def test_figure_that_cannot_be_had_says_why() -> None:
    reason = not_enough(2, "prompt", 5)
    share = EstimatedShare(value=None, low=None, high=None, part=1, of=2, reason=reason)
    assert reason in FigureFormat(Wording("en")).share(None, share)
    assert "数据不足" in FigureFormat(Wording("zh")).share(None, share)


def test_a_row_without_a_figure_says_briefly_why() -> None:
    few = EstimatedShare(
        part=0, of=1, value=None, low=None, high=None, reason=not_enough(1, "valid pair", 6)
    )
    told = [FigureFormat(Wording(language)).missing(few).striptags() for language in ("en", "zh")]
    assert told == ["— 1 valid pair, 6 needed", "— 1 个有效样本对，至少需 6 个"]
