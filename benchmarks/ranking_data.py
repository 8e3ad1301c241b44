"""A million battles of a hundred models, the same for everybody; needs nothing but NumPy.

Runs in the peers' own environments too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

ROWS = 1_000_000
MODELS = 100
PROMPTS = 50_000
WORDS = ("model_a", "model_b", "tie")


@dataclass(frozen=True)
class Battles:
    names: list[str]
    a: Any  # codes
    b: Any
    outcome: Any  # places in WORDS
    prompt: Any

    def texts(self, codes: Any, words: Any) -> list[str]:
        """A list as code makes it that looks names up: the same few objects over and over."""
        return [words[code] for code in codes.tolist()]

    def own_texts(self, codes: Any, words: Any) -> list[str]:
        """A list as a parser of JSON or CSV makes it: every cell an object of its own."""
        return [f"{words[code][:1]}{words[code][1:]}" for code in codes.tolist()]


def make_battles(rows: int = ROWS, *, seed: int = 1) -> Battles:
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 0.7, MODELS)
    a = rng.integers(0, MODELS, rows)
    b = (a + rng.integers(1, MODELS, rows)) % MODELS
    won = rng.random(rows) < 1 / (1 + np.exp(strength[b] - strength[a]))
    outcome = np.where(rng.random(rows) < 0.2, 2, np.where(won, 0, 1))
    names = [f"provider/model-{number:03d}" for number in range(MODELS)]
    return Battles(names, a, b, outcome, rng.integers(0, PROMPTS, rows))


def cells(battles: Battles) -> tuple[Any, Any, Any, Any]:
    """Each outcome of each pair once, with how often it came: what a thrifty user would make."""
    turned = battles.a > battles.b
    low, high = np.minimum(battles.a, battles.b), np.maximum(battles.a, battles.b)
    swapped = np.where(battles.outcome == 2, 2, 1 - battles.outcome)
    outcome = np.where(turned, swapped, battles.outcome)
    key, count = np.unique((low * MODELS + high) * 3 + outcome, return_counts=True)
    return key // 3 // MODELS, key // 3 % MODELS, key % 3, count


def cpu_s(work: Callable[[], object], *, rounds: int) -> float:
    """The least CPU time of some rounds: what is left when nothing else disturbs."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def tell(measured: dict[str, float]) -> None:
    json.dump(measured, sys.stdout)
