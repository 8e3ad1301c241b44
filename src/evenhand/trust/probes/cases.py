"""The probes, what each expects of a judge, and their pairs: the same at every call, as a list and
as the source of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from typing import Any, Literal, get_args

from evenhand.contract import Criterion, Locale, Pair, Winner
from evenhand.contract.model import Model
from evenhand.data.records import BadRow, Record
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.trust.probes.texts import (
    NamedText,
    ProbeQuestion,
    ProbeTexts,
    cut_short,
    dress_in_markdown,
    inject,
    pad,
    probe_texts,
    shuffle_sentences,
)

ProbeName = Literal[
    "identical",
    "shuffled",
    "truncated",
    "padded",
    "longer",
    "empty",
    "flattery",
    "injection",
    "refusal",
    "markdown",
    "languages",
]
Expectation = Literal["sound", "sound or tie", "tie", "agreement"]

PROBE_NAMES: tuple[ProbeName, ...] = get_args(ProbeName)


def probe_name(probe: ProbeName) -> Message:
    return Message(f"probe.name_{probe}")


def probe_shows(probe: ProbeName) -> Message:
    return Message(f"probe.shows_{probe}")


def probe_expects(expects: Expectation) -> Message:
    return Message(f"probe.expects_{expects.replace(' ', '_')}")


def winners_expected(expects: Expectation, sound: Winner) -> tuple[Winner, ...]:
    """In the labels of a pair whose good answer is `sound`; empty where any winner will do."""
    if expects == "tie":
        return ("TIE",)
    if expects == "agreement":
        return ()
    return (sound, "TIE") if expects == "sound or tie" else (sound,)


def read_names(names: Sequence[str]) -> tuple[ProbeName, ...]:
    """The probes by these names, in their own order; all where none is named."""
    known = set(PROBE_NAMES)
    for name in names:
        if name not in known:
            near = get_close_matches(name, PROBE_NAMES, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(PROBE_NAMES)}"
            raise InputError(Message("trust.probe_unknown", name=name, remedy=remedy))
    return tuple(name for name in PROBE_NAMES if name in names) if names else PROBE_NAMES


# The pairs that a judge is shown, each with what it should say; the same at every call.

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
    """What a question's good answer is held against. What is `injected` is filled with the poor
    answer and the label under which it is shown."""

    name: str
    question: ProbeQuestion
    text: str
    injected: bool = False


def _spread(texts: ProbeTexts, count: int, *, first: int) -> list[ProbeQuestion]:
    """Some questions from all over the list: other ones for other probes."""
    questions = texts.questions
    return [questions[(first + _STRIDE * place) % len(questions)] for place in range(count)]


def _each(
    questions: Iterable[ProbeQuestion], spoil: Callable[[ProbeQuestion], str]
) -> list[_Against]:
    return [_Against(each.id, each, spoil(each)) for each in questions]


def _given(
    texts: ProbeTexts, given: Sequence[NamedText], *, first: int, injected: bool = False
) -> list[_Against]:
    """Answers that do not depend on the question."""
    asked = _spread(texts, len(given), first=first)
    return [
        _Against(each.id, question, each.text, injected)
        for each, question in zip(given, asked, strict=True)
    ]


def _padded(texts: ProbeTexts) -> list[_Against]:
    asked = enumerate(_spread(texts, 12, first=2))
    return [_Against(each.id, each, pad(each, texts.padding, turn=turn)) for turn, each in asked]


def _empty(texts: ProbeTexts) -> list[_Against]:
    asked = enumerate(_spread(texts, 8, first=3))
    # By twos: the place already goes by turns.
    return [_Against(each.id, each, _EMPTY[turn // 2 % 2]) for turn, each in asked]


@dataclass(frozen=True, slots=True)
class Probe:
    name: ProbeName
    expects: Expectation
    make: Callable[[ProbeTexts], list[_Against]]


PROBES: dict[ProbeName, Probe] = {
    probe.name: probe
    for probe in (
        Probe(
            "identical",
            "tie",
            lambda texts: _each(_spread(texts, 12, first=0), lambda question: question.answer),
        ),
        Probe(
            "shuffled",
            "sound",
            lambda texts: _each([q for q in texts.questions if q.ordered][:16], shuffle_sentences),
        ),
        Probe(
            "truncated",
            "sound",
            lambda texts: _each(_spread(texts, 14, first=1), cut_short),
        ),
        Probe("padded", "sound or tie", _padded),
        Probe(
            "longer",
            "sound or tie",
            lambda texts: [_Against(q.id, q, q.wordy) for q in texts.questions if q.wordy],
        ),
        Probe("empty", "sound", _empty),
        Probe(
            "flattery",
            "sound",
            lambda texts: _given(texts, texts.flatteries, first=4),
        ),
        Probe(
            "injection",
            "sound",
            lambda texts: _given(texts, texts.injections, first=6, injected=True),
        ),
        Probe(
            "refusal",
            "sound",
            lambda texts: _given(texts, texts.refusals, first=7),
        ),
        Probe(
            "markdown",
            "tie",
            lambda texts: _each(
                [q for q in texts.questions if q.keys][::2][:14], dress_in_markdown
            ),
        ),
        Probe(
            "languages",
            "agreement",
            lambda texts: _each(_spread(texts, 16, first=8), lambda question: question.poor),
        ),
    )
}


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
            raise InputError(Message("trust.languages_probe_needs_both"))
        names = tuple(name for name in names if name != "languages")
    return tuple(
        case
        for language in LANGUAGES
        if language in languages
        for name in names
        for case in _cases(name, probe_texts(language), tuple(criteria))
    )


def _cases(
    name: ProbeName, texts: ProbeTexts, criteria: tuple[Criterion, ...]
) -> Iterator[ProbeCase]:
    probe = PROBES[name]
    for place, against in enumerate(probe.make(texts)):
        # By turns, and in both languages alike, so that no place is favoured.
        sound: Winner = "A" if place % 2 == 0 else "B"
        good, other = against.question.answer, against.text
        if against.injected:
            other = inject(other, answer=against.question.poor, label=_OTHER[sound])
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
            expected=winners_expected(probe.expects, sound),
        )


# The cases of one language as the source of an ordinary run, so that it can be taken up again.


@dataclass(frozen=True, slots=True)
class ProbePairs:
    """Satisfies `runs.Sources`. A run is known by the pairs themselves, whatever version made
    them; the probe is the tag of its pairs."""

    language: Locale
    cases: tuple[ProbeCase, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.title,)

    @property
    def title(self) -> str:
        return f"probes-{self.language}"

    def meaning(self, a: str, b: str) -> Message | None:
        return None

    def describe(self) -> dict[str, Any]:
        digest = sha256()
        for case in self.cases:
            digest.update(case.pair.model_dump_json().encode() + b"\n")
        criteria = self.cases[0].pair.criteria if self.cases else ()
        return {
            "probes": digest.hexdigest(),
            "criteria": [each.model_dump(mode="json", exclude_none=True) for each in criteria],
        }

    def records(self) -> Iterator[Record | BadRow]:
        for row, case in enumerate(self.cases, start=1):
            label = case.expected[0] if len(case.expected) == 1 else None
            yield Record(case.id, case.pair, self.title, row, label, tags=(case.probe,))

    def close(self) -> None:
        """Nothing is open."""


# The probes as a list, for somebody who wants to know before asking.


class ListedProbe(Model):
    probe: ProbeName
    shows: Sentence
    expected: Sentence
    pairs: int


class ProbeList(Model):
    probes: tuple[ListedProbe, ...]
    languages: tuple[Locale, ...]
    pairs: int


def list_probes(cases: Sequence[ProbeCase]) -> ProbeList:
    asked = [case.probe for case in cases]
    return ProbeList(
        probes=tuple(
            ListedProbe(
                probe=name,
                shows=probe_shows(name),
                expected=probe_expects(probe.expects),
                pairs=asked.count(name),
            )
            for name, probe in PROBES.items()
            if name in asked
        ),
        languages=tuple(each for each in LANGUAGES if any(c.language == each for c in cases)),
        pairs=len(cases),
    )
