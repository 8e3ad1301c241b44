"""A pair and a template become the messages of one pass, and the JSON Schema of its answer. What
does not depend on the pair is made once a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

from evenhand.contract import Locale, Order, Pair, UnreadKind
from evenhand.errors import TemplateError
from evenhand.prompts.template import (
    ALWAYS_NEEDED,
    MATERIAL,
    NOTES,
    ChatMessage,
    PlainSection,
    Role,
    Segment,
    Slot,
    Template,
    Words,
    preparation_words,
    words_for,
)

# A template with everything filled in but the pair's texts.

# Where the pair's marker goes. No template contains this character.
MARKER = "\x00"

# A text with the marker in it, one without, or the place of a text to be judged.
OutlinePiece = str | Segment | Slot
Outline = tuple[tuple[Role, tuple[OutlinePiece, ...]], ...]

# Far above the number of questions on criteria; only a bound.
_MOST_KEPT = 256


def outline_of(
    template: Template, *, optional: tuple[str, ...], allow_tie: bool, question: str
) -> Outline:
    """Made once for all pairs of a run with the same kinds of material."""
    key = (optional, allow_tie, question)
    outline = template.outlines.get(key)
    if outline is None:
        material = [slot for slot in MATERIAL if slot in ALWAYS_NEEDED or slot in optional]
        outline = _outline(template, material, allow_tie=allow_tie, question=question)
        # A Jinja template may vary between calls, e.g. by `random`.
        if all(isinstance(section, PlainSection) for _, section in template.sections):
            if len(template.outlines) >= _MOST_KEPT:
                template.outlines.clear()
            template.outlines[key] = outline
    return outline


def _outline(template: Template, material: list[str], *, allow_tie: bool, question: str) -> Outline:
    words = words_for(template.locale)
    wording = _wording(template, words, allow_tie=allow_tie, question=question)
    present = dict.fromkeys((*material, *wording), True)
    filled = [(role, section.pieces(present)) for role, section in template.sections]
    shown = {piece.name for _, pieces in filled for piece in pieces if isinstance(piece, Slot)}
    for slot in material:
        if slot not in shown:
            raise TemplateError.of("prompts.slot_left_out", name=template.name, slot=slot)
    # Letter prompts are short: a piece ends where the next opens, and the question closes the last.
    close = "" if template.compact else "\n" + fence_close(words)
    fences = {slot: (fence_opening(slot, template.locale), close) for slot in material}
    return tuple((role, fenced(pieces, fences, wording)) for role, pieces in filled)


def fence_opening(slot: str, locale: Locale) -> str:
    """The line above a piece of material."""
    words = words_for(locale)
    name = words.names.get(slot) or preparation_words(locale).names[slot]
    opening = words.fence["open"].replace("{marker}", MARKER)
    return opening.replace("{name}", name) + "\n"


def fence_close(words: Words) -> str:
    return words.fence["close"].replace("{marker}", MARKER)


def _wording(template: Template, words: Words, *, allow_tie: bool, question: str) -> dict[str, str]:
    mode = words.by_mode[template.mode]
    wording = {
        "marker": MARKER,
        "tie_rule": mode["tie_allowed" if allow_tie else "tie_forbidden"],
    }
    if template.mode == "letter":
        closing = f"{fence_close(words)}\n" if template.compact else ""
        wording["question"] = closing + question
    else:
        wording["menu"] = mode["menu_with_tie" if allow_tie else "menu_without_tie"]
    return wording


def fenced(
    pieces: tuple[str | Slot, ...], fences: dict[str, tuple[str, str]], wording: dict[str, str]
) -> tuple[OutlinePiece, ...]:
    outline: list[OutlinePiece] = []
    trusted: list[str] = []
    vanished = False
    for piece in pieces:
        if isinstance(piece, str):
            # A slot on its own line takes the line with it when it vanishes.
            trusted.append(piece[1:] if vanished and piece.startswith("\n") else piece)
            vanished = False
        elif piece.name in fences:
            opening, close = fences[piece.name]
            trusted.append(opening)
            outline += [_trusted(trusted), piece]
            trusted = [close]
        elif piece.name in MATERIAL:
            vanished = True
        else:
            trusted.append(wording.get(piece.name, ""))
    outline.append(_trusted(trusted))
    return tuple(outline)


def _trusted(texts: list[str]) -> str | Segment:
    text = "".join(texts)
    return text if MARKER in text else Segment(text)


LETTERS = ("A", "B", "C")

_Messages = tuple[ChatMessage, ...]


class Notes(NamedTuple):
    """What was prepared, for the prompt and for each response."""

    metrics: str | None = None
    own_reference: str | None = None
    analysis_a: str | None = None
    analysis_b: str | None = None

    def material(self) -> dict[str, tuple[Segment, Segment]]:
        """By order. It was written by a model that read the prompt, so it is as hostile as they
        are."""
        metrics, reference, a, b = (Segment(text or "", judged=True) for text in self)
        return {
            "metrics": (metrics, metrics),
            "own_reference": (reference, reference),
            "analysis_a": (a, b),
            "analysis_b": (b, a),
        }


NO_NOTES = Notes()


def _optional(pair: Pair, notes: Notes) -> tuple[str, ...]:
    """The optional slots that this pair fills."""
    given = [slot for slot in ("context", "reference") if getattr(pair, slot) is not None]
    if notes is not NO_NOTES:
        given += [slot for slot in NOTES if getattr(notes, slot) is not None]
    return tuple(given)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What both passes of a pair share."""

    template: Template
    pair: Pair
    marker: str
    responses: tuple[bytes, bytes]  # the digests of A and B
    notes: Notes
    # By question, for both orders, on first use.
    _shown: dict[str, dict[Order, _Messages]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, pair: Pair, template: Template, notes: Notes | None = None) -> Prompt:
        if notes is None or not any(text is not None for text in notes):
            notes = NO_NOTES
        for slot in _optional(pair, notes):
            if slot not in template.slots:
                raise TemplateError.of(
                    "prompts.slot_missing_for_pair", slot=slot, name=template.name
                )
        if not pair.allow_tie and "tie_rule" not in template.slots:
            raise TemplateError.of("prompts.no_tie_slot", name=template.name)
        responses = response_digests(pair)
        return cls(template, pair, marker_of(pair, responses, notes), responses, notes)

    def messages(
        self, order: Order, *, question: str = "", lead_in: bool = False
    ) -> tuple[ChatMessage, ...]:
        """The messages of one pass. `question` fills a letter template's slot; `lead_in` begins the
        answer for a judge that can continue it."""
        shown = self._shown.get(question)
        if shown is None:
            shown = self._shown[question] = self._filled(question)
        messages = shown[order]
        if not lead_in:
            return messages
        opening = Segment(words_for(self.template.locale).by_mode["letter"]["lead_in"])
        return (*messages, ChatMessage("assistant", (opening,)))

    def questions(self) -> tuple[str, ...]:
        """Letter mode: the overall question, then one for each criterion."""
        letter = words_for(self.template.locale).by_mode["letter"]
        closing = letter["letters_with_tie" if self.pair.allow_tie else "letters_without_tie"]
        asked = [letter["question_overall"]]
        asked += [
            letter["question_criterion"].replace("{number}", str(number))
            for number in range(1, len(self.pair.criteria) + 1)
        ]
        return tuple(f"{question} {closing}" for question in asked)

    @property
    def letters(self) -> tuple[str, ...]:
        return LETTERS if self.pair.allow_tie else LETTERS[:2]

    def repair(
        self, messages: tuple[ChatMessage, ...], answer: str, kind: UnreadKind
    ) -> tuple[ChatMessage, ...]:
        """The same conversation, with the unreadable answer and what was wrong."""
        words = words_for(self.template.locale)
        request = words.repair.replace("{complaint}", words.complaints[kind])
        shown = (
            (ChatMessage("assistant", (Segment(answer, judged=True),)),) if answer.strip() else ()
        )
        return (*messages, *shown, ChatMessage("user", (Segment(request),)))

    def _filled(self, question: str) -> dict[Order, _Messages]:
        """The filled outline in both orders, which differ in two places."""
        pair, marker = self.pair, self.marker
        outline = outline_of(
            self.template,
            optional=_optional(pair, self.notes),
            allow_tie=pair.allow_tie,
            question=question,
        )
        a, b = Segment(pair.response_a, judged=True), Segment(pair.response_b, judged=True)
        # What the place holds in the one order, and in the other.
        material = {
            "criteria": (list_criteria(pair, words_for(self.template.locale)),) * 2,
            "prompt": (Segment(pair.prompt, judged=True),) * 2,
            "context": (Segment(pair.context or "", judged=True),) * 2,
            "reference": (Segment(pair.reference or "", judged=True),) * 2,
            "response_a": (a, b),
            "response_b": (b, a),
        }
        if self.notes is not NO_NOTES:
            material |= self.notes.material()
        original: list[ChatMessage] = []
        swapped: list[ChatMessage] = []
        for role, pieces in outline:
            first: list[Segment] = []
            second: list[Segment] = []
            for piece in pieces:
                if isinstance(piece, str):
                    one = other = Segment(piece.replace(MARKER, marker))
                elif isinstance(piece, Segment):
                    one = other = piece
                else:
                    one, other = material[piece.name]
                if one.text:
                    first.append(one)
                if other.text:
                    second.append(other)
            original.append(ChatMessage(role, tuple(first)))
            swapped.append(ChatMessage(role, tuple(second)))
        return {"original": tuple(original), "swapped": tuple(swapped)}


def list_criteria(pair: Pair, words: Words) -> Segment:
    lines = []
    for number, criterion in enumerate(pair.criteria, start=1):
        weight = (
            f" ({words.names['weight']} {_shown(criterion.weight)})" if criterion.weight else ""
        )
        description = f": {criterion.description}" if criterion.description else ""
        lines.append(f"{number}. {criterion.name}{weight}{description}")
    return Segment("\n".join(lines), judged=True)


def _shown(weight: float) -> str:
    return repr(weight).removesuffix(".0")


def answer_schema(pair: Pair) -> Mapping[str, Any]:
    return _schema(tuple(criterion.name for criterion in pair.criteria), pair.allow_tie)


@lru_cache(maxsize=64)
def _schema(criteria: tuple[str, ...], allow_tie: bool) -> Mapping[str, Any]:
    """Reasons come before winners, since a model writes the fields in this order."""
    text = {"type": "string"}
    texts = {"type": "array", "items": text}
    winner = {"type": "string", "enum": ["A", "B", "TIE"] if allow_tie else ["A", "B"]}
    response = closed_object(strengths=texts, weaknesses=texts)
    criterion = closed_object(
        criterion={"type": "string", "enum": list(criteria)},
        aAssessment=text,
        bAssessment=text,
        reasoning=text,
        winner={"type": "string", "enum": ["A", "B", "TIE"]},
    )
    return closed_object(
        analysis=closed_object(responseA=response, responseB=response),
        comparison={"type": "array", "items": criterion},
        result=closed_object(
            reasoning=text,
            differentiators=texts,
            winner=winner,
            confidence={"type": "number"},
        ),
    )


def closed_object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


# The code of the fences, which no author of a response can know.

# 20 base-32 characters of the first 100 bits, two per ten bits; a fifth of `base64.b32encode`'s
# time.
_DIGEST_BITS = 256
_SHIFTS = tuple(_DIGEST_BITS - 10 * place for place in range(1, 11))
_BASE_32 = "abcdefghijklmnopqrstuvwxyz234567"
_TWO_CHARACTERS = [first + second for first in _BASE_32 for second in _BASE_32]


def text_digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def response_digests(pair: Pair) -> tuple[bytes, bytes]:
    return text_digest(pair.response_a), text_digest(pair.response_b)


def marker_of(
    pair: Pair, responses: tuple[bytes, bytes] | None = None, notes: Notes = NO_NOTES
) -> str:
    """A code derived from the whole pair, the same in both orders and absent from every text.

    Writing the marker into a response changes it; should it occur all the same, the next code is
    taken. `responses` are the two digests, if known.
    """
    responses = responses or response_digests(pair)
    seed, texts = _pair_digest(pair, responses), _texts(pair)
    if notes is not NO_NOTES:
        of_each = [_optional_digest(notes.analysis_a), _optional_digest(notes.analysis_b)]
        # In the order of the responses' digests: the same in both orders.
        if responses[0] > responses[1]:
            of_each.reverse()
        prepared = [_optional_digest(notes.metrics), _optional_digest(notes.own_reference)]
        seed = sha256(b"".join([seed, *prepared, *of_each])).digest()
        texts = chain(texts, [text for text in notes if text is not None])
    return code_absent_from(texts, seed)


def code_absent_from(texts: Iterable[str], seed: bytes) -> str:
    # No code has a line break, so none spans two texts.
    lowered = "\n".join(texts).lower()
    attempt = 0
    while True:
        digest = sha256(seed + attempt.to_bytes(4, "big")).digest()
        bits = int.from_bytes(digest, "big")
        code = "".join([_TWO_CHARACTERS[bits >> shift & 1023] for shift in _SHIFTS])
        if code not in lowered:
            return code
        attempt += 1


def _texts(pair: Pair) -> Iterator[str]:
    yield pair.prompt
    yield pair.response_a
    yield pair.response_b
    if pair.context is not None:
        yield pair.context
    if pair.reference is not None:
        yield pair.reference
    for criterion in pair.criteria:
        yield criterion.name
        if criterion.description is not None:
            yield criterion.description


def _pair_digest(pair: Pair, responses: tuple[bytes, bytes]) -> bytes:
    digests = [
        text_digest(pair.prompt),
        _optional_digest(pair.context),
        _optional_digest(pair.reference),
        *sorted(responses),
    ]
    for criterion in pair.criteria:
        digests += (_name_digest(criterion.name), _optional_digest(criterion.description))
    return sha256(b"".join(digests)).digest()


# The same few names occur in every pair of a run.
_name_digest = lru_cache(maxsize=256)(text_digest)


def _optional_digest(text: str | None) -> bytes:
    # An absent text differs from an empty one.
    return bytes(32) if text is None else text_digest(text)
