"""Sentences of the rooms below, told in the page's language."""

from __future__ import annotations

import json
import re
from datetime import date
from importlib.resources import files

import pytest

from evenhand.messages import Message
from evenhand.report.abstentions import LearnedFrom, contradiction
from evenhand.serve.pages.rendering import FigureFormat, Language, PageTranslator, Wording
from evenhand.stats.calibration.guarantee import PromiseCheck
from evenhand.stats.clusters import not_enough
from evenhand.stats.estimates import EstimatedShare

SENTENCES: dict[str, str] = json.loads(
    files("evenhand.serve.pages").joinpath("words", "told.json").read_text("utf-8")
)
ON_PAGES: dict[str, dict[str, str]] = json.loads(
    files("evenhand.serve.pages").joinpath("words", "on_pages.json").read_text("utf-8")
)
_SLOT = re.compile(r"\{(\w+)\}")


def filled(sentence: str) -> str:
    return _SLOT.sub(lambda slot: "12" if slot[1].startswith("n") else "A", sentence)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_sentence_is_found_again(sentence: str) -> None:
    told = PageTranslator("zh")(filled(sentence))
    assert re.search(r"[\u4e00-\u9fff]", told)
    assert set(_SLOT.findall(SENTENCES[sentence])) <= set(_SLOT.findall(sentence))


@pytest.mark.parametrize(
    "unit", ["valid pair", "prompt", "inconsistent pair", "labelled verdict", "judged pair"]
)
def test_what_statistics_say_of_too_few_data_is_told_in_chinese(unit: str) -> None:
    for have in (0, 1, 5):
        told = PageTranslator("zh")(not_enough(have, unit, 6))
        assert told.startswith(f"数据不足：只有 {have} 个")
        assert told.endswith("至少需要 6 个。")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("sentence", ON_PAGES)
def test_a_page_speaks_of_no_command_and_no_option(sentence: str, language: Language) -> None:
    told = PageTranslator(language, on_pages=True)(filled(sentence))
    assert told == filled(ON_PAGES[sentence][language])
    assert not re.search(r"(?<!\w)--?[a-z]|evenhand |max-|maxC|badRows|=COLUMN", told)
    assert set(_SLOT.findall(ON_PAGES[sentence][language])) <= set(_SLOT.findall(sentence))


def test_what_a_command_says_stays_as_it_is_elsewhere() -> None:
    said = "2 models met; evenhand rank r ranks them"
    assert PageTranslator("en")(said) == said
    assert "evenhand rank r" in PageTranslator("zh")(said)
    assert "“Ranking”" in PageTranslator("en", on_pages=True)(said)


def test_in_english_nothing_changes() -> None:
    assert all(PageTranslator("en")(sentence) == sentence for sentence in SENTENCES)


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
    said = "{0} <b> favours a place; its inconsistent verdicts count as half"
    assert PageTranslator("zh")(said).startswith("{0} <b> ")


def test_sentences_inside_a_sentence_are_told_too() -> None:
    said = (
        "no valid verdict: First pass: could not be read, the answer is empty; "
        "Second pass: not made, and half a comparison decides nothing"
    )
    told = PageTranslator("zh")(said)
    assert not re.search("[a-z]{3}", told)


def test_what_stays_in_english_says_so() -> None:
    assert PageTranslator("zh").shown("<b>") == '<bdi lang="en">&lt;b&gt;</bdi>'
    assert PageTranslator("en").shown("<b>") == "<bdi>&lt;b&gt;</bdi>"
    assert PageTranslator("zh").shown("the answer is empty") == "<bdi>回答为空</bdi>"


def test_figure_that_cannot_be_had_says_why() -> None:
    reason = not_enough(2, "prompt", 5)
    share = EstimatedShare(value=None, low=None, high=None, part=1, of=2, reason=reason)
    assert reason in FigureFormat(Wording("en")).share(None, share)
    assert "数据不足" in FigureFormat(Wording("zh")).share(None, share)
