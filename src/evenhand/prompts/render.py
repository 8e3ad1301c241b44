"""A pair and a template become the messages of one pass."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.contract import Message, Order, Pair, Segment, UnreadKind
from evenhand.errors import TemplateError
from evenhand.prompts.marker import marker_of
from evenhand.prompts.template import MATERIAL, Slot, Template
from evenhand.prompts.words import Words, words_for

LETTERS = ("A", "B", "C")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What both passes of a pair share: the template with everything in it but the order."""

    template: Template
    pair: Pair
    marker: str

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
        return cls(template=template, pair=pair, marker=marker_of(pair))

    def messages(
        self, order: Order, *, question: str = "", lead_in: bool = False
    ) -> tuple[Message, ...]:
        """The messages of one pass. `question` fills the slot of a letter template, and `lead_in`
        begins the answer for a judge that can go on from there."""
        words = words_for(self.template.locale)
        material = self._material(order, words)
        wording = self._wording(words, question)
        present = dict.fromkeys((*material, *wording), True)
        filled = [(role, section.pieces(present)) for role, section in self.template.sections]
        shown = {piece.name for _, pieces in filled for piece in pieces if isinstance(piece, Slot)}
        for slot in material:
            if slot not in shown:
                raise TemplateError(
                    f"template {self.template.name} leaves out {{{slot}}} of this pair; "
                    "show it whatever the other slots hold"
                )
        messages = tuple(Message(role, _fill(pieces, material, wording)) for role, pieces in filled)
        if not lead_in:
            return messages
        begun = Segment(words.by_mode["letter"]["lead_in"])
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

    def _material(self, order: Order, words: Words) -> dict[str, tuple[Segment, ...]]:
        pair = self.pair
        first, second = pair.response_a, pair.response_b
        if order == "swapped":
            first, second = second, first
        texts = {
            "criteria": _listed(pair, words),
            "prompt": pair.prompt,
            "context": pair.context,
            "reference": pair.reference,
            "response_a": first,
            "response_b": second,
        }
        # Our letter prompts are kept short: a piece ends where the next one opens, and the question
        # closes the last one.
        close = "" if self.template.compact else "\n" + self._close(words)
        opening = words.fence["open"].replace("{marker}", self.marker)
        return {
            slot: (
                Segment(opening.replace("{name}", words.names[slot]) + "\n"),
                Segment(text, judged=True),
                Segment(close),
            )
            for slot, text in texts.items()
            if text is not None
        }

    def _close(self, words: Words) -> str:
        return words.fence["close"].replace("{marker}", self.marker)

    def _wording(self, words: Words, question: str) -> dict[str, str]:
        mode = words.by_mode[self.template.mode]
        tie = self.pair.allow_tie
        wording = {
            "marker": self.marker,
            "tie_rule": mode["tie_allowed" if tie else "tie_forbidden"],
        }
        if self.template.mode == "letter":
            closing = f"{self._close(words)}\n" if self.template.compact else ""
            wording["question"] = closing + question
        else:
            wording["menu"] = mode["menu_with_tie" if tie else "menu_without_tie"]
        return wording


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


def _fill(
    pieces: tuple[str | Slot, ...],
    material: dict[str, tuple[Segment, ...]],
    wording: dict[str, str],
) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    trusted: list[str] = []
    vanished = False
    for piece in pieces:
        if isinstance(piece, str):
            # A slot that stands on its own line takes the line with it when it vanishes.
            trusted.append(piece[1:] if vanished and piece.startswith("\n") else piece)
            vanished = False
        elif piece.name in material:
            opening, text, close = material[piece.name]
            trusted.append(opening.text)
            segments += [Segment("".join(trusted)), text]
            trusted = [close.text]
        elif piece.name in MATERIAL:
            vanished = True
        else:
            trusted.append(wording.get(piece.name, ""))
    segments.append(Segment("".join(trusted)))
    return tuple(segment for segment in segments if segment.text)
