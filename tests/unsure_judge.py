"""A judge of sums whose stated confidence tells how often it is right: for tests of calibration."""

from __future__ import annotations

import re
from typing import Any

from evenhand.judges import JudgeCall
from run_data import right_place, sums
from scripted import answer_json

# What it says, and of ten such answers how many are wrong.
LEVELS = ((0.55, 5), (0.65, 4), (0.75, 3), (0.85, 1), (0.95, 0))
_ASKED = re.compile(r"What is (\d+) plus")


def stated(number: int) -> float:
    return LEVELS[number % len(LEVELS)][0]


def is_right(number: int) -> bool:
    return number // len(LEVELS) % 10 >= LEVELS[number % len(LEVELS)][1]


def asked_number(prompt: str) -> int:
    asked = _ASKED.search(prompt)
    assert asked is not None
    return int(asked[1])


def unsure_answer(prompt: str) -> str:
    number = asked_number(prompt)
    better = right_place(prompt)
    winner = better if is_right(number) else {"A": "B", "B": "A"}[better]
    return answer_json(winner, confidence=stated(number), criteria=[("accuracy", winner)])


def unsure(call: JudgeCall) -> str:
    return unsure_answer("\n".join(message.text for message in call.messages))


def labelled_sums(count: int, *, begin: int = 1) -> list[dict[str, Any]]:
    """With the right label: B's for every third."""
    return [
        row | {"label": "B" if number % 3 == 0 else "A"}
        for number, row in enumerate(sums(count, begin=begin), start=begin)
    ]
