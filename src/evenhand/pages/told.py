"""Notes and reasons that the rooms below write in English, in the page's language.

`words/told.json` holds each sentence with its slots, and its Chinese; a slot `said` is a sentence
of its own. What is not there is shown as it was written: a sentence in another language says more
than none.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from markupsafe import Markup

from evenhand.pages.wording import Language
from evenhand.report.sentences import in_chinese

_SLOT = re.compile(r"\\\{(\w+)\\\}")


class Told:
    def __init__(self, language: Language) -> None:
        self._sentences = () if language == "en" else _sentences()

    def shown(self, said: str) -> Markup:
        """In a box of its own; what stays in English on a page that is not says so."""
        told = self(said)
        other = Markup(' lang="en"') if self._sentences and told == said else ""
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
        return in_chinese(said) if self._sentences else said


@cache
def _sentences() -> tuple[tuple[re.Pattern[str], str], ...]:
    text = files("evenhand.pages").joinpath("words", "told.json").read_text("utf-8")
    return tuple((_pattern(ours), theirs) for ours, theirs in json.loads(text).items())


def _pattern(sentence: str) -> re.Pattern[str]:
    """Slots that are numbers take digits, so that no sentence is taken for another."""
    return re.compile(_SLOT.sub(_slot, re.escape(sentence)), re.DOTALL)


def _slot(found: re.Match[str]) -> str:
    name = found[1]
    if re.fullmatch(r"n\d*", name):
        return rf"(?P<{name}>[0-9][0-9,.]*)"
    longest = 4000 if name.startswith("said") else 300
    return rf"(?P<{name}>.{{1,{longest}}}?)"
