"""The texts that probes are made of, which we wrote, as they lie in `texts/`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from evenhand.contract import Criterion, Locale, read_criteria

_BETWEEN_SENTENCES: dict[Locale, str] = {"en": " ", "zh": ""}


@dataclass(frozen=True, slots=True)
class Question:
    """An everyday prompt with a good answer, sentence by sentence, and a poor one.

    `ordered`: the answer makes no sense in another order. `keys` are phrases of the answer that
    markdown would set in bold; `wordy` says just what the answer says, in far more words.
    """

    id: str
    prompt: str
    sentences: tuple[str, ...]
    poor: str
    language: Locale
    ordered: bool = False
    keys: tuple[str, ...] = ()
    wordy: str | None = None

    @property
    def answer(self) -> str:
        return join(self.sentences, self.language)


@dataclass(frozen=True, slots=True)
class NamedText:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Padding:
    """Sentences that say nothing, by where they stand."""

    before: tuple[str, ...]
    middle: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Texts:
    """All of one language; the questions of both languages are the same, in the same order."""

    language: Locale
    questions: tuple[Question, ...]
    injections: tuple[NamedText, ...]
    flatteries: tuple[NamedText, ...]
    refusals: tuple[NamedText, ...]
    padding: Padding
    criteria: tuple[Criterion, ...]


def join(sentences: tuple[str, ...], language: Locale) -> str:
    return _BETWEEN_SENTENCES[language].join(sentences)


@cache
def probe_texts(language: Locale) -> Texts:
    padding = list(_rows(language, "padding"))
    return Texts(
        language=language,
        questions=tuple(_question(row, language) for row in _rows(language, "questions")),
        injections=_named(language, "injections"),
        flatteries=_named(language, "flatteries"),
        refusals=_named(language, "refusals"),
        padding=Padding(
            *(
                tuple(row["text"] for row in padding if row["place"] == place)
                for place in ("before", "middle", "after")
            )
        ),
        criteria=read_criteria(list(_rows(language, "criteria"))),
    )


def _question(row: dict[str, Any], language: Locale) -> Question:
    return Question(
        id=row["id"],
        prompt=row["prompt"],
        sentences=tuple(row["answer"]),
        poor=row["poor"],
        language=language,
        ordered=row.get("ordered", False),
        keys=tuple(row.get("keys", ())),
        wordy=row.get("wordy"),
    )


def _named(language: Locale, name: str) -> tuple[NamedText, ...]:
    return tuple(NamedText(row["id"], row["text"]) for row in _rows(language, name))


def _rows(language: Locale, name: str) -> Iterator[dict[str, Any]]:
    held = files("evenhand.trust.probes").joinpath("texts", language, f"{name}.jsonl")
    # Not by splitlines, which also splits at characters that a text may hold.
    for line in held.read_text("utf-8").split("\n"):
        if line:
            yield json.loads(line)
