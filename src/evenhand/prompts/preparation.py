"""The prompts for what a judge writes before it judges: metrics and a reference for the prompt, an
analysis of one response. The texts are in `en/` and `zh/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import get_args

from evenhand.contract import ArtefactKind, Locale, Pair
from evenhand.errors import TemplateError
from evenhand.prompts.prompt import (
    MARKER,
    code_absent_from,
    fence_close,
    fence_opening,
    fenced,
    list_criteria,
)
from evenhand.prompts.template import (
    ChatMessage,
    Role,
    Segment,
    Slot,
    Template,
    plain_section,
    read_text,
    split_sections,
    words_for,
)

ARTEFACT_KINDS: tuple[ArtefactKind, ...] = get_args(ArtefactKind)
# The name prefix of a writer that answers by the pair's id.
BY_ID = "id:"

_Sections = tuple[tuple[Role, tuple[str | Slot, ...]], ...]


@cache
def artefact_version(kind: ArtefactKind, locale: Locale) -> str:
    """Identifies the prompt's text, so that results of an earlier one are not reused."""
    words = words_for(locale).source + read_text(locale, "preparation.toml")
    source = read_text(locale, f"{kind}.txt") + words
    return sha256(source.encode()).hexdigest()[:12]


@cache
def _sections(kind: ArtefactKind, locale: Locale) -> _Sections:
    source = read_text(locale, f"{kind}.txt")
    name = f"{locale}/{kind}"
    return tuple(
        [(role, plain_section(text, name).parts) for role, text in split_sections(source, name)]
    )


_PLACES = {
    "metrics": ("metrics",),
    "reference": ("own_reference",),
    "analysis": ("analysis_a", "analysis_b"),
}


def refuse_without_slots(template: Template, kinds: Sequence[ArtefactKind]) -> None:
    """A custom template needs a place for what is prepared; checked before anything is paid for."""
    for kind in kinds:
        for slot in _PLACES[kind]:
            if slot not in template.slots:
                raise TemplateError.of(
                    "prompts.slot_missing_for_pair", slot=slot, name=template.name
                )


def artefact_texts(kind: ArtefactKind, pair: Pair, response: str | None) -> dict[str, str]:
    """The texts that an artefact depends on, by slot; the rest of the pair is not shown."""
    texts = {"prompt": pair.prompt, "context": pair.context}
    if kind == "analysis":  # the others are of the prompt alone
        texts |= {"reference": pair.reference, "response": response}
    return {slot: text for slot, text in texts.items() if text is not None}


def artefact_messages(
    kind: ArtefactKind, pair: Pair, response: str | None = None, *, locale: Locale = "en"
) -> tuple[ChatMessage, ...]:
    words = words_for(locale)
    segments = {
        slot: Segment(text, judged=True)
        for slot, text in artefact_texts(kind, pair, response).items()
    }
    if kind == "analysis":
        segments["criteria"] = list_criteria(pair, words)
    texts = [segment.text for segment in segments.values()]
    seed = sha256(b"".join([sha256(text.encode()).digest() for text in texts])).digest()
    marker = code_absent_from(texts, seed)
    close = "\n" + fence_close(words)
    fences = {slot: (fence_opening(slot, locale), close) for slot in segments}
    messages = []
    for role, parts in _sections(kind, locale):
        filled = [
            segments[piece.name]
            if isinstance(piece, Slot)
            else Segment(piece.replace(MARKER, marker))
            if isinstance(piece, str)
            else piece
            for piece in fenced(parts, fences, {"marker": MARKER})
        ]
        messages.append(ChatMessage(role, tuple([each for each in filled if each.text])))
    return tuple(messages)
