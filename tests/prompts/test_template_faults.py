"""Whatever a user's template does wrong is a TemplateError of one line."""

from __future__ import annotations

import pytest

from evenhand.contract import read_pair
from evenhand.errors import TemplateError
from evenhand.prompts import Prompt, make_template

SLOTS = "{{ prompt }}\n{{ criteria }}\n{{ response_a }}\n{{ response_b }}\n"
PAIR = read_pair({"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["tone"]})


@pytest.mark.parametrize(
    "fault",
    [
        "{{ prompt|truncate(0) }}",  # AssertionError
        "{{ cycler() }}",  # RuntimeError
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",  # RecursionError
    ],
)
def test_jinja_that_fails_while_rendering_is_a_template_error(fault: str) -> None:
    template = make_template(SLOTS + fault, name="t.j2", locale="en", mode="reasoned")
    with pytest.raises(TemplateError, match=r"failed to render: .*; correct the template$") as got:
        Prompt.of(PAIR, template).messages("original")
    assert "\n" not in got.value.message


def test_jinja_that_is_not_valid_names_the_line_and_the_remedy() -> None:
    with pytest.raises(TemplateError, match=r"at line 5: .*; correct the template$"):
        make_template(SLOTS + "{% if %}", name="t.j2", locale="en", mode="reasoned")


@pytest.mark.parametrize("file", ["t", "t.j2"])
@pytest.mark.parametrize("line", ["=== assistant ===", "===System===", "=== 用户 ==="])
def test_section_that_is_unknown_is_named_and_not_taken_for_text(line: str, file: str) -> None:
    name = line.strip("= ")
    for source in (SLOTS + line, f"=== user ===\n{SLOTS}{line}\nmore"):
        with pytest.raises(TemplateError, match=f"section === {name} ==="):
            make_template(source, name=file, locale="en", mode="reasoned")


def test_line_that_only_resembles_a_section_stays_text() -> None:
    source = SLOTS + "=== two words ===\n== user ==\n=== a === b"
    template = make_template(source, name="t", locale="en", mode="reasoned")
    (message,) = Prompt.of(PAIR, template).messages("original")
    assert message.text.endswith("=== two words ===\n== user ==\n=== a === b")
