"""Notes and reasons that the rooms below write in English, in the page's language.

`words/told.json` holds each sentence with its slots, and its Chinese; a slot `said` is a sentence
of its own. What is not there is shown as it was written: a sentence in another language says more
than none. `words/on_pages.json` holds those that speak of commands and options, as a page says
them, where there are fields, links and an operator instead.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from evenhand.pages.wording import Language
from evenhand.report.sentences import in_chinese

_SLOT = re.compile(r"\\\{(\w+)\\\}")


class Told:
    """`on_pages`: for whoever has a server's pages before them, and no command line."""

    def __init__(self, language: Language, *, on_pages: bool = False) -> None:
        self._translates = language != "en"
        self._sentences = (*_on_pages(language),) if on_pages else ()
        if self._translates:
            self._sentences += _sentences()

    def shown(self, said: str) -> Markup:
        """In a box of its own; what stays in English on a page that is not says so."""
        told = self(said)
        other = Markup(' lang="en"') if self._translates and told == said else ""
        return Markup("<bdi{}>{}</bdi>").format(other, told)

    def __call__(self, said: str) -> str:
        for pattern, theirs in self._sentences:
            found = pattern.fullmatch(said)
            if found is not None:
                slots = {
                    name: self(part) if name.startswith("said") else part
                    for name, part in found.groupdict().items()
                }
                return theirs.format(**slots)
        return in_chinese(said) if self._translates else said


Sentences = tuple[tuple[re.Pattern[str], str], ...]


@cache
def _sentences() -> Sentences:
    return tuple((_pattern(ours), theirs) for ours, theirs in _read("told.json").items())


@cache
def _on_pages(language: Language) -> Sentences:
    return tuple((_pattern(ours), told[language]) for ours, told in _read("on_pages.json").items())


def _read(name: str) -> Any:
    return json.loads(files("evenhand.pages").joinpath("words", name).read_text("utf-8"))


def _pattern(sentence: str) -> re.Pattern[str]:
    """Slots that are numbers take digits, so that no sentence is taken for another."""
    return re.compile(_SLOT.sub(_slot, re.escape(sentence)), re.DOTALL)


def _slot(found: re.Match[str]) -> str:
    name = found[1]
    if re.fullmatch(r"n\d*", name):
        return rf"(?P<{name}>[0-9][0-9,.]*)"
    longest = 4000 if name.startswith("said") else 300
    return rf"(?P<{name}>.{{1,{longest}}}?)"
