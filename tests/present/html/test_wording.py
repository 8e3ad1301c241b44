"""What templates say is in the catalogue, and what is filled in cannot become HTML."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from evenhand.messages import catalogue
from evenhand.present.html.rendering import LANGUAGES, Wording, preferred

# A template's own words would be in one language; signs are in both.
_BARE_WORD = re.compile(r"[^\W\d_]{2,}")
_NOT_TEXT = re.compile(r"\{[{%#].*?[}%#]\}|<!--.*?-->|<[^>]*>", re.DOTALL)


TEMPLATES = [
    template
    for package in ("evenhand.serve.pages", "evenhand.present.html")
    for template in files(package).joinpath("templates").iterdir()
]


def test_templates_hold_no_words_of_their_own() -> None:
    for template in TEMPLATES:
        text = _NOT_TEXT.sub(" ", template.read_text("utf-8"))
        assert _BARE_WORD.findall(text) == [], template.name


def test_every_text_that_a_template_says_is_known() -> None:
    said = re.compile(r"""say\(["']([\w.]+)["'](?! *~)""")
    for template in TEMPLATES:
        for key in said.findall(template.read_text("utf-8")):
            assert key in catalogue("en", "label"), f"{template.name}: {key}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_filled_in_is_escaped(language: str) -> None:
    say = Wording("zh" if language == "zh" else "en")
    assert "<b>" not in say("figure.between", low="<b>", high="x")


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,zh;q=0.9", "en"),
        ("fr,zh;q=0.3,en;q=0.2", "zh"),
        ("zh;q=0, en;q=0.1", "en"),
        ("zh;q=nonsense", "en"),
        (";;,,q=;" * 1000, "en"),
    ],
)
def test_the_language_is_the_one_preferred_of_ours(accepted: str, language: str) -> None:
    assert preferred(accepted) == language
