"""A template with everything in it that does not depend on a pair's texts."""

from __future__ import annotations

from evenhand.contract import Segment
from evenhand.errors import TemplateError
from evenhand.prompts.template import MATERIAL, PlainSection, Role, Slot, Template
from evenhand.prompts.words import Words, words_for

# Where the pair's marker goes. No template has the character, and so no trusted text.
MARKER = "\x00"

# A text with the marker in it, one without, or the place of a text to be judged.
Piece = str | Segment | Slot
Outline = tuple[tuple[Role, tuple[Piece, ...]], ...]

# Far more than the questions on a pair's criteria; only a bound.
_MOST_KEPT = 256


def outline_of(
    template: Template, *, context: bool, reference: bool, allow_tie: bool, question: str
) -> Outline:
    """Made once for all the pairs of a run that have the same kinds of material."""
    key = (context, reference, allow_tie, question)
    outline = template.outlines.get(key)
    if outline is None:
        absent = {"context": not context, "reference": not reference}
        material = [slot for slot in MATERIAL if not absent.get(slot)]
        outline = _outline(template, material, allow_tie=allow_tie, question=question)
        # A Jinja template may decide anew each time, e.g. by `random`.
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
            raise TemplateError(
                f"template {template.name} leaves out {{{slot}}} of this pair; "
                "show it whatever the other slots hold"
            )
    # Our letter prompts are kept short: a piece ends where the next one opens, and the question
    # closes the last one.
    close = "" if template.compact else "\n" + _close(words)
    opening = words.fence["open"].replace("{marker}", MARKER)
    fences = {
        slot: (opening.replace("{name}", words.names[slot]) + "\n", close) for slot in material
    }
    return tuple((role, _fenced(pieces, fences, wording)) for role, pieces in filled)


def _close(words: Words) -> str:
    return words.fence["close"].replace("{marker}", MARKER)


def _wording(template: Template, words: Words, *, allow_tie: bool, question: str) -> dict[str, str]:
    mode = words.by_mode[template.mode]
    wording = {
        "marker": MARKER,
        "tie_rule": mode["tie_allowed" if allow_tie else "tie_forbidden"],
    }
    if template.mode == "letter":
        closing = f"{_close(words)}\n" if template.compact else ""
        wording["question"] = closing + question
    else:
        wording["menu"] = mode["menu_with_tie" if allow_tie else "menu_without_tie"]
    return wording


def _fenced(
    pieces: tuple[str | Slot, ...], fences: dict[str, tuple[str, str]], wording: dict[str, str]
) -> tuple[Piece, ...]:
    outline: list[Piece] = []
    trusted: list[str] = []
    vanished = False
    for piece in pieces:
        if isinstance(piece, str):
            # A slot that stands on its own line takes the line with it when it vanishes.
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
