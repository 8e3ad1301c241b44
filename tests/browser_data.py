"""A small, rich data set for the pages: models, tags, labels, every outcome, Chinese, markdown.

The judge behind the server knows it: what it says follows from the two texts that it is shown, so
the same data always give the same run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from typing import Any, Literal

from hostile_markup import ATTACKS, Attack
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply

CRITERIA = ("accuracy", "clarity")
JUDGES = ("careful", "hasty")
# From the weakest to the strongest.
MODELS = ("cobalt-mini", "atlas-7b", "borealis", "墨子-14b")

Manner = Literal["decides", "ties", "follows the place", "mumbles"]


@dataclass(frozen=True)
class Topic:
    name: str
    prompt: str
    right: str
    wrong: str
    tags: tuple[str, ...]


TOPICS = (
    Topic(
        "sum",
        "What is 17 times 24? Show how you get there.",
        "17 × 24 = 17 × 20 + 17 × 4 = 340 + 68 = **408**.",
        "17 × 24 is about **400**, give or take a little.",
        ("math", "easy"),
    ),
    Topic(
        "sort",
        "Write a Python function that sorts a list of words by length.",
        "```python\ndef by_length(words: list[str]) -> list[str]:\n"
        "    return sorted(words, key=len)\n```\n\nIt is stable: equal lengths keep their order.",
        "```python\ndef by_length(words):\n    words.sort()\n    return words\n```",
        ("code",),
    ),
    Topic(
        "bread",
        "How do I keep bread fresh for a week?",
        "1. Keep it in a paper bag for the first two days.\n2. Slice and **freeze** the rest.\n"
        "3. Toast it straight from the freezer.\n\nThe fridge makes it stale *faster*.",
        "Put it into the fridge, where it keeps for a week.",
        ("everyday", "easy"),
    ),
    Topic(
        "水",
        "为什么冰会浮在水面上？请用两三句话说明。",
        "水结冰时，分子排列成较疏松的晶体结构，体积约增大百分之九，密度因此低于液态水。"
        "密度较小的冰就浮在水面上。",
        "因为冰里有空气，而且冰比较冷，所以会浮起来。",
        ("中文", "science"),
    ),
    Topic(
        "letter",
        "Write a short, friendly reminder to a colleague about an overdue report.",
        "Hi Sam,\n\nA quick reminder that the May report was due on Friday. Could you send it by "
        "Wednesday? If something is in the way, tell me and we will find a solution.\n\nThanks!",
        "Sam, the report is late. Send it.",
        ("writing",),
    ),
    Topic(
        "moon",
        "Why do we always see the same side of the Moon?",
        "The Moon turns once on its axis in the time that it goes once around the Earth: tides "
        "have locked the two periods. A little more than half is seen over time, by *libration*.",
        "Because the Moon does not rotate.",
        ("science",),
    ),
)


@dataclass(frozen=True)
class Case:
    """One row of the file, and what each judge makes of it."""

    row: Mapping[str, Any]
    better: Literal["A", "B"]
    manners: Mapping[str, Manner]
    astray: frozenset[str] = frozenset()  # judges that prefer the other response
    quoted: str = ""  # what the judge's reasoning repeats

    @property
    def texts(self) -> tuple[str, str]:
        return self.row["response_a"], self.row["response_b"]


def _draw(*what: object) -> float:
    """Between 0 and 1, by what it is for."""
    return int.from_bytes(sha256(repr(what).encode()).digest()[:6]) / 2**48


def answers_by_model() -> list[Case]:
    """Every two models on every topic: wins by strength, now and then against it."""
    return [
        _case(number, topic, models)
        for number, (topic, models) in enumerate(
            (topic, models) for topic in TOPICS for models in combinations(MODELS, 2)
        )
    ]


def _case(number: int, topic: Topic, models: tuple[str, str]) -> Case:
    weaker, stronger = models
    key = f"{topic.name}-{number + 1}"
    upset = _draw(key, "upset") < 0.2
    first, second = (stronger, weaker) if number % 2 else (weaker, stronger)
    wins = weaker if upset else stronger
    texts = {
        model: f"{topic.right if model == wins else topic.wrong}\n\n({model})" for model in models
    }
    better: Literal["A", "B"] = "A" if first == wins else "B"
    row: dict[str, Any] = {
        "id": key,
        "prompt": topic.prompt,
        "response_a": texts[first],
        "response_b": texts[second],
        "model_a": first,
        "model_b": second,
        "tags": list(topic.tags),
    }
    if _draw(key, "labelled") < 0.8:
        row["label"] = better if _draw(key, "label") < 0.85 else "tie"
    manners: dict[str, Manner] = {judge: _manner(key, judge) for judge in JUDGES}
    astray = frozenset(j for j in JUDGES if _draw(key, j, "astray") < (0.05, 0.25)[j == "hasty"])
    return Case(row, better, manners, astray)


def _manner(key: str, judge: str) -> Manner:
    drawn = _draw(key, judge, "manner")
    if drawn < 0.06:
        return "mumbles"
    if drawn < (0.15 if judge == "careful" else 0.35):
        return "follows the place"
    return "ties" if drawn > 0.9 else "decides"


def hostile_rows() -> list[Case]:
    """Every attack in every field that a page shows, and in what the judge says."""
    return [_attacked(attack) for attack in ATTACKS]


def _attacked(attack: Attack) -> Case:
    row = {
        "id": f"{attack.name} {attack.text}"[:200],
        "prompt": f"Prompt of {attack.name}: {attack.text}",
        "response_a": f"{attack.text}\n\nA of {attack.name}",
        "response_b": f"B of {attack.name}\n\n{attack.text}",
        "model_a": attack.text[:200],
        "model_b": "plain",
        "tags": [attack.text[:200], "attack"],
        "label": "A",
    }
    manners: dict[str, Manner] = dict.fromkeys(JUDGES, "decides")
    return Case(row, "A", manners, quoted=attack.text)


def simple_rows(count: int = 6) -> Iterator[dict[str, Any]]:
    """Pairs without models, tags and labels, whose better response says so."""
    for number in range(1, count + 1):
        good, bad = f"The right answer, {number}.", f"The wrong answer, {number}."
        yield {
            "id": f"plain-{number}",
            "prompt": f"Question {number}: which answer is right?",
            "response_a": good if number % 3 else bad,
            "response_b": bad if number % 3 else good,
        }


_SECTION = r"<<<\w+ Response {}>>>\n(.*?)\n<<<end"


class KnowingJudge:
    """Answers by the texts that it is shown; the model's name in the request says who it is."""

    def __init__(self, cases: list[Case]) -> None:
        self._cases = {frozenset(case.texts): case for case in cases}

    def __call__(self, request: SeenRequest) -> Reply:
        judge = str(request.json["model"])
        shown = [_shown(request.prompt, letter) for letter in "AB"]
        case = self._cases.get(frozenset(shown))
        if case is None:
            return _said("A" if "right" in shown[0] else "B", confidence=0.8)
        manner = case.manners[judge]
        if manner == "mumbles":
            return _charged("I would rather not say which of the two is better.")
        if manner == "ties":
            return _said("TIE", confidence=0.6)
        if manner == "follows the place":
            return _said("A", confidence=0.7)
        preferred = case.texts[(case.better == "B") != (judge in case.astray)]
        confidence = round(0.55 + 0.44 * _draw(case.row["id"], judge, "confidence"), 2)
        return _said("AB"[shown.index(preferred)], confidence=confidence, quoted=case.quoted)


def _said(winner: str, *, confidence: float, quoted: str = "") -> Reply:
    said = {"A": "Response A is right where Response B is not.", "TIE": "Both are equally right."}
    reasoning = said.get(winner, "Response B is right where Response A is not.")
    criteria = [("accuracy", winner), ("clarity", "TIE" if winner != "A" else "A")]
    return _charged(
        answer_json(
            winner,
            confidence=confidence,
            criteria=criteria,
            reasoning=f"{reasoning} {quoted}".strip(),
            differentiators=["Correctness", *([quoted] if quoted else [])],
        )
    )


def _charged(text: str) -> Reply:
    usage = {"prompt_tokens": 420, "completion_tokens": 96, "total_tokens": 516}
    return chat_reply(text, usage=usage)


def _shown(prompt: str, letter: str) -> str:
    (*_, text) = re.findall(_SECTION.format(letter), prompt, re.DOTALL)
    assert isinstance(text, str)
    return text
