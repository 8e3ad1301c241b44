"""The small texts that fill a template's slots, in each language."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from evenhand.contract import Locale, Mode


@dataclass(frozen=True, slots=True)
class Words:
    source: str
    fence: dict[str, str]
    names: dict[str, str]
    by_mode: dict[Mode, dict[str, str]]
    repair: str
    complaints: dict[str, str]


@cache
def words_for(locale: Locale) -> Words:
    source = files("evenhand.prompts").joinpath(locale, "words.toml").read_text("utf-8")
    table = tomllib.loads(source)
    return Words(
        source=source,
        fence=table["fence"],
        names=table["names"],
        by_mode={"reasoned": table["reasoned"], "letter": table["letter"]},
        repair=table["repair"]["request"],
        complaints=table["complaints"],
    )
