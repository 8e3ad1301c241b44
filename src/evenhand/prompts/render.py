"""A pair and a template become the messages of one pass."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenhand.contract import Message, Order, Pair, Segment, UnreadKind
from evenhand.errors import TemplateError
from evenhand.prompts.marker import marker_of, response_digests
from evenhand.prompts.outline import MARKER, outline_of
from evenhand.prompts.template import Template
from evenhand.prompts.words import Words, words_for

LETTERS = ("A", "B", "C")

_Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What both passes of a pair share: the template with everything in it but the order."""

    template: Template
    pair: Pair
    marker: str
    responses: tuple[bytes, bytes]  # the digests of A and B
    # By question, and made for both orders when it is first asked for.
    _shown: dict[str, dict[Order, _Messages]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

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
        messages = shown[order]
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

    def _filled(self, question: str) -> dict[Order, _Messages]:
        """The outline with everything in it, in both orders: they differ in two places."""
        pair, marker = self.pair, self.marker
        outline = outline_of(
            self.template,
            context=pair.context is not None,
            reference=pair.reference is not None,
            allow_tie=pair.allow_tie,
            question=question,
        )
        a, b = Segment(pair.response_a, judged=True), Segment(pair.response_b, judged=True)
        # What stands in the place in the one order, and in the other.
        material = {
            "criteria": (_listed(pair, words_for(self.template.locale)),) * 2,
            "prompt": (Segment(pair.prompt, judged=True),) * 2,
            "context": (Segment(pair.context or "", judged=True),) * 2,
            "reference": (Segment(pair.reference or "", judged=True),) * 2,
            "response_a": (a, b),
            "response_b": (b, a),
        }
        original: list[Message] = []
        swapped: list[Message] = []
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
            original.append(Message(role, tuple(first)))
            swapped.append(Message(role, tuple(second)))
        return {"original": tuple(original), "swapped": tuple(swapped)}


def _listed(pair: Pair, words: Words) -> Segment:
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
