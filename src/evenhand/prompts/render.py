"""A pair and a template become the messages of one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from evenhand.contract import Message, Order, Pair, Segment, UnreadKind
from evenhand.errors import TemplateError
from evenhand.prompts.marker import marker_of, response_digests
from evenhand.prompts.outline import MARKER, outline_of
from evenhand.prompts.template import Role, Template
from evenhand.prompts.words import Words, words_for

LETTERS = ("A", "B", "C")


class _Response(NamedTuple):
    """Which response stands here, in the one order and in the other."""

    original: Segment
    swapped: Segment


# The messages, their parts in turn.
_Parts = list[Segment | _Response]
_Shown = list[tuple[Role, _Parts]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What both passes of a pair share: the template with everything in it but the order."""

    template: Template
    pair: Pair
    marker: str
    responses: tuple[bytes, bytes]  # the digests of A and B
    # By question, and made when it is first asked for: the second order differs in two places.
    _shown: dict[str, _Shown] = field(init=False, default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, pair: Pair, template: Template) -> Prompt:
        for slot, text in (("context", pair.context), ("reference", pair.reference)):
            if text is not None and slot not in template.slots:
                raise TemplateError(
                    f"this pair has a {slot}, and template {template.name} "
                    f"has no slot {{{slot}}} for it; add the slot, or leave the {slot} out"
                )
        if not pair.allow_tie and "tie_rule" not in template.slots:
            raise TemplateError(
                f"ties are not allowed here, and template {template.name} cannot say so; "
                "add the slot {tie_rule}"
            )
        responses = response_digests(pair)
        return cls(template, pair, marker_of(pair, responses), responses)

    def messages(
        self, order: Order, *, question: str = "", lead_in: bool = False
    ) -> tuple[Message, ...]:
        """The messages of one pass. `question` fills the slot of a letter template, and `lead_in`
        begins the answer for a judge that can go on from there."""
        shown = self._shown.get(question)
        if shown is None:
            shown = self._shown[question] = self._filled(question)
        messages = tuple([Message(role, _placed(parts, order)) for role, parts in shown])
        if not lead_in:
            return messages
        begun = Segment(words_for(self.template.locale).by_mode["letter"]["lead_in"])
        return (*messages, Message("assistant", (begun,)))

    def questions(self) -> tuple[str, ...]:
        """Letter mode: the whole first, then one question for each criterion."""
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
        self, messages: tuple[Message, ...], answer: str, kind: UnreadKind
    ) -> tuple[Message, ...]:
        """The same conversation, with the answer that could not be read and what was wrong."""
        words = words_for(self.template.locale)
        request = words.repair.replace("{complaint}", words.complaints[kind])
        shown = (Message("assistant", (Segment(answer, judged=True),)),) if answer.strip() else ()
        return (*messages, *shown, Message("user", (Segment(request),)))

    def _filled(self, question: str) -> _Shown:
        """The outline with everything in it: what both orders share, and each response as it
        stands in the one order and in the other."""
        pair, marker = self.pair, self.marker
        outline = outline_of(
            self.template,
            context=pair.context is not None,
            reference=pair.reference is not None,
            allow_tie=pair.allow_tie,
            question=question,
        )
        a, b = Segment(pair.response_a, judged=True), Segment(pair.response_b, judged=True)
        material: dict[str, Segment | _Response] = {
            "criteria": Segment(_listed(pair, words_for(self.template.locale)), judged=True),
            "prompt": Segment(pair.prompt, judged=True),
            "context": Segment(pair.context or "", judged=True),
            "reference": Segment(pair.reference or "", judged=True),
            "response_a": _Response(a, b),
            "response_b": _Response(b, a),
        }
        return [
            (
                role,
                [
                    Segment(piece.replace(MARKER, marker))
                    if isinstance(piece, str)
                    else piece
                    if isinstance(piece, Segment)
                    else material[piece.name]
                    for piece in pieces
                ],
            )
            for role, pieces in outline
        ]


def _placed(parts: _Parts, order: Order) -> tuple[Segment, ...]:
    if order == "original":
        placed = [part.original if isinstance(part, _Response) else part for part in parts]
    else:
        placed = [part.swapped if isinstance(part, _Response) else part for part in parts]
    return tuple([segment for segment in placed if segment.text])


def _listed(pair: Pair, words: Words) -> str:
    lines = []
    for number, criterion in enumerate(pair.criteria, start=1):
        weight = (
            f" ({words.names['weight']} {_shown(criterion.weight)})" if criterion.weight else ""
        )
        description = f": {criterion.description}" if criterion.description else ""
        lines.append(f"{number}. {criterion.name}{weight}{description}")
    return "\n".join(lines)


def _shown(weight: float) -> str:
    return repr(weight).removesuffix(".0")
