"""Templates: their sources, slots, small texts for slots in each language, and versions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast

from evenhand.contract import Locale, Mode
from evenhand.errors import TemplateError

# The small texts that fill a template's slots, in each language.


@dataclass(frozen=True, slots=True)
class Words:
    source: str
    fence: dict[str, str]
    names: dict[str, str]
    by_mode: dict[Mode, dict[str, str]]
    repair: str
    complaints: dict[str, str]


def read_text(locale: Locale, name: str) -> str:
    return files("evenhand.prompts").joinpath(locale, name).read_text("utf-8")


@cache
def words_for(locale: Locale) -> Words:
    source = read_text(locale, "words.toml")
    table = tomllib.loads(source)
    return Words(
        source=source,
        fence=table["fence"],
        names=table["names"],
        by_mode={"reasoned": table["reasoned"], "letter": table["letter"]},
        repair=table["repair"]["request"],
        complaints=table["complaints"],
    )


@dataclass(frozen=True, slots=True)
class PreparationWords:
    """Kept in a separate file: a template's version does not change with what it does not use."""

    names: dict[str, str]
    rules: dict[Mode, str]


@cache
def preparation_words(locale: Locale) -> PreparationWords:
    table = tomllib.loads(read_text(locale, "preparation.toml"))
    rules: dict[Mode, str] = {
        "reasoned": table["reasoned"]["rules"],
        "letter": table["letter"]["rules"],
    }
    return PreparationWords(names=table["names"], rules=rules)


Role = Literal["system", "user"]


# Named tuples: a pair has two dozen, and a frozen dataclass takes three times as long to make.
class Segment(NamedTuple):
    """A stretch of prompt. `judged` marks the caller's text, which may be hostile."""

    text: str
    judged: bool = False


class ChatMessage(NamedTuple):
    role: Literal["system", "user", "assistant"]
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        return "".join([segment.text for segment in self.segments])


# Slots with the caller's texts are fenced; the others are our own words.
NOTES = ("metrics", "own_reference", "analysis_a", "analysis_b")  # written before the judging
MATERIAL = ("criteria", "prompt", "context", "reference", "response_a", "response_b", *NOTES)
WORDING = ("marker", "tie_rule", "menu", "question")
KNOWN = MATERIAL + WORDING
ALWAYS_NEEDED = ("prompt", "response_a", "response_b", "criteria")

_SLOT = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECTION = re.compile(r"^===[ \t]*(\w+)[ \t]*===[ \t]*$", re.MULTILINE)
_JINJA_ENDINGS = (".j2", ".jinja", ".jinja2")


@dataclass(frozen=True, slots=True)
class Slot:
    name: str


# A section filled up to its slots: literal texts and slots in turn.
Piece = str | Slot


class Section(Protocol):
    """One message of a template, in either of the two template languages."""

    @property
    def slots(self) -> frozenset[str]: ...

    def pieces(self, present: Mapping[str, bool]) -> tuple[Piece, ...]: ...


@dataclass(frozen=True, slots=True)
class PlainSection:
    """Text with {slots}. Split once and joined, so nothing is filled twice."""

    parts: tuple[Piece, ...]

    @property
    def slots(self) -> frozenset[str]:
        return frozenset(part.name for part in self.parts if isinstance(part, Slot))

    def pieces(self, present: Mapping[str, bool]) -> tuple[Piece, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class JinjaSection:
    """A user's Jinja template, sandboxed. It places slots and never sees texts.

    It is rendered with stand-ins that become the slots: a template cannot change a text, and a text
    is never template code.
    """

    template: Any
    slots: frozenset[str]
    varies: bool = False  # it chooses at random, so that no two fillings need be alike

    def pieces(self, present: Mapping[str, bool]) -> tuple[Piece, ...]:
        from jinja2 import TemplateError as JinjaError

        faults = (JinjaError, ArithmeticError, AssertionError, LookupError, RuntimeError)
        stand_ins = {name: f"\x00{name}\x00" if present.get(name) else "" for name in KNOWN}
        try:
            text = self.template.render(stand_ins)
        except (*faults, TypeError, ValueError) as error:
            raise TemplateError.of("prompts.template_failed", error=_one_line(error)) from None
        parts = text.split("\x00")
        pieces: list[Piece] = []
        for index, part in enumerate(parts):
            if index % 2 == 0:
                if part:
                    pieces.append(part)
            elif part in KNOWN:
                pieces.append(Slot(part))
            else:
                raise TemplateError.of("prompts.slot_changed")
        return tuple(pieces)


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    locale: Locale
    mode: Mode
    version: str
    sections: tuple[tuple[Role, Section], ...]
    source: str = field(default="", repr=False)
    compact: bool = False  # a piece of material ends where the next opens; the question closes
    # `outline_of`'s cache; a copy of the template starts empty.
    outlines: dict[Any, Any] = field(init=False, default_factory=dict, repr=False, compare=False)

    @property
    def slots(self) -> frozenset[str]:
        return frozenset().union(*(section.slots for _, section in self.sections))

    @property
    def varies(self) -> bool:
        return any(isinstance(each, JinjaSection) and each.varies for _, each in self.sections)


@cache
def built_in_template(locale: Locale, mode: Mode, *, prepared: bool = False) -> Template:
    """`prepared`: with the places of prepared texts."""
    source = read_text(locale, f"{mode}.txt")
    name = f"{locale}/{mode}"
    if prepared:
        words = preparation_words(locale)
        source = source.replace("\n=== user ===", f"\n{words.rules[mode]}\n=== user ===", 1)
        source = source.replace("{reference}", "{reference}\n{metrics}\n{own_reference}")
        for side in "ab":
            place = f"{{response_{side}}}"
            source = source.replace(place, f"{place}\n{{analysis_{side}}}")
        # The slots' names are part of the prompt too.
        named = sha256(read_text(locale, "preparation.toml").encode()).hexdigest()[:6]
        name += f"+prepared.{named}"
    template = make_template(source, name=name, locale=locale, mode=mode)
    return replace(template, compact=mode == "letter")


def open_template(path: str | Path, *, locale: Locale = "en", mode: Mode = "reasoned") -> Template:
    """A user's template: plain {slots}, or Jinja if its name ends in .j2 or .jinja."""
    path = Path(path)
    try:
        source = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise TemplateError.of(
            "prompts.template_unreadable", path=path, strerror=error.strerror or error
        ) from None
    except UnicodeDecodeError:
        raise TemplateError.of("prompts.template_not_utf8", path=path) from None
    source = source.replace("\r\n", "\n")
    return make_template(source, name=path.name, locale=locale, mode=mode)


def make_template(source: str, *, name: str, locale: Locale, mode: Mode) -> Template:
    """Its name decides the template language."""
    if "\x00" in source:
        raise TemplateError.of("prompts.template_with_nul", name=name)
    make = _jinja_section if name.endswith(_JINJA_ENDINGS) else plain_section
    sections = tuple((role, make(text, name)) for role, text in split_sections(source, name))
    used = [source, words_for(locale).source]
    if any(section.slots & set(NOTES) for _, section in sections):
        used.append(read_text(locale, "preparation.toml"))  # the names of these places
    fingerprint = sha256(b"\x00".join(text.encode() for text in used)).hexdigest()
    template = Template(
        name=name,
        locale=locale,
        mode=mode,
        version=f"{name}@{fingerprint[:12]}",
        sections=sections,
        source=source,
    )
    _check_slots(template)
    return template


def split_sections(source: str, name: str) -> Iterator[tuple[Role, str]]:
    pieces = _SECTION.split(source)
    if len(pieces) == 1:
        yield "user", source.rstrip("\n")
        return
    roles = pieces[1::2]
    for role in roles:
        if role not in ("system", "user"):
            raise TemplateError.of("prompts.section_unknown", name=name, role=role)
    if pieces[0].strip():
        raise TemplateError.of("prompts.text_before_sections", name=name)
    if roles not in (["system", "user"], ["user"]):
        raise TemplateError.of("prompts.sections_malformed", name=name, roles=", ".join(roles))
    for role, text in zip(roles, pieces[2::2], strict=True):
        yield cast("Role", role), text.strip("\n")


def plain_section(source: str, name: str) -> PlainSection:
    parts: list[Piece] = []
    end = 0
    for match in _SLOT.finditer(source):
        if match.start() > end:
            parts.append(source[end : match.start()])
        parts.append(Slot(match[1] or match[2]))
        end = match.end()
    if end < len(source):
        parts.append(source[end:])
    return PlainSection(tuple(parts))


def _jinja_section(source: str, name: str) -> JinjaSection:
    from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Prompts are plain text, so nothing is escaped for HTML.
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    try:
        parsed = environment.parse(source)
        slots = meta.find_undeclared_variables(parsed)
        compiled = environment.from_string(source)
    except TemplateSyntaxError as error:
        raise TemplateError.of(
            "prompts.template_invalid", name=name, lineno=error.lineno, error=_one_line(error)
        ) from None
    # The only random filter; its functions are no slots, so they are refused.
    varies = any(each.name == "random" for each in parsed.find_all(nodes.Filter))
    return JinjaSection(template=compiled, slots=frozenset(slots), varies=varies)


def _check_slots(template: Template) -> None:
    unknown = sorted(template.slots - set(KNOWN))
    if unknown:
        raise TemplateError.of(
            "prompts.slot_unknown", name=template.name, unknown=unknown[0], known=", ".join(KNOWN)
        )
    needed = ALWAYS_NEEDED + (("question",) if template.mode == "letter" else ())
    for slot in needed:
        if slot not in template.slots:
            raise TemplateError.of(
                "prompts.slot_missing", name=template.name, slot=slot, needed=", ".join(needed)
            )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
