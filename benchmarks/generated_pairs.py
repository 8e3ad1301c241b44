"""Pairs without end, each different, whose verdict on the loopback server is known beforehand.

Of ten pairs in a row, seven are won (four by A, three by B), one is a tie, two are inconsistent.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.answers import EQUINOX, NADIR, ZENITH

Size = Literal["usual", "small"]
Fate = Literal["A", "B", "TIE", "INCONSISTENT"]
FATES: tuple[Fate, ...] = ("A", "B", "A", "INCONSISTENT", "B", "A", "TIE", "B", "A", "INCONSISTENT")
_MARKS = {
    "A": (ZENITH, NADIR),
    "B": (NADIR, ZENITH),
    "TIE": (EQUINOX, EQUINOX),
    "INCONSISTENT": ("meridian", "meridian"),
}
_VOCABULARY = (
    "the a of to and in is it that for with as on by this from when which can more one other "
    "water light river stone market number letter answer question reason example method result "
    "carries follows explains measures compares returns changes grows holds begins remains "
    "small large early quiet common useful simple several careful certain"
)
_WORDS = _VOCABULARY.split()


@dataclass(frozen=True, slots=True)
class Planned:
    """How a run over these pairs must come out."""

    pairs: int
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int

    @classmethod
    def of(cls, pairs: int) -> Planned:
        fates = [fate_of(number) for number in range(1, pairs % 10 + 1)]
        tens = pairs // 10

        def count(fate: Fate) -> int:
            return tens * FATES.count(fate) + fates.count(fate)

        return cls(pairs, count("A"), count("B"), count("TIE"), count("INCONSISTENT"))

    @property
    def calls(self) -> int:
        return 2 * self.pairs


def fate_of(number: int) -> Fate:
    """`number` counts from 1, as the pairs' ids do."""
    return FATES[(number - 1) % len(FATES)]


def write_pairs(path: Path, count: int, *, size: Size = "usual", seed: int = 1) -> Planned:
    with path.open("w", encoding="utf-8") as file:
        for row in generated(count, size=size, seed=seed):
            file.write(json.dumps(row) + "\n")
    return Planned.of(count)


def generated(count: int, *, size: Size, seed: int) -> Iterator[dict[str, str]]:
    """The usual size: a prompt of 200 characters, responses of 500 to 800."""
    rng = random.Random(seed)
    for number in range(1, count + 1):
        mark_a, mark_b = _MARKS[fate_of(number)]
        lengths = (200, rng.randint(500, 800), rng.randint(500, 800))
        prompt, a, b = lengths if size == "usual" else (24, 32, 32)
        yield {
            "id": f"pair-{number}",
            "prompt": _text(rng, prompt, f"Question {number}:"),
            "response_a": _text(rng, a, f"Answer one is {mark_a}:"),
            "response_b": _text(rng, b, f"Answer two is {mark_b}:"),
        }


def _text(rng: random.Random, length: int, opening: str) -> str:
    words = rng.choices(_WORDS, k=length // 5 + 1)
    return " ".join((opening, *words))[: max(length, len(opening) + 1)].strip()
