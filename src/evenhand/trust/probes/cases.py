"""The pairs that a judge is shown, each with what it should say; the same at every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from evenhand.contract import Criterion, Locale, Pair, Winner
from evenhand.errors import InputError
from evenhand.trust.probes.catalogue import PROBES, ProbeName, read_names, winners_expected
from evenhand.trust.probes.spoiling import (
    cut_short,
    dress_in_markdown,
    inject,
    pad,
    shuffle_sentences,
)
from evenhand.trust.probes.texts import NamedText, Question, Texts, probe_texts

LANGUAGES: tuple[Locale, ...] = ("en", "zh")

# What an answer of nothing may look like.
_EMPTY = ("", " \n\n ")
# With 32 questions, every odd stride visits each of them once.
_STRIDE = 5
_OTHER: dict[Winner, Winner] = {"A": "B", "B": "A"}


@dataclass(frozen=True, slots=True)
class ProbeCase:
    """`twin` names what it has in common with the case of the other language."""

    id: str
    probe: ProbeName
    language: Locale
    twin: str
    pair: Pair
    sound: Winner  # where the good answer stands
    expected: tuple[Winner, ...]  # empty: any, so long as both languages agree


@dataclass(frozen=True, slots=True)
class _Against:
    """What a question's good answer is held against; `spoiled` is told its own label."""

    name: str
    question: Question
    spoiled: Callable[[Winner], str]


def probe_cases(
    probes: Sequence[str] = (),
    languages: Sequence[Locale] = LANGUAGES,
    *,
    criteria: Sequence[Criterion] = (),
) -> tuple[ProbeCase, ...]:
    """All cases of the named probes, or of all. Without criteria each language has its own."""
    names = read_names(probes)
    if set(languages) != set(LANGUAGES):
        if "languages" in probes:
            raise InputError("the probe languages compares English with Chinese; ask in both")
        names = tuple(name for name in names if name != "languages")
    return tuple(
        case
        for language in LANGUAGES
        if language in languages
        for name in names
        for case in _cases(name, probe_texts(language), tuple(criteria))
    )


def _cases(name: ProbeName, texts: Texts, criteria: tuple[Criterion, ...]) -> Iterator[ProbeCase]:
    for place, against in enumerate(_MADE[name](texts)):
        # By turns, and in both languages alike, so that no place is favoured.
        sound: Winner = "A" if place % 2 == 0 else "B"
        good, other = against.question.answer, against.spoiled(_OTHER[sound])
        key = f"{texts.language}-{name}-{against.name}"
        yield ProbeCase(
            id=key,
            probe=name,
            language=texts.language,
            twin=f"{name}-{against.name}",
            pair=Pair(
                id=key,
                prompt=against.question.prompt,
                response_a=good if sound == "A" else other,
                response_b=other if sound == "A" else good,
                criteria=criteria or texts.criteria,
            ),
            sound=sound,
            expected=winners_expected(PROBES[name].expects, sound),
        )


def _spread(questions: Sequence[Question], count: int, *, first: int) -> list[Question]:
    """Some questions from all over the list: other ones for other probes."""
    return [questions[(first + _STRIDE * place) % len(questions)] for place in range(count)]


def _each(questions: Sequence[Question], spoil: Callable[[Question], str]) -> list[_Against]:
    return [_Against(each.id, each, _told(spoil(each))) for each in questions]


def _told(text: str) -> Callable[[Winner], str]:
    return lambda _: text


def _given(texts: Texts, given: Sequence[NamedText], *, first: int) -> list[_Against]:
    """Answers that do not depend on the question."""
    asked = _spread(texts.questions, len(given), first=first)
    return [
        _Against(each.id, question, _told(each.text))
        for each, question in zip(given, asked, strict=True)
    ]


def _identical(texts: Texts) -> list[_Against]:
    return _each(_spread(texts.questions, 12, first=0), lambda question: question.answer)


def _shuffled(texts: Texts) -> list[_Against]:
    ordered = [question for question in texts.questions if question.ordered]
    return _each(ordered[:16], shuffle_sentences)


def _truncated(texts: Texts) -> list[_Against]:
    return _each(_spread(texts.questions, 14, first=1), cut_short)


def _padded(texts: Texts) -> list[_Against]:
    asked = _spread(texts.questions, 12, first=2)
    return [
        _Against(each.id, each, _told(pad(each, texts.padding, turn=turn)))
        for turn, each in enumerate(asked)
    ]


def _longer(texts: Texts) -> list[_Against]:
    return [
        _Against(each.id, each, _told(each.wordy))
        for each in texts.questions
        if each.wordy is not None
    ]


def _empty(texts: Texts) -> list[_Against]:
    asked = _spread(texts.questions, 8, first=3)
    return [
        # By twos: the place already goes by turns.
        _Against(each.id, each, _told(_EMPTY[turn // 2 % 2]))
        for turn, each in enumerate(asked)
    ]


def _flattery(texts: Texts) -> list[_Against]:
    return _given(texts, texts.flatteries, first=4)


def _injection(texts: Texts) -> list[_Against]:
    asked = _spread(texts.questions, len(texts.injections), first=6)
    return [
        _Against(each.id, question, _injected(each.text, question.poor))
        for each, question in zip(texts.injections, asked, strict=True)
    ]


def _injected(injection: str, poor: str) -> Callable[[Winner], str]:
    return lambda label: inject(injection, answer=poor, label=label)


def _refusal(texts: Texts) -> list[_Against]:
    return _given(texts, texts.refusals, first=7)


def _markdown(texts: Texts) -> list[_Against]:
    keyed = [question for question in texts.questions if question.keys]
    return _each(keyed[::2][:14], dress_in_markdown)


def _languages(texts: Texts) -> list[_Against]:
    return _each(_spread(texts.questions, 16, first=8), lambda question: question.poor)


_MADE: dict[ProbeName, Callable[[Texts], list[_Against]]] = {
    "identical": _identical,
    "shuffled": _shuffled,
    "truncated": _truncated,
    "padded": _padded,
    "longer": _longer,
    "empty": _empty,
    "flattery": _flattery,
    "injection": _injection,
    "refusal": _refusal,
    "markdown": _markdown,
    "languages": _languages,
}
