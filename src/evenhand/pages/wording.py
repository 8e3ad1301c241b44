"""Every text that a page shows, in both languages, from the files in `words/`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from markupsafe import Markup, escape

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Wording:
    """`say("runs.title")`; a text with a number takes `n`, and its other form where n is 1.

    What is filled in is escaped: names and texts come from outside.
    """

    def __init__(self, language: Language) -> None:
        self.language: Language = language
        self._words = words(language)

    def __call__(self, key: str, **values: Any) -> Markup:
        said = self._words[key]
        if values.get("n") == 1:
            said = self._words.get(f"{key}.one", said)
        told = {
            name: f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
            for name, value in values.items()
        }
        return escape(said).format(**told) if told else escape(said)

    def knows(self, key: str) -> bool:
        return key in self._words


@cache
def words(language: Language) -> Mapping[str, str]:
    """Nested in the file, flat by dots here."""
    text = files("evenhand.pages").joinpath("words", f"{language}.json").read_text("utf-8")
    return dict(_flat(json.loads(text), ""))


def _flat(node: Mapping[str, Any], before: str) -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for name, value in node.items():
        key = f"{before}{name}"
        flat += _flat(value, f"{key}.") if isinstance(value, dict) else [(key, value)]
    return flat


def preferred(accepted: str) -> Language:
    """The first of ours in an Accept-Language header; English where there is none."""
    best: tuple[float, Language] = (0.0, "en")
    for entry in accepted.split(",")[:20]:
        tag, _, rest = entry.partition(";")
        quality = _quality(rest)
        spoken = tag.strip().lower().split("-")[0]
        for language in LANGUAGES:
            if spoken == language and quality > best[0]:
                best = (quality, language)
    return best[1]


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
