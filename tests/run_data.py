"""Data and judges for tests of runs: sums whose right answer every good judge knows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

from evenhand.judges.protocol import JudgeCall
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply

CRITERIA = ("-c", "accuracy")


def sums(count: int, *, begin: int = 1, **more: Any) -> list[dict[str, Any]]:
    """Pair n asks for n + n. Response A is right, but for every third, where B is."""
    return [
        {
            "id": f"sum-{n}",
            "prompt": f"What is {n} plus {n}?",
            "response_a": f"It is {2 * n + (n % 3 == 0)}, by counting.",
            "response_b": f"It is {2 * n + (n % 3 != 0)}, by counting.",
            **more,
        }
        for n in range(begin, begin + count)
    ]


def wins_b(count: int) -> int:
    return count // 3


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


_ASKED = re.compile(r"What is (\d+) plus")
_SAID = re.compile(r"It is (\d+), by counting")


def right_place(prompt: str) -> str:
    """The label that the right answer has in this prompt."""
    asked = _ASKED.search(prompt)
    assert asked is not None
    first, second = _SAID.findall(prompt)
    right = str(2 * int(asked[1]))
    assert right in (first, second)
    return "A" if first == right else "B"


def adds_up(request: SeenRequest) -> Reply:
    """A judge that can add."""
    winner = right_place(request.prompt)
    return chat_reply(answer_json(winner, confidence=0.9, criteria=[("accuracy", winner)]))


def adds_up_here(call: JudgeCall) -> str:
    winner = right_place("\n".join(message.text for message in call.messages))
    return answer_json(winner, confidence=0.9, criteria=[("accuracy", winner)])


# A judge of sums whose stated confidence tells how often it is right: for tests of calibration.
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


def pairings(prompts: int, models: int) -> list[dict[str, Any]]:
    """Every two of the models on every prompt. Model m answers m too much, so that of each two the
    first is nearer, and no two texts are the same."""
    return [
        {
            "id": f"{n}-{one}-{two}",
            "prompt": f"What is {n} plus {n}?",
            "response_a": f"It is {2 * n + one}, by counting.",
            "response_b": f"It is {2 * n + two}, by counting.",
            "model_a": f"model-{one}",
            "model_b": f"model-{two}",
        }
        for n in range(1, prompts + 1)
        for one, two in combinations(range(models), 2)
    ]


_ARTEFACTS = {
    "You prepare the judging": "metrics",
    "You write a reference": "reference",
    "You analyse one response": "analysis",
}


def artefact_in(prompt: str) -> str | None:
    """What a request wants written, by the first words of its prompt; None: a verdict."""
    return next((kind for begins, kind in _ARTEFACTS.items() if begins in prompt), None)


def answer_to(prompt: str) -> str:
    """Notes where notes are asked for, else the nearer of two answers."""
    kind = artefact_in(prompt)
    if kind is not None:
        return f"my {kind}"
    first, second = (int(number) for number in _SAID.findall(prompt))
    winner = "A" if first < second else "B"
    return answer_json(winner, confidence=0.9, criteria=[("accuracy", winner)])
