"""The texts that probes are made of, from `texts/`, and what is done to a good answer: cut,
shuffled, padded, formatted, injected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from evenhand.contract import Criterion, Locale, read_criteria

_BETWEEN_SENTENCES: dict[Locale, str] = {"en": " ", "zh": ""}


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
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
class ProbeTexts:
    """All of one language; the questions of both languages are the same, in the same order."""

    language: Locale
    questions: tuple[ProbeQuestion, ...]
    injections: tuple[NamedText, ...]
    flatteries: tuple[NamedText, ...]
    refusals: tuple[NamedText, ...]
    padding: Padding
    criteria: tuple[Criterion, ...]


def join(sentences: tuple[str, ...], language: Locale) -> str:
    return _BETWEEN_SENTENCES[language].join(sentences)


@cache
def probe_texts(language: Locale) -> ProbeTexts:
    padding = list(_rows(language, "padding"))
    return ProbeTexts(
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


def _question(row: dict[str, Any], language: Locale) -> ProbeQuestion:
    return ProbeQuestion(
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


# What probes do to a good answer: cut it, shuffle it, pad it, dress it up.

_SLOT = re.compile(r"\{(answer|label)\}")
# Where the cut sentence ends: in its middle, so that anybody sees that something is missing.
_KEPT_OF_THE_CUT_SENTENCE = 0.5


def shuffle_sentences(question: ProbeQuestion) -> str:
    """The odd places backwards, then the even ones: of five or more none follows what
    it should follow."""
    sentences = question.sentences
    places = [*reversed(range(1, len(sentences), 2)), *reversed(range(0, len(sentences), 2))]
    return join(tuple(sentences[place] for place in places), question.language)


def cut_short(question: ProbeQuestion) -> str:
    """Its beginning, a third to a half, broken off in the middle of a sentence."""
    sentences = question.sentences
    kept = len(sentences) // 3
    begun = _first_half(sentences[kept], question.language)
    return join((*sentences[:kept], begun), question.language)


def _first_half(sentence: str, language: Locale) -> str:
    if language == "zh":
        return sentence[: int(len(sentence) * _KEPT_OF_THE_CUT_SENTENCE)]
    words = sentence.split(" ")
    return " ".join(words[: max(1, int(len(words) * _KEPT_OF_THE_CUT_SENTENCE))])


def pad(question: ProbeQuestion, padding: Padding, *, turn: int) -> str:
    """The whole answer, with sentences that say nothing round it; `turn` chooses among them."""

    def two_of(sentences: tuple[str, ...]) -> tuple[str, str]:
        return sentences[turn % len(sentences)], sentences[(turn + 1) % len(sentences)]

    half = len(question.sentences) // 2
    padded = (
        *two_of(padding.before),
        *question.sentences[:half],
        *two_of(padding.middle),
        *question.sentences[half:],
        *two_of(padding.after),
    )
    return join(padded, question.language)


def dress_in_markdown(question: ProbeQuestion) -> str:
    """Sentence by sentence as a list, with the key phrases in bold; not a word is added."""
    keys = sorted(question.keys, key=len, reverse=True)
    key = re.compile("|".join(re.escape(each) for each in keys))
    return "\n".join(
        f"- {key.sub(lambda match: f'**{match[0]}**', sentence)}" if keys else f"- {sentence}"
        for sentence in question.sentences
    )


def inject(injection: str, *, answer: str, label: str) -> str:
    """In one go: neither the answer nor the injection can fill the other's slots."""
    values = {"answer": answer, "label": label}
    return _SLOT.sub(lambda slot: values[slot[1]], injection)
