"""What probes do to a good answer: cut it, shuffle it, pad it, dress it up."""

from __future__ import annotations

import re

from evenhand.contract import Locale
from evenhand.trust.probes.texts import Padding, Question, join

_SLOT = re.compile(r"\{(answer|label)\}")
# Where the cut sentence ends: in its middle, so that anybody sees that something is missing.
_KEPT_OF_THE_CUT_SENTENCE = 0.5


def shuffle_sentences(question: Question) -> str:
    """The odd places backwards, then the even ones: of five or more none follows what
    it should follow."""
    sentences = question.sentences
    places = [*reversed(range(1, len(sentences), 2)), *reversed(range(0, len(sentences), 2))]
    return join(tuple(sentences[place] for place in places), question.language)


def cut_short(question: Question) -> str:
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


def pad(question: Question, padding: Padding, *, turn: int) -> str:
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


def dress_in_markdown(question: Question) -> str:
    """Sentence by sentence as a list, with the key phrases in bold; not a word is added."""
    keys = sorted(question.keys, key=len, reverse=True)
    key = re.compile("|".join(re.escape(each) for each in keys))
    return "\n".join(
        f"- {key.sub(lambda found: f'**{found[0]}**', sentence)}" if keys else f"- {sentence}"
        for sentence in question.sentences
    )


def inject(injection: str, *, answer: str, label: str) -> str:
    """In one go: neither the answer nor the injection can fill the other's slots."""
    values = {"answer": answer, "label": label}
    return _SLOT.sub(lambda slot: values[slot[1]], injection)
