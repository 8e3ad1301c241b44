"""A dozen pairs and example answers, to see everything once.

The answers in `answers.jsonl` were written by evenhand's authors in the manner of a strong judge;
they measure no model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from evenhand.contract import WINNERS, Locale, Outcome, Pair, Verdict, Winner, read_pair
from evenhand.stats.proportions import wilson_interval

EXAMPLES_LABEL = "example answers, written by evenhand's authors for this demo"


@dataclass(frozen=True, slots=True)
class DemoPair:
    pair: Pair
    locale: Locale
    label: Winner
    why: str


_LABELS: dict[str, Winner] = {winner: winner for winner in WINNERS}


def demo_pairs() -> tuple[DemoPair, ...]:
    lines = files("evenhand.demo").joinpath("pairs.jsonl").read_text("utf-8").splitlines()
    return tuple(_demo_pair(json.loads(line)) for line in lines)


def _demo_pair(row: dict[str, object]) -> DemoPair:
    extras = {name: row.pop(name) for name in ("lang", "label", "why")}
    return DemoPair(
        pair=read_pair(row),
        locale="zh" if extras["lang"] == "zh" else "en",
        label=_LABELS[str(extras["label"])],
        why=str(extras["why"]),
    )


def answers_file() -> Path:
    with as_file(files("evenhand.demo").joinpath("answers.jsonl")) as path:
        return path


@dataclass(frozen=True, slots=True)
class DemoTally:
    """A judge's results on the demo's pairs, with their uncertainty."""

    pairs: int
    first_place: int  # both orders chose whatever was shown first
    second_place: int  # both orders chose whatever was shown second
    wins: int
    ties: int
    inconsistent: int

    @property
    def followed_place(self) -> int:
        return self.first_place + self.second_place

    @property
    def followed_place_interval(self) -> tuple[float, float] | None:
        return wilson_interval(self.followed_place, self.pairs)


def tally(verdicts: Sequence[Verdict]) -> DemoTally:
    chosen = [
        (position.first_pass_winner, position.second_pass_winner)
        for verdict in verdicts
        if (position := verdict.position_consistency) is not None
    ]
    outcomes = [verdict.outcome for verdict in verdicts]
    return DemoTally(
        pairs=len(verdicts),
        first_place=chosen.count(("A", "B")),
        second_place=chosen.count(("B", "A")),
        wins=outcomes.count(Outcome.WIN),
        ties=outcomes.count(Outcome.TIE),
        inconsistent=outcomes.count(Outcome.INCONSISTENT),
    )
