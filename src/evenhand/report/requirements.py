"""What a gate requires of a run: that a win rate, of all pairs or of a part, is above a limit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message

OVERALL = "overall"
_FORM = re.compile(r"\s*(?P<part>.*?\S)\s*(?P<sign>>=|>)\s*(?P<rate>[0-9.]+)\s*")
Kind: TypeAlias = Literal["overall", "criterion", "tag"]


class Requirement(Model):
    """`overall>0.5`, `safety>=0.45` of a criterion, `tag:refunds>=0.4` of a tag."""

    kind: Kind
    part: str
    at_least: bool  # an end on the limit is enough
    rate: float

    @property
    def name(self) -> str:
        plain = read_kind(self.part) == (self.kind, self.part)
        return self.part if plain else f"{self.kind}:{self.part}"

    def __str__(self) -> str:
        return f"{self.name}{'>=' if self.at_least else '>'}{self.rate:g}"

    @classmethod
    def above(cls, rate: float) -> Requirement:
        return cls(kind="overall", part=OVERALL, at_least=False, rate=rate)


def read_requirement(text: str) -> Requirement:
    form = _FORM.fullmatch(text)
    if form is None:
        raise InputError(Message("gate.requirement_form", text=text))
    try:
        rate = float(form["rate"])
    except ValueError:
        raise InputError(Message("gate.requirement_form", text=text)) from None
    if not 0 <= rate <= 1:
        raise InputError(Message("gate.requirement_rate", text=text, rate=form["rate"]))
    kind, part = read_kind(form["part"])
    if not part:
        raise InputError(Message("gate.requirement_form", text=text))
    return Requirement(kind=kind, part=part, at_least=form["sign"] == ">=", rate=rate)


def read_kind(part: str) -> tuple[Kind, str]:
    """What a part is, and its name: `criterion:` is needed for one that is called overall."""
    if part == OVERALL:
        return "overall", part
    before, colon, name = part.partition(":")
    if colon and before == "tag":
        return "tag", name.strip()
    return "criterion", name.strip() if colon and before == "criterion" else part


def read_requirements(
    texts: Sequence[str], min_win_rate: float | None = None
) -> tuple[Requirement, ...]:
    """Those that are written out, or else that the overall rate is above a limit."""
    if texts:
        return tuple(dict.fromkeys(read_requirement(text) for text in texts))
    return (Requirement.above(0.5 if min_win_rate is None else min_win_rate),)


def known_parts(
    required: Iterable[Requirement], *, criteria: Sequence[str], tags: Sequence[str]
) -> None:
    """Refuse what no pair of the run has, and name what there is."""
    for each in required:
        there = {"criterion": criteria, "tag": tags}.get(each.kind)
        if there is not None and each.part not in there:
            raise InputError(
                Message(
                    f"gate.no_such_{each.kind}",
                    part=each.part,
                    criteria=list(criteria) or ["-"],
                    tags=list(tags) or ["-"],
                )
            )
