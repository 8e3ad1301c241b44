"""Attacks on evenhand, each a function that tries one and reports what it measured.

A module a target: `answers` (hostile completions), `judges` (hostile servers of
judges), `uploads` (hostile data), `service` (hostile
clients), `outputs` (what may reach a store, a terminal or a page). Each has `ATTACKS`, in the order
in which docs/security.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AtMost:
    """Something measured that holds up to its limit; `note` says where or what it was."""

    name: str
    value: float
    limit: float
    unit: str = ""
    note: str = ""

    @property
    def held(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, _number(self.value), self.unit, self.note)))

    @property
    def promise(self) -> str:
        return f"{self.name} ≤ {_number(self.limit)}{self.unit and f' {self.unit}'}"


@dataclass(frozen=True, slots=True)
class Due:
    """Something that happened and what should have; `note` says more where it is not so."""

    name: str
    value: object
    due: object
    note: str = ""

    @property
    def held(self) -> bool:
        return self.value == self.due

    def __str__(self) -> str:
        note = "" if self.held else self.note
        return " ".join(filter(None, (self.name, str(self.value), note)))

    @property
    def promise(self) -> str:
        return f"{self.name} {self.due}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured against its limits, and what else is worth knowing."""

    checks: tuple[AtMost | Due, ...]
    note: str = ""

    @property
    def held(self) -> bool:
        return all(check.held for check in self.checks)

    @property
    def limits(self) -> str:
        return "; ".join(check.promise for check in self.checks)

    @property
    def measured(self) -> str:
        return "; ".join(filter(None, (*map(str, self.checks), self.note)))


@dataclass(frozen=True, slots=True)
class Attack:
    """`name` is a line of docs/security.md; `run` is called in a process of its own."""

    name: str
    run: Callable[[], Outcome]
    limit_s: float = 120.0


def _number(value: float) -> str:
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"
