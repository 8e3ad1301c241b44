"""Notes and reasons that the rooms below write in English, in the page's language.

`words/told.json` holds each sentence with its slots, and its Chinese. What is not there is shown
as it was written: a sentence in another language says more than none.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from evenhand.pages.wording import Language
from evenhand.report.sentences import in_chinese

_SLOT = re.compile(r"\\\{(\w+)\\\}")


class Told:
    def __init__(self, language: Language) -> None:
        self._sentences = () if language == "en" else _sentences()

    def __call__(self, said: str) -> str:
        for pattern, theirs in self._sentences:
            found = pattern.fullmatch(said)
            if found is not None:
                return theirs.format(**found.groupdict())
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
    return rf"(?P<{name}>{'[0-9][0-9,.]*' if name.startswith('n') else '.{1,300}?'})"
