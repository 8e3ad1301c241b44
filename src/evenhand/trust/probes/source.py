"""The cases of one language as the source of an ordinary run, so that it can be taken up again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from evenhand.contract import Locale
from evenhand.data import BadRow, Record
from evenhand.trust.probes.cases import ProbeCase


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

    @property
    def meaning(self) -> str | None:
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
