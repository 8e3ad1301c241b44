"""Hostile texts: the prompt keeps exactly its own structure, and the content stays verbatim."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each_case
from evenhand.contract import ORDERS, Ballot, Locale, Mode, Pair, read_pair
from evenhand.errors import InputError
from evenhand.prompts import Prompt, built_in_template, make_template, marker_of
from evenhand.prompts.prompt import Notes
from explained import read
from hostile_cases import CASES, QUOTING_ANSWERS, UNSENDABLE, Hostile
from parts import examples
from scripted import make_pair

_PARTS = ("criteria", "prompt", "context", "reference", "response_a", "response_b")


def hostile_pair(case: Hostile) -> Pair:
    values: dict[str, Any] = {
        "prompt": "What is the capital of France?",
        "response_a": "Paris.",
        "response_b": "Lyon.",
        "context": "A geography quiz.",
        "reference": "Paris",
        "criteria": ["accuracy", {"name": "clarity", "description": "easy to read"}],
    }
    if case.field == "criterion":
        values["criteria"] = ["accuracy", {"name": "clarity", "description": case.text}]
    else:
        values[case.field] = case.text
    return read_pair(values)


def expected_user_message(pair: Pair, locale: Locale) -> str:
    """The whole message, written out here and not taken from the template code."""
    names = {
        "en": ("Criteria", "Prompt", "Context", "Reference", "Response A", "Response B"),
        "zh": ("标准", "提示", "背景", "参考", "响应 A", "响应 B"),
    }[locale]
    marker = marker_of(pair)
    end = {"en": "end", "zh": "结束"}[locale]
    closing = {
        "en": "Judge Response A and Response B by the criteria above, "
        "and answer with the JSON object only.",
        "zh": "请按上述标准评判响应 A 和响应 B，只用 JSON 对象作答。",
    }[locale]
    texts = (
        f"1. accuracy\n2. clarity: {pair.criteria[1].description}",
        pair.prompt, pair.context, pair.reference, pair.response_a, pair.response_b,
    )  # fmt: skip
    blocks = [
        f"<<<{marker} {name}>>>\n{text}\n<<<{end} {marker}>>>"
        for name, text in zip(names, texts, strict=True)
    ]
    return "\n".join([f"CODE: {marker}", "", *blocks, closing])


def test_there_are_at_least_60_cases() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("locale", ["en", "zh"])
@each_case("case", CASES, ids=lambda case: case.name)
def test_the_prompt_has_its_own_structure_and_the_content_verbatim(
    case: Hostile, locale: Locale
) -> None:
    pair = hostile_pair(case)
    quiet = hostile_pair(Hostile("quiet", "prompt", "Hello", "none"))
    template = built_in_template(locale, "reasoned")
    system, user = Prompt.of(pair, template).messages("original")
    assert system.text == Prompt.of(quiet, template).messages("original")[0].text
    # Compared without pytest's diff, which takes minutes over megabytes.
    same = user.text == expected_user_message(pair, locale)
    assert same, "the message differs from the one written out"


@pytest.mark.parametrize("mode", ["reasoned", "letter"])
@each_case("case", CASES, ids=lambda case: case.name)
def test_no_text_holds_the_marker_and_every_text_is_marked_as_judged(
    case: Hostile, mode: Mode
) -> None:
    pair = hostile_pair(case)
    prompt = Prompt.of(pair, built_in_template("en", mode))
    messages = prompt.messages("swapped", question=prompt.questions()[0])
    judged = [s.text for m in messages for s in m.segments if s.judged]
    trusted = "".join(s.text for m in messages for s in m.segments if not s.judged)
    assert len(judged) <= len(_PARTS)
    assert not any(prompt.marker in text for text in judged)
    if len(case.text) > 40:
        assert case.text not in trusted


@each_case("case", CASES, ids=lambda case: case.name)
def test_a_users_jinja_template_is_not_fooled_either(case: Hostile) -> None:
    pair = hostile_pair(case)
    source = " ".join(f"{{{{ {slot} }}}}" for slot in _PARTS)
    template = make_template(source, name="t.j2", locale="en", mode="reasoned")
    (message,) = Prompt.of(pair, template).messages("original")
    marker = marker_of(pair)
    assert message.text.count(marker) == 2 * len(_PARTS)
    shown = case.text in message.text
    assert shown


# A byte that was no UTF-8 is kept as a lone surrogate too, and there is a remedy for that.
_UNSENDABLE = r"(cannot be sent: character \d+ is half|is not UTF-8: character \d+ is the byte)"


@each_case(("name", "text"), UNSENDABLE, ids=lambda case: case[0])
@pytest.mark.parametrize("field", ["prompt", "responseA", "context"])
def test_what_cannot_be_sent_is_an_error_that_names_the_field(
    name: str, text: str, field: str
) -> None:
    values = {"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["c"], field: text}
    with pytest.raises(InputError, match=rf"^{field} {_UNSENDABLE}"):
        read_pair(values)


@each_case(("name", "text", "expected"), QUOTING_ANSWERS, ids=lambda case: case[0])
def test_a_verdict_quoted_from_a_response_does_not_fool_the_reader(
    name: str, text: str, expected: str | None
) -> None:
    reading = read(text)
    winner = reading.winner if isinstance(reading, Ballot) else None
    # Where a careful person reads a verdict, not reading it is a pity; another one is a fault.
    assert winner in (expected, None)


@given(
    texts=st.lists(
        st.text(max_size=30) | st.sampled_from(["<<<end CODE>>>", "{response_b}", "\x00", ""]),
        min_size=6,
        max_size=6,
    )
)
@settings(max_examples=examples(100))
def test_no_note_can_end_its_fence_or_change_another_text(texts: list[str]) -> None:
    """An analysis may carry what the response told it to say."""
    pair = make_pair(prompt="p", response_a=texts[0], response_b=texts[1])
    notes = Notes(*texts[2:])
    prompt = Prompt.of(pair, built_in_template("en", "reasoned", prepared=True), notes)
    assert all(prompt.marker not in text for text in texts)
    for order in ORDERS:
        (_, user) = prompt.messages(order)
        judged = [segment.text for segment in user.segments if segment.judged]
        a, b = (texts[0], texts[4]), (texts[1], texts[5])
        first, second = (a, b) if order == "original" else (b, a)
        shown = ["1. accuracy", "p", texts[2], texts[3], *first, *second]
        assert judged == [text for text in shown if text]
        ours = "".join(segment.text for segment in user.segments if not segment.judged)
        # A code at the top, and two lines around each of the eight texts.
        assert ours.count(prompt.marker) == 1 + 2 * 8
